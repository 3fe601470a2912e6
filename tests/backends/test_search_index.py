"""The search index is derived: late, complete, and made anew whenever it may be wrong."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mycelium_sdk.backends.local import LocalVectorBackend, search
from mycelium_sdk.backends.local.search import TAIL
from mycelium_sdk.backends.text import terms

if TYPE_CHECKING:
    from pathlib import Path

    from mycelium_sdk.backends.base import Hit


def _indexed(path: Path) -> int:
    with closing(sqlite3.connect(path)) as connection:
        return int(connection.execute("SELECT count(*) FROM terms").fetchone()[0])


def _found(store: LocalVectorBackend, query: str, k: int = 1000) -> list[str]:
    return [hit["content"] for hit in store.recall(query, k=k)]


def test_every_commit_is_on_the_disk_before_it_is_acknowledged(store: LocalVectorBackend) -> None:
    for context in (store._connections.exclusive, store._connections.viewing, store._connections.dedicated):
        with context() as connection:
            assert connection.execute("PRAGMA synchronous").fetchone() == (2,)  # FULL
            assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_indexing_waits_until_it_is_worth_it(store: LocalVectorBackend, path: Path) -> None:
    store.remember_many(f"note {number}" for number in range(TAIL))
    assert len(_found(store, "note")) == TAIL
    assert _indexed(path) == 0
    store.remember("one more note")
    assert len(_found(store, "note")) == TAIL + 1
    assert _indexed(path) == TAIL + 1


def test_ranking_is_the_same_whether_indexed_or_not(
    owner: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["red", "green", "blue", "sky", "sea", "grass", "東京", "C++ ::", "don't"]
    texts = [
        f"{words[number % 9]} {words[number % 7]} {words[number % 5]} {'x ' * (number % 4)}{number}"
        for number in range(100)
    ]
    queries = ["red sky", "東京", "blue 77", "c", "::", "don't", "x green"]
    answers: list[list[list[Hit]]] = []
    for name, tail in (("tail", 10**6), ("index", 0), ("both", 60)):
        monkeypatch.setattr(search, "TAIL", tail)
        with LocalVectorBackend(owner, tmp_path / f"{name}.db") as store:
            for part in (texts[:70], texts[70:]):
                store.remember_many(part)
                store.recall("red")
            answers.append([store.recall(query, k=1000) for query in queries])
            assert _indexed(tmp_path / f"{name}.db") == {"tail": 0, "index": 100, "both": 70}[name]
    plain = [[[{**hit, "time": None} for hit in hits] for hits in answer] for answer in answers]
    assert plain[0] == plain[1] == plain[2]
    assert all(plain[0])


def test_another_analyzer_makes_the_index_anew(
    store: LocalVectorBackend, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.remember_many(f"note {number}" for number in range(300))
    assert len(_found(store, "note")) == 300
    monkeypatch.setattr(search, "ANALYZER", "2")
    monkeypatch.setattr(search, "terms", lambda text: [f"{word}-2" for word in text.split()])
    store._search = None
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute(
            "BEGIN IMMEDIATE"
        )  # the old index is not asked even while the new one cannot be written
        assert _found(store, "note") == []
        other.execute("ROLLBACK")
    assert _found(store, "note") == []
    monkeypatch.undo()
    store._search = None
    assert len(_found(store, "note")) == 300


def test_an_edited_row_that_is_no_record_is_not_found_and_can_be_forgotten(owner: str, path: Path) -> None:
    with LocalVectorBackend(owner, path) as store:
        bad = store.remember("to be edited")
        store.remember("a good one")
    with closing(sqlite3.connect(path)) as editor:
        editor.execute("UPDATE memories SET fragment = 'edited good' WHERE id = ?", (bad,))
        editor.commit()
    with LocalVectorBackend(owner, path) as store:
        assert _found(store, "edited good") == ["a good one"]
        assert store.forget(bad) == 1
        assert store.count() == 1


def test_importing_heals_edited_rows(owner: str, path: Path) -> None:
    with LocalVectorBackend(owner, path) as store:
        ids = store.remember_many([("first one", ["t"]), ("second one", ["t"]), ("third one", ["t"])])
        store.recall("one")
        blob = store.export_blob()
    with closing(sqlite3.connect(path)) as editor:
        editor.execute(
            "UPDATE memories SET fragment = replace(fragment, 'first', 'worst') WHERE id = ?", ids[:1]
        )
        editor.execute("UPDATE memories SET order_key = x'61' WHERE id = ?", ids[1:2])
        editor.execute("DELETE FROM tags")
        editor.execute("UPDATE memories SET copies = 2 WHERE id = ?", ids[2:])
        editor.commit()
    with LocalVectorBackend(owner, path) as store:
        assert store.export_blob() != blob
        store.import_blob(blob)
        assert store.export_blob() == blob
        assert store.count() == 3
        assert {hit["content"] for hit in store.recall("one", tags=["t"])} == {
            "first one",
            "second one",
            "third one",
        }
        assert store.recall("worst") == []


@settings(max_examples=60, deadline=None)
@given(st.lists(st.text(max_size=12), max_size=6), st.text(max_size=12))
def test_any_query_over_any_text_gives_the_same_indexed_or_not(texts: list[str], query: str) -> None:
    owner = "GBRPYHIL2CI3FNQ4BXLFMNDLFJUNPU2HY3ZMFSHONUCEOASW7QC7OX2H"
    answers = []
    for tail in (10**6, 0):
        with pytest.MonkeyPatch.context() as patch, LocalVectorBackend(owner, ":memory:") as store:
            patch.setattr(search, "TAIL", tail)
            store.remember_many(text for text in texts if text)
            answers.append([(hit["content"], hit["score"]) for hit in store.recall(query, k=100)])
            for text in filter(str.strip, texts):
                found = store.recall(text, k=100)
                assert text in {hit["content"] for hit in found} or not terms(text)
    assert answers[0] == answers[1]
