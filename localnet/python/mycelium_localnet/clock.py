"""What time a ledger closes at.

A wall clock is the machine's, moved by an offset; a frozen clock stands still, so that the same calls give
the same ledger hashes. Either way a ledger never closes before its predecessor.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

ClockMode: TypeAlias = Literal["wall", "frozen"]

FROZEN_START: Final = 1_767_225_600
"""What a clock that is frozen from the start shows: 2026-01-01T00:00:00Z. Behind any wall clock, so that the
time bounds of clients are met."""

SETTINGS: Final = ("clock", "clock_offset", "clock_time")
"""The keys of the settings table that keep a clock."""


@dataclass(frozen=True, slots=True)
class Clock:
    """`offset`: seconds added to the wall clock; `frozen_at`: Unix seconds, None when the clock runs."""

    offset: int = 0
    frozen_at: int | None = None

    def now(self) -> int:
        """Unix seconds."""
        return int(time.time()) + self.offset if self.frozen_at is None else self.frozen_at

    def close_time(self, previous: int) -> int:
        """When the next ledger closes, if its predecessor closed at `previous`. Ledgers may share a
        second."""
        return max(previous, self.now())

    def set_to(self, moment: int) -> Clock:
        """Showing `moment` (Unix seconds) now, and running or frozen as before."""
        if self.frozen_at is None:
            return Clock(offset=moment - int(time.time()))
        return replace(self, frozen_at=moment)

    def stopped(self) -> Clock:
        """Standing still at what it shows."""
        return replace(self, frozen_at=self.now())

    def running(self) -> Clock:
        """Going on from what it shows."""
        return Clock(offset=self.now() - int(time.time()))

    def to_settings(self) -> dict[str, str]:
        """The rows of the settings table that keep this clock."""
        if self.frozen_at is None:
            return {"clock": "wall", "clock_offset": str(self.offset)}
        return {"clock": "frozen", "clock_offset": str(self.offset), "clock_time": str(self.frozen_at)}

    @classmethod
    def from_settings(cls, settings: Mapping[str, str]) -> Clock:
        """The inverse of `to_settings`."""
        frozen = settings["clock"] == "frozen"
        return cls(int(settings["clock_offset"]), int(settings["clock_time"]) if frozen else None)
