"""The search index as it lies in the database, read in one transaction; its form is `local.segments`'."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from mycelium_sdk.backends.coherence import MEMORY, Counts
from mycelium_sdk.backends.local.segments import Cache, Entries, Segment, unpacked
from mycelium_sdk.backends.postgres import heads
from mycelium_sdk.backends.postgres.cursors import batches
from mycelium_sdk.backends.postgres.writing import tag_key
from mycelium_sdk.backends.text import ANALYZER

if TYPE_CHECKING:
    import array
    from collections.abc import Iterable, Iterator, Sequence

    from mycelium_sdk.backends.base import Query
    from mycelium_sdk.backends.local.segments import Gap
    from mycelium_sdk.backends.postgres.heads import Head
    from mycelium_sdk.backends.postgres.pool import Connection

_SEGMENTS = """
SELECT id, first, last, documents, length, compared, near, far FROM segments WHERE owner = %s ORDER BY first
"""
_SEGMENTS_OF = _SEGMENTS.replace("%s", "(SELECT number FROM owners WHERE owner = %s)")
_ROWS = "SELECT id, fragment, session, time FROM memories WHERE owner = %s"


class Index:
    """The segments in one read transaction. Serves `local.segments.Segments`."""

    def __init__(
        self,
        connection: Connection,
        head: Head,
        segments: Sequence[Segment],
        cache: Cache,
        terms: Sequence[str],
    ) -> None:
        self._connection = connection
        self._head = head
        self._cache = cache
        self.segments = segments
        cache.keep(segments)
        self._places: dict[tuple[int, str], array.array[int]] = {}
        self._documents: dict[str, dict[int, int]] = {term: {} for term in terms}
        if segments and terms:
            self._read(terms)

    def frequencies(self, terms: Sequence[str]) -> dict[str, dict[int, int]]:
        """See `Segments.frequencies`."""
        return {term: self._documents[term] for term in terms}

    def places(self, segment: Segment, term: str) -> array.array[int]:
        """See `Segments.places`."""
        return self._places.get((segment.id, term)) or unpacked("H", b"")

    def entries(self, segment: Segment) -> Entries:
        """See `Segments.entries`."""
        key = segment.id, segment.documents
        found = self._cache.get(key)
        if found is None:
            self._read_entries()
            found = self._cache[key]
        return found

    def counts(self, stretches: Sequence[int]) -> dict[int, Counts]:
        """See `Segments.counts`."""
        if not stretches or not self.segments:
            return {}
        rows = self._connection.execute(
            "SELECT stretch, sum(compared)::bigint, sum(near)::bigint, sum(far)::bigint FROM coherence"
            " WHERE owner = %s AND segment = ANY(%s) AND stretch = ANY(%s) GROUP BY stretch",
            (self._head.number, [segment.id for segment in self.segments], list(stretches)),
        )
        return {stretch: Counts(*counts) for stretch, *counts in rows}

    def _read(self, terms: Sequence[str]) -> None:
        """The postings of all terms at once: a question to the database costs more than a long answer."""
        rows = self._connection.execute(
            "SELECT segment, term, documents, places FROM postings"
            " WHERE owner = %s AND segment = ANY(%s) AND term = ANY(%s)",
            (
                self._head.number,
                [segment.id for segment in self.segments],
                [term.encode("utf-8") for term in terms],
            ),
            binary=True,
        )
        for segment, term, documents, places in rows:
            text = term.decode("utf-8")
            self._documents[text][segment] = documents
            self._places[segment, text] = unpacked("H", places)

    def _read_entries(self) -> None:
        """All that are not known yet, for the same reason."""
        lacking = {s.id: s for s in self.segments if (s.id, s.documents) not in self._cache}
        rows = self._connection.execute(
            "SELECT id, lengths, runs FROM segments WHERE owner = %s AND id = ANY(%s)",
            (self._head.number, list(lacking)),
            binary=True,
        )
        for number, lengths, runs in rows:
            self._cache[number, lacking[number].documents] = Entries(
                unpacked("I", lengths), unpacked("I", runs)
            )


def read_segments(connection: Connection, head: Head) -> list[Segment]:
    """All segments in the order of their ids, none if another analyzer made them."""
    rows = connection.execute(_SEGMENTS, (head.number,)) if head.analyzer == ANALYZER else ()
    return _as_segments(rows)


def read(connection: Connection, owner: str) -> tuple[Head, list[Segment]]:
    """The owner's row and segments, in one exchange."""
    first = connection.execute(heads.READ, (owner,))
    rows = connection.execute(_SEGMENTS_OF, (owner,))
    head = heads.of_row(first.fetchone())
    return head, _as_segments(rows) if head.analyzer == ANALYZER else []


def _as_segments(rows: Iterable[tuple[Any, ...]]) -> list[Segment]:
    return [
        Segment(number, first, last, documents, length, Counts(*counts))
        for number, first, last, documents, length, *counts in rows
    ]


def missing(head: Head, segments: Iterable[Segment]) -> int:
    """How many memories are not indexed."""
    return head.memories - sum(segment.documents for segment in segments)


def rows_in(connection: Connection, head: Head, gap: Gap, *, few: bool = False) -> Iterator[tuple[Any, ...]]:
    """The rows of memories in the gap, in order, as `local.documents.analysed` takes them. `few`: they are so
    few that one answer holds them all."""
    after, before = gap
    condition, more = (" AND id < %s", (before,)) if before is not None else ("", ())
    statement, values = f"{_ROWS} AND id > %s{condition} ORDER BY id", (head.number, after, *more)
    if few:
        return map(_as_text, connection.execute(statement, values))
    return map(_as_text, itertools.chain.from_iterable(batches(connection, statement, values, text=1)))


def rows_before(connection: Connection, head: Head, number: int) -> list[tuple[Any, ...]]:
    """The rows of the memories just before the one with this id, in order."""
    rows = connection.execute(f"{_ROWS} AND id < %s ORDER BY id DESC LIMIT %s", (head.number, number, MEMORY))
    return [_as_text(row) for row in rows][::-1]


def allowed(connection: Connection, head: Head, query: Query) -> list[int] | None:
    """The ids of the memories that pass the query's filters, in order; None if all do."""
    conditions = ["SELECT id FROM tags WHERE owner = %s AND tag = %s"] * len(query.tags)
    values = [tag_key(tag) for tag in query.tags]
    if query.session is not None:
        conditions.append("SELECT id FROM memories WHERE owner = %s AND sha256(session) = sha256(%s)")
        values.append(query.session.encode("utf-8"))
    if not conditions:
        return None
    rows = connection.execute(
        f"{' INTERSECT '.join(conditions)} ORDER BY 1",
        [part for value in values for part in (head.number, value)],
    )
    return [number for (number,) in rows]


def _as_text(row: tuple[Any, ...]) -> tuple[Any, ...]:
    number, fragment, session, time = row
    return number, fragment, None if session is None else session.decode("utf-8", "replace"), time
