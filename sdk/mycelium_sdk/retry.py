"""The one policy for trying again: when to wait, how long, and when to stop."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from mycelium_sdk.errors import MyceliumError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

__all__ = ["Pace", "RetryPolicy", "wait_asked_for"]

T = TypeVar("T")

_LONGEST_WAIT = 3600.0


@dataclass(frozen=True, slots=True)
class Pace:
    """The clocks, the sleep and the chance that waiting uses; tests put others in their place."""

    now: Callable[[], float] = time.time
    monotonic: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    chance: Callable[[], float] = random.random


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Exponential back-off with jitter, bounded in number and in time.

    `attempts` counts the first one. The n-th wait is `first_delay * factor^n`, at most `max_delay`, of
    which a random part up to `jitter` is taken off, so that clients that failed together do not come back
    together; it is never shorter than what a server asked for (`MyceliumError.retry_after`). No wait starts
    that would end later than `total_seconds` after the first attempt. `poll_seconds` bounds the wait for a
    sent transaction; it is longer than a transaction is valid, so that on a network that moves every outcome
    becomes known.
    """

    attempts: int = 5
    first_delay: float = 0.25
    factor: float = 2.0
    max_delay: float = 4.0
    jitter: float = 0.5
    total_seconds: float = 30.0
    poll_seconds: float = 90.0
    pace: Pace = field(default_factory=Pace)

    def delays(self) -> Iterator[float]:
        """The waits, without end: the caller bounds them."""
        delay = self.first_delay
        while True:
            yield delay * (1 - self.jitter * self.pace.chance())
            delay = min(delay * self.factor, self.max_delay)

    def call(self, action: Callable[[], T], *, on: tuple[type[MyceliumError], ...] | None = None) -> T:
        """Run `action`, which must be safe to repeat, until it raises no error of the tree that is retryable;
        with `on`, none of these instead.

        The last one is raised when the bounds are reached; every other error at once.
        """
        deadline = self.pace.monotonic() + self.total_seconds
        for attempt, delay in enumerate(self.delays(), start=1):
            try:
                return action()
            except MyceliumError as error:
                wait = max(delay, error.retry_after or 0.0)
                again = error.retryable if on is None else isinstance(error, on)
                if not again or attempt >= self.attempts:
                    raise
                if self.pace.monotonic() + wait > deadline:
                    raise
            self.pace.sleep(wait)
        raise AssertionError("unreachable: the waits have no end")


def wait_asked_for(headers: Mapping[str, str] | None) -> float | None:
    """The seconds that an HTTP answer asks to wait for (`Retry-After`: a number or a date), at most an hour;
    None where it asks for nothing that can be read."""
    lowered = {name.lower(): value for name, value in (headers or {}).items()}
    text = lowered.get("retry-after", "").strip()
    if text.isascii() and text.isdecimal():
        return min(float(text), _LONGEST_WAIT)
    import email.utils  # loaded only where it is needed

    try:
        seconds = email.utils.parsedate_to_datetime(text).timestamp() - time.time()
    except (ValueError, OverflowError):
        return None
    return min(max(seconds, 0.0), _LONGEST_WAIT)
