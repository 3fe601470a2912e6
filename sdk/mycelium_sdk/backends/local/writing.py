"""What changes the truth record by record: adding and forgetting, each the inside of a transaction."""

from __future__ import annotations

import contextlib
import functools
import itertools
import operator
from typing import TYPE_CHECKING

from mycelium_sdk.backends.base import Addition, Selection, Stats
from mycelium_sdk.backends.local import derived
from mycelium_sdk.backends.local.rows import PREFIX_BYTES, STORED, Stored, alike, row_again
from mycelium_sdk.backends.local.seals import Head, edited, sealed_rows
from mycelium_sdk.errors import IntegrityKeyMissing, Tampered

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Sequence

    from mycelium_sdk.backends.local.rows import Row
    from mycelium_sdk.backends.local.seals import Sealer, Sealers

_KNOWN = (
    f"SELECT {STORED}, mac FROM texts WHERE key = ?1"  # noqa: S608 - constants
    f" UNION ALL SELECT {STORED}, mac FROM texts WHERE identity = ?1 ORDER BY 1 LIMIT 1"
)
_LONG = 800
"""Longer fragments would not fit into a page of `memories` with others, and take a page more each."""

_INSERTED_TOGETHER = 1000

_NOTHING = bytearray()
"""Given instead of None, which SQL makes of it: no blob of a row is empty, and nothing else equals a blob."""


def stats(connection: sqlite3.Connection) -> Stats:
    """Size and change counter."""
    return Stats(*connection.execute("SELECT records, changes FROM store").fetchone())


def id_of(connection: sqlite3.Connection, key: bytes) -> int | None:
    """The id of the memory that a record with this key is equal to."""
    row = connection.execute(
        "SELECT id FROM memories WHERE key = ?1"
        " UNION ALL SELECT id FROM memories WHERE identity = ?1 ORDER BY 1 LIMIT 1",
        (key,),
    ).fetchone()
    return None if row is None else row[0]


def add(
    connection: sqlite3.Connection, sealers: Sealers, additions: Sequence[tuple[Addition, Row]]
) -> list[str]:
    """Add what is not there yet; the id of each.

    Raises `Tampered` if the store's counters, or a row that an addition is equal to, were edited.
    """
    head, sealer = Head.read(connection, sealers.of)
    fresh: dict[bytes, tuple[Stored, Row]] = {}
    ids: list[int] = []
    for addition, row in additions:
        if row.key in fresh:
            ids.append(fresh[row.key][0].id)
            continue
        known = _known(connection, sealer, row.key) if head.records else None
        if known is None:
            known = head.sequence + len(fresh) + 1
            stored = Stored(known, row.key, row.identity, 1, addition.session, addition.time, row.fragment)
            fresh[row.key] = stored, row
        ids.append(known)
    if fresh:
        _insert(connection, sealer, head, list(fresh.values()))
        head.changes += len(fresh)
        head.sequence += len(fresh)
        head.records += len(fresh)
        head.write(connection, sealer)
    return [str(number) for number in ids]


def remove(connection: sqlite3.Connection, sealers: Sealers, selection: Selection) -> int:
    """Forget the selected memories, and what the derived tables know of them; how many records they were.

    Raises `Tampered` if one of them was edited: what it said when it was sealed is not known any more.
    """
    if selection.everything:
        return _clear(connection, sealers)
    head, sealer = Head.read(connection, sealers.of)
    doomed = list(_selected(connection, selection))
    if not doomed:
        return 0
    connection.execute("CREATE TEMP TABLE IF NOT EXISTS doomed(id INTEGER PRIMARY KEY)")
    connection.executemany("INSERT INTO doomed VALUES (?)", [(stored.id,) for stored, _ in doomed])
    derived.forget(connection)
    connection.execute("DELETE FROM doomed")
    tags: list[tuple[str, int]] = []
    for stored, mac in doomed:
        share, row = sealer.share_of(stored, mac), row_again(stored)
        if share is None or row is None:
            raise edited(stored.id)
        head.total ^= share
        tags.extend((tag, stored.id) for tag in row.tags)
    connection.executemany("DELETE FROM tags WHERE tag = ? AND id = ?", tags)
    connection.executemany(
        "DELETE FROM sessions WHERE session = ? AND id = ?",
        [(stored.session, stored.id) for stored, _ in doomed if stored.session is not None],
    )
    connection.executemany("DELETE FROM memories WHERE key = ?", [(stored.key,) for stored, _ in doomed])
    connection.executemany("DELETE FROM long WHERE id = ?", [(stored.id,) for stored, _ in doomed])
    records = sum(stored.copies for stored, _ in doomed)
    head.changes += len(doomed)
    head.records -= records
    head.write(connection, sealer)
    return records


def insert(
    connection: sqlite3.Connection,
    sealer: Sealer,
    head: Head,
    rows: Iterable[tuple[int, bytes, bytes | None, int, str | None, float | None, str]],
) -> None:
    """Insert memories that are not there, given as the fields of `Stored`, sealed, and add them to the head's
    total."""
    source = iter(rows)
    while batch := list(itertools.islice(source, _INSERTED_TOGETHER)):
        macs, shares = sealer.rows(batch)
        head.total ^= functools.reduce(operator.xor, shares)
        numbers, keys, identities, copies, sessions, times, fragments = zip(*batch, strict=True)
        texts: Sequence[str | None] = fragments
        if max(map(len, fragments)) > _LONG:
            texts = [None if len(text) > _LONG else text for text in fragments]
            long = [(number, text) for number, *_, text in batch if len(text) > _LONG]
            connection.executemany("INSERT OR REPLACE INTO long VALUES (?, ?)", long)
        full = {"id": numbers, "key": _blobs(keys), "copies": copies, "mac": _blobs(macs)}
        with_none = {"identity": identities, "session": sessions, "time": times, "fragment": texts}
        _insert_columns(connection, full, with_none)


