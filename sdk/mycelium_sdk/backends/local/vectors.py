"""Similarity by an embedder: vectors are derived data, made in batches off the write path."""

from __future__ import annotations

import array
import itertools
import math
import sys
from typing import TYPE_CHECKING

from mycelium_sdk.backends.local.progress import Reporter
from mycelium_sdk.backends.local.similar import Similar, Table, dot
from mycelium_sdk.canonical import record_from_fragment
from mycelium_sdk.embedders.base import as_embedder
from mycelium_sdk.errors import BackendError, NonCanonical

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Sequence

    from mycelium_sdk.backends.base import Progress, Query
    from mycelium_sdk.backends.local.connections import Connections

_PROBE = "the quick brown fox keeps a diary of 27 small mushrooms"
_SAME = 0.999
_EMBEDDED_TOGETHER = 64
_PATIENCE = 0.25
_ANY_NUMBER = 1 << 40


class Vectors:
    """The vectors of one memory file by one embedder."""

    def __init__(self, connections: Connections, embed: object, progress: Progress | None) -> None:
        self._connections = connections
        self._embedder = as_embedder(embed)
        self._progress = progress
        self._probe: array.array[float] | None = None
        self._unsaved: dict[int, bytes] = {}
        self._table = Table(0)

    def refresh(self) -> None:
        """Embed what has no vector of this embedder yet. What cannot be stored now is kept in memory.

        Whatever the embedder raises passes through; nothing but vectors can be missing then.
        """
        probe = self._probed()
        with self._connections.reading() as connection:
            known = self._is_ours(connection, probe)
        if not known:
            self._try(lambda connection: self._start_anew(connection, probe))
        self._save({}, probe)
        after = self._embedded(probe)
        report = Reporter(self._progress, "embedding", lambda: len(self._lacking(after, probe, _ANY_NUMBER)))
        while rows := self._lacking(after, probe, _EMBEDDED_TOGETHER):
            after = rows[-1][0]
            self._save(self._made(rows), probe)
            report.add(len(rows))
        report.end()

    def similar(self, connection: sqlite3.Connection, query: Query, allowed: Sequence[int] | None) -> Similar:
        """How similar the query is to the memories that `allowed` names, or to all."""
        (wanted,) = self._vectors([query.text])
        probe = self._probed()
        table = Table(len(probe))
        if self._is_ours(connection, probe):
            table = self._table = self._filled(connection, probe)
        table = table.with_vectors(dict(self._unsaved))
        return Similar(table, wanted, allowed, _existing(connection))

    def _filled(self, connection: sqlite3.Connection, probe: array.array[float]) -> Table:
        """The stored vectors, of which this process reads each once."""
        table = self._table if self._table.dimension == len(probe) else Table(len(probe))
        rows = connection.execute("SELECT id, vector FROM vectors WHERE id > ? ORDER BY id", (table.last,))
        while part := rows.fetchmany(_EMBEDDED_TOGETHER * 64):
            table = table.with_vectors(dict(part))
        return table

    def _embedded(self, probe: array.array[float]) -> int:
        """The id up to which all are embedded: it is done in the order of ids."""
        with self._connections.reading() as connection:
            if not self._is_ours(connection, probe):
                return 0
            return int(connection.execute("SELECT coalesce(max(id), 0) FROM vectors").fetchone()[0])

    def _lacking(self, after: int, probe: array.array[float], most: int) -> list[tuple[int, str]]:
        with self._connections.reading() as connection:
            rows = connection.execute(
                "SELECT m.id, m.fragment FROM texts m LEFT JOIN vectors v ON v.id = m.id AND ?"
                " WHERE m.id > ? AND v.id IS NULL ORDER BY m.id",
                (self._is_ours(connection, probe), after),
            )
            lacking = itertools.islice((row for row in rows if row[0] not in self._unsaved), most)
            found = list(lacking)
            rows.close()
        return found

    def _save(self, made: dict[int, bytes], probe: array.array[float]) -> None:
        """Store these and earlier vectors, or keep them for another time."""
        self._unsaved.update(made)
        waiting = list(self._unsaved.items())
        if waiting and self._try(lambda connection: self._store(connection, waiting, probe)):
            for number, _ in waiting:
                self._unsaved.pop(number, None)

    def _try(self, write: Callable[[sqlite3.Connection], bool]) -> bool:
        try:
            with self._connections.writing(timeout=_PATIENCE) as connection:
                return write(connection)
        except BackendError:  # another process writes, or the disk is full: the vectors serve from memory
            return False

    def _start_anew(self, connection: sqlite3.Connection, probe: array.array[float]) -> bool:
        connection.execute("DELETE FROM vectors")
        connection.execute(
            "INSERT OR REPLACE INTO embedding VALUES (1, ?, ?)", (self._name(probe), _bytes(probe))
        )
        return True

    def _store(
        self, connection: sqlite3.Connection, made: list[tuple[int, bytes]], probe: array.array[float]
    ) -> bool:
        """Store vectors of memories that are still there, unless another embedder took over meanwhile."""
        if not self._is_ours(connection, probe):
            return False
        connection.executemany(
            "INSERT OR REPLACE INTO vectors SELECT id, ? FROM memories WHERE id = ?",
            [(vector, number) for number, vector in made],
        )
        return True

    def _is_ours(self, connection: sqlite3.Connection, probe: array.array[float]) -> bool:
        row = connection.execute("SELECT name, probe FROM embedding").fetchone()
        if row is None or row[0] != self._name(probe) or len(row[1]) != len(probe) * probe.itemsize:
            return False
        # Models are not exact to the last bit on every machine.
        return dot(probe, _floats(row[1])) >= _SAME

    def _name(self, probe: array.array[float]) -> str:
        name, _, revision = self._embedder.identity
        return "/".join(filter(None, (name, revision, str(len(probe)))))

    def _probed(self) -> array.array[float]:
        if self._probe is None:
            (probe,) = self._vectors([_PROBE])
            if not any(probe):
                raise BackendError("the embedder gives a zero vector", hint="look at what `embed` returns")
            said = self._embedder.identity.dimension
            if said not in {None, len(probe)}:
                raise BackendError(
                    f"the embedder says that it gives {said} dimensions, and gives {len(probe)}",
                    hint="look at its `identity`",
                )
            self._probe = probe
        return self._probe

    def _made(self, rows: Sequence[tuple[int, str]]) -> dict[int, bytes]:
        texts = {number: _content(fragment) for number, fragment in rows}
        telling = {number: text for number, text in texts.items() if text.strip()}
        vectors = dict.fromkeys(texts, bytes(4 * len(self._probed())))
        made = self._vectors(list(telling.values())) if telling else []
        vectors.update(zip(telling, map(_bytes, made), strict=True))
        return vectors

    def _vectors(self, texts: Sequence[str]) -> list[array.array[float]]:
        """Vectors of length 1 (or all zero)."""
        given = self._embedder.embed(texts)
        if len(given) != len(texts):
            raise BackendError(
                f"the embedder gives {len(given)} vectors for {len(texts)} texts",
                hint="look at what `embed` returns",
            )
        return [self._normal([float(value) for value in vector]) for vector in given]

    def _normal(self, values: list[float]) -> array.array[float]:
        length = math.sqrt(sum(value * value for value in values))
        if not values or not math.isfinite(length):
            raise BackendError("the embedder gives no finite vector", hint="look at what `embed` returns")
        if self._probe is not None and len(values) != len(self._probe):
            raise BackendError(
                "the embedder gives vectors of different dimensions", hint="look at what `embed` returns"
            )
        return array.array("f", [value / (length or 1.0) for value in values])


def _content(fragment: str) -> str:
    try:
        return record_from_fragment(fragment).content
    except (NonCanonical, TypeError, AttributeError):  # an edited row, which recall never serves
        return ""


def _existing(connection: sqlite3.Connection) -> Callable[[int], bool]:
    """Whether there is a memory with an id: vectors in this process's memory outlive the memories."""

    def exists(number: int) -> bool:
        return connection.execute("SELECT 1 FROM memories WHERE id = ?", (number,)).fetchone() is not None

    return exists


def _bytes(vector: array.array[float]) -> bytes:
    if sys.byteorder == "big":
        vector = vector[:]
        vector.byteswap()
    return vector.tobytes()


def _floats(vector: bytes) -> array.array[float]:
    floats = array.array("f")
    floats.frombytes(vector)
    if sys.byteorder == "big":
        floats.byteswap()
    return floats
