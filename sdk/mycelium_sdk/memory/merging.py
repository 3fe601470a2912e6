"""Three-way merge of memories: what is here, what is anchored, and what both last agreed on.

What one side forgot since then is forgotten, what one side remembered is kept, and of a forget and a remember
of the same memory the remember wins. Equal records become one. Everything is a stream in canonical order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from mycelium_sdk.memory.shared_base import SharedBase
    from mycelium_sdk.records import Record
    from mycelium_sdk.stored import StoredRecord

__all__ = ["three_way"]

_SAME_SECONDS = 1e-5
"""Times travel in microseconds."""

_Place = tuple[str, tuple[str, ...]]


def three_way(
    anchored: Iterable[tuple[str, Record, float | None]],
    local: Iterable[StoredRecord],
    base: SharedBase | None,
) -> Iterator[str]:
    """The fragments of the merged memory, in canonical order.

    `anchored`: fragment, record and, where known, the time it was remembered (Unix seconds). Both sides are
    in canonical order. Without a base nothing is removed.
    """
    ours, theirs = _distinct_local(local), _distinct_anchored(anchored)
    own, other = next(ours, None), next(theirs, None)
    while own is not None or other is not None:
        if other is None or (own is not None and _place(own.record) < _place(other[1])):
            assert own is not None  # noqa: S101 - one of both is there
            if not _forgotten_there(own, base):
                yield own.fragment
            own = next(ours, None)
        elif own is None or _place(other[1]) < _place(own.record):
            if not _forgotten_here(other[0], other[2], base):
                yield other[0]
            other = next(theirs, None)
        else:
            yield own.fragment
            own, other = next(ours, None), next(theirs, None)


def _forgotten_there(own: StoredRecord, base: SharedBase | None) -> bool:
    """Whether a record that only this side has was forgotten by the other.

    One that got another sequence since the base was forgotten and remembered again here.
    """
    known = None if base is None else base.find(own.fragment)
    return known is not None and known.sequence in (own.sequence, None)


def _forgotten_here(fragment: str, time: float | None, base: SharedBase | None) -> bool:
    """Whether a record that only the other side has was forgotten here.

    One with another time than it had here, and that after the base was anchored, was forgotten and remembered
    again there.
    """
    known = None if base is None else base.find(fragment)
    if base is None or known is None:
        return False
    again = time is not None and known.time is not None and abs(time - known.time) > _SAME_SECONDS
    return not (again and time is not None and time >= base.anchored_at)


def _distinct_local(records: Iterable[StoredRecord]) -> Iterator[StoredRecord]:
    last: str | None = None
    for stored in records:
        if stored.fragment != last:
            yield stored
        last = stored.fragment


def _distinct_anchored(
    records: Iterable[tuple[str, Record, float | None]],
) -> Iterator[tuple[str, Record, float | None]]:
    last: str | None = None
    for one in records:
        if one[0] != last:
            yield one
        last = one[0]


def _place(record: Record) -> _Place:
    return record.content, record.tags
