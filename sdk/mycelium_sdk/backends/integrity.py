"""What a store can say about edits of its files behind its back: the answer of `check`."""

from __future__ import annotations

import enum
from dataclasses import dataclass


class Integrity(enum.Enum):
    """What a store can say about edits of its files behind its back."""

    KEPT = enum.auto()
    """Every row, and the set of all rows, is as the store wrote it."""
    BROKEN = enum.auto()
    """Something was changed, left out, put in or brought back."""
    UNKNOWN = enum.auto()
    """The key that would tell is not on this machine."""
    UNPROTECTED = enum.auto()
    """The store keeps nothing by which it could tell."""


@dataclass(frozen=True, slots=True)
class IntegrityReport:
    """The answer of `check`. True unless something is wrong, or cannot be told. `checked`: how many memories.
    `findings`: a sentence each, without any of the text."""

    state: Integrity
    checked: int = 0
    findings: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return self.state in {Integrity.KEPT, Integrity.UNPROTECTED}
