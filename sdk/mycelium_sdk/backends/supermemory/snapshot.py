"""The state of a namespace at one moment, in canonical order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mycelium_sdk.backends.supermemory.documents import refuse_damaged

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mycelium_sdk.backends.base import Stats
    from mycelium_sdk.backends.supermemory.documents import Memory
    from mycelium_sdk.stored import StoredRecord


class FrozenView:
    """See `Snapshot`. `damaged`: a memory that makes reading impossible, if there is one."""

    def __init__(self, stats: Stats, ordered: list[StoredRecord], damaged: Memory | None) -> None:
        self.stats = stats
        self._ordered = ordered
        self._damaged = damaged

    def fragments(self) -> Iterator[tuple[str, int]]:
        return ((one.fragment, one.copies) for one in self.stored())

    def stored(self) -> Iterator[StoredRecord]:
        if self._damaged is not None:
            refuse_damaged(self._damaged)
        return iter(self._ordered)
