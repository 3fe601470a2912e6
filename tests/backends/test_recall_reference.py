"""The local store gives exactly what the definition gives, over whatever was written in whatever order."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mycelium_sdk.backends.arguments import checked_query
from mycelium_sdk.backends.local import LocalVectorBackend, indexing, lookup, search
from mycelium_sdk.backends.scoring import rank
from mycelium_sdk.testing import reference
from tests.backends.index_checks import check_index

if TYPE_CHECKING:
    from collections.abc import Callable

OWNER = "GBRPYHIL2CI3FNQ4BXLFMNDLFJUNPU2HY3ZMFSHONUCEOASW7QC7OX2H"

# A topic's words stand in memories that come one after the other, so that the order means something.
_words = st.lists(st.integers(0, 4), min_size=1, max_size=5)
_memories = st.lists(
    st.tuples(st.integers(0, 6), _words, st.sampled_from([None, None, "s", "t"]), st.integers(1, 6)),
    min_size=1,
    max_size=14,
)


def _written(topics: list[tuple[int, list[int], str | None, int]]) -> list[tuple[str, str | None]]:
    written = []
    for number, (topic, words, session, length) in enumerate(topics):
        for place in range(2 * length):
            told = " ".join(f"w{topic}x{(word + place) % 5}" for word in words)
            written.append((f"{told} n{number}x{place} w{place % 3}", session))
    return written


@settings(max_examples=120, deadline=None)
@given(
    topics=_memories,
    asked=st.lists(st.tuples(st.integers(0, 6), st.integers(0, 4)), min_size=1, max_size=4),
    tail=st.sampled_from([0, 30, 10**6]),
    merged=st.sampled_from([2, 8]),
    filtered=st.booleans(),
    pool=st.sampled_from([3, 30]),
)
def test_recall_agrees_with_the_definition(
    topics: list[tuple[int, list[int], str | None, int]],
    asked: list[tuple[int, int]],
    tail: int,
    merged: int,
    *,
    filtered: bool,
    pool: int,
) -> None:
    question = " ".join(f"w{topic}x{word}" for topic, word in asked) + " w1"
    session = "s" if filtered else None
    with pytest.MonkeyPatch.context() as patch, LocalVectorBackend(OWNER, ":memory:") as store:
        patch.setattr(search, "TAIL", tail)
        patch.setattr(indexing, "_MERGED_TOGETHER", merged)
        patch.setattr(indexing, "_SMALL", 40)
        for module in (search, reference, "mycelium_sdk.backends.scoring"):
            patch.setattr(module, "POOL", pool) if not isinstance(module, str) else patch.setattr(
                f"{module}.POOL", pool
            )
        for text, of in _written(topics):
            store.remember(text, session=of)
            store.recall("w1")
        hits = store.recall(question, k=1000, session=session)
        query = checked_query(question, None, session)
        assert query is not None
        ranked = rank(query.terms, reference.candidates(store.all_records(), query))
        assert [hit["id"] for hit in hits] == [found.candidate.id for found in ranked]
        assert [hit["score"] for hit in hits] == pytest.approx([found.score for found in ranked])
        check_index(store)


def test_numpy_makes_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("numpy")
    texts = _written([(topic % 7, [topic % 5, topic % 3], None, 6) for topic in range(60)])
    questions = ["w1x2 w3x4 w1", "w0x0", "w1 w2", "w2x2 n3x1"]

    def given_with(has_numpy: Callable[[], bool]) -> list[list[tuple[str, float]]]:
        monkeypatch.setattr(lookup, "_has_numpy", has_numpy)
        monkeypatch.setattr(lookup, "_WORTH_NUMPY", 0)
        monkeypatch.setattr(lookup, "_WORTH_NUMPY_LOOKUP", 0)
        with LocalVectorBackend(OWNER, ":memory:") as store:
            store.remember_many({"content": text, "session": session} for text, session in texts)
            found = [store.recall(question, k=100) for question in questions]
        return [[(hit["id"], hit["score"]) for hit in hits] for hits in found]

    assert given_with(lambda: True) == given_with(lambda: False)
