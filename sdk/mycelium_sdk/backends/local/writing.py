"""What changes the truth: adding, forgetting, replacing. Each function is the inside of one transaction."""

# ruff: noqa: S608 - statements are put together from constants; every value is a parameter

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from mycelium_sdk.backends.base import Addition, Imported, Selection, Stats
from mycelium_sdk.canonical import fragment, order_key
from mycelium_sdk.errors import UnanchoredWrites
from mycelium_sdk.records import Record

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Iterator, Sequence

_STAGED_TOGETHER = 1000


class Row(NamedTuple):
    """A record as it is going to be stored."""

    order_key: bytes
    identity: bytes | None
    fragment: str
    tags: tuple[str, ...]


def row_of(record: Record, text: str | None = None) -> Row:
    """The row of a record; `text` is its fragment where that is known already."""
    distinct = tuple(sorted(set(record.tags)))
    identity = None if len(distinct) == len(record.tags) else order_key(Record(record.content, distinct))
    return Row(order_key(record), identity, fragment(record) if text is None else text, distinct)


def stats(connection: sqlite3.Connection) -> Stats:
    """Size and change counter."""
    return Stats(*connection.execute("SELECT records, changes FROM store").fetchone())


def add(connection: sqlite3.Connection, additions: Sequence[tuple[Addition, Row]]) -> list[str]:
    """Add what is not there yet; the id of each."""
    last: int = connection.execute("SELECT sequence FROM store").fetchone()[0]
    new = 0
    ids: list[str] = []
    for addition, row in additions:
        known = connection.execute(
            "SELECT min(id) FROM (SELECT id FROM memories WHERE order_key = ?"
            " UNION ALL SELECT id FROM memories WHERE identity = ?)",
            (row.order_key, row.order_key),
        ).fetchone()[0]
        if known is None:
            new += 1
            known = last + new
            connection.execute(
                "INSERT INTO memories VALUES (?, ?, NULL, ?, 1, ?, ?, ?)",
                (known, row.order_key, row.fragment, known, addition.session, addition.time),
            )
            connection.executemany("INSERT INTO tags VALUES (?, ?)", [(tag, known) for tag in row.tags])
        ids.append(str(known))
    if new:
        connection.execute(
            "UPDATE store SET changes = changes + ?, sequence = sequence + ?, records = records + ?",
            (new, new, new),
        )
    return ids


def remove(connection: sqlite3.Connection, selection: Selection) -> int:
    """Forget the selected memories, and what the derived tables know of them; how many records they were."""
    connection.execute("CREATE TEMP TABLE IF NOT EXISTS doomed(id INTEGER PRIMARY KEY)")
    connection.execute("DELETE FROM doomed")
    if selection.everything:
        connection.execute("INSERT INTO doomed SELECT id FROM memories")
    elif selection.tag is not None:
        connection.execute("INSERT INTO doomed SELECT id FROM tags WHERE tag = ?", (selection.tag,))
    elif selection.id is not None and (number := _number(selection.id)) is not None:
        connection.execute("INSERT INTO doomed SELECT id FROM memories WHERE id = ?", (number,))
    doomed = "IN (SELECT id FROM doomed)"
    memories, records = connection.execute(
        f"SELECT count(*), coalesce(sum(copies), 0) FROM memories WHERE id {doomed}"
    ).fetchone()
    if not memories:
        return 0
    connection.execute(
        f"INSERT INTO search(search, rowid, terms) SELECT 'delete', id, terms FROM terms WHERE id {doomed}"
    )
    connection.execute(
        "UPDATE indexing SET documents = documents - gone.number, length = length - gone.total FROM"
        f" (SELECT count(*) number, coalesce(sum(length), 0) total FROM terms WHERE id {doomed}) gone"
    )
    for table in ("terms", "vectors", "tags", "memories"):
        connection.execute(f"DELETE FROM {table} WHERE id {doomed}")
    connection.execute("DELETE FROM doomed")
    connection.execute("UPDATE store SET changes = changes + ?, records = records - ?", (memories, records))
    return int(records)


