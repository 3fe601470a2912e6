"""Reading a chain: every question answered from one consistent state."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mycelium_localnet import headers, keys
from mycelium_localnet.envelopes import SOROBAN_OPERATIONS, decode_transaction
from mycelium_localnet.results import first_operation_type
from mycelium_localnet.rows import EventRow, LedgerRow, TransactionRow
from mycelium_localnet.schema import unpack_list

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator, Sequence

    from mycelium_localnet.rows import EventPosition

_TRANSACTION = (
    "SELECT t.ledger, t.application_order, l.close_time, t.hash, t.source, t.envelope, t.result, t.meta,"
    " t.successful, t.fee_bump, t.transaction_events, t.contract_events, t.diagnostic_events"
    " FROM transactions t JOIN ledgers l ON l.sequence = t.ledger"
)
_EVENT = (
    "SELECT e.ledger, e.tx_index, e.op_index, e.event_index, l.close_time, e.tx_hash, e.type, e.contract_id,"
    " e.topics, e.value, e.in_successful_call, e.transaction_order"
    " FROM events e JOIN ledgers l ON l.sequence = e.ledger"
)


class ReadView:
    """One state of the chain, from `Chain.read()`: what other threads and processes do meanwhile is not seen.

    Use it on the thread that made it, and only inside the `with` block.
    """

    __slots__ = ("_connection", "_fee_write_1kb", "_latest")

    def __init__(self, connection: sqlite3.Connection, fee_write_1kb: int) -> None:
        self._connection = connection
        self._fee_write_1kb = fee_write_1kb
        self._latest: LedgerRow | None = None

    def latest(self) -> LedgerRow:
        """The last closed ledger."""
        if self._latest is None:
            self._latest = headers.latest(self._connection, self._fee_write_1kb)
        return self._latest

    def oldest(self) -> LedgerRow:
        """The oldest ledger that is kept: 120,960 ledgers (7 days) of history, as the RPC keeps by
        default."""
        return self.ledgers(headers.oldest_sequence(self._connection), 1)[0]

    def ledger(self, sequence: int) -> LedgerRow | None:
        """That ledger; None when it is not closed yet or no longer kept."""
        return next(iter(self.ledgers(sequence, 1)), None)

    def ledgers(self, start: int, limit: int) -> list[LedgerRow]:
        """Up to `limit` ledgers from `start` (inclusive) upwards, without gaps; [] when `start` is not
        kept."""
        return headers.span(self._connection, start, limit, self._fee_write_1kb)

    def entry(self, key: bytes) -> tuple[bytes, int | None] | None:
        """`(LedgerEntry, live_until_ledger)` of a LedgerKey, as the native module's `get` wants it.

        The second is None for entries without a TTL. An archived persistent entry comes with its past ledger;
        an expired temporary entry is None, as a missing one. TTL keys have no entry of their own here: None.
        """
        row = self._connection.execute(
            "SELECT entry, live_until FROM entries WHERE key = ?", (key,)
        ).fetchone()
        if row is None:
            return None
        entry, live_until = row
        if live_until is not None and live_until < self.latest().sequence and keys.is_temporary(key):
            return None
        return entry, live_until

    def transaction(self, transaction_hash: bytes) -> TransactionRow | None:
        """The applied transaction with that hash, unless it is older than what is kept."""
        row = self._connection.execute(f"{_TRANSACTION} WHERE t.hash = ?", (transaction_hash,)).fetchone()
        # A snapshot may keep older rows from being deleted.
        if row is None or row[0] < headers.oldest_sequence(self._connection):
            return None
        return _transaction(row)

    def transactions(self, after: tuple[int, int], limit: int) -> list[TransactionRow]:
        """Up to `limit` transactions in order, behind `after` = `(ledger, application_order)` (exclusive)."""
        rows = self._connection.execute(
            f"{_TRANSACTION} WHERE (t.ledger, t.application_order) > (?, ?)"
            " ORDER BY t.ledger, t.application_order LIMIT ?",
            (*after, limit),
        )
        return [_transaction(row) for row in rows]

    def kinds(self, first: int) -> list[tuple[int, bool]]:
        """`(ledger, whether it is a Soroban transaction)` of every transaction from ledger `first` on.
        Cheaper than `transactions`: metas are not read."""
        rows = self._connection.execute(
            "SELECT ledger, application_order, substr(result, 1, 24) FROM transactions WHERE ledger >= ?",
            (first,),
        )
        return [(ledger, self._is_soroban(ledger, order, result)) for ledger, order, result in rows]

    def _is_soroban(self, ledger: int, order: int, result: bytes) -> bool:
        kind = first_operation_type(result)
        if kind is not None:
            return kind in SOROBAN_OPERATIONS
        query = "SELECT envelope FROM transactions WHERE ledger = ? AND application_order = ?"
        (envelope,) = self._connection.execute(query, (ledger, order)).fetchone()
        return decode_transaction(envelope, bytes(32)).is_soroban

    def is_pending(self, transaction_hash: bytes) -> bool:
        """Whether a transaction was accepted and waits for a ledger."""
        query = "SELECT 1 FROM pending WHERE hash = ?"
        return self._connection.execute(query, (transaction_hash,)).fetchone() is not None

    def events(
        self, *, after: EventPosition, end_ledger: int, contract_ids: Sequence[str] = ()
    ) -> Iterator[EventRow]:
        """Events behind position `after` (exclusive; `(S, -1, 0, 0)` for everything from ledger S on) and
        before `end_ledger` (exclusive), in order, read as they are asked for. `contract_ids`: only theirs; ()
        for all."""
        condition = ""
        if contract_ids:
            condition = f" AND e.contract_id IN ({', '.join('?' * len(contract_ids))})"
        rows = self._connection.execute(
            f"{_EVENT} WHERE (e.ledger, e.tx_index, e.op_index, e.event_index) > (?, ?, ?, ?)"
            f" AND e.ledger >= ? AND e.ledger < ?{condition}"
            " ORDER BY e.ledger, e.tx_index, e.op_index, e.event_index",
            (*after, after[0], end_ledger, *contract_ids),
        )
        return (_event(row) for row in rows)


def _transaction(row: tuple[Any, ...]) -> TransactionRow:
    contract_events = tuple(unpack_list(operation) for operation in unpack_list(row[11]))
    flags = (bool(row[8]), bool(row[9]))
    fields = (*row[:8], *flags, unpack_list(row[10]), contract_events, unpack_list(row[12]))
    return TransactionRow(*fields)


def _event(row: tuple[Any, ...]) -> EventRow:
    fields = (*row[:8], unpack_list(row[8]), row[9], bool(row[10]), row[11])
    return EventRow(*fields)
