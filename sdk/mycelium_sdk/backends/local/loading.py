"""What changes all of the truth at once: replacing everything by a blob, and sealing anew what is there.

A blob is first put beside the store, in temporary tables, so that it is checked to its end while nobody waits
for it; memory is bounded by SQLite's caches, whatever its size. Only what is in memory anyway, and goes into
an empty store, takes the shorter way (`filling`).
"""

# ruff: noqa: S608 - statements are put together from constants; every value is a parameter

from __future__ import annotations

import array
import sqlite3
from typing import TYPE_CHECKING, NamedTuple

from mycelium_sdk import canonical
from mycelium_sdk.backends.base import Context, Imported
from mycelium_sdk.backends.local import derived
from mycelium_sdk.backends.local.rows import STORED, Stored, alike, row_again, row_of
from mycelium_sdk.backends.local.seals import Head, edited, sealed_rows
from mycelium_sdk.backends.local.view import View
from mycelium_sdk.backends.local.writing import empty, insert, start_anew, stats
from mycelium_sdk.errors import InputError, IntegrityKeyMissing, Tampered, UnanchoredWrites

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from mycelium_sdk.backends.base import Progress
    from mycelium_sdk.backends.local.rows import Row
    from mycelium_sdk.backends.local.seals import Sealer, Sealers
    from mycelium_sdk.records import Record

_STAGED_TOGETHER = 1000
_REPORTED_EVERY = 10_000
_SEALED_TOGETHER = 5000

_NO_CONTEXT = Context(0, None, None)

_NEW = "FROM temp.incoming i WHERE NOT EXISTS (SELECT 1 FROM memories m WHERE m.key = i.key)"


class Arrival(NamedTuple):
    """A memory of a blob: how often it occurs, and what is known beside it."""

    row: Row
    copies: int
    context: Context


def stage(
    connection: sqlite3.Connection,
    records: Iterable[tuple[str, Record]],
    contexts: Iterable[Context] | None,
    progress: Progress | None,
) -> bool:
    """Put records that come in canonical order beside the store, in temporary tables, and so check them all.

    Takes no lock on the store, so that a slow source stops nobody; what the source raises passes through.
    Whether they are plain (`schema`).
    """
    plain, last = True, b""
    connection.execute("BEGIN")
    try:
        unstage(connection)
        connection.execute(
            "CREATE TEMP TABLE incoming(position INTEGER PRIMARY KEY, key BLOB NOT NULL, identity BLOB,"
            " fragment TEXT NOT NULL, copies INTEGER NOT NULL, sequence INTEGER, session TEXT, time REAL)"
        )
        connection.execute("CREATE TEMP TABLE incoming_tags(position INTEGER NOT NULL, tag TEXT NOT NULL)")
        position = 0
        for batch in _batches(arrivals(records, contexts)):
            numbered = list(enumerate(batch, position + 1))
            position += len(batch)
            connection.executemany(
                "INSERT INTO incoming VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                [
                    (place, row.key, row.identity, row.fragment, copies, *context)
                    for place, (row, copies, context) in numbered
                ],
            )
            keys = [last, *(incoming.row.key for incoming in batch)]
            last = keys[-1]
            plain = plain and not any(map(alike, keys, keys[1:])) and all(one.copies == 1 for one in batch)
            connection.executemany(
                "INSERT INTO incoming_tags VALUES (?, ?)",
                [(place, tag) for place, incoming in numbered for tag in incoming.row.tags],
            )
            if progress is not None and position % _REPORTED_EVERY < len(batch):
                progress("reading", position, None)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    return plain


def replace(
    connection: sqlite3.Connection,
    sealers: Sealers,
    expected_changes: int | None,
    *,
    plain: bool,
    in_context: bool,
    progress: Progress | None,
) -> Imported:
    """Make the store what was staged. What stays keeps id, session and time; the rest is made anew.

    A row stays only if it is as it was sealed and in what was staged. Nothing derived stays, since an edit of
    that would not show.
    """
    refuse_writes_since(connection, expected_changes)
    derived.empty(connection)
    kept = _keep_what_is_whole(connection, sealers)
    if kept is not None:
        head, sealer, changed = kept
    else:
        head = Head.unchecked(connection)
        sealer = start_anew(head, sealers)
        head.total = 0
        changed = empty(connection)
    added = _insert_new(connection, sealer, head, in_context=in_context, progress=progress)
    connection.execute(
        "INSERT INTO tags SELECT t.tag, m.id FROM temp.incoming_tags t JOIN temp.incoming i USING (position)"
        " JOIN memories m ON m.key = i.key ORDER BY t.tag, m.id"
    )
    index_sessions(connection)
    head.changes += changed + added
    head.sequence += added
    head.records = connection.execute("SELECT coalesce(sum(copies), 0) FROM temp.incoming").fetchone()[0]
    head.plain = int(plain)
    head.write(connection, sealer)
    return Imported(head.records, head.changes)


