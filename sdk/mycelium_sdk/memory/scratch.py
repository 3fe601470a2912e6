"""Memories put aside in a private temporary database, to be read again in another order.

SQLite makes the file itself, without a name and readable by nobody else, keeps what is small in memory, and
frees all of it when it is closed. So a million memories can be sorted in bounded memory.
"""

# ruff: noqa: S608 - statements are put together from constants; every value is a parameter

from __future__ import annotations

import contextlib
import sqlite3
from typing import TYPE_CHECKING, Any, NamedTuple

from mycelium_sdk import canonical
from mycelium_sdk.backends.base import Context
from mycelium_sdk.errors import BackendError
from mycelium_sdk.records import Record
from mycelium_sdk.stored import StoredRecord

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from types import TracebackType

    from mycelium_sdk.interchange import Entry

__all__ = ["Scratch", "Staged"]

_TABLES = (
    # `identity` is the key without repeated tags, NULL where none repeats.
    """CREATE TABLE incoming(
        key BLOB PRIMARY KEY, identity BLOB, fragment TEXT NOT NULL, copies INTEGER NOT NULL,
        place INTEGER NOT NULL, sequence INTEGER NOT NULL, session TEXT, time REAL) WITHOUT ROWID""",
    "CREATE TABLE here(key BLOB PRIMARY KEY, fragment TEXT NOT NULL, copies INTEGER NOT NULL) WITHOUT ROWID",
    "CREATE TABLE alike(identity BLOB PRIMARY KEY) WITHOUT ROWID",
    """CREATE TABLE leaving(
        id TEXT NOT NULL, fragment TEXT NOT NULL, copies INTEGER NOT NULL, sequence INTEGER NOT NULL,
        session TEXT, time REAL)""",
)
_FRESH = (
    "NOT EXISTS (SELECT 1 FROM here h WHERE h.key = i.key) AND NOT (i.identity IS NULL AND EXISTS"
    " (SELECT 1 FROM alike a WHERE a.identity = i.key))"
)
_MERGED = (
    "SELECT h.key, h.fragment, max(h.copies, coalesce(i.copies, 0)), i.place, i.sequence, i.session, i.time"
    " FROM here h LEFT JOIN incoming i ON i.key = h.key"
    " UNION ALL SELECT i.key, i.fragment, i.copies, i.place, i.sequence, i.session, i.time FROM incoming i"
    f" WHERE {_FRESH} ORDER BY 1"
)
_TOGETHER = 1000
_CACHE_KIB = 32 * 1024


class Staged(NamedTuple):
    """What was put aside: distinct memories, repeats among them, the bytes of their text, and whether
    `remember` would accept them all as they are."""

    memories: int
    repeated: int
    size: int
    plain: bool


