"""The steps of anchoring and loading between which a process may die, named for tests of crashes."""

from __future__ import annotations

import contextlib
import enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["Step", "observed", "reached"]


class Step(enum.StrEnum):
    """A point that a procedure has passed. Whatever happens then, the next run must be able to go on."""

    LOOKED = "LOOKED"
    """The chain was read and agrees with what was verified before."""
    EXPORTED = "EXPORTED"
    """The blob to anchor is in memory."""
    PUBLISHED = "PUBLISHED"
    """It is stored durably."""
    DESCRIBED = "DESCRIBED"
    """So is its context file, or it cannot be."""
    INTENDED = "INTENDED"
    """The intent is on disk, without a transaction."""
    LINKED = "LINKED"
    """The store has the link of what is anchored or was adopted."""
    SIGNED = "SIGNED"
    """The intent is on disk, with the signed transaction."""
    SENT = "SENT"
    """The transaction has taken effect."""
    RECORDED = "RECORDED"
    """The anchor is recorded, the intent gone."""
    FETCHED = "FETCHED"
    """The anchored blob is in memory and has the anchored root."""
    LOADED = "LOADED"
    """The backend holds it."""
    CONFIRMED = "CONFIRMED"
    """The record says that the store has its link."""


_observer: Callable[[Step], None] | None = None


def reached(step: Step) -> None:
    """Say that a step was passed."""
    if _observer is not None:
        _observer(step)


@contextlib.contextmanager
def observed(observer: Callable[[Step], None]) -> Iterator[None]:
    """Have `observer` called at each step, in the thread that takes it; for tests of crashes."""
    global _observer  # noqa: PLW0603 - one process, one observer
    before, _observer = _observer, observer
    try:
        yield
    finally:
        _observer = before
