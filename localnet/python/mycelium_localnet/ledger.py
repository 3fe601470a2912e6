"""The chain: opening a chain file, handing in transactions, closing ledgers, and reading."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, Self

from mycelium_localnet import closing as ledgers
from mycelium_localnet import genesis, options, schedule
from mycelium_localnet._native import HostError
from mycelium_localnet.cheats.methods import Cheats
from mycelium_localnet.clock import FROZEN_START, Clock
from mycelium_localnet.context import LedgerContext
from mycelium_localnet.envelopes import as_envelope, decode_transaction
from mycelium_localnet.errors import InvalidRequestError, UnknownTransactionError
from mycelium_localnet.faults.methods import Faults
from mycelium_localnet.friendbot import STARTING_BALANCE
from mycelium_localnet.headers import Header
from mycelium_localnet.pending import is_waiting
from mycelium_localnet.report import report_of
from mycelium_localnet.rows import EventPosition, EventRow, LedgerRow, Submission, TransactionRow
from mycelium_localnet.simulation import RefusedError, simulate
from mycelium_localnet.storage import Storage, create_tables, is_new
from mycelium_localnet.trace import trace_simulation, trace_transaction
from mycelium_localnet.view import ReadView
from mycelium_localnet.writer import Writer

if TYPE_CHECKING:
    import os
    import sqlite3
    from collections.abc import Iterator

    from mycelium_localnet._native import LedgerInfo
    from mycelium_localnet.clock import ClockMode
    from mycelium_localnet.profiles import ProfileName
    from mycelium_localnet.report import TransactionReport
    from mycelium_localnet.schedule import ClosingMode
    from mycelium_localnet.trace import Trace

__all__ = ["Chain", "EventPosition", "EventRow", "LedgerRow", "ReadView", "Submission", "TransactionRow"]

_MAX_SKIP: Final = 10_000_000


class Chain(Cheats, Faults):
    """One embedded chain. Thread-safe; several processes may open the same file at once.

    Attributes: `path`, `passphrase`, `network_id` (32 bytes, SHA-256 of the passphrase), `chain_id` (64 hex
    digits, random unless seeded), `profile`, `settings` (the host's parsed network settings), `friendbot`
    (G...).
    """

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        profile: ProfileName | None = None,
        seed: bytes | None = None,
        clock: ClockMode | None = None,
        closing: ClosingMode | None = None,
        interval: float | None = None,
        passphrase: str | None = None,
    ) -> Self:
        """Open the chain at `path`, with its first ledger when it is new. `":memory:"`: a chain of this
        object's own, gone when it is closed.

        Options apply to a new chain; None takes what an existing chain has, or the default: profile
        "testnet", a random seed, clock "wall", closing "instant", passphrase `Standalone Network ; February
        2017`. `seed`: 1 to 64 bytes, the chain id follows from it. `closing`: "instant" closes a ledger for
        each accepted transaction, "manual" keeps transactions pending until `close_ledger`, and "interval"
        until the next of the ledgers that close every `interval` seconds (0.01 to 86,400; 5 by default).

        Raises OptionConflictError, InvalidRequestError, ForeignFileError, NewerFileError, UnsafeFileError,
        ChainFileError (no such folder, unreadable), ChainBusyError.
        """
        requested = options.Requested(passphrase, profile, seed, clock, closing, interval)
        requested.check()
        storage = Storage(path)
        try:
            # Looking first keeps a chain that is there from waiting for its writers.
            with storage.read() as connection:
                known = None if is_new(connection) else options.load(connection)
            if known is None:
                with storage.write() as connection:
                    if is_new(connection):
                        _create(connection, requested)
                    known = options.load(connection)
            requested.check_against(known, storage.path)
            return cls(storage)
        except BaseException:
            storage.close()
            raise

    @contextmanager
    def read(self) -> Iterator[ReadView]:
        """One consistent state to read from; a ledger that is due is closed first.

        Raises ChainClosedError, ChainReplacedError, ChainBusyError.
        """
        with self._reading() as connection:
            due = options.load_schedule(connection).wait(schedule.now()) == 0
            if not due:
                yield self._view(connection, self.settings.fee_per_write_1kb)
        if due:
            self.close_due_ledger()
            with self._reading() as connection:
                yield self._view(connection, self.settings.fee_per_write_1kb)

    def ledger_info(self, ledger: LedgerRow) -> LedgerInfo:
        """What the host needs to know of a ledger, such as the last closed one for a simulation."""
        header = Header.unpack(ledger.header)
        return LedgerContext.of(self._network, header, ledger.sequence, ledger.close_time).host_info

    def report(self, transaction_hash: str | bytes) -> TransactionReport:
        """What an applied transaction cost and used. `transaction_hash`: 64 hex digits, or 32 bytes.

        Raises UnknownTransactionError, InvalidRequestError for what is no hash, ChainClosedError.
        """
        with self.read() as view:
            return report_of(_transaction(view, transaction_hash), self.network_id, self.settings)

    def trace(self, transaction_hash: str | bytes) -> Trace:
        """What happened in an applied transaction, and why it failed if it did. `transaction_hash`, raises:
        as `report`."""
        with self.read() as view:
            row = _transaction(view, transaction_hash)
            return trace_transaction(row, view, self.network_id, self.settings)

    def trace_simulation(self, envelope: str | bytes) -> Trace:
        """What happens in a transaction if it is simulated now, and why it fails if it does. `envelope`: a
        TransactionEnvelope, as XDR or in base64; it need not be signed.

        Raises MalformedEnvelopeError, InvalidRequestError for what cannot be simulated, ChainClosedError.
        """
        transaction = decode_transaction(as_envelope(envelope), self.network_id)
        with self.read() as view:
            try:
                found = simulate(view, self.ledger_info(view.latest()), transaction.body)
            except (RefusedError, HostError) as error:
                raise InvalidRequestError(f"the transaction cannot be simulated: {error}") from error
            return trace_simulation(found, transaction.envelope, view, self.network_id, self.settings)

    def submit(self, envelope: bytes) -> Submission:
        """Hand in a TransactionEnvelope (XDR), with the meaning of the RPC's sendTransaction. With instant
        closing an accepted transaction is applied, and its ledger closed, before this returns.

        Raises MalformedEnvelopeError, ChainBusyError, ChainClosedError, ChainReplacedError.
        """
        with self._writing() as connection:
            self._close_due(connection)
            return self._take_in(connection, envelope)

    def close_ledger(self) -> int:
        """Close one ledger with what is pending (perhaps nothing) and return its number.

        What there is no room for stays pending: see the network's limits for all transactions of a ledger
        together, such as 100 Soroban ones.
        """
        with self._writing() as connection:
            return Writer(self._network, connection).close().sequence

    def close_due_ledger(self) -> float | None:
        """With interval closing: close the next ledger if its time has come, and return the seconds until
        another one is due. None with other modes, which time does not concern.

        Safe to call from any number of processes: only one of them closes each ledger.
        """
        with self._reading() as connection:
            wait = options.load_schedule(connection).wait(schedule.now())
        if wait == 0:
            with self._writing() as connection:
                wait = self._close_due(connection)
        return None if wait is None else wait / 1000

    def skip_ledgers(self, count: int) -> int:
        """Close `count` ledgers at once: the first ones with what is pending, the others empty. Returns the
        last number.

        The clock does not move: time bounds are the wall clock's. History older than 120,960 ledgers is
        forgotten, as the RPC does. Raises InvalidRequestError unless 1 <= count <= 10,000,000.
        """
        if not 1 <= count <= _MAX_SKIP:
            raise InvalidRequestError(f"1 to {_MAX_SKIP:,} ledgers can be skipped at once, not {count:,}")
        with self._writing() as connection:
            last, closed = Writer(self._network, connection).close(), 1
            while closed < count and is_waiting(connection):
                last, closed = Writer(self._network, connection).close(), closed + 1
            return last.sequence if closed == count else ledgers.skip(connection, last, count - closed)

    def fund(self, address: str, amount: int = STARTING_BALANCE) -> str:
        """Create an account with `amount` stroops (10,000 XLM), by a transaction of the friendbot, and return
        that transaction's hash (64 hex digits). It is pending unless closing is instant.

        Raises InvalidRequestError for an address that is not a G... or an amount that is none,
        AccountExistsError (it is there, or a transaction of the friendbot for it is pending), FundingError.
        """
        if not 0 <= amount < 1 << 63:
            raise InvalidRequestError(f"{amount} stroops cannot be an account's balance")
        with self._writing() as connection:
            self._close_due(connection)
            return Writer(self._network, connection).fund(self._friendbot, address, amount).hex()

    def _close_due(self, connection: sqlite3.Connection) -> int | None:
        """Close a ledger if one is due, and give the milliseconds until the next one is."""
        moment, planned = schedule.now(), options.load_schedule(connection)
        if planned.wait(moment) == 0:
            Writer(self._network, connection).close()
            planned = planned.after_closing(moment)
            options.save_schedule(connection, planned)
        return planned.wait(moment)


def _transaction(view: ReadView, transaction_hash: str | bytes) -> TransactionRow:
    try:
        raw = bytes.fromhex(transaction_hash) if isinstance(transaction_hash, str) else transaction_hash
    except ValueError as error:
        raise InvalidRequestError("a transaction's hash is 64 hex digits") from error
    row = view.transaction(raw)
    if row is not None:
        return row
    if view.is_pending(raw):
        raise UnknownTransactionError(
            f"no ledger holds the transaction {raw.hex()} yet", hint="close a ledger, or wait for one"
        )
    raise UnknownTransactionError(
        f"no ledger that is kept holds the transaction {raw.hex()}",
        hint="one that was refused has its reason in sendTransaction's answer; simulate it to see more",
    )


def _create(connection: sqlite3.Connection, requested: options.Requested) -> None:
    """Make a chain file's tables and its first ledger."""
    identity = requested.identity()
    clock = Clock(frozen_at=FROZEN_START) if requested.clock == "frozen" else Clock()
    create_tables(connection)
    options.save(connection, identity, clock, requested.schedule().started(schedule.now()))
    genesis.create(connection, identity, clock)
