"""Giving memories out: in the order of arrival, or as the blob; never what was changed behind the store's
back."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from mycelium_sdk.backends.integrity import Integrity
from mycelium_sdk.errors import Tampered
from mycelium_sdk.memory.scratch import Scratch

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from mycelium_sdk.backends.base import BaseBackend, Progress
    from mycelium_sdk.stored import StoredRecord

__all__ = ["genuine_memories", "in_order_of_arrival", "require_unchanged"]

_REPORTED_EVERY = 5000
_ASKED_TOGETHER = 200


def require_unchanged(backend: BaseBackend, progress: Progress | None = None) -> bool:
    """Whether something vouches for every row of the memory.

    Raises:
        Tampered: one was changed behind the store's back.
    """
    report = backend.check(progress)
    if report.state is Integrity.BROKEN:
        raise Tampered("the memory was changed behind its back; nothing was exported")
    return bool(report)


@contextlib.contextmanager
def in_order_of_arrival(
    backend: BaseBackend, progress: Progress | None = None
) -> Iterator[Iterator[StoredRecord]]:
    """Every memory, oldest first, of one unchanging view, in bounded memory; to be read in the block."""
    with Scratch() as scratch:
        with backend.snapshot() as view:
            count = scratch.put_leaving(_counted(view.stored(), "sorting", view.stats.records, progress))
        yield _counted(scratch.leaving(), "writing", count, progress)


def genuine_memories(backend: BaseBackend) -> tuple[list[StoredRecord], int]:
    """The memories that are as the store wrote them, oldest first, and how many are not: what can be rescued
    of a memory that was changed behind the store's back. What was taken out of it is not seen.

    Raises:
        Tampered: the store cannot even say which memories there are.
    """
    with backend.snapshot() as view:
        ids = [stored.id for stored in view.stored()]
    found: list[StoredRecord] = []
    for start in range(0, len(ids), _ASKED_TOGETHER):
        together = ids[start : start + _ASKED_TOGETHER]
        try:
            found += backend.records(together)
        except Tampered:
            for one in together:
                with contextlib.suppress(Tampered):
                    found += backend.records([one])
    return sorted(found, key=lambda stored: stored.sequence), len(ids) - len(found)


def _counted(
    memories: Iterable[StoredRecord], doing: str, total: int, progress: Progress | None
) -> Iterator[StoredRecord]:
    for number, stored in enumerate(memories, 1):
        yield stored
        if progress is not None and number % _REPORTED_EVERY == 0:
            progress(doing, number, total)
