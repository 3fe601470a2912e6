"""The local backend: one owner's memory in one SQLite file.

Durable when a call returns (WAL with full synchronisation), for many threads and processes at once, readable
by its owner's account only. What is kept is each record's exact fragment; all else can be made anew from it.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

from mycelium_sdk.backends.base import Addition, BaseBackend, Imported, Query, Selection, Snapshot, Stats
from mycelium_sdk.backends.local import writing
from mycelium_sdk.backends.local.connections import Connections
from mycelium_sdk.errors import InputError, StoreLocked
from mycelium_sdk.home import Home
from mycelium_sdk.records import DEFAULT_MAX_RECORD_BYTES, Record
from mycelium_sdk.stored import StoredRecord

if TYPE_CHECKING:
    import sqlite3

    from mycelium_sdk.backends.local.search import Search
    from mycelium_sdk.backends.local.vectors import Vectors
    from mycelium_sdk.backends.scoring import Candidates

Embed = Callable[[str], Sequence[float]]
"""A text to a vector; see `vectors.Embed`."""


class LocalVectorBackend(BaseBackend):
    """The owner's memory in a SQLite file.

    `owner`: the account, G... `path`: the file; None for `memory/{owner}.db` in the home folder, which is
    made; ":memory:" for one that ends with this object. The folder of an explicit path must exist. `embed`:
    any function from a text to a vector of floats; None ranks by words alone. `busy_timeout`: seconds to wait
    for other processes. `max_record_bytes`: limit of one remembered record.

    Raises `InputError` for a bad owner or path, `ForeignFile` for a file of another owner or program,
    `NewerFile` for one of a newer version, `BackendError` for one that cannot be opened or that others could
    read.
    """

    def __init__(
        self,
        owner: str,
        path: str | os.PathLike[str] | None = None,
        embed: Embed | None = None,
        *,
        busy_timeout: float = 30.0,
        max_record_bytes: int = DEFAULT_MAX_RECORD_BYTES,
    ) -> None:
        super().__init__(owner, max_record_bytes=max_record_bytes)
        if embed is not None and not callable(embed):
            raise InputError("embed is not a function from a text to a vector")
        self.path = _file(owner, path)
        """The file, None for a memory that ends with this object."""
        self._embed = embed
        self._connections = Connections(self.path, owner, timeout=busy_timeout)
        self._search: Search | None = None
        self._vectors: Vectors | None = None

    def __repr__(self) -> str:
        place = ":memory:" if self.path is None else str(self.path)
        return f"{type(self).__name__}({self.owner!r}, {place!r})"

    def add(self, additions: Sequence[Addition]) -> list[str]:
        """See `Backend.add`."""
        rows = [(addition, writing.row_of(addition.record)) for addition in additions]
        with self._connections.writing() as connection:
            return writing.add(connection, rows)

    @contextlib.contextmanager
    def _viewing(self) -> Iterator[Snapshot]:
        with self._connections.viewing() as connection, contextlib.closing(_View(connection)) as view:
            yield view

    def snapshot(self) -> AbstractContextManager[Snapshot]:
        """See `Backend.snapshot`."""
        return self._viewing()

    def replace(self, records: Iterable[tuple[str, Record]], *, expected_changes: int | None) -> Imported:
        """See `Backend.replace`."""
        with self._connections.dedicated() as connection:
            try:
                writing.stage(connection, records)
                with self._connections.transaction(connection):
                    return writing.replace(connection, expected_changes)
            finally:
                writing.unstage(connection)

    def remove(self, selection: Selection, *, secure: bool) -> int:
        """See `Backend.remove`."""
        if not secure:
            with self._connections.writing() as connection:
                return writing.remove(connection, selection)
        with self._connections.exclusive() as connection:
            connection.execute("PRAGMA secure_delete = ON")
            with self._connections.transaction(connection):
                removed = writing.remove(connection, selection)
                # SQLite before 3.42 keeps deleted words in the full-text index until it is made anew.
                connection.execute("INSERT INTO search(search) VALUES ('rebuild')")
            try:
                self._connections.scrub(connection)
            except StoreLocked as cause:
                raise StoreLocked(
                    "the memory is forgotten, but another process still reads an older state, so that a copy"
                    " of the text remains in the store's log",
                    hint="forget it again, securely, when the other process is done",
                ) from cause
        return removed

    def candidates(self, query: Query, limit: int) -> Candidates:
        """See `Backend.candidates`."""
        search, vectors = self._searching()
        search.refresh()
        if vectors is not None:
            vectors.refresh()
        with self._connections.reading() as connection:
            found, store = search.find(connection, query, limit)
            similarities = None
            if vectors is not None:
                similarities = vectors.similarities(connection, query)
                found = _alternating(found, similarities)[:limit]
            return store.with_items(search.fetch(connection, query, found, similarities))

    def stats(self) -> Stats:
        """See `Backend.stats`."""
        with self._connections.reading() as connection:
            return writing.stats(connection)

    def close(self) -> None:
        """See `Backend.close`."""
        self._connections.close()

    def _searching(self) -> tuple[Search, Vectors | None]:
        # Imported at the first recall: remembering needs neither analyzer nor stemmer.
        if self._search is None:
            from mycelium_sdk.backends.local.search import Search

            self._search = Search(self._connections)
        if self._embed is not None and self._vectors is None:
            from mycelium_sdk.backends.local.vectors import Vectors

            self._vectors = Vectors(self._connections, self._embed)
        return self._search, self._vectors


class _View:
    """A snapshot over a connection that is in a read transaction."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._cursors: list[sqlite3.Cursor] = []
        self.stats = writing.stats(connection)

    def fragments(self) -> Iterator[tuple[str, int]]:
        """(fragment, copies) in canonical order."""
        return self._rows("fragment, copies")

    def stored(self) -> Iterator[StoredRecord]:
        """Stored records in canonical order."""
        rows = self._rows("id, fragment, copies, sequence, session, time")
        return (StoredRecord(str(row[0]), *row[1:]) for row in rows)

    def close(self) -> None:
        """End what was not read to its end: a statement in progress keeps its state after the transaction."""
        for cursor in self._cursors:
            cursor.close()

    def _rows(self, columns: str) -> sqlite3.Cursor:
        cursor = self._connection.execute(
            f"SELECT {columns} FROM memories ORDER BY order_key"  # noqa: S608 - columns named just above
        )
        self._cursors.append(cursor)
        return cursor


def _file(owner: str, path: str | os.PathLike[str] | None) -> Path | None:
    if path is None:
        return Home.default().memory_file(owner)
    name = os.fspath(path)
    if name == ":memory:":
        return None
    if not isinstance(name, str) or not name or "\0" in name:
        raise InputError("the path of the memory is not a path", hint="leave it out for the default")
    return Path(name).expanduser()


def _alternating(found: list[int], similarities: dict[int, float]) -> list[int]:
    """The best by words and the best by similarity in turn, each memory once."""
    similar = sorted(similarities, key=lambda number: (-similarities[number], -number))
    order: dict[int, None] = {}
    for place, number in enumerate(similar):
        if place < len(found):
            order[found[place]] = None
        order[number] = None
    return list(order)
