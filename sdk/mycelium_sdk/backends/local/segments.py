"""The search index as it lies in the file, read in one transaction.

A segment covers the memories of a range of ids within one block of 65,536. For each term it has the places
(ids less the block's first) of the memories that hold it, in order, once for each time the term occurs, as
little-endian uint16; and, for each id, the number of terms and the run (`coherence.run_of`), as uint32.
Memories that no segment covers are looked through one by one.
"""

from __future__ import annotations

import array
import sys
from typing import TYPE_CHECKING, NamedTuple, Protocol

from mycelium_sdk.backends.coherence import Counts
from mycelium_sdk.backends.text import ANALYZER

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Sequence

BLOCK = 1 << 16
"""Places fit into 16 bits."""


class Segment(NamedTuple):
    """A range of ids, both included, with its number of memories and of terms, and its part of the coherence
    measure."""

    id: int
    first: int
    last: int
    documents: int
    length: int
    counts: Counts

    @property
    def base(self) -> int:
        """The first id of the block."""
        return self.first - self.first % BLOCK


class Entries(NamedTuple):
    """What a segment knows of each id from its first on: 1 more than the number of terms, 0 where there is no
    memory; and the run."""

    lengths: array.array[int]
    runs: array.array[int]


Gap = tuple[int, int | None]
"""Ids above the first and below the second that no segment covers; None is no bound."""


class Cache(dict[tuple[int, int], Entries]):
    """Entries of segments that were read before. A segment's id is never given again, and the number of its
    memories changes with every change of it."""

    def keep(self, segments: Iterable[Segment]) -> None:
        """Drop those of other segments."""
        present = {(segment.id, segment.documents) for segment in segments}
        for known in list(self):  # a copy, since other threads read at the same time
            if known not in present:
                self.pop(known, None)


class Segments(Protocol):
    """A search index in one unchanging state, wherever it is kept."""

    @property
    def segments(self) -> Sequence[Segment]:
        """In the order of their ids."""
        ...

    def frequencies(self, terms: Sequence[str]) -> dict[str, dict[int, int]]:
        """For each term, in how many memories of which segments it stands."""
        ...

    def places(self, segment: Segment, term: str) -> array.array[int]:
        """Where the term stands."""
        ...

    def entries(self, segment: Segment) -> Entries:
        """What the segment knows of its ids."""
        ...

    def counts(self, stretches: Sequence[int]) -> dict[int, Counts]:
        """The coherence measure of these stretches."""
        ...


class Index:
    """The segments in one read transaction."""

    def __init__(self, connection: sqlite3.Connection, cache: Cache) -> None:
        self._connection = connection
        self._cache = cache
        self._places: dict[tuple[int, str], array.array[int]] = {}
        self.segments = read_segments(connection)
        """In the order of their ids."""
        cache.keep(self.segments)

    def gaps(self) -> list[Gap]:
        """What is not covered; the last one is open."""
        return gaps(self.segments)

    def frequencies(self, terms: Sequence[str]) -> dict[str, dict[int, int]]:
        """For each term, in how many memories of which segments it stands."""
        if not self.segments:
            return {term: {} for term in terms}
        return {
            term: dict(
                self._connection.execute(
                    "SELECT p.segment, p.documents FROM segments s CROSS JOIN postings p"
                    " ON p.segment = s.id AND p.term = ?",
                    (term,),
                )
            )
            for term in terms
        }

    def places(self, segment: Segment, term: str) -> array.array[int]:
        """Where the term stands."""
        found = self._places.get((segment.id, term))
        if found is None:
            row = self._connection.execute(
                "SELECT places FROM postings WHERE segment = ? AND term = ?", (segment.id, term)
            ).fetchone()
            found = self._places[segment.id, term] = unpacked("H", b"" if row is None else row[0])
        return found

    def entries(self, segment: Segment) -> Entries:
        """What the segment knows of its ids."""
        key = segment.id, segment.documents
        found = self._cache.get(key)
        if found is None:
            row = self._connection.execute(
                "SELECT lengths, runs FROM segments WHERE id = ?", (segment.id,)
            ).fetchone()
            found = self._cache[key] = Entries(unpacked("I", row[0]), unpacked("I", row[1]))
        return found

    def counts(self, stretches: Sequence[int]) -> dict[int, Counts]:
        """The coherence measure of these stretches."""
        found: dict[int, Counts] = {}
        marks = ",".join("?" * len(stretches))
        for stretch, *counts in self._connection.execute(
            f"SELECT stretch, compared, near, far FROM coherence WHERE stretch IN ({marks})",  # noqa: S608
            stretches,
        ):
            found[stretch] = found.get(stretch, Counts()).plus(Counts(*counts))
        return found


def read_segments(connection: sqlite3.Connection) -> list[Segment]:
    """All segments in the order of their ids, none if another analyzer made them."""
    if connection.execute("SELECT analyzer FROM indexing").fetchone()[0] != ANALYZER:
        return []
    rows = connection.execute(
        "SELECT id, first, last, documents, length, compared, near, far FROM segments ORDER BY first"
    )
    return [
        Segment(number, first, last, documents, length, Counts(*counts))
        for number, first, last, documents, length, *counts in rows
    ]


def gaps(segments: Sequence[Segment]) -> list[Gap]:
    """What these segments do not cover; the last one is open."""
    found: list[Gap] = []
    after = 0
    for segment in segments:
        if segment.first > after + 1:
            found.append((after, segment.first))
        after = segment.last
    return [*found, (after, None)]


def unpacked(kind: str, data: bytes) -> array.array[int]:
    """The numbers of a blob."""
    numbers = array.array(kind)
    numbers.frombytes(data)
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers


def packed(numbers: array.array[int]) -> bytes:
    """The blob of numbers."""
    if sys.byteorder == "big":
        numbers = numbers[:]
        numbers.byteswap()
    return numbers.tobytes()
