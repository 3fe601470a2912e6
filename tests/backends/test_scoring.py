"""The one scorer, a pure function."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mycelium_sdk.backends.scoring import K1, B, Candidate, Candidates, inverse_document_frequency, rank
from mycelium_sdk.stored import StoredRecord


def _candidate(
    number: int, frequencies: dict[str, int], length: int = 10, similarity: float | None = None
) -> Candidate:
    return Candidate(StoredRecord(str(number), "{}", 1, number, None, None), frequencies, length, similarity)


def _store(*items: Candidate, documents: int = 100, **frequencies: int) -> Candidates:
    return Candidates(items, documents, 10.0, frequencies)


def _order(terms: str, store: Candidates) -> list[str]:
    return [ranked.candidate.stored.id for ranked in rank(terms.split(), store)]


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


def test_similarity_joins_in_equal_shares() -> None:
    items = (
        _candidate(1, {"a": 1}, similarity=0.1),
        _candidate(2, {}, similarity=0.9),
        _candidate(3, {}, 10, 0.2),
    )
    first, second, third = rank(["a"], _store(*items, a=1))
    assert (first.candidate.stored.id, second.candidate.stored.id) == ("2", "1")
    assert first.score == pytest.approx(0.5)
    assert second.score == pytest.approx(0.5)
    assert third.score == pytest.approx(0.5 * 0.1 / 0.8)


def test_nothing_to_rank() -> None:
    assert rank(["a"], Candidates((), 0, 0.0, {})) == []
    assert rank([], _store(_candidate(1, {}, similarity=0.0)))[0].score > 0


@given(
    st.lists(
        st.tuples(
            st.dictionaries(st.sampled_from("abc"), st.integers(0, 10**6)),
            st.integers(0, 10**7),
            st.floats(-1, 1),
        ),
        max_size=8,
    ),
    st.integers(0, 10**7),
    st.dictionaries(st.sampled_from("abc"), st.integers(0, 10**7)),
    st.booleans(),
)
def test_scores_are_above_0_and_at_most_1(
    items: list[tuple[dict[str, int], int, float]], documents: int, seen: dict[str, int], dense: bool
) -> None:
    candidates = [
        _candidate(number, frequencies, length, similarity if dense else None)
        for number, (frequencies, length, similarity) in enumerate(items)
    ]
    frequencies = {term: min(frequency, documents) for term, frequency in seen.items()}
    ranked = rank(["a", "b", "c"], Candidates(candidates, documents, 12.5, frequencies))
    scores = [entry.score for entry in ranked]
    assert all(0 < score <= 1 for score in scores)
    assert scores == sorted(scores, reverse=True)
    assert len(ranked) == len(items)


@given(st.integers(0, 10**9), st.data())
def test_idf_is_above_0(documents: int, data: st.DataObject) -> None:
    assert inverse_document_frequency(documents, data.draw(st.integers(0, documents))) > 0
