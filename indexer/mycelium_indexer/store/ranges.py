"""Gaps in an owner's versions, as ranges in the table `gaps`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import delete, insert, select

from mycelium_indexer.store import tables

if TYPE_CHECKING:
    from sqlalchemy import Connection

__all__ = ["close"]


def close(connection: Connection, owner: int, first: int, last: int) -> int:
    """Take versions, both ends included, out of the one gap that holds them all, which shrinks, goes, or
    falls into two. Returns how many more gaps there are than before: -1, 0 or 1."""
    table = tables.gaps
    row = connection.execute(
        select(table.c.first, table.c.last, table.c.noticed_ledger).where(
            table.c.owner == owner, table.c.first <= first, table.c.last >= last
        )
    ).one()
    connection.execute(delete(table).where(table.c.owner == owner, table.c.first == row.first))
    left = [(row.first, first - 1), (last + 1, row.last)]
    kept = [
        {"owner": owner, "first": begin, "last": end, "noticed_ledger": row.noticed_ledger}
        for begin, end in left
        if begin <= end
    ]
    if kept:
        connection.execute(insert(table), kept)
    return len(kept) - 1
