"""The one scorer, a pure function."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mycelium_sdk.backends.scoring import (
    DECAY,
    EARLIER,
    K1,
    LATER,
    POOL,
    SIMILARITY,
    SURROUNDINGS,
    B,
    Candidate,
    Candidates,
    Lexical,
    Words,
    inverse_document_frequency,
    rank,
    spreading,
    surroundings,
)


def _candidate(number: int, frequencies: dict[str, int], length: int = 10, **more: Any) -> Candidate:
    return Candidate(str(number), number, Words(frequencies, length), **more)


def _store(
    *items: Candidate, documents: int = 100, leading: int | None = None, **frequencies: int
) -> Candidates:
    return Candidates(items, len(items) if leading is None else leading, documents, 10.0, frequencies)


def _order(terms: str, store: Candidates) -> list[str]:
    return [ranked.candidate.id for ranked in rank(terms.split(), store)]


def test_it_is_bm25() -> None:
    store = _store(_candidate(1, {"a": 3, "b": 1}, length=20), a=10, b=50)
    (ranked,) = rank(["a", "b"], store)
    idf = {"a": math.log(1 + 90.5 / 10.5), "b": math.log(1 + 50.5 / 50.5)}
    norm = K1 * (1 - B + B * 20 / 10)
    weight = idf["a"] * 3 * (K1 + 1) / (3 + norm) + idf["b"] * 1 * (K1 + 1) / (1 + norm)
    assert ranked.score == pytest.approx(weight / ((idf["a"] + idf["b"]) * (K1 + 1)))
    assert (K1, B) == (0.9, 0.4)


def test_rare_terms_frequent_terms_and_short_memories_count_more() -> None:
    assert _order("a b", _store(_candidate(1, {"b": 1}), _candidate(2, {"a": 1}), a=1, b=50)) == ["2", "1"]
    assert _order("a", _store(_candidate(1, {"a": 1}), _candidate(2, {"a": 2}), a=2)) == ["2", "1"]
    assert _order("a", _store(_candidate(1, {"a": 1}, 5), _candidate(2, {"a": 1}, 9), a=2)) == ["1", "2"]
    both = _candidate(3, {"a": 1, "b": 1})
    assert _order("a b", _store(_candidate(1, {"a": 2}), both, a=2, b=2)) == ["3", "1"]


def test_among_equals_the_newest_comes_first() -> None:
    items = [_candidate(number, {"a": 1}) for number in (2, 9, 10, 1)]
    assert _order("a", _store(*items, a=4)) == ["10", "9", "2", "1"]


# -- term windows


@pytest.mark.parametrize(
    ("distance", "factor"),
    [(-1, 0.5), (-2, 0.4), (-5, 0.5 * 0.8**4), (1, 0.43), (2, 0.43 * 0.8), (5, 0.43 * 0.8**4)],
)
@pytest.mark.parametrize("reach", [1.0, 0.25])
def test_a_term_beside_a_memory_counts_less_the_farther_it_is(
    distance: int, factor: float, reach: float
) -> None:
    assert (EARLIER, LATER, DECAY) == (0.5, 0.43, 0.8)
    own = _candidate(1, {"a": 1})
    beside = _candidate(2, {}, around=[(distance, own.words)], reach=reach)
    first, second = rank(["a"], _store(own, beside, a=1))
    assert (first.candidate, second.candidate) == (own, beside)
    assert second.score == pytest.approx(first.score * factor * reach)


def test_each_term_counts_where_it_weighs_most_and_only_once() -> None:
    near = Words({"a": 1}, 10)
    far = Words({"a": 1, "b": 1}, 10)
    item = _candidate(1, {"b": 1}, around=[(-1, near), (-2, far), (1, near)], reach=1.0)
    lexical = Lexical(["a", "b"], 100, 10.0, {"a": 5, "b": 5})
    assert lexical.window_weight(item) == pytest.approx(lexical.weight(Words({"b": 1}, 10)) * (1 + 0.5))
    assert lexical.weight(item.words) == lexical.weight(Words({"b": 1}, 10))


def test_a_memorys_own_term_is_never_weakened_by_its_neighbours() -> None:
    lexical = Lexical(["a"], 100, 10.0, {"a": 5})
    own = _candidate(1, {"a": 1}, around=[(-1, Words({"a": 1}, 10))], reach=1.0)
    assert lexical.window_weight(own) == lexical.weight(own.words)


def test_terms_of_more_than_a_tenth_of_the_memories_say_nothing_of_neighbours() -> None:
    assert spreading(100, {"rare": 10, "common": 11, "absent": 0}) == {"rare", "absent"}
    around = [(-1, Words({"rare": 1, "common": 1}, 10))]
    lexical = Lexical(["rare", "common"], 100, 10.0, {"rare": 10, "common": 11})
    beside = _candidate(1, {}, around=around, reach=1.0)
    assert lexical.window_weight(beside) == pytest.approx(0.5 * lexical.weight(Words({"rare": 1}, 10)))


def test_where_the_order_means_nothing_neighbours_do_not_count() -> None:
    beside = _candidate(1, {}, around=[(-1, Words({"a": 9}, 10))], reach=0.0)
    assert Lexical(["a"], 100, 10.0, {"a": 1}).window_weight(beside) == 0.0


# -- similarity


def test_similarity_joins_with_its_weight() -> None:
    items = (
        _candidate(1, {"a": 1}, similarity=0.1, surroundings=0.1),
        _candidate(2, {}, similarity=0.9, surroundings=0.9),
        _candidate(3, {}, 10, similarity=0.5, surroundings=0.5),
    )
    first, second, third = rank(["a"], _store(*items, a=1))
    assert [ranked.candidate.id for ranked in (first, second, third)] == ["1", "2", "3"]
    assert first.score == pytest.approx(1 / (1 + SIMILARITY))
    assert second.score == pytest.approx(SIMILARITY / (1 + SIMILARITY))
    assert third.score == pytest.approx(SIMILARITY / 2 / (1 + SIMILARITY))


def test_surroundings_join_where_the_order_means_something() -> None:
    def scores(reach: float) -> list[float]:
        items = (
            _candidate(1, {}, similarity=0.5, surroundings=0.9, reach=reach),
            _candidate(2, {}, similarity=0.5, surroundings=0.1, reach=reach),
            _candidate(3, {}, similarity=0.0, surroundings=0.1, reach=reach),
        )
        return [ranked.score for ranked in sorted(rank(["a"], _store(*items)), key=lambda r: r.candidate.id)]

    with_it, without = scores(1.0), scores(0.0)
    total = 1 + SIMILARITY + SURROUNDINGS
    assert with_it[0] == pytest.approx((SIMILARITY + SURROUNDINGS) / total)
    assert with_it[1] == pytest.approx(SIMILARITY / total)
    assert without[0] == pytest.approx(without[1])


def test_surroundings_are_a_weighted_mean() -> None:
    assert surroundings(0.3, [], []) == 0.3
    assert surroundings(1.0, [0.0, 0.0, 9.0], [0.0]) == pytest.approx(1 / 2.25)
    assert surroundings(0.0, [1.0], [0.0, 1.0]) == pytest.approx(0.75 / 2.25)


# -- order and range


def test_nothing_to_rank() -> None:
    assert rank(["a"], Candidates((), 0, 0, 0.0, {})) == []
    assert rank([], _store(_candidate(1, {}, similarity=0.0)))[0].score > 0


def test_what_follows_the_leading_is_ranked_in_blocks_that_do_not_overtake() -> None:
    leading = [_candidate(1, {"a": 1}), _candidate(2, {})]
    others = [_candidate(number, {"a": 1 + number % 3}) for number in range(3, 2 * POOL + 9)]
    terms = ["a"]
    every = rank(terms, _store(*leading, *others, leading=2, a=9))
    part = rank(terms, _store(*leading, *others[:POOL], leading=2, a=9))
    assert every[: 2 + POOL] == part
    assert [ranked.candidate.id for ranked in every[:2]] == ["1", "2"]
    assert [ranked.score for ranked in every] == sorted((r.score for r in every), reverse=True)
    assert len({ranked.candidate.id for ranked in every}) == len(leading) + len(others)


_frequencies = st.dictionaries(st.sampled_from("abc"), st.integers(0, 10**6))
_words = st.builds(Words, _frequencies, st.integers(0, 10**7))
_similarities = st.floats(-1, 1)
_candidates = st.lists(
    st.tuples(
        _words,
        st.lists(st.tuples(st.sampled_from([*range(-5, 0), *range(1, 6)]), _words), max_size=3),
        st.floats(0, 1),
        _similarities,
        _similarities,
    ),
    max_size=8,
)


@given(
    _candidates,
    st.integers(0, 10**7),
    st.dictionaries(st.sampled_from("abc"), st.integers(0, 10**7)),
    st.booleans(),
    st.integers(0, 8),
)
def test_scores_are_above_0_and_at_most_1(
    items: list[tuple[Words, list[tuple[int, Words]], float, float, float]],
    documents: int,
    seen: dict[str, int],
    dense: bool,
    leading: int,
) -> None:
    candidates = [
        Candidate(str(number), number, words, around, reach, *(found if dense else (None, None)))
        for number, (words, around, reach, *found) in enumerate(items)
    ]
    frequencies = {term: min(frequency, documents) for term, frequency in seen.items()}
    store = Candidates(candidates, min(leading, len(items)), documents, 12.5, frequencies)
    ranked = rank(["a", "b", "c"], store)
    scores = [entry.score for entry in ranked]
    assert all(0 < score <= 1 for score in scores)
    assert scores == sorted(scores, reverse=True)
    assert sorted(entry.candidate.id for entry in ranked) == sorted(item.id for item in candidates)


@given(st.integers(0, 10**9), st.data())
def test_idf_is_above_0(documents: int, data: st.DataObject) -> None:
    assert inverse_document_frequency(documents, data.draw(st.integers(0, documents))) > 0
