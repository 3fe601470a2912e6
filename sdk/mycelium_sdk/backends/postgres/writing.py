"""What changes the truth record by record: adding and forgetting, each the inside of a transaction."""

from __future__ import annotations

import hashlib
import itertools
from typing import TYPE_CHECKING, Any, NamedTuple

from mycelium_sdk.backends.local.rows import row_of
from mycelium_sdk.backends.local.writing import number_of
from mycelium_sdk.backends.postgres import heads
from mycelium_sdk.canonical import record_from_fragment
from mycelium_sdk.errors import NonCanonical, Tampered
from mycelium_sdk.records import Record

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from psycopg import Cursor

    from mycelium_sdk.backends.base import Addition, Selection
    from mycelium_sdk.backends.local.rows import Row
    from mycelium_sdk.backends.postgres.connections import Connections
    from mycelium_sdk.backends.postgres.heads import Head
    from mycelium_sdk.backends.postgres.pool import Connection

_INSERTED_TOGETHER = 5000
_TAG_BYTES = 16

_KNOWN = """
SELECT key, id FROM memories WHERE owner = (SELECT number FROM owners WHERE owner = %(owner)b)
    AND key = ANY(%(keys)b)
UNION ALL
SELECT identity, id FROM memories WHERE owner = (SELECT number FROM owners WHERE owner = %(owner)b)
    AND identity = ANY(%(keys)b)
ORDER BY 2 DESC
"""

_INSERT = """
INSERT INTO memories(owner, id, key, identity, copies, session, time, fragment)
SELECT %b, id, key, identity, 1, session, time, fragment
FROM unnest(%b::bigint[], %b::bytea[], %b::bytea[], %b::bytea[], %b::double precision[], %b::text[])
    AS fresh(id, key, identity, session, time, fragment)
"""


class Fresh(NamedTuple):
    """A memory that is not there yet."""

    id: int
    row: Row
    session: bytes | None
    time: float | None


class Doomed(NamedTuple):
    """A memory that is being forgotten."""

    id: int
    copies: int
    fragment: str
    tags: Sequence[str]


def tag_key(tag: str) -> bytes:
    """What stands for a tag in the index of tags."""
    return hashlib.blake2b(tag.encode("utf-8"), digest_size=_TAG_BYTES).digest()


def add(connection: Connection, owner: str, additions: Sequence[tuple[Addition, Row]]) -> list[str]:
    """Add what is not there yet; the id of each."""
    keys = list(dict.fromkeys(row.key for _, row in additions))
    with connection.pipeline():
        locking = connection.execute(heads.LOCKED, (owner,))
        # Seen after the lock was had: each statement of the transaction sees what is committed by then.
        looking = connection.execute(_KNOWN, {"owner": owner, "keys": keys})
    found, known = locking.fetchone(), _numbers(looking)
    # An owner's first write makes the row, and another process may just have written on it.
    head = heads.Head(*found) if found is not None else heads.lock(connection, owner)
    if found is None:
        known = _numbers(connection.execute(_KNOWN, {"owner": owner, "keys": keys}))
    fresh: list[Fresh] = []
    ids: list[str] = []
    for addition, row in additions:
        number = known.get(row.key)
        if number is None:
            number = known[row.key] = head.sequence + len(fresh) + 1
            session = None if addition.session is None else addition.session.encode("utf-8")
            fresh.append(Fresh(number, row, session, addition.time))
        ids.append(str(number))
    if fresh:
        head.changes += len(fresh)
        head.sequence += len(fresh)
        head.memories += len(fresh)
        head.records += len(fresh)
        with connection.pipeline():
            _insert(connection, head, fresh)
            heads.write(connection, head)
    return ids


def ids_of(connections: Connections, owner: str, records: Sequence[Record]) -> list[str | None]:
    """The id that each of these has, None where it is not there."""
    keys = [row_of(Record(record.content, tuple(sorted(set(record.tags))))).key for record in records]
    known: dict[bytes, int] = dict(connections.ask(_KNOWN, {"owner": owner, "keys": keys}))
    return [str(known[key]) if key in known else None for key in keys]


