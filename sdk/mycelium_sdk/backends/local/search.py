"""Finding candidates: by the search index, and by looking through what is not indexed yet.

Writing only appends to `memories`. Whoever recalls brings the index up to date when more than a few memories
are missing in it, and looks through the few himself; so a search shows every memory, also when the index
cannot be written (another process writes, the disk is full).
"""

from __future__ import annotations

import itertools
from functools import partial
from typing import TYPE_CHECKING

from mycelium_sdk.backends.local import indexing
from mycelium_sdk.backends.local.documents import Waiting, read_rows, rows_before
from mycelium_sdk.backends.local.gathering import Gathered
from mycelium_sdk.backends.local.line import Line
from mycelium_sdk.backends.local.lookup import Lookup
from mycelium_sdk.backends.local.progress import Reporter
from mycelium_sdk.backends.local.segments import Cache, Index
from mycelium_sdk.backends.scoring import POOL, Candidates
from mycelium_sdk.errors import BackendError

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    from mycelium_sdk.backends.base import Progress, Query
    from mycelium_sdk.backends.local.connections import Connections
    from mycelium_sdk.backends.local.similar import Similar

TAIL = 128
"""So many memories may be missing in the index before a search brings it up to date."""

_PATIENCE = 0.25
_ANY_NUMBER = 1 << 40


class Search:
    """Candidates from words, and from similarities where they are given."""

    def __init__(self, connections: Connections, progress: Progress | None) -> None:
        self._connections = connections
        self._progress = progress
        self._waiting = Waiting()
        self._cache = Cache()

    def refresh(self) -> None:
        """Bring the index up to date if much is missing and the store can be written now."""
        with self._connections.reading() as connection:
            if indexing.missing(connection, TAIL + 1) <= TAIL:
                return
        report = Reporter(self._progress, "indexing", self._missing)
        try:
            while True:
                with self._connections.reading() as connection:
                    made = indexing.make(connection)
                if made is None:
                    break
                with self._connections.writing(timeout=_PATIENCE) as connection:
                    stored = indexing.store(connection, made)
                report.add(made.documents if stored else 0)
        except BackendError:
            # The index can wait; what it lacks is looked through one by one. If more is wrong, reading will
            # say.
            return
        report.end()

    def find(
        self,
        connection: sqlite3.Connection,
        query: Query,
        limit: int,
        similarity: Callable[[Sequence[int] | None], Similar] | None,
    ) -> Candidates:
        """See `Backend.candidates`. `similarity` gives how similar the query is to the memories with the ids
        that pass its filters (None: all)."""
        index = Index(connection, self._cache)
        documents = self._waiting.documents(
            index.gaps(), partial(read_rows, connection), partial(rows_before, connection)
        )
        allowed = _allowed(connection, query)
        similar = None if similarity is None else similarity(allowed)
        return chosen(Lookup(query, index, documents, allowed), limit, similar)

    def _missing(self) -> int:
        with self._connections.reading() as connection:
            return indexing.missing(connection, _ANY_NUMBER)


def chosen(lookup: Lookup, limit: int, similar: Similar | None) -> Candidates:
    """The candidates that one state of a store holds: see `Backend.candidates`."""
    line = Line(lookup.index, lookup.documents)
    best = lookup.best(max(limit, POOL))
    leading = dict.fromkeys(best[:POOL])
    gathered = Gathered(lookup, line)
    near = gathered.look_around(leading)
    leading.update(dict.fromkeys(filter(lookup.allows, sorted(near))))
    others: Iterable[int] = best[POOL:]
    if similar is not None:
        leading.update(dict.fromkeys(filter(lookup.allows, similar.leading(line))))
        others = similar.alternating(others)
    wanted = -(-max(0, limit - len(leading)) // POOL) * POOL
    rest = list(itertools.islice(_new(others, leading), wanted))
    gathered.look_at((*leading, *rest))
    gathered.look_around(leading)
    items = [gathered.candidate(number) for number in (*leading, *rest)]
    if similar is not None:
        items = similar.added(items, gathered.windows)
    return Candidates(items, len(leading), lookup.number, lookup.average_length, lookup.document_frequencies)


def _allowed(connection: sqlite3.Connection, query: Query) -> list[int] | None:
    """The ids of the memories that pass the query's filters, in order; None if all do."""
    conditions = [("SELECT id FROM tags WHERE tag = ?", tag) for tag in query.tags]
    if query.session is not None:
        conditions.append(("SELECT id FROM sessions WHERE session = ?", query.session))
    if not conditions:
        return None
    sql = " INTERSECT ".join(statement for statement, _ in conditions)
    rows = connection.execute(f"{sql} ORDER BY 1", [value for _, value in conditions])
    return [number for (number,) in rows]


def _new(numbers: Iterable[int], known: Collection[int]) -> Iterator[int]:
    """Those that are not known, each once."""
    met: set[int] = set()
    for number in numbers:
        if number not in known and number not in met:
            met.add(number)
            yield number