def refuse_writes_since(connection: sqlite3.Connection, expected_changes: int | None) -> None:
    """Raise `UnanchoredWrites` if the change counter is not what is expected."""
    if expected_changes is not None and stats(connection).change_counter != expected_changes:
        raise UnanchoredWrites(
            "the memory was written to meanwhile, so it was not replaced",
            hint="look at it again: `mycelium memory status`",
        )


def _keep_what_is_whole(connection: sqlite3.Connection, sealers: Sealers) -> tuple[Head, Sealer, int] | None:
    """The store without what was not staged, and how many memories that changed; None where rows cannot even
    be read, or nothing vouches for them."""
    try:
        head, sealer = Head.read(connection, sealers.of)
        return head, sealer, _drop_others(connection, sealer, head)
    except (Tampered, IntegrityKeyMissing):
        return None
    except sqlite3.OperationalError as error:
        # Text that is no text has no code of SQLite's. Its complaint quotes the text, and so goes no further.
        if getattr(error, "sqlite_errorcode", None) is not None:
            raise
        return None


def unstage(connection: sqlite3.Connection) -> None:
    """Drop the temporary tables."""
    for table in ("incoming", "incoming_tags", "gone"):
        connection.execute(f"DROP TABLE IF EXISTS temp.{table}")


def adopt(connection: sqlite3.Connection, sealers: Sealers, root: bytes, progress: Progress | None) -> None:
    """Seal all rows anew if their root is `root`. Ids, sessions and times are taken as they are.

    Raises `Tampered`, changing nothing, if it is not.
    """
    head = Head.unchecked(connection)
    if canonical.root(canonical.write_blob(head.owner, View(connection, sealers).fragments())) != root:
        raise Tampered(
            "the memory is not what is anchored, so it was not adopted",
            hint="load what is anchored: `mycelium memory rehydrate --on-conflict replace`",
        )
    sealer = start_anew(head, sealers)
    derived.empty(connection)
    total = head.records
    head.total, head.records, head.plain = 0, 0, 1
    last = b""
    while rows := list(sealed_rows(connection, "key > ? ORDER BY key LIMIT ?", (last, _SEALED_TOGETHER))):
        keys = [last, *(stored.key for stored, _ in rows)]
        last = keys[-1]
        if any(map(alike, keys, keys[1:])) or any(stored.copies > 1 for stored, _ in rows):
            head.plain = 0
        _seal_anew(connection, sealer, head, [stored for stored, _ in rows])
        if progress is not None:
            progress("sealing", head.records, total)
    index_sessions(connection)
    head.write(connection, sealer)


def _seal_anew(connection: sqlite3.Connection, sealer: Sealer, head: Head, rows: list[Stored]) -> None:
    tags: list[tuple[str, int]] = []
    macs: list[tuple[bytes, bytes]] = []
    for stored in rows:
        row = row_again(stored)
        if row is None or (row.key, row.identity) != (stored.key, stored.identity):
            raise edited(stored.id)
        mac, share = sealer.row(stored)
        head.total ^= share
        head.records += stored.copies
        macs.append((mac, stored.key))
        tags.extend((tag, stored.id) for tag in row.tags)
    connection.executemany("UPDATE memories SET mac = ? WHERE key = ?", macs)
    connection.executemany("INSERT OR IGNORE INTO tags VALUES (?, ?)", tags)


