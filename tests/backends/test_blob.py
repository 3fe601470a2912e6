"""The blob of a file: exact order whatever the texts begin with, bounded memory, the kept root."""

# ruff: noqa: S311, S608 - edits are SQL put together, texts are shuffled

from __future__ import annotations

import hashlib
import random
import sqlite3
import tracemalloc
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mycelium_sdk import canonical
from mycelium_sdk.backends.base import Context
from mycelium_sdk.backends.local import LocalVectorBackend, rootcache, view
from mycelium_sdk.backends.local.rows import PREFIX_BYTES, row_of
from mycelium_sdk.errors import InputError, NonCanonical, Tampered
from mycelium_sdk.records import Record

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

OWNER = "GBRPYHIL2CI3FNQ4BXLFMNDLFJUNPU2HY3ZMFSHONUCEOASW7QC7OX2H"

# Texts that agree up to and around the point where a key is cut, in one, two and four bytes a character.
_beginnings = st.sampled_from(
    ["", "a" * (PREFIX_BYTES - 2), "é" * (PREFIX_BYTES // 2 - 1), "\U0001f602" * 16, "a\0" * 21]
)
_endings = st.text(st.sampled_from("ab\0é\uff5e\U0001f602"), max_size=5)
_records = st.lists(
    st.builds(
        lambda beginning, ending, tags: Record(beginning + ending, tuple(sorted(tags))),
        _beginnings,
        _endings,
        st.lists(st.builds(str.__add__, _beginnings, _endings), max_size=2),
    ),
    max_size=15,
)


@settings(deadline=None)
@given(_records, st.booleans())
def test_texts_that_begin_alike_are_in_exact_order(records: list[Record], in_sqlite: bool) -> None:
    blob = canonical.encode(OWNER, records)
    with pytest.MonkeyPatch.context() as patch, LocalVectorBackend(OWNER, ":memory:") as store:
        if in_sqlite:
            patch.setattr(view, "_SORTED_IN_MEMORY", 1)
        store.import_blob(blob)
        assert store.export_blob() == blob
        assert [one.fragment for one in store.iter_records() for _ in range(one.copies)] == [
            canonical.fragment(record)
            for record in sorted(records, key=lambda record: (record.content, record.tags))
        ]


@settings(deadline=None)
@given(st.lists(st.tuples(_beginnings, _endings), min_size=2, max_size=2))
def test_keys_agree_iff_records_do_and_never_order_them_wrongly(texts: list[tuple[str, str]]) -> None:
    one, other = (Record(beginning + ending) for beginning, ending in texts)
    key, other_key = row_of(one).key, row_of(other).key
    assert (key == other_key) == (one == other)
    if key[:PREFIX_BYTES] != other_key[:PREFIX_BYTES]:
        assert (key < other_key) == (one.content < other.content)


def test_very_many_that_begin_alike(
    store: LocalVectorBackend, owner: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(view, "_SORTED_IN_MEMORY", 100)
    texts = [f"{'the same beginning, ' * 5}{number:05}" for number in range(1000)]
    random.Random(1).shuffle(texts)
    store.remember_many([*texts, "a", "zebra", "the same", "the same beginning, " * 4])
    assert store.remember(texts[7]) == "8"
    expected = canonical.encode(
        owner, map(Record, [*texts, "a", "zebra", "the same", "the same beginning, " * 4])
    )
    assert store.export_blob() == expected
    assert len(store.all_records()) == 1004
    assert store.forget("8") == 1
    assert store.count() == 1003


def test_texts_that_begin_alike_may_come_one_by_one(store: LocalVectorBackend, owner: str) -> None:
    texts = [f"{'the same beginning, ' * 5}{ending}" for ending in ("c", "a", "", "b", "é", "\0")]
    texts += ["the same", "y" * PREFIX_BYTES, "y" * (PREFIX_BYTES - 1), "y" * (PREFIX_BYTES + 1)]
    for number, text in enumerate(texts, 1):
        store.remember(text)
        assert store.export_blob() == canonical.encode(owner, map(Record, texts[:number]))
    store.clear()
    store.remember("plain again")
    assert store.export_blob() == canonical.encode(owner, [Record("plain again")])


@pytest.mark.parametrize("length", [100, 700, 900, 1500, 3000, 5000, 100_000])
def test_a_file_is_not_much_larger_than_its_texts(owner: str, path: Path, length: int) -> None:
    number = 400_000 // length + 10
    texts = [f"{place:05}" + "x" * (length - 5) for place in range(number)]
    with LocalVectorBackend(owner, path) as store:
        store.remember_many(texts)
        assert store.export_blob() == canonical.encode(owner, map(Record, texts))
    empty = 17 * 4096
    assert path.stat().st_size - empty < number * (1.5 * length + 400)


def test_an_export_with_large_groups_left_halfway_holds_nothing_back(
    store: LocalVectorBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(view, "_SORTED_IN_MEMORY", 10)
    store.remember_many(f"{'x' * 100}{number}" for number in range(200))
    with store.export() as (chunks, _):
        next(chunks)
    assert store.clear(secure=True) == 200


def _texts(number: int) -> Iterator[str]:
    return (
        f"memory {place:07} of a blob that is read as a stream and never held whole"
        for place in range(number)
    )


def test_neither_import_nor_export_holds_a_blob_in_memory(store: LocalVectorBackend, owner: str) -> None:
    number = 40_000
    fragments = ((canonical.fragment(Record(text, ("tag",))), 1) for text in _texts(number))
    tracemalloc.start()
    try:
        assert store.import_blob(canonical.write_blob(owner, fragments)) == number
        size = sum(map(len, store.iter_blob()))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 3_000_000 < size


def test_a_long_import_tells_how_far_it_is(store: LocalVectorBackend, owner: str) -> None:
    number = 25_000
    told: list[tuple[str, int, int | None]] = []
    blob = canonical.write_blob(owner, ((canonical.fragment(Record(text)), 1) for text in _texts(number)))
    store.import_blob(blob, progress=lambda *each: told.append(each))
    reading = [done for what, done, total in told if what == "reading" and total is None]
    storing = [done for what, done, total in told if what == "storing" and total == number]
    assert reading == sorted(reading)
    assert storing == [10_000, 20_000]
    assert len(reading) >= 2
    told.clear()
    assert store.check(progress=lambda *each: told.append(each))
    assert ("checking", 20_000, number) in told


def test_after_an_import_the_log_is_short(store: LocalVectorBackend, owner: str, path: Path) -> None:
    blob = canonical.write_blob(owner, ((canonical.fragment(Record(text)), 1) for text in _texts(30_000)))
    store.remember("first")
    store.import_blob(blob)
    log = path.with_name("memory.db-wal")
    assert path.stat().st_size > 5_000_000
    assert not log.exists() or log.stat().st_size < 1_000_000


# -- the root


def test_the_root_is_that_of_the_blob_through_every_change(store: LocalVectorBackend) -> None:
    for act in (
        lambda: None,
        lambda: store.remember("a"),
        lambda: store.remember("b", ["t"]),
        lambda: store.remember("a"),
        lambda: store.forget(tag="t"),
        lambda: store.import_blob(canonical.encode(store.owner, [Record("c"), Record("c")])),
        store.clear,
    ):
        act()
        for _ in range(2):
            assert store.root() == hashlib.sha256(store.export_blob()).digest()


def test_the_root_of_an_unchanged_large_store_is_kept_in_its_file(
    owner: str, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rootcache, "WORTH_KEEPING", 3)
    with LocalVectorBackend(owner, path) as store:
        store.remember_many(["a", "b"])
        small = store.root()
        assert rootcache.find(store._connections, store._sealers) is None
        store.remember("c")
        large = store.root()
    with LocalVectorBackend(owner, path) as store:
        monkeypatch.setattr(store, "export", None)  # it is not computed again
        assert store.root() == large
        monkeypatch.undo()
        store.forget("3")
        assert store.root() == small


@pytest.mark.parametrize(
    "edit", ["root = zeroblob(32)", "root = 'text'", "mac = zeroblob(16)", "mac = 1", "changes = changes + 1"]
)
def test_an_edited_root_is_not_believed(
    owner: str, path: Path, monkeypatch: pytest.MonkeyPatch, edit: str
) -> None:
    monkeypatch.setattr(rootcache, "WORTH_KEEPING", 3)
    with LocalVectorBackend(owner, path) as store:
        store.remember_many(["a", "b", "c", "d"])
        root = store.root()
    with closing(sqlite3.connect(path)) as editor:
        assert editor.execute(f"UPDATE root SET {edit}").rowcount == 1
        editor.commit()
    with LocalVectorBackend(owner, path) as store:
        assert store.root() == root


def test_a_root_can_be_asked_for_while_nothing_can_be_written(
    owner: str, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rootcache, "WORTH_KEEPING", 3)
    with LocalVectorBackend(owner, path) as store:
        store.remember_many(["a", "b", "c", "d"])
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            assert store.root() == hashlib.sha256(store.export_blob()).digest()


@pytest.mark.parametrize("value", ["CAST(x'ff' AS TEXT)", "'é'", "x'61'", "7"])
def test_the_blob_of_an_edited_row_is_refused_and_says_nothing_of_it(
    owner: str, path: Path, value: str
) -> None:
    with LocalVectorBackend(owner, path) as store:
        store.remember_many(["one", "two"])
    with closing(sqlite3.connect(path)) as editor:
        editor.execute(f"UPDATE memories SET fragment = {value} WHERE id = 1")
        editor.commit()
    with LocalVectorBackend(owner, path) as store:
        if value == "7":  # text is what such a column makes of a number
            assert b"7" in store.export_blob()
        else:
            with pytest.raises(Tampered) as caught:
                store.export_blob()
            assert "é" not in str(caught.value)
            assert caught.value.__cause__ is None
        with pytest.raises(NonCanonical if value == "7" else (Tampered, NonCanonical)):
            [one.record for one in store.iter_records()]


# -- what arrives with a blob


def test_a_context_gives_order_session_and_time(owner: str, path: Path) -> None:
    texts = ["c", "a", "d", "b"]  # as they arrived on the other machine
    records = [Record(text) for text in texts]
    contexts = {
        text: Context(10 * place, f"s{place % 2}", 1.8e9 + place) for place, text in enumerate(texts, 1)
    }
    blob = canonical.encode(owner, [*records, Record("a")])
    with LocalVectorBackend(owner, path) as store:
        kept = store.remember("d", session="mine")
        own = next(store.iter_records())
        store.load(blob, contexts=[contexts[text] for text in ("a", "a", "b", "c", "d")])
        stored = {one.record.content: one for one in store.iter_records()}
        assert stored["d"] == own
        assert own.id == kept
        assert sorted("cab", key=lambda text: stored[text].sequence) == ["c", "a", "b"]
        assert {text: (stored[text].session, stored[text].time) for text in "cab"} == {
            text: contexts[text][1:] for text in "cab"
        }
        assert stored["a"].copies == 2
        assert store.recall("b", session="s0")
        assert store.check()


@pytest.mark.parametrize("number", [1, 3])
def test_a_context_of_another_length_changes_nothing(owner: str, path: Path, number: int) -> None:
    blob = canonical.encode(owner, [Record("a"), Record("b")])
    with LocalVectorBackend(owner, path) as store:
        store.remember("mine")
        with pytest.raises(InputError):
            store.load(blob, contexts=[Context(1, None, None)] * number)
        assert [one.record.content for one in store.iter_records()] == ["mine"]
