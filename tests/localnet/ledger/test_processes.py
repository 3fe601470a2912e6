"""Several processes on one chain file, and processes that are killed in the middle of it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from stellar_sdk import Keypair, xdr

from mycelium_localnet import Chain
from tests.localnet.ledger.lab import Lab, create, keypair
from tests.localnet.ledger.test_headers import check_chained

if TYPE_CHECKING:
    from pathlib import Path

# Funds accounts one after the other and says so; the numbers of the first and the last are arguments.
WRITER = """
import sys
from hashlib import sha256
from stellar_sdk import Keypair
from mycelium_localnet import Chain

path, first, last = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
with Chain.open(path) as chain:
    print("open", flush=True)
    sys.stdin.readline()
    for number in range(first, last):
        chain.fund(Keypair.from_raw_ed25519_seed(sha256(f"account {number}".encode()).digest()).public_key)
        print(number, flush=True)
"""


def start(path: Path, first: int, last: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path), str(first), str(last)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def tell(process: subprocess.Popen[str]) -> None:
    """Let a writer begin, once it has said that the chain is open."""
    assert process.stdout is not None
    assert process.stdin is not None
    assert process.stdout.readline() == "open\n"
    process.stdin.write("go\n")
    process.stdin.flush()


def finish(process: subprocess.Popen[str]) -> list[int]:
    """The numbers that a writer reported."""
    assert process.stdout is not None
    assert process.stdin is not None
    reported = [int(line) for line in process.stdout.read().split()]
    process.stdin.close()
    process.stdout.close()
    process.wait()
    return reported


def check_whole(chain: Chain, wasm: bytes) -> None:
    """Everything that a chain promises, whoever wrote it and however that ended."""
    lab = Lab(chain, wasm)
    ledgers = lab.ledgers()
    check_chained(ledgers)
    friendbot = lab.account_entry(Keypair.from_public_key(chain.friendbot))
    held = 0
    with chain.read() as view:
        rows = view.transactions((0, 0), 100_000)
    with chain._storage.read() as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        for (data,) in connection.execute("SELECT entry FROM entries WHERE type = 0"):
            account = xdr.LedgerEntry.from_xdr_bytes(data).data.account
            assert account is not None
            held += account.balance.int64
    header = xdr.LedgerHeader.from_xdr_bytes(ledgers[-1].header)
    assert held + header.fee_pool.int64 == header.total_coins.int64
    # Each ledger but the first holds one transaction, and each used one sequence number.
    assert [row.ledger for row in rows] == list(range(2, len(ledgers) + 1))
    assert all(row.successful for row in rows)
    assert friendbot.seq_num.sequence_number.int64 == (1 << 32) + len(rows)


def exists(chain: Chain, number: int) -> bool:
    with chain.read() as view:
        return view.entry(bytes(8) + keypair(f"account {number}").raw_public_key()) is not None


def test_processes_write_at_once_and_lose_nothing(tmp_path: Path, wasm: bytes) -> None:
    path = tmp_path / "chain.db"
    each = 40
    writers = [start(path, base, base + each) for base in (0, 1_000, 2_000)]
    for writer in writers:
        tell(writer)
    with Chain.open(path) as chain:
        for number in range(3_000, 3_000 + each):
            chain.fund(keypair(f"account {number}").public_key)
        reported = [finish(writer) for writer in writers]
        assert reported == [list(range(base, base + each)) for base in (0, 1_000, 2_000)]
        check_whole(chain, wasm)
        assert Lab(chain, wasm).latest().sequence == 1 + 4 * each
        for base in (0, 1_000, 2_000, 3_000):
            assert all(exists(chain, number) for number in range(base, base + each))


def test_processes_that_open_a_new_file_at_once_make_one_chain(tmp_path: Path) -> None:
    path = tmp_path / "chain.db"
    writers = [start(path, base, base + 1) for base in range(4)]
    for writer in writers:
        tell(writer)
    assert [finish(writer) for writer in writers] == [[0], [1], [2], [3]]
    with Chain.open(path) as chain:
        assert all(exists(chain, number) for number in range(4))
        with chain.read() as view:
            assert view.latest().sequence == 5


@pytest.mark.parametrize("reports", [1, 2, 3, 5, 8, 13, 21])
def test_a_killed_writer_leaves_whole_ledgers(tmp_path: Path, wasm: bytes, reports: int) -> None:
    """Killed at no particular place while it closes ledgers: what it reported is there, and at most one
    more."""
    path = tmp_path / "chain.db"
    writer = start(path, 0, 100_000)
    tell(writer)
    assert writer.stdout is not None
    for _ in range(reports):
        writer.stdout.readline()
    os.kill(writer.pid, signal.SIGKILL)
    known = reports + len(finish(writer))
    assert writer.returncode == -signal.SIGKILL
    with Chain.open(path) as chain:
        check_whole(chain, wasm)
        found = Lab(chain, wasm).latest().sequence - 1
        assert known <= found <= known + 1
        assert all(exists(chain, number) for number in range(found))
        assert not exists(chain, found)
        # And it goes on.
        lab = Lab(chain, wasm)
        lab.succeed(lab.build(keypair("account 0"), create()))


def test_another_process_sees_a_ledger_as_soon_as_it_is_closed(tmp_path: Path) -> None:
    path = tmp_path / "chain.db"
    with Chain.open(path) as chain:
        writer = start(path, 0, 3)
        tell(writer)
        assert writer.stdout is not None
        for number in range(3):
            assert writer.stdout.readline() == f"{number}\n"
            assert exists(chain, number)
        finish(writer)
