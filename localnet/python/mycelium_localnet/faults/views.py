"""What a server shows that lags behind, has forgotten, or does not know of transactions yet."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mycelium_localnet import headers, keys
from mycelium_localnet.view import ReadView

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator, Sequence

    from mycelium_localnet.rows import EventPosition, EventRow, LedgerRow, TransactionRow


class HidingView(ReadView):
    """The chain without its transactions: each is NOT_FOUND."""

    __slots__ = ()

    def transaction(self, transaction_hash: bytes) -> TransactionRow | None:  # noqa: ARG002
        return None


class TrimmedView(ReadView):
    """The chain with the history of its last `kept` ledgers only."""

    __slots__ = ("_first",)

    def __init__(self, connection: sqlite3.Connection, fee_write_1kb: int, kept: int) -> None:
        super().__init__(connection, fee_write_1kb)
        last = headers.latest(connection, fee_write_1kb).sequence
        self._first = max(headers.oldest_sequence(connection), last - kept + 1)

    def oldest(self) -> LedgerRow:
        return self.ledgers(self._first, 1)[0]

    def ledgers(self, start: int, limit: int) -> list[LedgerRow]:
        return super().ledgers(start, limit) if start >= self._first else []

    def transaction(self, transaction_hash: bytes) -> TransactionRow | None:
        found = super().transaction(transaction_hash)
        return None if found is None or found.ledger < self._first else found

    def transactions(self, after: tuple[int, int], limit: int) -> list[TransactionRow]:
        return super().transactions(max(after, (self._first, 0)), limit)

    def kinds(self, first: int) -> list[tuple[int, bool]]:
        return super().kinds(max(first, self._first))

    def events(
        self, *, after: EventPosition, end_ledger: int, contract_ids: Sequence[str] = ()
    ) -> Iterator[EventRow]:
        after = max(after, (self._first, -1, 0, 0))
        return super().events(after=after, end_ledger=end_ledger, contract_ids=contract_ids)


class LaggingView(ReadView):
    """The chain as it was `behind` ledgers ago, or as long ago as its history goes."""

    __slots__ = ("_last",)

    def __init__(self, connection: sqlite3.Connection, fee_write_1kb: int, behind: int) -> None:
        super().__init__(connection, fee_write_1kb)
        last = headers.latest(connection, fee_write_1kb).sequence
        self._last = max(headers.oldest_sequence(connection), last - behind)

    def latest(self) -> LedgerRow:
        return super().ledgers(self._last, 1)[0]

    def ledgers(self, start: int, limit: int) -> list[LedgerRow]:
        return super().ledgers(start, min(limit, self._last - start + 1))

    def entry(self, key: bytes) -> tuple[bytes, int | None] | None:
        row = self._connection.execute(
            "SELECT entry, live_until FROM former WHERE key = ? AND ledger > ? ORDER BY ledger LIMIT 1",
            (key, self._last),
        ).fetchone()
        if row is None:
            return super().entry(key)
        entry, live_until = row
        expired = live_until is not None and live_until < self._last
        return None if entry is None or (expired and keys.is_temporary(key)) else (entry, live_until)

    def transaction(self, transaction_hash: bytes) -> TransactionRow | None:
        found = super().transaction(transaction_hash)
        return None if found is None or found.ledger > self._last else found

    def transactions(self, after: tuple[int, int], limit: int) -> list[TransactionRow]:
        return [row for row in super().transactions(after, limit) if row.ledger <= self._last]

    def kinds(self, first: int) -> list[tuple[int, bool]]:
        return [(ledger, soroban) for ledger, soroban in super().kinds(first) if ledger <= self._last]

    def is_pending(self, transaction_hash: bytes) -> bool:  # noqa: ARG002
        return False

    def events(
        self, *, after: EventPosition, end_ledger: int, contract_ids: Sequence[str] = ()
    ) -> Iterator[EventRow]:
        end_ledger = min(end_ledger, self._last + 1)
        return super().events(after=after, end_ledger=end_ledger, contract_ids=contract_ids)
