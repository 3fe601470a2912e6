"""A process that closes ledgers is killed fifty times, and the chain is whole each time."""

from __future__ import annotations

import multiprocessing
import random
import signal
import time
from hashlib import sha256
from itertools import pairwise
from typing import TYPE_CHECKING

from stellar_sdk import Keypair, scval, xdr

from mycelium_localnet import Chain
from tests.localnet.ledger.lab import Lab, create, keypair, meta_of, return_value
from tests.localnet.proofs.workers import OWNER, close_ledgers

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from pathlib import Path

    from mycelium_localnet.ledger import EventRow, LedgerRow, TransactionRow

KILLS = 50
LONGEST = 0.006
"""Seconds: about as long as the steps of the killed process take."""


class Auditor:
    """Checks everything that a chain promises, each time from where it stopped the last time."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.ledger = lab.latest()
        self.friendbot = Keypair.from_public_key(lab.chain.friendbot)
        self.sequences = {key: lab.sequence(Keypair.from_public_key(key)) for key in self._sources()}
        self.value = 1

    def _sources(self) -> tuple[str, str]:
        return OWNER.public_key, self.friendbot.public_key

    def check(self) -> None:
        """Raises AssertionError for anything that is not as it must be."""
        start = self.ledger.sequence
        with self.lab.chain.read() as view:
            ledgers = view.ledgers(start, 1_000_000)
            rows = view.transactions((start, 1 << 20), 1_000_000)
            events = list(view.events(after=(start + 1, -1, 0, 0), end_ledger=1 << 31))
        assert ledgers[0] == self.ledger
        for previous, ledger in pairwise(ledgers):
            header = xdr.LedgerHeader.from_xdr_bytes(ledger.header)
            assert ledger.sequence == header.ledger_seq.uint32 == previous.sequence + 1
            assert ledger.hash == sha256(ledger.header).digest()
            assert header.previous_ledger_hash.hash == previous.hash
            self._check_contents(
                ledger,
                [row for row in rows if row.ledger == ledger.sequence],
                [event for event in events if event.ledger == ledger.sequence],
            )
        for row in rows:
            self._check_state(row)
        for key, sequence in self.sequences.items():
            assert self.lab.sequence(Keypair.from_public_key(key)) == sequence
        found = self.lab.entry(self.lab.data_key(1))
        assert found is not None
        assert found[0].data.contract_data is not None
        assert scval.from_uint64(found[0].data.contract_data.val) == self.value
        self._check_supply(ledgers[-1])
        self.ledger = ledgers[-1]

    def _check_contents(self, ledger: LedgerRow, rows: list[TransactionRow], events: list[EventRow]) -> None:
        """The header commits to the results, the meta holds them, and each event is a transaction's."""
        pairs = b"".join(row.hash + row.result for row in rows)
        header = xdr.LedgerHeader.from_xdr_bytes(ledger.header)
        digest = sha256(len(rows).to_bytes(4, "big") + pairs).digest()
        assert header.tx_set_result_hash.hash == digest
        close = xdr.LedgerCloseMeta.from_xdr_bytes(ledger.close_meta).v2
        assert close is not None
        assert [part.tx_apply_processing.to_xdr_bytes() for part in close.tx_processing] == [
            row.meta for row in rows
        ]
        assert [row.application_order for row in rows] == list(range(1, len(rows) + 1))
        expected = [
            (row.hash, len(row.transaction_events) + sum(map(len, row.contract_events))) for row in rows
        ]
        assert [(row.hash, sum(event.tx_hash == row.hash for event in events)) for row in rows] == expected
        assert len(events) == sum(number for _, number in expected)

    def _check_state(self, row: TransactionRow) -> None:
        """A transaction used the next sequence number of its source, and what it made is there."""
        assert row.successful
        self.sequences[row.source] += 1
        v1 = xdr.TransactionEnvelope.from_xdr_bytes(row.envelope).v1
        assert v1 is not None
        assert v1.tx.seq_num.sequence_number.int64 == self.sequences[row.source]
        create_op = v1.tx.operations[0].body.create_account_op
        if create_op is None:
            value = return_value(row)
            assert value is not None
            self.value = scval.from_uint64(value)
            return
        made = create_op.destination.account_id.ed25519
        assert made is not None
        with self.lab.chain.read() as view:
            assert view.entry(bytes(8) + made.uint256) is not None
        assert len(meta_of(row).operations) == 1

    def _check_supply(self, ledger: LedgerRow) -> None:
        held = 0
        with self.lab.chain._storage.read() as connection:
            for (data,) in connection.execute("SELECT entry FROM entries WHERE type = 0"):
                account = xdr.LedgerEntry.from_xdr_bytes(data).data.account
                assert account is not None
                held += account.balance.int64
        header = xdr.LedgerHeader.from_xdr_bytes(ledger.header)
        assert held + header.fee_pool.int64 == header.total_coins.int64


def last_told(connection: Connection, step: tuple[int, int]) -> tuple[int, int]:
    """The step that a killed process began last: `step`, or what it told since."""
    while connection.poll():
        try:
            step = connection.recv()
        except (EOFError, OSError):  # the other end is gone, perhaps in the middle of a message
            break
    return step


def test_fifty_kills(tmp_path: Path, wasm: bytes) -> None:
    """Each comes at no particular moment of a step, told only that the step has begun. The chain is then at
    the ledger before the step or at the one after it."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.localnet.proofs.workers"])
    choose = random.Random(1)  # noqa: S311 - moments to kill at, not secrets
    path = str(tmp_path / "chain.db")
    with Chain.open(path, seed=b"kill", clock="frozen") as chain:
        lab = Lab(chain, wasm)
        lab.account("owner")
        lab.deploy(OWNER).put(OWNER, 1, 1)
        auditor = Auditor(lab)
        for _ in range(KILLS):
            ours, theirs = context.Pipe()
            worker = context.Process(target=close_ledgers, args=(path, lab.contract_id, theirs))
            worker.start()
            theirs.close()
            for _ in range(choose.randint(1, 6)):
                step = ours.recv()
            time.sleep(choose.uniform(0, LONGEST))
            worker.kill()
            worker.join()
            assert worker.exitcode == -signal.SIGKILL
            auditor.check()
            assert auditor.ledger.sequence in last_told(ours, step)
            ours.close()
        with chain._storage.read() as connection:
            assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        # And it goes on.
        lab.succeed(lab.build(OWNER, create("after all")))
        assert lab.balance(keypair("after all")) == 5 * 10**7
