"""An owner's row: the counters, and the lock that every write of the owner's memory takes first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mycelium_sdk.backends.postgres.pool import Connection

READ = "SELECT number, changes, sequence, memories, records, analyzer, made FROM owners WHERE owner = %s"
LOCKED = f"{READ} FOR UPDATE"


@dataclass
class Head:
    """See `schema`."""

    number: int
    changes: int = 0
    sequence: int = 0
    memories: int = 0
    records: int = 0
    analyzer: str = ""
    made: int = 0


NOBODY = Head(-1)
"""What there is of an owner who never wrote."""


def read(connection: Connection, owner: str) -> Head:
    """The row as the transaction sees it; `NOBODY` where there is none."""
    return of_row(connection.execute(READ, (owner,)).fetchone())


def of_row(row: tuple[Any, ...] | None) -> Head:
    """What a row that was read by `READ` says."""
    return NOBODY if row is None else Head(*row)


def lock(connection: Connection, owner: str) -> Head:
    """The row, held until the transaction ends, and made where there is none."""
    row = connection.execute(LOCKED, (owner,)).fetchone()
    if row is None:
        connection.execute("INSERT INTO owners(owner) VALUES (%s) ON CONFLICT DO NOTHING", (owner,))
        row = connection.execute(LOCKED, (owner,)).fetchone()
        assert row is not None  # noqa: S101 - owners are never deleted
    return Head(*row)


def write(connection: Connection, head: Head) -> None:
    """Put the counters back."""
    connection.execute(
        "UPDATE owners SET changes = %s, sequence = %s, memories = %s, records = %s, analyzer = %s, made = %s"
        " WHERE number = %s",
        (head.changes, head.sequence, head.memories, head.records, head.analyzer, head.made, head.number),
    )
