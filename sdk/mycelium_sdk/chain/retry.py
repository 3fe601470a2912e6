"""The one policy for trying again: when to wait, how long, and when to stop."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from mycelium_sdk.errors import ChainUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["Pace", "RetryPolicy"]

T = TypeVar("T")


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
    together. No wait starts that would end later than `total_seconds` after the first attempt.
    `poll_seconds` bounds the wait for a sent transaction; it is longer than a transaction is valid, so that
    on a network that moves every outcome becomes known.
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

    def call(self, action: Callable[[], T]) -> T:
        """Run `action`, which must be safe to repeat, until it does not raise `ChainUnavailable`.

        The last `ChainUnavailable` is raised when the bounds are reached; every other error at once.
        """
        deadline = self.pace.monotonic() + self.total_seconds
        for attempt, delay in enumerate(self.delays(), start=1):
            try:
                return action()
            except ChainUnavailable:
                if attempt >= self.attempts or self.pace.monotonic() + delay > deadline:
                    raise
            self.pace.sleep(delay)
        raise AssertionError("unreachable: the waits have no end")
