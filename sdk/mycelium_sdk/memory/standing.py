"""How a memory stands to the anchor that it is based on, as far as this machine knows without the chain."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mycelium_sdk.state import LastAnchor

__all__ = ["OLDER_THAN_ITS_ANCHOR", "Standing", "standing_of"]


OLDER_THAN_ITS_ANCHOR = (
    "load what was anchored: `mycelium memory rehydrate` (with --on-conflict merge to keep what is only here)"
)
"""What to do when the memory's file was lost or an old copy of it was put back."""


class Standing(enum.Enum):
    """What happened to a memory since its last anchor."""

    UNBASED = enum.auto()
    """It is based on no anchor of this chain."""
    CLEAN = enum.auto()
    """Its root is that of the anchor."""
    WRITTEN = enum.auto()
    """There are recorded writes on top of the anchor."""
    CHANGED = enum.auto()
    """Its rows are others, and nobody recorded a write: they were changed behind its back."""
    EARLIER = enum.auto()
    """It is older than the anchor that was made from it: its file was lost, or an old copy was put back. What
    was written to it since does not make it newer."""


def standing_of(
    root: bytes, change_counter: int, last: LastAnchor | None, *, its_store: bool = True
) -> Standing:
    """The standing of a memory with this root (from its rows) and change counter, based on `last`.

    `its_store`: whether its store is known by the link of `last` (`basis`), or keeps none.
    """
    if last is None:
        return Standing.UNBASED
    if root == last.root:
        return Standing.CLEAN
    if not its_store or change_counter < last.change_counter:
        return Standing.EARLIER
    return Standing.CHANGED if change_counter == last.change_counter else Standing.WRITTEN