def ids_of_digests(connections: Connections, owner: str, digests: Collection[bytes]) -> dict[bytes, str]:
    """The ids of the memories whose fragments have these SHA-256 digests."""
    rows = connections.ask(
        "SELECT sha256(convert_to(fragment, 'UTF8')), id::text FROM memories"
        " WHERE owner = (SELECT number FROM owners WHERE owner = %s)"
        " AND sha256(convert_to(fragment, 'UTF8')) = ANY(%s)",
        (owner, list(digests)),
    )
    return dict(rows)


def _numbers(rows: Cursor[Any]) -> dict[bytes, int]:
    """The lowest id of each key."""
    return dict(rows.fetchall())


def remove(connection: Connection, owner: str, selection: Selection) -> int:
    """Forget the selected memories, and what the derived tables know of them; how many records they were.

    Raises `Tampered` if one of them was edited into no record: what is derived from it is not known any more.
    """
    head = heads.lock(connection, owner)
    if selection.everything:
        return _clear(connection, head)
    doomed = _selected(connection, head, selection)
    if not doomed:
        return 0
    from mycelium_sdk.backends.postgres import indexing  # brings the analyzer, which no other write needs

    ids = [one.id for one in doomed]
    indexing.forget(connection, head, doomed)
    connection.execute(
        "DELETE FROM tags WHERE owner = %s AND tag = ANY(%s) AND id = ANY(%s)",
        (head.number, list({tag_key(tag) for one in doomed for tag in one.tags}), ids),
    )
    for table in ("vectors", "memories"):
        connection.execute(f"DELETE FROM {table} WHERE owner = %s AND id = ANY(%s)", (head.number, ids))  # noqa: S608
    records = sum(one.copies for one in doomed)
    head.changes += len(doomed)
    head.memories -= len(doomed)
    head.records -= records
    heads.write(connection, head)
    return records


def empty_derived(connection: Connection, head: Head, tables: Iterable[str]) -> None:
    """Forget what these derived tables hold of the owner's memories."""
    for table in tables:
        connection.execute(f"DELETE FROM {table} WHERE owner = %s", (head.number,))  # noqa: S608 - constants


def _clear(connection: Connection, head: Head) -> int:
    if not head.memories:
        return 0
    empty_derived(connection, head, ("segments", "postings", "coherence", "tags", "vectors", "memories"))
    records = head.records
    head.changes += head.memories
    head.memories = head.records = 0
    heads.write(connection, head)
    return records


def _selected(connection: Connection, head: Head, selection: Selection) -> list[Doomed]:
    number = None if selection.id is None else number_of(selection.id)
    if selection.tag is None:
        ids = [] if number is None else [number]
    else:
        rows = connection.execute(
            "SELECT id FROM tags WHERE owner = %s AND tag = %s", (head.number, tag_key(selection.tag))
        )
        ids = [row[0] for row in rows]
    found = connection.execute(
        "SELECT id, copies, fragment FROM memories WHERE owner = %s AND id = ANY(%s) ORDER BY id",
        (head.number, ids),
    ).fetchall()
    doomed = [Doomed(number, copies, fragment, _tags(number, fragment)) for number, copies, fragment in found]
    return [one for one in doomed if selection.tag is None or selection.tag in one.tags]


def _tags(number: int, fragment: str) -> tuple[str, ...]:
    try:
        return row_of(record_from_fragment(fragment), fragment).tags
    except NonCanonical:
        raise Tampered(f"memory {number} was changed behind the store's back") from None


def _insert(connection: Connection, head: Head, fresh: Sequence[Fresh]) -> None:
    source = iter(fresh)
    while batch := list(itertools.islice(source, _INSERTED_TOGETHER)):
        connection.execute(
            _INSERT,
            (
                head.number,
                [one.id for one in batch],
                [one.row.key for one in batch],
                [one.row.identity for one in batch],
                [one.session for one in batch],
                [one.time for one in batch],
                [one.row.fragment for one in batch],
            ),
        )
        tags = [(tag_key(tag), one.id) for one in batch for tag in one.row.tags]
        if tags:
            connection.execute(
                "INSERT INTO tags SELECT %b, * FROM unnest(%b::bytea[], %b::bigint[])",
                (head.number, [tag for tag, _ in tags], [number for _, number in tags]),
            )
