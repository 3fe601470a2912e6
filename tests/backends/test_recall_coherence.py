"""The measure that tells an order of writing that means something from one that does not."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mycelium_cli.demo.conversation import turns
from mycelium_sdk.backends.coherence import (
    LAG,
    LONGEST_PAUSE,
    MEMORY,
    NAMED,
    Counts,
    Meter,
    reach,
    run_of,
    same_run,
    stretch_of,
)
from mycelium_sdk.backends.text import telling, terms

MORNING = 1_800_000_000.0


def _measured(texts: list[str], sessions: list[str] | None = None) -> Counts:
    meter, total = Meter(), Counts()
    for number, text in enumerate(texts, 1):
        run = run_of(sessions[number - 1] if sessions else None, MORNING)
        total = total.plus(meter.count(number, run, telling(terms(text))))
    return total


@pytest.mark.parametrize("prefix", [False, True])
def test_a_conversation_is_told_from_the_same_in_random_order(*, prefix: bool) -> None:
    said = [f"[{t.time[:10]}] {t.speaker}: {t.text}" if prefix else t.text for t in turns()]
    assert reach(Counts(), _measured(said)) > 0.6
    assert reach(Counts(), _measured(said, [turn.session for turn in turns()])) > 0.6
    for seed in range(5):
        shuffled = random.Random(seed).sample(said, len(said))  # noqa: S311 - no secret
        assert reach(Counts(), _measured(shuffled)) < 0.2


def test_what_all_memories_share_says_nothing() -> None:
    assert reach(Counts(), _measured([f"always the same words w{number}" for number in range(200)])) == 0.0


def test_few_memories_say_nothing() -> None:
    assert _measured(["a red apple"] * LAG) == Counts()
    assert reach(Counts(), Counts()) == 0.0
    assert reach(Counts(), Counts(2, 3, 0)) < 0.2


def test_reach_is_0_at_equal_and_1_at_three_times_as_much() -> None:
    assert reach(Counts(), Counts(100_000, 500_000, 500_000)) == 0.0
    assert reach(Counts(), Counts(100_000, 500_000, 600_000)) == 0.0
    assert reach(Counts(), Counts(100_000, 1_000_000, 500_000)) == pytest.approx(0.5, abs=1e-3)
    assert reach(Counts(), Counts(100_000, 1_500_000, 500_000)) == pytest.approx(1.0, abs=1e-3)
    assert reach(Counts(), Counts(100_000, 9_000_000, 500_000)) == 1.0


def test_a_stretch_counts_by_itself_once_it_has_enough() -> None:
    whole = Counts(1000, 3000, 1000)
    assert reach(Counts(), whole) > 0.9
    assert reach(Counts(1, 1, 1), whole) > 0.8
    assert reach(Counts(500, 500, 500), whole) < 0.1


@given(st.builds(Counts, *[st.integers(0, 10**6)] * 3), st.builds(Counts, *[st.integers(0, 10**6)] * 3))
def test_reach_is_between_0_and_1(own: Counts, whole: Counts) -> None:
    assert 0.0 <= reach(own, whole) <= 1.0


def test_runs() -> None:
    red, blue = run_of("red", None), run_of("blue", MORNING)
    assert red >= NAMED
    assert red == run_of("red", MORNING)
    assert not same_run(red, blue)
    assert same_run(red, red)
    early = run_of(None, MORNING)
    assert same_run(early, run_of(None, MORNING + 60 * LONGEST_PAUSE))
    assert same_run(run_of(None, MORNING + 60 * LONGEST_PAUSE), early)
    assert not same_run(early, run_of(None, MORNING + 60 * (LONGEST_PAUSE + 1)))
    assert not same_run(early, red)
    unknown = run_of(None, None)
    assert not same_run(unknown, unknown)
    assert not same_run(unknown, early)
    for time in (-1.0, 0.0, 1e30, float("nan")):
        assert run_of(None, time) == 0


def test_stretches() -> None:
    red = run_of("red", None)
    assert stretch_of(red, 5) == stretch_of(red, 5000)
    early = run_of(None, MORNING)
    assert stretch_of(early, 256) == stretch_of(early, 511) != stretch_of(early, 512)


@given(st.lists(st.tuples(st.integers(0, 3), st.sets(st.sampled_from("abcdefg"))), max_size=60))
def test_a_meter_needs_no_more_than_the_last_memories(memories: list[tuple[int, set[str]]]) -> None:
    meter = Meter()
    counts = [meter.count(number, run, found) for number, (run, found) in enumerate(memories)]
    for number in range(len(memories)):
        late = Meter()
        for before in range(max(0, number - MEMORY), number):
            late.count(before, *memories[before])
        assert late.count(number, *memories[number]) == counts[number]
