"""Candidates by words and context over all memories, as the local backend finds them.

An index in memory of what the namespace holds, which follows it: finding costs a look at the namespace.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from mycelium_sdk import canonical
from mycelium_sdk.backends.local import LocalVectorBackend
from mycelium_sdk.backends.supermemory.documents import identity
from mycelium_sdk.backends.values import Addition, Context, Selection

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mycelium_sdk.backends.arguments import Query
    from mycelium_sdk.backends.scoring import Candidates
    from mycelium_sdk.stored import StoredRecord


class WordIndex:
    """Not for several threads at once."""

    def __init__(self, owner: str) -> None:
        self._index = LocalVectorBackend(owner, ":memory:")
        self._held: dict[str, StoredRecord] = {}
        self._ids: dict[str, str] = {}
        self._last = 0

    def follow(self, stored: Mapping[str, StoredRecord]) -> None:
        """Hold these memories, given by their ids."""
        gone = [name for name, one in self._held.items() if not _same(stored.get(name), one)]
        come = sorted(
            (one for name, one in stored.items() if not _same(self._held.get(name), one)),
            key=lambda one: one.sequence,
        )
        odd = any(identity(one.record) != one.fragment for one in come)
        if odd or (come and come[0].sequence <= self._last):
            self._make_anew(stored)
        else:
            places = {name: place for place, name in self._ids.items()}
            for name in gone:
                self._index.remove(Selection(id=places[name]), secure=False)
                del self._ids[places[name]]
            if come:
                added = self._index.add([Addition(one.record, one.session, one.time) for one in come])
                self._ids.update(zip(added, (one.id for one in come), strict=True))
        self._held = dict(stored)
        self._last = max((one.sequence for one in stored.values()), default=0)

    def _make_anew(self, stored: Mapping[str, StoredRecord]) -> None:
        ordered = sorted(stored.values(), key=lambda one: canonical.order_key(one.record))
        self._index.replace([], expected_changes=None, contexts=None, progress=None)
        self._index.replace(
            [(one.fragment, one.record) for one in ordered],
            expected_changes=None,
            contexts=[Context(one.sequence, one.session, one.time) for one in ordered],
            progress=None,
        )
        names = {one.fragment: one.id for one in ordered}
        with self._index.snapshot() as view:
            self._ids = {one.id: names[one.fragment] for one in view.stored()}

    def candidates(self, query: Query, limit: int) -> Candidates:
        """See `Backend.candidates`."""
        found = self._index.candidates(query, limit)
        return dataclasses.replace(found, items=[one._replace(id=self._ids[one.id]) for one in found.items])

    def close(self) -> None:
        """Let go of the index."""
        self._index.close()


def _same(one: StoredRecord | None, other: StoredRecord) -> bool:
    return one is not None and (one.fragment, one.sequence, one.session, one.time) == (
        other.fragment,
        other.sequence,
        other.session,
        other.time,
    )
