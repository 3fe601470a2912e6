"""The search index is derived: late, complete, and made anew whenever it may be wrong."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mycelium_sdk.backends.local import LocalVectorBackend, documents, indexing, progress, search
from mycelium_sdk.backends.local import segments as segments_module
from mycelium_sdk.backends.local.search import TAIL
from mycelium_sdk.backends.text import terms
from tests.backends.index_checks import check_index, indexed, segments

if TYPE_CHECKING:
    from pathlib import Path

    from mycelium_sdk.backends.base import Hit


def _found(store: LocalVectorBackend, query: str, k: int = 1000) -> list[str]:
    return [hit["content"] for hit in store.recall(query, k=k)]


def test_every_commit_is_on_the_disk_before_it_is_acknowledged(store: LocalVectorBackend) -> None:
    for context in (store._connections.exclusive, store._connections.viewing, store._connections.dedicated):
        with context() as connection:
            assert connection.execute("PRAGMA synchronous").fetchone() == (2,)  # FULL
            assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_indexing_waits_until_it_is_worth_it(store: LocalVectorBackend) -> None:
    store.remember_many(f"note {number}" for number in range(TAIL))
    assert len(_found(store, "note")) == TAIL
    assert indexed(store) == 0
    store.remember("one more note")
    assert len(_found(store, "note")) == TAIL + 1
    assert indexed(store) == TAIL + 1
    check_index(store)


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
            assert indexed(store) == {"tail": 0, "index": 100, "both": 70}[name]
            check_index(store)
    plain = [[[{**hit, "time": None} for hit in hits] for hits in answer] for answer in answers]
    assert plain[0] == plain[1] == plain[2]
    assert all(plain[0])


def test_another_analyzer_makes_the_index_anew(
    store: LocalVectorBackend, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.remember_many(f"note {number}" for number in range(300))
    assert len(_found(store, "note")) == 300
    for module in (segments_module, indexing):
        monkeypatch.setattr(module, "ANALYZER", "another")
    monkeypatch.setattr(documents, "terms", lambda text: [f"{word}-2" for word in text.split()])
    store._file.now().search = None
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute(
            "BEGIN IMMEDIATE"
        )  # the old index is not asked even while the new one cannot be written
        assert _found(store, "note") == []
        other.execute("ROLLBACK")
    assert _found(store, "note") == []
    monkeypatch.undo()
    store._file.now().search = None
    assert len(_found(store, "note")) == 300


def test_an_edited_row_that_is_no_record_is_not_found(owner: str, path: Path) -> None:
    with LocalVectorBackend(owner, path) as store:
        bad = store.remember("to be edited")
        store.remember("a good one")
    with closing(sqlite3.connect(path)) as editor:
        editor.execute("UPDATE memories SET fragment = 'edited good' WHERE id = ?", (bad,))
        editor.commit()
    with LocalVectorBackend(owner, path) as store:
        assert _found(store, "edited good") == ["a good one"]


def test_importing_heals_edited_rows(owner: str, path: Path) -> None:
    with LocalVectorBackend(owner, path) as store:
        ids = store.remember_many([("first one", ["t"]), ("second one", ["t"]), ("third one", ["t"])])
        store.recall("one")
        blob = store.export_blob()
    with closing(sqlite3.connect(path)) as editor:
        editor.execute(
            "UPDATE memories SET fragment = replace(fragment, 'first', 'worst') WHERE id = ?", ids[:1]
        )
        editor.execute("UPDATE memories SET key = x'61' WHERE id = ?", ids[1:2])
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


def test_new_memories_become_small_segments_that_are_merged(
    store: LocalVectorBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "TAIL", 0)
    monkeypatch.setattr(indexing, "_SMALL", 16)
    monkeypatch.setattr(indexing, "_MIDDLE", 64)
    monkeypatch.setattr(indexing, "_MERGED_TOGETHER", 3)
    sizes = set()
    for number in range(150):
        store.remember(f"memory {number} {'again ' * (number % 3)}", session=f"s{number % 5}")
        assert store.recall(f"memory {number}", k=1)[0]["content"].startswith(f"memory {number} ")
        sizes.add(len(segments(store)))
    assert max(sizes) < 9
    assert sum(number for _, number in segments(store)) == 150
    assert max(number for _, number in segments(store)) > 64
    check_index(store)


def test_a_complete_block_becomes_one_segment(
    store: LocalVectorBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (segments_module, indexing):
        monkeypatch.setattr(module, "BLOCK", 32)
    monkeypatch.setattr(search, "TAIL", 0)
    for number in range(70):
        store.remember(f"memory {number}")
        if number % 6 == 0:
            store.recall("memory")
    store.recall("memory")
    assert segments(store)[:2] == [(1, 31), (32, 32)]
    assert indexed(store) == 70
    check_index(store)


def test_a_hole_in_the_index_is_looked_through_and_filled(
    store: LocalVectorBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    for part in range(3):
        store.remember_many(f"memory {part} {number}" for number in range(200))
        store.recall("memory")
    first, middle, last = segments(store)
    with store._connections.reading() as connection:
        found = segments_module.read_segments(connection)
    with store._connections.writing() as connection:
        indexing._drop(connection, [found[1]])
    monkeypatch.setattr(search, "TAIL", 300)
    assert len(_found(store, "memory", k=1000)) == 600
    assert segments(store) == [first, last]
    monkeypatch.undo()
    assert len(_found(store, "memory", k=1000)) == 600
    assert segments(store) == [first, middle, last]
    check_index(store)


@pytest.mark.parametrize("number", [1, 150, 390])
def test_forgetting_takes_memories_out_of_their_segment(store: LocalVectorBackend, number: int) -> None:
    ids = store.remember_many(
        (f"memory {place} word{place} {'twice twice' * (place % 2)}", [f"t{place < number}"])
        for place in range(400)
    )
    store.recall("memory")
    assert indexed(store) == 400
    assert store.forget(tag="tTrue") == number
    assert indexed(store) in {400 - number, 0}  # many at once drop the segment, which is cheaper
    check_index(store, coherence=False)
    assert _found(store, f"word{number - 1}") == []
    assert len(_found(store, "memory")) == 400 - number
    assert store.recall(f"word{number}")[0]["id"] == ids[number]
    with closing(sqlite3.connect(str(store.path))) as connection:
        rows = connection.execute("SELECT count(*) FROM postings WHERE term = ?", (f"word{number - 1}",))
        assert rows.fetchone() == (0,)


def test_forgetting_what_the_index_knows_otherwise_drops_its_segment(store: LocalVectorBackend) -> None:
    ids = store.remember_many(f"memory {number}" for number in range(200))
    store.recall("memory")
    with store._connections.writing() as connection:
        connection.execute("UPDATE postings SET places = x'0100' WHERE term = '7'")
    assert store.forget(ids[7]) == 1
    assert segments(store) == []
    assert len(_found(store, "memory")) == 199
    check_index(store)


def test_a_segment_made_of_memories_that_changed_meanwhile_is_not_stored(store: LocalVectorBackend) -> None:
    ids = store.remember_many(f"memory {number}" for number in range(200))
    with store._connections.reading() as connection:
        made = indexing.make(connection)
    assert made is not None
    store.forget(ids[50])
    with store._connections.writing() as connection:
        assert not indexing.store(connection, made)
    store.recall("memory")
    assert indexed(store) == 199
    with store._connections.writing() as connection:
        assert not indexing.store(connection, made)
    check_index(store)


def test_long_texts_are_indexed_in_several_pieces(
    store: LocalVectorBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexing, "_MOST_TERMS", 1000)
    store.remember_many(f"{number} {'many words of a long text ' * 30}" for number in range(200))
    assert len(_found(store, "words")) == 200
    assert len(segments(store)) > 2
    check_index(store)


def test_what_takes_long_is_reported(owner: str, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reported: list[tuple[str, int, int | None]] = []
    monkeypatch.setattr(progress, "_QUIET", 0.0)
    monkeypatch.setattr(indexing, "_MOST_TERMS", 300)
    with LocalVectorBackend(owner, path, progress=lambda *told: reported.append(told)) as store:
        store.remember_many(f"memory number {number}" for number in range(400))
        assert reported == []
        store.recall("memory")
        assert [total for _, _, total in reported] == [400] * len(reported)
        assert {what for what, _, _ in reported} == {"indexing"}
        done = [number for _, number, _ in reported]
        assert done == sorted(done)
        assert len(set(done)) > 2
        assert done[-1] == 400
        reported.clear()
        store.recall("memory")
        assert reported == []


def test_quick_work_is_not_reported(owner: str, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reported: list[object] = []
    monkeypatch.setattr(progress, "_QUIET", 1e9)
    with LocalVectorBackend(owner, path, progress=lambda *told: reported.append(told)) as store:
        store.remember_many(f"memory number {number}" for number in range(400))
        store.recall("memory")
    assert reported == []


def test_preparing_leaves_nothing_for_the_next_recall(store: LocalVectorBackend) -> None:
    store.remember_many(f"memory number {number}" for number in range(400))
    store.prepare()
    assert indexed(store) == 400
    before = segments(store)
    store.recall("memory")
    assert segments(store) == before
