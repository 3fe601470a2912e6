"""Similarity by an embedder: vectors as derived data, made off the write path, compared exactly."""

# ruff: noqa: S608 - statements are put together from constants; every value is a parameter

from __future__ import annotations

import array
import math
import operator
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from mycelium_sdk.backends.local.search import filters
from mycelium_sdk.canonical import record_from_fragment
from mycelium_sdk.errors import BackendError, NonCanonical

if TYPE_CHECKING:
    import sqlite3

    from mycelium_sdk.backends.base import Query
    from mycelium_sdk.backends.local.connections import Connections

Embed = Callable[[str], Sequence[float]]
"""A text to a vector. An attribute `identity` (a string naming model and revision), where there is one, says
whether stored vectors are still its own; else its module and name, with the vector of a probe text, do."""

_PROBE = "the quick brown fox keeps a diary of 27 small mushrooms"
_SAME = 0.999
_EMBEDDED_TOGETHER = 64
_PATIENCE = 0.25


class Vectors:
    """The vectors of one memory file by one embedder."""

    def __init__(self, connections: Connections, embed: Embed) -> None:
        self._connections = connections
        self._embed = embed
        self._probe: bytes | None = None
        self._unsaved: dict[int, bytes] = {}

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
        after = 0
        while rows := self._lacking(after, probe):
            after = rows[-1][0]
            self._save({number: self._vector_of(fragment) for number, fragment in rows}, probe)

    def similarities(self, connection: sqlite3.Connection, query: Query) -> dict[int, float]:
        """Cosine of the query and every memory that passes the filters, by id."""
        wanted = _floats(self._vector(query.text))
        sql, parameters = filters(query, "m.id")
        ours = self._is_ours(connection, self._probed())
        rows = connection.execute(
            f"SELECT m.id, v.vector FROM memories m LEFT JOIN vectors v ON v.id = m.id AND ? WHERE 1{sql}",
            (ours, *parameters),
        )
        found: dict[int, float] = {}
        for number, stored in rows:
            vector = stored if stored is not None else self._unsaved.get(number)
            found[number] = -1.0 if vector is None else _dot(wanted, vector)
        return found

    def _lacking(self, after: int, probe: bytes) -> list[tuple[int, str]]:
        with self._connections.reading() as connection:
            rows = connection.execute(
                "SELECT m.id, m.fragment FROM memories m LEFT JOIN vectors v ON v.id = m.id AND ?"
                " WHERE m.id > ? AND v.id IS NULL ORDER BY m.id",
                (self._is_ours(connection, probe), after),
            )
            lacking: list[tuple[int, str]] = []
            for number, fragment in rows:
                if number not in self._unsaved:
                    lacking.append((number, fragment))
                if len(lacking) == _EMBEDDED_TOGETHER:
                    break
            rows.close()
        return lacking

    def _save(self, made: dict[int, bytes], probe: bytes) -> None:
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

    def _start_anew(self, connection: sqlite3.Connection, probe: bytes) -> bool:
        connection.execute("DELETE FROM vectors")
        connection.execute("INSERT OR REPLACE INTO embedding VALUES (1, ?, ?)", (self._name(probe), probe))
        return True

    def _store(self, connection: sqlite3.Connection, made: list[tuple[int, bytes]], probe: bytes) -> bool:
        """Store vectors of memories that are still there, unless another embedder took over meanwhile."""
        if not self._is_ours(connection, probe):
            return False
        connection.executemany(
            "INSERT OR REPLACE INTO vectors SELECT id, ? FROM memories WHERE id = ?",
            [(vector, number) for number, vector in made],
        )
        return True

    def _is_ours(self, connection: sqlite3.Connection, probe: bytes) -> bool:
        row = connection.execute("SELECT name, probe FROM embedding").fetchone()
        if row is None or row[0] != self._name(probe) or len(row[1]) != len(probe):
            return False
        # Models are not exact to the last bit on every machine.
        return _dot(_floats(probe), row[1]) >= _SAME

    def _name(self, probe: bytes) -> str:
        embed: Any = self._embed
        name = getattr(embed, "identity", None)
        if name is None:
            named = embed if hasattr(embed, "__qualname__") else type(embed)
            name = f"{named.__module__}.{named.__qualname__}"
        return f"{name}/{len(probe) // 4}"

    def _probed(self) -> bytes:
        if self._probe is None:
            self._probe = self._vector(_PROBE)
            if not any(self._probe):
                raise BackendError("the embedder gives a zero vector", hint="look at what `embed` returns")
        return self._probe

    def _vector_of(self, fragment: str) -> bytes:
        try:
            content = record_from_fragment(fragment).content
        except NonCanonical:  # an edited row: `verify` says so, and recall never serves it
            content = ""
        return self._vector(content) if content.strip() else bytes(len(self._probed()))

    def _vector(self, text: str) -> bytes:
        values = [float(value) for value in self._embed(text)]
        length = math.sqrt(sum(value * value for value in values))
        if not values or not math.isfinite(length):
            raise BackendError("the embedder gives no finite vector", hint="look at what `embed` returns")
        if self._probe is not None and len(values) * 4 != len(self._probe):
            raise BackendError(
                "the embedder gives vectors of different dimensions", hint="look at what `embed` returns"
            )
        packed = array.array("f", [value / (length or 1.0) for value in values])
        if sys.byteorder == "big":
            packed.byteswap()
        return packed.tobytes()


def _dot(one: array.array[float], other: bytes) -> float:
    return math.fsum(map(operator.mul, one, _floats(other)))


def _floats(vector: bytes) -> array.array[float]:
    floats = array.array("f")
    floats.frombytes(vector)
    if sys.byteorder == "big":
        floats.byteswap()
    return floats