def _insert_columns(
    connection: sqlite3.Connection,
    full: dict[str, Sequence[object]],
    with_none: dict[str, Sequence[object]],
) -> None:
    """Insert rows of `memories`, given in columns.

    The `sqlite3` module asks for an adapter of each None and each `bytes` that it gets, but of no int and no
    `bytearray`: a quarter of the time that many rows take.
    """
    values = [*full.values()]
    marks = dict.fromkeys(full, "?")
    for name, column in with_none.items():
        missing = column.count(None)
        if missing == 0:
            values.append(column)
            marks[name] = "?"
        elif missing < len(column):
            values.append([_NOTHING if value is None else value for value in column])
            marks[name] = "nullif(?, x'')"
    connection.executemany(
        f"INSERT INTO memories({', '.join(marks)}) VALUES ({', '.join(marks.values())})",  # noqa: S608
        zip(*values, strict=True),
    )


def _blobs(values: Iterable[bytes]) -> list[bytearray]:
    return list(map(bytearray, values))


def start_anew(head: Head, sealers: Sealers) -> Sealer:
    """A sealer for what replaces everything: the store's own if its key is here, else a new one."""
    if sealers.keys.find(head.store) is None:
        head.store = sealers.keys.make()
    return sealers.of(head.store)


def empty(connection: sqlite3.Connection) -> int:
    """Delete every row; how many memories those were."""
    connection.execute("DELETE FROM long")
    return connection.execute("DELETE FROM memories").rowcount


def _clear(connection: sqlite3.Connection, sealers: Sealers) -> int:
    """Forget all. Needs no genuine rows, so that an edited memory can be started anew."""
    head = Head.unchecked(connection)
    memories, records = connection.execute(
        "SELECT count(*), coalesce(sum(copies), 0) FROM memories"
    ).fetchone()
    written = memories or int(head.records > 0)
    if not written and sealers.keys.find(head.store) is not None:
        return 0
    derived.empty(connection)
    empty(connection)
    head.changes += written
    head.records, head.plain = 0, 1
    with contextlib.suppress(Tampered, IntegrityKeyMissing):
        head.links = Head.read(connection, sealers.of)[0].links
    head.write(connection, start_anew(head, sealers))
    return int(records)


def _selected(connection: sqlite3.Connection, selection: Selection) -> Iterable[tuple[Stored, bytes]]:
    if selection.id is not None:
        number = number_of(selection.id)
        return () if number is None else sealed_rows(connection, "id = ?", (number,))
    tag = selection.tag
    rows = sealed_rows(connection, "id IN (SELECT id FROM tags WHERE tag = ?)", (tag,))
    # The table of tags is derived, and no reason to forget what does not have the tag.
    return (found for found in rows if (row := row_again(found[0])) is None or tag in row.tags)


def _known(connection: sqlite3.Connection, sealer: Sealer, key: bytes) -> int | None:
    """The id of the memory that is equal to one with this key, if there is one."""
    found = connection.execute(_KNOWN, (key,)).fetchone()
    if found is None:
        return None
    stored = Stored(*found[:7])
    if sealer.share_of(stored, found[7]) is None:
        raise edited(stored.id)
    return stored.id


def _insert(
    connection: sqlite3.Connection, sealer: Sealer, head: Head, fresh: list[tuple[Stored, Row]]
) -> None:
    # In the table's own order, so that many touch each page once.
    fresh.sort(key=lambda pair: pair[0].key)
    if head.plain and _any_alike(connection, head, [stored.key for stored, _ in fresh]):
        head.plain = 0
    insert(connection, sealer, head, (stored for stored, _ in fresh))
    connection.executemany(
        "INSERT OR IGNORE INTO tags VALUES (?, ?)",
        sorted((tag, stored.id) for stored, row in fresh for tag in row.tags),
    )
    connection.executemany(
        "INSERT OR IGNORE INTO sessions VALUES (?, ?)",
        sorted((stored.session, stored.id) for stored, _ in fresh if stored.session is not None),
    )


def _any_alike(connection: sqlite3.Connection, head: Head, keys: list[bytes]) -> bool:
    """Whether one of these new keys, which are in order, was cut where another one was."""
    if any(map(alike, keys, keys[1:])):
        return True
    prefixes = [key[:PREFIX_BYTES] for key in keys if len(key) > PREFIX_BYTES] if head.records else []
    return any(
        connection.execute(
            "SELECT 1 FROM memories WHERE key > ? AND key < ? LIMIT 1",
            (prefix, prefix + b"\xff" * PREFIX_BYTES),
        ).fetchone()
        for prefix in prefixes
    )


def number_of(text: str) -> int | None:
    """The number that an id writes, None for what is no id of ours."""
    if not (text.isascii() and text.isdigit()) or len(text) > 18 or str(int(text)) != text:
        return None
    return int(text)