def _drop_others(connection: sqlite3.Connection, sealer: Sealer, head: Head) -> int:
    """Leave only rows that were staged and are as sealed, with the staged number of copies; how many memories
    changed."""
    connection.execute("CREATE UNIQUE INDEX temp.incoming_key ON incoming(key)")
    connection.execute("CREATE TEMP TABLE gone(id PRIMARY KEY) WITHOUT ROWID")
    other_copies: list[Stored] = []
    head.total = 0

    def gone() -> Iterator[tuple[int]]:
        rows = connection.execute(
            f"SELECT {', '.join(f'm.{name}' for name in STORED.split(', '))}, m.mac, i.copies"
            " FROM texts m LEFT JOIN temp.incoming i ON i.key = m.key AND i.fragment = m.fragment"
        )
        for *values, mac, copies in rows:
            stored = Stored(*values)
            share = sealer.share_of(stored, mac)
            if copies is None or share is None:
                yield (stored.id,)
            elif copies != stored.copies:
                other_copies.append(stored._replace(copies=copies))
            else:
                head.total ^= share

    removed = connection.executemany("INSERT INTO temp.gone VALUES (?)", gone()).rowcount
    if removed:
        for table in ("memories", "long"):
            connection.execute(f"DELETE FROM {table} WHERE id IN (SELECT id FROM temp.gone)")
    for stored in other_copies:
        mac, share = sealer.row(stored)
        head.total ^= share
        connection.execute(
            "UPDATE memories SET copies = ?, mac = ? WHERE key = ?", (stored.copies, mac, stored.key)
        )
    return max(removed, 0) + len(other_copies)


def _insert_new(
    connection: sqlite3.Connection,
    sealer: Sealer,
    head: Head,
    *,
    in_context: bool,
    progress: Progress | None,
) -> int:
    """Insert what was staged and is not there; how many memories those are."""
    number_of = _order_of_arrival(connection) if in_context else None
    total = connection.execute("SELECT count(*) FROM temp.incoming").fetchone()[0]
    added = 0

    def rows() -> Iterator[Stored]:
        nonlocal added
        found = connection.execute(
            f"SELECT position, key, identity, copies, session, time, fragment {_NEW} ORDER BY position"
        )
        for position, *values in found:
            added += 1
            number = head.sequence + (added if number_of is None else number_of(position))
            yield Stored(number, *values)
            if progress is not None and added % _REPORTED_EVERY == 0:
                progress("storing", added, total)

    insert(connection, sealer, head, rows())
    return added


def _order_of_arrival(connection: sqlite3.Connection) -> Callable[[int], int]:
    """The places, from 1, of the new memories in the order that their context tells."""
    count = connection.execute("SELECT count(*) FROM temp.incoming").fetchone()[0]
    places = array.array("Q", bytes(8 * (count + 1)))
    for place, (position,) in enumerate(
        connection.execute(f"SELECT i.position {_NEW} ORDER BY i.sequence, i.position"), 1
    ):
        places[position] = place
    return places.__getitem__


def index_sessions(connection: sqlite3.Connection) -> None:
    """Fill the table of sessions, which is empty."""
    connection.execute(
        "INSERT INTO sessions SELECT session, id FROM memories WHERE session IS NOT NULL ORDER BY session, id"
    )


def arrivals(records: Iterable[tuple[str, Record]], contexts: Iterable[Context] | None) -> Iterator[Arrival]:
    """Each memory of a blob once, in canonical order; `Backend.replace` says what the arguments are.

    Raises `InputError` where the contexts are more or fewer than the records.
    """
    return _counted(_paired(records, contexts))


def _paired(
    records: Iterable[tuple[str, Record]], contexts: Iterable[Context] | None
) -> Iterator[tuple[str, Record, Context]]:
    """The records with what is known of their arrival."""
    known = None if contexts is None else iter(contexts)
    for text, record in records:
        context = _NO_CONTEXT if known is None else next(known, None)
        if context is None:
            raise other_length()
        yield text, record, context
    if known is not None and next(known, None) is not None:
        raise other_length()


def other_length() -> InputError:
    """The error for contexts that are more or fewer than the records."""
    return InputError("the context has not one entry for each record of the blob")


def _counted(records: Iterable[tuple[str, Record, Context]]) -> Iterator[Arrival]:
    """Rows with the number of equal neighbours and the context of the first of them."""
    previous: tuple[str, Record, Context] | None = None
    copies = 0
    for found in records:
        if previous is not None and found[0] == previous[0]:
            copies += 1
            continue
        if previous is not None:
            yield Arrival(row_of(previous[1], previous[0]), copies, previous[2])
        previous, copies = found, 1
    if previous is not None:
        yield Arrival(row_of(previous[1], previous[0]), copies, previous[2])


def _batches(rows: Iterable[Arrival]) -> Iterator[list[Arrival]]:
    batch = []
    for row in rows:
        batch.append(row)
        if len(batch) == _STAGED_TOGETHER:
            yield batch
            batch = []
    if batch:
        yield batch
