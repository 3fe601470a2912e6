"""Telling a caller how far a long piece of work is: not at all below a second, then once a second."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from mycelium_sdk.backends.base import Progress

_QUIET = 1.0


class Reporter:
    """Reports `done` of `total()` memories of the work named `what`. `total` is asked for once, and only if
    there is something to report."""

    def __init__(self, progress: Progress | None, what: str, total: Callable[[], int]) -> None:
        self._progress = progress
        self._what = what
        self._find_total = total
        self._total: int | None = None
        self._done = 0
        self._next = time.monotonic() + _QUIET

    def add(self, number: int) -> None:
        """So many more are done."""
        self._done += number
        now = time.monotonic()
        if self._progress is not None and now >= self._next:
            self._next = now + _QUIET
            if self._total is None:
                self._total = self._done + self._find_total()
            self._progress(self._what, self._done, max(self._total, self._done))

    def end(self) -> None:
        """All are done."""
        if self._progress is not None and self._total is not None:
            self._progress(self._what, self._done, self._done)
