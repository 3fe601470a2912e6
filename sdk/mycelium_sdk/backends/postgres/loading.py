"""Replacing everything by a blob: put beside the store by COPY, checked to its end, then swapped in.

Until the blob was read to its end nothing is locked, so a slow source stops nobody.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mycelium_sdk.backends.base import Context, Imported
from mycelium_sdk.backends.local.loading import arrivals
from mycelium_sdk.backends.postgres import heads
from mycelium_sdk.backends.postgres.indexing import SEARCH
from mycelium_sdk.backends.postgres.writing import empty_derived, tag_key
from mycelium_sdk.errors import UnanchoredWrites

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mycelium_sdk.backends.base import Progress
    from mycelium_sdk.backends.postgres.pool import Connection
    from mycelium_sdk.records import Record

_REPORTED_EVERY = 10_000

_STAGE = """
CREATE TEMP TABLE incoming(
    position bigint, key bytea, identity bytea, copies integer, sequence numeric, session bytea,
    time double precision, fragment text, tags bytea[]) ON COMMIT DROP
"""
_COPY = (
    "COPY pg_temp.incoming(position, key, identity, copies, sequence, session, time, fragment, tags)"
    " FROM STDIN"
)

_NEW = """
INSERT INTO memories(owner, id, key, identity, copies, session, time, fragment)
SELECT %s, %s + row_number() OVER (ORDER BY i.sequence, i.position), i.key, i.identity, i.copies, i.session,
    i.time, i.fragment
FROM pg_temp.incoming i
WHERE NOT EXISTS (SELECT 1 FROM memories m WHERE m.owner = %s AND m.key = i.key)
"""
_GONE = """
DELETE FROM memories m WHERE m.owner = %s
    AND NOT EXISTS (SELECT 1 FROM pg_temp.incoming i WHERE i.key = m.key AND i.fragment = m.fragment)
"""
_OTHER_COPIES = """
UPDATE memories m SET copies = i.copies FROM pg_temp.incoming i
WHERE m.owner = %s AND i.key = m.key AND i.copies <> m.copies
"""
_TAGS = """
INSERT INTO tags SELECT DISTINCT m.owner, unnest(i.tags), m.id FROM pg_temp.incoming i
JOIN memories m ON m.owner = %s AND m.key = i.key
"""
_VECTORS = """
DELETE FROM vectors v WHERE v.owner = %s
    AND NOT EXISTS (SELECT 1 FROM memories m WHERE m.owner = v.owner AND m.id = v.id)
"""


def stage(
    connection: Connection,
    records: Iterable[tuple[str, Record]],
    contexts: Iterable[Context] | None,
    progress: Progress | None,
) -> None:
    """Put records that come in canonical order beside the store; what the source raises passes through."""
    connection.execute(_STAGE)
    with connection.cursor() as cursor, cursor.copy(_COPY) as copy:
        for position, (row, copies, context) in enumerate(arrivals(records, contexts), start=1):
            session = None if context.session is None else context.session.encode("utf-8")
            tags = list(map(tag_key, row.tags))
            copy.write_row(
                (
                    position, row.key, row.identity, copies, context.sequence, session, context.time,
                    row.fragment, tags,
                )
            )  # fmt: skip
            if progress is not None and position % _REPORTED_EVERY == 0:
                progress("reading", position, None)
    connection.execute("CREATE UNIQUE INDEX ON pg_temp.incoming(key)")
    connection.execute("ANALYZE pg_temp.incoming(position, copies)")  # of nothing that is text: see `schema`


def replace(
    connection: Connection, owner: str, expected_changes: int | None, progress: Progress | None
) -> Imported:
    """Make the owner's memory what was staged. What stays keeps id, session and time; the rest is new."""
    head = heads.lock(connection, owner)
    if expected_changes is not None and head.changes != expected_changes:
        raise UnanchoredWrites(
            "the memory was written to meanwhile, so it was not replaced",
            hint="look at it again: `mycelium memory status`",
        )
    if progress is not None:
        progress("storing", 0, None)
    number = head.number
    empty_derived(connection, head, (*SEARCH, "tags"))
    changed = connection.execute(_GONE, (number,)).rowcount
    changed += connection.execute(_OTHER_COPIES, (number,)).rowcount
    added = connection.execute(_NEW, (number, head.sequence, number)).rowcount
    connection.execute(_TAGS, (number,))
    connection.execute(_VECTORS, (number,))
    row = connection.execute("SELECT count(*), coalesce(sum(copies), 0)::bigint FROM pg_temp.incoming")
    head.memories, head.records = row.fetchone() or (0, 0)
    head.changes += changed + added
    head.sequence += added
    heads.write(connection, head)
    return Imported(head.records, head.changes)
