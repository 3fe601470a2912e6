"""Similarity by an embedder: vectors are derived, made in batches off the write path, and compared exactly.

Each process reads the owner's vectors once and holds them. The extension pgvector is neither needed nor used:
its indexes find approximately, and the ranking needs the similarity of a memory's neighbours as well.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from mycelium_sdk.backends.local.model import Model, as_bytes
from mycelium_sdk.backends.local.progress import Reporter
from mycelium_sdk.backends.local.similar import Similar, Table
from mycelium_sdk.backends.postgres import heads

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mycelium_sdk.backends.base import Progress, Query
    from mycelium_sdk.backends.postgres.connections import Connections
    from mycelium_sdk.backends.postgres.heads import Head
    from mycelium_sdk.backends.postgres.pool import Connection

_EMBEDDED_TOGETHER = 64
_READ_TOGETHER = 4096

_LACKING = """
SELECT m.id, m.fragment FROM memories m
WHERE m.owner = %s AND NOT EXISTS (SELECT 1 FROM vectors v WHERE v.owner = m.owner AND v.id = m.id)
ORDER BY m.id LIMIT %s
"""
_COUNT = """
SELECT (SELECT count(*) FROM memories WHERE owner = %s) - (SELECT count(*) FROM vectors WHERE owner = %s)
"""
_STORE = """
INSERT INTO vectors SELECT m.owner, m.id, new.vector
FROM unnest(%b::bigint[], %b::bytea[]) AS new(id, vector) JOIN memories m ON m.owner = %b AND m.id = new.id
ON CONFLICT (owner, id) DO NOTHING
"""


class Vectors:
    """The vectors of one owner's memories by one embedder."""

    def __init__(
        self, connections: Connections, owner: str, embed: object, progress: Progress | None
    ) -> None:
        self._connections = connections
        self._owner = owner
        self._model = Model(embed)
        self._progress = progress
        self._table = Table(0)
        self._there: tuple[int, frozenset[int]] = (0, frozenset())

    def refresh(self) -> None:
        """Embed what has no vector of this embedder yet.

        Whatever the embedder raises passes through; nothing but vectors can be missing then.
        """
        report = Reporter(self._progress, "embedding", self._missing)
        while rows := self._connections.read(self._lacking):
            made = self._model.vectors(rows)
            self._connections.write(partial(self._store, made), repeatable=True)
            report.add(len(rows))
        report.end()

    def similar(self, connection: Connection, query: Query, allowed: Sequence[int] | None) -> Similar:
        """How similar the query is to the memories that `allowed` names, or to all."""
        wanted = self._model.vector(query.text)
        head = heads.read(connection, self._owner)
        table = self._filled(connection, head) if self._is_ours(connection, head) else Table(len(wanted))
        return Similar(table, wanted, allowed, self._present(connection, head).__contains__)

    def _present(self, connection: Connection, head: Head) -> frozenset[int]:
        """The ids that there are: vectors in this process's memory outlive the memories."""
        changes, found = self._there
        if changes != head.changes:
            rows = connection.execute("SELECT id FROM memories WHERE owner = %s", (head.number,), binary=True)
            found = frozenset(number for (number,) in rows)
            self._there = head.changes, found
        return found

    def _filled(self, connection: Connection, head: Head) -> Table:
        """The stored vectors, of which this process reads each once."""
        dimension = len(self._model.probe)
        table = self._table if self._table.dimension == dimension else Table(dimension)
        while rows := connection.execute(
            "SELECT id, vector FROM vectors WHERE owner = %s AND id > %s ORDER BY id LIMIT %s",
            (head.number, table.last, _READ_TOGETHER),
            binary=True,
        ).fetchall():
            table = table.with_vectors(dict(rows))
        self._table = table
        return table

    def _lacking(self, connection: Connection) -> list[tuple[int, str]]:
        head = heads.read(connection, self._owner)
        if self._is_ours(connection, head):
            return connection.execute(_LACKING, (head.number, _EMBEDDED_TOGETHER)).fetchall()
        return connection.execute(
            "SELECT id, fragment FROM memories WHERE owner = %s ORDER BY id LIMIT %s",
            (head.number, _EMBEDDED_TOGETHER),
        ).fetchall()

    def _missing(self) -> int:
        def count(connection: Connection) -> int:
            number = heads.read(connection, self._owner).number
            row = connection.execute(_COUNT, (number, number)).fetchone()
            return 0 if row is None else int(row[0])

        return self._connections.read(count)

    def _store(self, made: dict[int, bytes], connection: Connection) -> None:
        """Store vectors of memories that are still there; those of another embedder go."""
        head = heads.lock(connection, self._owner)
        if not self._is_ours(connection, head):
            connection.execute("DELETE FROM vectors WHERE owner = %s", (head.number,))
            connection.execute("DELETE FROM embedding WHERE owner = %s", (head.number,))
            connection.execute(
                "INSERT INTO embedding VALUES (%s, %b, %b)",
                (head.number, self._model.name.encode("utf-8"), as_bytes(self._model.probe)),
            )
        connection.execute(_STORE, (list(made), list(made.values()), head.number))

    def _is_ours(self, connection: Connection, head: Head) -> bool:
        row = connection.execute(
            "SELECT name, probe FROM embedding WHERE owner = %s", (head.number,)
        ).fetchone()
        return self._model.made(None if row is None else (row[0].decode("utf-8", "replace"), row[1]))