class Scratch:
    """A temporary database for one import or export. For one thread. A context manager."""

    def __init__(self) -> None:
        self._in_sequence = True
        self._open = contextlib.ExitStack()
        with _explained():
            self._connection = sqlite3.connect("", isolation_level=None)
            for statement in ("PRAGMA journal_mode = OFF", f"PRAGMA cache_size = -{_CACHE_KIB}", *_TABLES):
                self._connection.execute(statement)
            self._connection.execute("BEGIN")  # without one, each statement would end with a write

    def stage(self, entries: Iterable[tuple[Entry, bool]]) -> Staged:
        """Put aside what comes in: (entry, whether `remember` would accept it).

        Equal ones are kept once, with the most copies that one of them has. What the iterable raises passes
        through.
        """
        memories = repeated = size = 0
        plain = True
        for place, (entry, acceptable) in enumerate(entries):
            record = entry.record
            fragment = canonical.fragment(record)
            # Where one does not say when it came, the order of the source counts for all.
            self._in_sequence = self._in_sequence and entry.sequence is not None
            with _explained():
                row = self._connection.execute(
                    "INSERT INTO incoming VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE"
                    " SET copies = max(copies, excluded.copies) RETURNING place",
                    (
                        canonical.order_key(record), _key_without_repeats(record), fragment, entry.copies,
                        place, entry.sequence or 0, entry.session, entry.time,
                    ),
                )  # fmt: skip
                again = row.fetchone()[0] != place
            repeated += again
            if not again:
                memories += 1
                size += len(fragment)
            plain = plain and acceptable
        return Staged(memories, repeated, size, plain)

    def staged(self) -> Iterator[tuple[Record, str | None, float | None]]:
        """(record, session, time) of what was staged, in the order of arrival."""
        order = "sequence, place" if self._in_sequence else "place"
        rows = self._rows(f"SELECT fragment, session, time FROM incoming ORDER BY {order}")
        for fragment, session, time in rows:
            yield canonical.record_from_fragment(fragment), session, time

    def compare(self, stored: Iterable[StoredRecord]) -> int:
        """Put aside what a memory holds; how many of the staged ones are not among it.

        A staged memory is there if one with the same content and tags is, or, where its own tags do not
        repeat, one whose set of tags is the same.
        """
        with _explained():
            self._connection.execute("DELETE FROM here")
            self._connection.execute("DELETE FROM alike")
        for one in stored:
            record = one.record
            key, alike = canonical.order_key(record), _key_without_repeats(record)
            with _explained():
                self._connection.execute("INSERT INTO here VALUES (?, ?, ?)", (key, one.fragment, one.copies))
                if alike is not None:
                    self._connection.execute("INSERT OR IGNORE INTO alike VALUES (?)", (alike,))
        with _explained():
            sql = f"SELECT count(*) FROM incoming i WHERE {_FRESH}"
            count: int = self._connection.execute(sql).fetchone()[0]
            return count

    def lacking(self) -> int:
        """How many of those that were compared are not among the staged ones."""
        sql = "SELECT count(*) FROM here h WHERE NOT EXISTS (SELECT 1 FROM incoming i WHERE i.key = h.key)"
        with _explained():
            count: int = self._connection.execute(sql).fetchone()[0]
            return count

    def more_copies(self) -> bool:
        """Whether one of the staged ones has more copies than what was compared with it."""
        sql = "SELECT EXISTS (SELECT 1 FROM incoming i JOIN here h USING (key) WHERE i.copies > h.copies)"
        with _explained():
            return bool(self._connection.execute(sql).fetchone()[0])

    def merged_fragments(self) -> Iterator[tuple[str, int]]:
        """(fragment, copies) of all that was compared and all that is new, in canonical order."""
        for _, fragment, copies, *_ in self._rows(_MERGED):
            yield fragment, copies

    def merged_contexts(self) -> Iterator[Context]:
        """What is known of the arrival of each record of `merged_fragments`, each copy one; what was there
        already keeps its own."""
        for _, _, copies, place, sequence, session, time in self._rows(_MERGED):
            for _ in range(copies):
                yield Context((sequence if self._in_sequence else place) or 0, session, time)

    def put_leaving(self, stored: Iterable[StoredRecord]) -> int:
        """Put aside what goes out; how many memories that are."""
        count = 0
        for one in stored:
            with _explained():
                self._connection.execute(
                    "INSERT INTO leaving VALUES (?, ?, ?, ?, ?, ?)",
                    (one.id, one.fragment, one.copies, one.sequence, one.session, one.time),
                )
            count += 1
        return count

    def leaving(self) -> Iterator[StoredRecord]:
        """What goes out, in the order of arrival."""
        columns = "id, fragment, copies, sequence, session, time"
        for row in self._rows(f"SELECT {columns} FROM leaving ORDER BY sequence, rowid"):
            yield StoredRecord(*row)

    def close(self) -> None:
        """Drop everything."""
        self._open.close()
        self._connection.close()

    def __enter__(self) -> Scratch:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _rows(self, sql: str) -> Iterator[tuple[Any, ...]]:
        with _explained():
            # Closed with the rest if whoever reads stops before the end.
            cursor = self._open.enter_context(contextlib.closing(self._connection.execute(sql)))
        while True:
            with _explained():
                rows = cursor.fetchmany(_TOGETHER)
            if not rows:
                return
            yield from rows


def _key_without_repeats(record: Record) -> bytes | None:
    """None where no tag repeats."""
    tags = tuple(sorted(set(record.tags)))
    return None if len(tags) == len(record.tags) else canonical.order_key(Record(record.content, tags))


@contextlib.contextmanager
def _explained() -> Iterator[None]:
    """What SQLite says of the temporary file, most likely that its disk is full."""
    try:
        yield
    except sqlite3.Error:  # not chained: SQLite quotes what it stumbles over, memory text too
        raise BackendError(
            "the temporary file that memories are sorted in cannot be used; nothing was changed",
            hint="free some space where temporary files go, or name another folder by SQLITE_TMPDIR",
        ) from None