def stage(connection: sqlite3.Connection, records: Iterable[tuple[str, Record]]) -> None:
    """Put records that come in canonical order beside the store, in temporary tables, and so check them all.

    Takes no lock on the store, so that a slow source stops nobody; what the source raises passes through.
    """
    connection.execute("BEGIN")
    try:
        unstage(connection)
        connection.execute(
            "CREATE TEMP TABLE incoming(position INTEGER PRIMARY KEY, order_key BLOB NOT NULL UNIQUE,"
            " identity BLOB, fragment TEXT NOT NULL, copies INTEGER NOT NULL)"
        )
        connection.execute("CREATE TEMP TABLE incoming_tags(position INTEGER NOT NULL, tag TEXT NOT NULL)")
        position = 0
        for batch in _batches(_counted(records)):
            numbered = list(enumerate(batch, position + 1))
            position += len(batch)
            connection.executemany(
                "INSERT INTO incoming VALUES (?, ?, ?, ?, ?)",
                [
                    (place, row.order_key, row.identity, row.fragment, copies)
                    for place, (row, copies) in numbered
                ],
            )
            connection.executemany(
                "INSERT INTO incoming_tags VALUES (?, ?)",
                [(place, tag) for place, (row, _) in numbered for tag in row.tags],
            )
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def replace(connection: sqlite3.Connection, expected_changes: int | None) -> Imported:
    """Make the store what was staged. What stays keeps id, sequence, session and time; the rest is made anew.

    A row stays only if key and fragment are both as staged, so an edited row does not survive. Nothing
    derived stays, for the same reason.
    """
    before = stats(connection)
    if expected_changes is not None and before.change_counter != expected_changes:
        raise UnanchoredWrites(
            "the memory was written to meanwhile, so it was not replaced",
            hint="look at it again: `mycelium memory status`",
        )
    _empty_derived(connection)
    changed = connection.execute(
        "DELETE FROM memories WHERE NOT EXISTS (SELECT 1 FROM incoming i"
        " WHERE i.order_key = memories.order_key AND i.fragment = memories.fragment)"
    ).rowcount
    changed += connection.execute(
        "UPDATE memories SET copies = i.copies, identity = i.identity FROM incoming i"
        " WHERE i.order_key = memories.order_key"
        " AND (i.copies <> memories.copies OR i.identity IS NOT memories.identity)"
    ).rowcount
    added = connection.execute(
        "INSERT INTO memories SELECT number, order_key, identity, fragment, copies, number, NULL, NULL FROM"
        " (SELECT i.*, s.sequence + row_number() OVER (ORDER BY i.position) number FROM incoming i, store s"
        " WHERE NOT EXISTS (SELECT 1 FROM memories m WHERE m.order_key = i.order_key))"
    ).rowcount
    connection.execute(
        "INSERT INTO tags SELECT t.tag, m.id FROM incoming_tags t JOIN incoming i USING (position)"
        " JOIN memories m USING (order_key)"
    )
    connection.execute(
        "UPDATE store SET changes = changes + ?, sequence = sequence + ?,"
        " records = (SELECT coalesce(sum(copies), 0) FROM incoming)",
        (changed + added, added),
    )
    after = stats(connection)
    return Imported(after.records, after.change_counter)


def unstage(connection: sqlite3.Connection) -> None:
    """Drop the temporary tables."""
    connection.execute("DROP TABLE IF EXISTS temp.incoming")
    connection.execute("DROP TABLE IF EXISTS temp.incoming_tags")


def empty_search(connection: sqlite3.Connection, analyzer: str) -> None:
    """Forget the whole search index; `analyzer` is whose terms come next."""
    connection.execute("INSERT INTO search(search) VALUES ('delete-all')")
    connection.execute("DELETE FROM terms")
    connection.execute(
        "UPDATE indexing SET analyzer = ?, through = 0, documents = 0, length = 0", (analyzer,)
    )


def _empty_derived(connection: sqlite3.Connection) -> None:
    empty_search(connection, "")
    connection.execute("DELETE FROM vectors")
    connection.execute("DELETE FROM tags")


def _counted(records: Iterable[tuple[str, Record]]) -> Iterator[tuple[Row, int]]:
    """Rows with the number of equal neighbours."""
    previous: tuple[str, Record] | None = None
    copies = 0
    for pair in records:
        if previous is not None and pair[0] == previous[0]:
            copies += 1
            continue
        if previous is not None:
            yield row_of(previous[1], previous[0]), copies
        previous, copies = pair, 1
    if previous is not None:
        yield row_of(previous[1], previous[0]), copies


def _batches(rows: Iterable[tuple[Row, int]]) -> Iterator[list[tuple[Row, int]]]:
    batch = []
    for row in rows:
        batch.append(row)
        if len(batch) == _STAGED_TOGETHER:
            yield batch
            batch = []
    if batch:
        yield batch


def _number(text: str) -> int | None:
    """The number that an id writes, None for what is no id of ours."""
    if not (text.isascii() and text.isdigit()) or len(text) > 18 or str(int(text)) != text:
        return None
    return int(text)
