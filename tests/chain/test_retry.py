"""The retry policy: which errors it repeats, how long it waits, and that it stops."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import pytest

from mycelium_sdk.errors import ChainError, ChainUnavailable
from mycelium_sdk.retry import Pace, RetryPolicy

if TYPE_CHECKING:
    from tests.chain.conftest import FakeClock


def test_waits_grow_to_their_bound() -> None:
    policy = RetryPolicy(pace=Pace(chance=lambda: 0.0))
    assert list(itertools.islice(policy.delays(), 7)) == [0.25, 0.5, 1.0, 2.0, 4.0, 4.0, 4.0]


def test_jitter_takes_off_at_most_its_share() -> None:
    policy = RetryPolicy(pace=Pace(chance=lambda: 1.0))
    assert list(itertools.islice(policy.delays(), 3)) == [0.125, 0.25, 0.5]


def test_an_action_is_repeated_until_it_succeeds(clock: FakeClock) -> None:
    attempts = iter([ChainUnavailable("a"), ChainUnavailable("b"), None])

    def action() -> str:
        problem = next(attempts)
        if problem is not None:
            raise problem
        return "done"

    assert RetryPolicy(pace=clock.pace()).call(action) == "done"
    assert clock.slept == [0.25, 0.5]


def test_the_last_error_is_raised_when_the_attempts_are_used_up(clock: FakeClock) -> None:
    count = itertools.count()

    def action() -> None:
        raise ChainUnavailable(f"attempt {next(count)}")

    with pytest.raises(ChainUnavailable, match="attempt 4"):
        RetryPolicy(pace=clock.pace()).call(action)
    assert len(clock.slept) == 4


def test_no_wait_starts_that_would_end_too_late(clock: FakeClock) -> None:
    def action() -> None:
        clock.seconds += 20  # a request that ran into its own timeout
        raise ChainUnavailable("no answer in time")

    started = clock.seconds
    with pytest.raises(ChainUnavailable):
        RetryPolicy(pace=clock.pace()).call(action)
    assert clock.seconds - started <= 30 + 20


def test_other_errors_are_raised_at_once(clock: FakeClock) -> None:
    def action() -> None:
        raise ChainError("refused")

    with pytest.raises(ChainError, match="refused"):
        RetryPolicy(pace=clock.pace()).call(action)
    assert clock.slept == []
