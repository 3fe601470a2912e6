"""Sieving a segment: exactly what weighing every memory gives, with numpy and without."""

from __future__ import annotations

import array
import importlib.util
import random
from typing import TYPE_CHECKING

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mycelium_sdk.backends.local import lookup, sieve
from mycelium_sdk.backends.local.sieve import Part, Postings
from mycelium_sdk.backends.scoring import Lexical, Words

if TYPE_CHECKING:
    from collections.abc import Callable

    Sieve = Callable[[Part, float, int], list[tuple[float, int]]]


def _sieves() -> list[Sieve]:
    if importlib.util.find_spec("numpy") is None:
        return [sieve.sieve]
    from mycelium_sdk.backends.local import sieve_numpy

    return [sieve.sieve, sieve_numpy.sieve]


def _frequencies_at() -> list[Callable[[array.array[int], list[int]], list[tuple[int, int]]]]:
    if importlib.util.find_spec("numpy") is None:
        return [sieve.frequencies_at]
    from mycelium_sdk.backends.local import sieve_numpy

    return [sieve.frequencies_at, sieve_numpy.frequencies_at]


def _part(
    memories: list[list[str]], start: int, lexical: Lexical, average: float, allowed: set[int] | None
) -> tuple[Part, set[str]]:
    """A segment of memories given by their terms, and which terms were read."""
    places: dict[str, array.array[int]] = {}
    for number, words in enumerate(memories, start):
        for word in words:
            places.setdefault(word, array.array("H")).append(number)
    read: set[str] = set()

    def reader(term: str) -> Callable[[], array.array[int]]:
        def read_it() -> array.array[int]:
            read.add(term)
            return places[term]

        return read_it

    postings = [
        Postings(idf, len(set(places[term])), reader(term))
        for term, idf in lexical.idfs.items()
        if term in places
    ]
    lengths = array.array("I", [len(words) + 1 for words in memories])
    return Part(postings, lengths, start, average, allowed), read


@settings(deadline=None, max_examples=400)
@given(
    memories=st.lists(st.lists(st.sampled_from("aabbcdefgh"), max_size=6), min_size=1, max_size=60),
    query=st.sets(st.sampled_from("abcdefghz"), min_size=1, max_size=5),
    start=st.integers(0, 1000),
    limit=st.integers(1, 12),
    floor=st.floats(0, 3),
    allowed=st.none() | st.sets(st.integers(0, 60)),
)
@example(memories=[["a"] * 6, ["a"], ["b", "a"]], query={"a", "b"}, start=0, limit=1, floor=0.0, allowed=None)
def test_it_finds_what_weighing_every_memory_finds(
    *,
    memories: list[list[str]],
    query: set[str],
    start: int,
    limit: int,
    floor: float,
    allowed: set[int] | None,
) -> None:
    average = sum(map(len, memories)) / len(memories)
    frequencies = {term: sum(term in words for words in memories) for term in query}
    lexical = Lexical(query, len(memories), average, frequencies)
    places = None if allowed is None else {start + number for number in allowed if number < len(memories)}
    weighed = []
    for place, words in enumerate(memories, start):
        weight = lexical.weight(Words({term: words.count(term) for term in query}, len(words)))
        if weight > 0 and weight >= floor and (places is None or place in places):
            weighed.append((weight, place))
    expected = sorted(weighed, reverse=True)[:limit]
    for found in _sieves():
        part, _ = _part(memories, start, lexical, average, places)
        assert found(part, floor, limit) == expected


def test_terms_that_cannot_matter_are_not_read() -> None:
    memories = [["common"] for _ in range(500)] + [["rare", "common"]] * 5
    lexical = Lexical(["rare", "common"], len(memories), 1.0, {"rare": 5, "common": 505})
    for found in _sieves():
        part, read = _part(memories, 0, lexical, 1.0, None)
        best = found(part, 0.0, 5)
        assert [place for _, place in best] == [504, 503, 502, 501, 500]
        assert read == {"rare", "common"}
        part, read = _part(memories[:500], 0, lexical, 1.0, None)
        assert found(part, best[-1][0], 5) == []
        assert read == set()


@given(st.lists(st.integers(0, 300), max_size=200), st.sets(st.integers(0, 300), max_size=40))
def test_frequencies_at_places(places: list[int], wanted: set[int]) -> None:
    places.sort()
    expected = [(place, places.count(place)) for place in sorted(wanted) if place in places]
    for found in _frequencies_at():
        assert found(array.array("H", places), sorted(wanted)) == expected


def test_numpy_is_used_where_much_is_to_be_added_up_and_gives_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("numpy")
    chosen = random.Random(3)  # noqa: S311 - no secret
    memories = [[chosen.choice("abcdefghij") for _ in range(9)] for _ in range(3000)]
    lexical = Lexical("abc", 3000, 9.0, dict.fromkeys("abc", 1800))
    part, _ = _part(memories, 7, lexical, 9.0, None)
    assert lookup._sieve_for(part) is _sieves()[1]
    by_numpy = lookup._sieve_for(part)(part, 0.0, 100)
    monkeypatch.setattr(lookup, "_has_numpy", lambda: False)
    assert lookup._sieve_for(part) is sieve.sieve
    assert lookup._sieve_for(part)(part, 0.0, 100) == by_numpy
    small, _ = _part(memories[:50], 0, lexical, 9.0, None)
    monkeypatch.undo()
    assert lookup._sieve_for(small) is sieve.sieve
