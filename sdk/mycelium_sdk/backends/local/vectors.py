"""Similarity by an embedder: vectors are derived data, made in batches off the write path."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from mycelium_sdk.backends.local.model import Model, as_bytes
from mycelium_sdk.backends.local.progress import Reporter
from mycelium_sdk.backends.local.similar import Similar, Table
from mycelium_sdk.errors import BackendError

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Sequence

    from mycelium_sdk.backends.base import Progress, Query
    from mycelium_sdk.backends.local.connections import Connections

_EMBEDDED_TOGETHER = 64
_PATIENCE = 0.25
_ANY_NUMBER = 1 << 40


class Vectors:
    """The vectors of one memory file by one embedder."""

    def __init__(self, connections: Connections, embed: object, progress: Progress | None) -> None:
        self._connections = connections
        self._model = Model(embed)
        self._progress = progress
        self._unsaved: dict[int, bytes] = {}
        self._table = Table(0)

    def refresh(self) -> None:
        """Embed what has no vector of this embedder yet. What cannot be stored now is kept in memory.

        Whatever the embedder raises passes through; nothing but vectors can be missing then.
        """
        with self._connections.reading() as connection:
            known = self._is_ours(connection)
        if not known:
            self._try(self._start_anew)
        self._save({})
        after = self._embedded()
        report = Reporter(self._progress, "embedding", lambda: len(self._lacking(after, _ANY_NUMBER)))
        while rows := self._lacking(after, _EMBEDDED_TOGETHER):
            after = rows[-1][0]
            self._save(self._model.vectors(rows))
            report.add(len(rows))
        report.end()

    def similar(self, connection: sqlite3.Connection, query: Query, allowed: Sequence[int] | None) -> Similar:
        """How similar the query is to the memories that `allowed` names, or to all."""
        wanted = self._model.vector(query.text)
        table = Table(len(self._model.probe))
        if self._is_ours(connection):
            table = self._table = self._filled(connection)
        table = table.with_vectors(dict(self._unsaved))
        return Similar(table, wanted, allowed, _existing(connection))

    def _filled(self, connection: sqlite3.Connection) -> Table:
        """The stored vectors, of which this process reads each once."""
        dimension = len(self._model.probe)
        table = self._table if self._table.dimension == dimension else Table(dimension)
        rows = connection.execute("SELECT id, vector FROM vectors WHERE id > ? ORDER BY id", (table.last,))
        while part := rows.fetchmany(_EMBEDDED_TOGETHER * 64):
            table = table.with_vectors(dict(part))
        return table

    def _embedded(self) -> int:
        """The id up to which all are embedded: it is done in the order of ids."""
        with self._connections.reading() as connection:
            if not self._is_ours(connection):
                return 0
            return int(connection.execute("SELECT coalesce(max(id), 0) FROM vectors").fetchone()[0])

    def _lacking(self, after: int, most: int) -> list[tuple[int, str]]:
        with self._connections.reading() as connection:
            rows = connection.execute(
                "SELECT m.id, m.fragment FROM texts m LEFT JOIN vectors v ON v.id = m.id AND ?"
                " WHERE m.id > ? AND v.id IS NULL ORDER BY m.id",
                (self._is_ours(connection), after),
            )
            lacking = itertools.islice((row for row in rows if row[0] not in self._unsaved), most)
            found = list(lacking)
            rows.close()
        return found

    def _save(self, made: dict[int, bytes]) -> None:
        """Store these and earlier vectors, or keep them for another time."""
        self._unsaved.update(made)
        waiting = list(self._unsaved.items())
        if waiting and self._try(lambda connection: self._store(connection, waiting)):
            for number, _ in waiting:
                self._unsaved.pop(number, None)

    def _try(self, write: Callable[[sqlite3.Connection], bool]) -> bool:
        try:
            with self._connections.writing(timeout=_PATIENCE) as connection:
                return write(connection)
        except BackendError:  # another process writes, or the disk is full: the vectors serve from memory
            return False

    def _start_anew(self, connection: sqlite3.Connection) -> bool:
        connection.execute("DELETE FROM vectors")
        connection.execute(
            "INSERT OR REPLACE INTO embedding VALUES (1, ?, ?)",
            (self._model.name, as_bytes(self._model.probe)),
        )
        return True

    def _store(self, connection: sqlite3.Connection, made: list[tuple[int, bytes]]) -> bool:
        """Store vectors of memories that are still there, unless another embedder took over meanwhile."""
        if not self._is_ours(connection):
            return False
        connection.executemany(
            "INSERT OR REPLACE INTO vectors SELECT id, ? FROM memories WHERE id = ?",
            [(vector, number) for number, vector in made],
        )
        return True

    def _is_ours(self, connection: sqlite3.Connection) -> bool:
        return self._model.made(connection.execute("SELECT name, probe FROM embedding").fetchone())


def _existing(connection: sqlite3.Connection) -> Callable[[int], bool]:
    """Whether there is a memory with an id: vectors in this process's memory outlive the memories."""

    def exists(number: int) -> bool:
        return connection.execute("SELECT 1 FROM memories WHERE id = ?", (number,)).fetchone() is not None

    return exists
