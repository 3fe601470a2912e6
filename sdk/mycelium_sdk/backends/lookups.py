"""Finding memories by what they are, in a store that has no quicker way than to look at all of them."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from mycelium_sdk.records import Record

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from mycelium_sdk.stored import StoredRecord

__all__ = ["ids_of", "ids_of_digests"]


def ids_of(stored: Iterable[StoredRecord], records: Sequence[Record]) -> list[str | None]:
    """The id that each of these records has among the stored ones, the one written first where there are
    several; None for what is not there."""
    found: dict[Record, StoredRecord | None] = {_identity(record): None for record in records}
    for one in stored:
        own = _identity(one.record)
        if own in found:
            known = found[own]
            found[own] = one if known is None or one.sequence < known.sequence else known
    kept = (found[_identity(record)] for record in records)
    return [None if one is None else one.id for one in kept]


def ids_of_digests(stored: Iterable[StoredRecord], digests: Collection[bytes]) -> dict[bytes, str]:
    """The ids of the stored memories whose fragments have these SHA-256 digests."""
    names = ((hashlib.sha256(one.fragment.encode("ascii")).digest(), one.id) for one in stored)
    return {name: number for name, number in names if name in digests}


def _identity(record: Record) -> Record:
    """The record that a repeated tag makes no difference to."""
    return Record(record.content, tuple(sorted(set(record.tags))))
