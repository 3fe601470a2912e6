"""Two processes: equal chains from equal calls, and a reader that never sees half of a transaction."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from stellar_sdk import scval, xdr

from mycelium_localnet import Chain
from tests.localnet.ledger.lab import Lab
from tests.localnet.proofs.door import result
from tests.localnet.proofs.workers import OWNER, submit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from stellar_sdk import TransactionEnvelope

ROOT = Path(__file__).parents[3]
TRANSACTIONS = 150

# Some of everything, on a chain with a seed and a frozen clock: one ledger hash a line.
STORY = """
import sys
from tests.localnet.ledger.conftest import PROBE
from tests.localnet.ledger.test_determinism import story
from tests.localnet.proofs.conftest import compile_contract
from mycelium_localnet import Chain

seed = bytes.fromhex(sys.argv[1])
with Chain.open(sys.argv[2], profile="short-ttl", seed=seed, clock="frozen") as chain:
    ledgers, _ = story(chain, compile_contract(PROBE))
print(*(ledger.hash.hex() for ledger in ledgers), sep="\\n")
"""


def tell(seed: str, path: str, hash_seed: str) -> list[str]:
    """The ledger hashes of the story, told by a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", STORY, seed, path],
        cwd=ROOT,
        env=os.environ | {"PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.split()


def test_one_seed_and_a_frozen_clock_give_equal_ledger_hashes(tmp_path: Path) -> None:
    """In two processes whose sets and dictionaries are in another order, one of them with a file."""
    one = tell("5eed", ":memory:", "1")
    other = tell("5eed", str(tmp_path / "chain.db"), "2")
    assert one == other
    assert len(set(one)) == len(one) > 300
    assert set(tell("5eee", ":memory:", "1")).isdisjoint(one)


def ready_made(lab: Lab) -> list[TransactionEnvelope]:
    """Transactions that write 1, 2, 3 and so on under one key, each signed in advance."""
    data = lab.prepare(OWNER, lab.put_call(1, 1)).transaction.soroban_data
    first = lab.sequence(OWNER) + 1
    return [
        lab.build(
            OWNER,
            lab.call("put", scval.to_uint32(1), scval.to_uint64(number + 1)),
            soroban=data,
            fee=10**7,
            sequence=first + number,
        )
        for number in range(TRANSACTIONS)
    ]


@contextmanager
def writing(lab: Lab, envelopes: list[TransactionEnvelope]) -> Iterator[Callable[[], bool]]:
    """Another process hands in transactions. Gives what tells whether it is still at it."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.localnet.proofs.workers"])
    raw = [envelope.to_xdr_object().to_xdr_bytes() for envelope in envelopes]
    ours, theirs = context.Pipe()
    worker = context.Process(target=submit, args=(lab.chain.path, raw, theirs))
    worker.start()
    theirs.close()
    assert ours.recv() == "open"
    ours.send("go")

    def active() -> bool:
        assert worker.exitcode in (None, 0)
        return not ours.poll()

    yield active
    assert ours.recv() == "done"
    worker.join()
    assert worker.exitcode == 0
    ours.close()


@pytest.fixture
def shared(tmp_path: Path, wasm: bytes) -> Iterator[Lab]:
    """A chain file with the contract and one entry on it."""
    with Chain.open(tmp_path / "chain.db") as chain:
        lab = Lab(chain, wasm)
        lab.account("owner")
        lab.deploy(OWNER).put(OWNER, 1, 0)
        yield lab


def test_a_transaction_and_its_state_become_visible_together(shared: Lab) -> None:
    """Whoever sees the transaction sees what it wrote, and the other way round, while ledgers close."""
    chain, envelopes = shared.chain, ready_made(shared)
    hashes = [envelope.hash_hex() for envelope in envelopes]
    key = shared.data_key(1)

    def value() -> int:
        (found,) = result(chain, "getLedgerEntries", {"keys": [key.to_xdr()]})["entries"]
        data = xdr.LedgerEntryData.from_xdr(found["xdr"]).contract_data
        assert data is not None
        return scval.from_uint64(data.val)

    def applied(number: int) -> bool:
        """Whether the transaction that writes `number` is told as applied."""
        status = result(chain, "getTransaction", {"hash": hashes[number - 1]})["status"]
        assert status in ("SUCCESS", "NOT_FOUND")
        return bool(status == "SUCCESS")

    with writing(shared, envelopes) as active:
        seen = 0
        while active() or seen < TRANSACTIONS:
            found = value()
            assert found >= seen
            assert not found or applied(found)
            seen = found
            if seen < TRANSACTIONS and applied(seen + 1):
                assert value() >= seen + 1
            with chain.read() as view:
                entry = view.entry(key.to_xdr_bytes())
                count = sum(view.transaction(bytes.fromhex(one)) is not None for one in hashes)
            assert entry is not None
            data = xdr.LedgerEntry.from_xdr_bytes(entry[0]).data.contract_data
            assert data is not None
            assert scval.from_uint64(data.val) == count


PAGES: dict[str, tuple[str, Callable[[dict[str, Any]], object]]] = {
    "getTransactions": ("transactions", lambda item: item["txHash"]),
    "getLedgers": ("ledgers", lambda item: item["hash"]),
    "getEvents": ("events", lambda item: item["id"]),
}


@pytest.mark.parametrize("limit", [1, 7])
def test_pages_lose_and_repeat_nothing_while_another_process_closes_ledgers(shared: Lab, limit: int) -> None:
    chain = shared.chain
    start = shared.latest().sequence + 1
    chain.close_ledger()  # so that the first page has where to start
    cursors: dict[str, str] = {}
    read: dict[str, list[object]] = {method: [] for method in PAGES}

    def turn() -> int:
        """The next page of each; how many items there were."""
        number = 0
        for method, (field, identity) in PAGES.items():
            place: dict[str, Any] = {"pagination": {"limit": limit}}
            if method in cursors:
                place["pagination"]["cursor"] = cursors[method]
            else:
                place["startLedger"] = start
            page = result(chain, method, place)
            cursors[method] = page["cursor"]
            read[method] += [identity(item) for item in page[field]]
            number += len(page[field])
        return number

    with writing(shared, ready_made(shared)) as active:
        while active():
            turn()
    while turn():
        pass
    last = shared.latest().sequence
    assert last == start + TRANSACTIONS
    with chain.read() as view:
        ledgers = view.ledgers(start, 1_000)
        rows = view.transactions((start, 0), 1_000)
    assert read["getLedgers"] == [ledger.hash.hex() for ledger in ledgers]
    assert read["getTransactions"] == [row.hash.hex() for row in rows]
    everything = result(chain, "getEvents", {"startLedger": start, "pagination": {"limit": 10_000}})["events"]
    assert read["getEvents"] == [event["id"] for event in everything]
    assert len(everything) == 3 * TRANSACTIONS  # each paid, wrote, and got something back
