"""Finding candidates: by the search index, and by looking through what is not indexed yet.

As in the local store, writes only append; whoever recalls brings the index up to date when much is missing in
it, and looks through the few himself. So a search shows every memory, whoever wrote it, at once.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from mycelium_sdk.backends.local.documents import Waiting
from mycelium_sdk.backends.local.lookup import Lookup
from mycelium_sdk.backends.local.progress import Reporter
from mycelium_sdk.backends.local.search import TAIL, chosen
from mycelium_sdk.backends.local.segments import Cache, gaps
from mycelium_sdk.backends.postgres import index, indexing
from mycelium_sdk.errors import BackendError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mycelium_sdk.backends.base import Progress, Query
    from mycelium_sdk.backends.local.similar import Similar
    from mycelium_sdk.backends.postgres.connections import Connections
    from mycelium_sdk.backends.postgres.pool import Connection
    from mycelium_sdk.backends.scoring import Candidates

_MANY = 4096
"""So many missing memories are indexed sooner than looked through, even if another process is at it."""


class Search:
    """Candidates from words, and from similarities where they are given."""

    def __init__(self, connections: Connections, owner: str, progress: Progress | None) -> None:
        self._connections = connections
        self._owner = owner
        self._progress = progress
        self._waiting = Waiting()
        self._cache = Cache()

    def refresh(self) -> None:
        """Bring the index up to date if much is missing and it can be written now."""
        lacking = self._missing()
        if lacking <= TAIL:
            return
        report = Reporter(self._progress, "indexing", lambda: lacking)
        try:
            while lacking > TAIL:
                with self._connections.lengthy() as connection:
                    if not indexing.alone(connection, self._owner, patient=lacking > _MANY):
                        break
                    made = indexing.make_one(connection, self._owner)
                if made is None:
                    break
                report.add(made)
                lacking = self._missing()
        except BackendError:
            # The index can wait; what it lacks is looked through one by one. If more is wrong, reading will
            # say.
            return
        report.end()

    def find(
        self,
        connection: Connection,
        query: Query,
        limit: int,
        similarity: Callable[[Sequence[int] | None], Similar] | None,
        *,
        most: int | None,
    ) -> Candidates | None:
        """See `Backend.candidates`. `similarity` is as in `local.search`. None if more than `most` memories
        are not indexed."""
        head, segments = index.read(connection, self._owner)
        missing = index.missing(head, segments)
        if most is not None and missing > most:
            return None
        found = index.Index(connection, head, segments, self._cache, query.terms)
        documents = self._waiting.documents(
            gaps(segments) if missing else (),
            partial(index.rows_in, connection, head, few=missing <= TAIL),
            partial(index.rows_before, connection, head),
        )
        allowed = index.allowed(connection, head, query)
        similar = None if similarity is None else similarity(allowed)
        return chosen(Lookup(query, found, documents, allowed), limit, similar)

    def _missing(self) -> int:
        return self._connections.read(lambda connection: index.missing(*index.read(connection, self._owner)))
