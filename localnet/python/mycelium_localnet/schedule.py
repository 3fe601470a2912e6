"""When ledgers close: at once for each transaction, only on demand, or at intervals.

The schedule lives in the chain file, with the time at which the next ledger is due. Whoever comes by at or
after that time closes it, inside one write transaction, and sets the next time: of several processes on one
file exactly one closes each ledger, and none needs another one to be alive.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, cast

from mycelium_localnet.errors import InvalidRequestError

if TYPE_CHECKING:
    from collections.abc import Mapping

ClosingMode: TypeAlias = Literal["instant", "manual", "interval"]

KEYS: Final = ("closing", "interval", "due")
"""The keys of the settings table that keep a schedule."""

_MODES: Final = ("instant", "manual", "interval")
_DEFAULT_INTERVAL: Final = 5.0  # seconds: about as often as the network closes ledgers
_MINIMUM_INTERVAL: Final = 0.01
_MAXIMUM_INTERVAL: Final = 86_400.0


def now() -> int:
    """Milliseconds of the machine's clock since 1970. The chain's own clock may stand still."""
    return time.time_ns() // 1_000_000


@dataclass(frozen=True, slots=True)
class Schedule:
    """Times in milliseconds. `interval`: from one ledger to the next, None for other modes; `due`: when the
    next one is to close, in the time of `now`."""

    mode: ClosingMode = "instant"
    interval: int | None = None
    due: int | None = None

    @classmethod
    def make(cls, mode: ClosingMode | None, seconds: float | None) -> Schedule:
        """Defaults filled in: an interval alone says the mode, and the mode "interval" alone means 5 seconds.

        Raises InvalidRequestError for an unknown mode, an interval with another mode, and an interval that
        is not between 10 ms and a day.
        """
        mode = mode or ("instant" if seconds is None else "interval")
        if mode not in _MODES:
            raise InvalidRequestError(f"closing is instant, manual or interval, not {mode!r}")
        if mode != "interval":
            if seconds is not None:
                raise InvalidRequestError(
                    f"ledgers cannot close at intervals with closing {mode!r}",
                    hint='leave out the interval, or choose the closing "interval"',
                )
            return cls(mode)
        seconds = _DEFAULT_INTERVAL if seconds is None else seconds
        if not _MINIMUM_INTERVAL <= seconds <= _MAXIMUM_INTERVAL:
            raise InvalidRequestError(
                f"ledgers cannot close every {seconds:g} seconds",
                hint=f"an interval has {_MINIMUM_INTERVAL:g} to {_MAXIMUM_INTERVAL:,.0f} seconds",
            )
        return cls(mode, round(seconds * 1000))

    def wait(self, moment: int) -> int | None:
        """How long until the next ledger is due, 0 when it is; None when time does not close ledgers."""
        if self.interval is None or self.due is None:
            return None
        ahead = self.due - moment
        # Further away than one interval: the machine's clock was set back meanwhile.
        return 0 if ahead > self.interval else max(ahead, 0)

    def started(self, moment: int) -> Schedule:
        """With the first ledger due one interval from `moment`."""
        return self if self.interval is None else replace(self, due=moment + self.interval)

    def after_closing(self, moment: int) -> Schedule:
        """With the next ledger due. Ledgers keep their pace, but what was missed while nobody looked is not
        made up for."""
        if self.interval is None or self.due is None:
            return self
        due = self.due + self.interval
        return replace(self, due=due if 0 < due - moment <= self.interval else moment + self.interval)

    def to_settings(self) -> dict[str, str]:
        """The rows of the settings table that keep this schedule."""
        values = (self.mode, self.interval, self.due)
        return {key: str(value) for key, value in zip(KEYS, values, strict=True) if value is not None}

    @classmethod
    def from_settings(cls, settings: Mapping[str, str]) -> Schedule:
        """The inverse of `to_settings`."""
        interval, due = settings.get("interval"), settings.get("due")
        return cls(
            cast("ClosingMode", settings["closing"]),
            None if interval is None else int(interval),
            None if due is None else int(due),
        )
