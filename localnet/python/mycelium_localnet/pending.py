"""The queue of accepted transactions that no ledger holds yet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mycelium_localnet.envelopes import decode_transaction

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable

    from mycelium_localnet.envelopes import Transaction


@dataclass(frozen=True)
class Pending:
    """The queue, within the caller's transaction on `connection`."""

    connection: sqlite3.Connection
    network_id: bytes

    def contains(self, transaction: Transaction) -> bool:
        """Whether the very transaction waits already."""
        query = "SELECT 1 FROM pending WHERE hash = ?"
        return self.connection.execute(query, (transaction.hash,)).fetchone() is not None

    def of_source(self, transaction: Transaction) -> Transaction | None:
        """The first one that waits with the same source account."""
        query = "SELECT envelope FROM pending WHERE source = ? ORDER BY position LIMIT 1"
        row = self.connection.execute(query, (transaction.source_address,)).fetchone()
        return None if row is None else decode_transaction(row[0], self.network_id)

    def add(self, transaction: Transaction, received: int) -> None:
        """Queue a transaction. `received`: Unix seconds."""
        self.connection.execute(
            "INSERT INTO pending (hash, source, envelope, received) VALUES (?, ?, ?, ?)",
            (transaction.hash, transaction.source_address, transaction.envelope, received),
        )

    def all(self) -> list[Transaction]:
        """What waits, in the order in which it came."""
        rows = self.connection.execute("SELECT envelope FROM pending ORDER BY position")
        return [decode_transaction(envelope, self.network_id) for (envelope,) in rows]

    def remove(self, transactions: Iterable[Transaction]) -> None:
        """Take these out: a ledger took what is valid, and the rest will not become so."""
        hashes = [(transaction.hash,) for transaction in transactions]
        self.connection.executemany("DELETE FROM pending WHERE hash = ?", hashes)


def is_waiting(connection: sqlite3.Connection) -> bool:
    """Whether anything waits at all."""
    return connection.execute("SELECT 1 FROM pending LIMIT 1").fetchone() is not None
