"""An edit of the memory file behind the store's back shows: to `check`, to `recall`, to the next write."""

# ruff: noqa: S311, S608 - edits are SQL put together, flips are chosen at random

from __future__ import annotations

import random
import shutil
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from mycelium_sdk import canonical
from mycelium_sdk.backends.integrity import Integrity
from mycelium_sdk.backends.local import LocalVectorBackend
from mycelium_sdk.backends.local.rows import row_of
from mycelium_sdk.errors import MyceliumError, Tampered
from mycelium_sdk.records import Record
from tests.backends.tampering import ROW_EDITS, TEXTS, edit, fill, recall_all

if TYPE_CHECKING:
    from pathlib import Path


def test_what_nobody_edited_is_kept(owner: str, filled: Path) -> None:
    with LocalVectorBackend(owner, filled) as store:
        assert recall_all(store) == {text for text, _, _ in TEXTS}
        store.forget(tag="stone")
        store.remember("melons are green")
        store.import_blob(canonical.encode(owner, [Record("a", ("b", "b")), Record("a", ("b", "b"))]))
        store.remember("pears are green", session="market")
        report = store.check()
        assert report
        assert (report.state, report.checked, report.findings) == (Integrity.KEPT, 2, ())


@pytest.mark.parametrize("name", ROW_EDITS)
@pytest.mark.parametrize("indexed", [False, True])
def test_an_edited_row_is_found_and_never_served(
    owner: str, filled: Path, name: str, monkeypatch: pytest.MonkeyPatch, *, indexed: bool
) -> None:
    if indexed:
        monkeypatch.setattr("mycelium_sdk.backends.local.search.TAIL", 0)
        with LocalVectorBackend(owner, filled) as store:
            recall_all(store)
    edit(filled, ROW_EDITS[name])
    with LocalVectorBackend(owner, filled) as store:
        report = store.check()
        assert report.state is Integrity.BROKEN
        assert not report
        assert not any(text in finding for finding in report.findings for text in ("apples", "réd"))
        try:
            served = recall_all(store)
        except Tampered:
            pass
        else:
            # What only its place in the file was changed of is served as it was written, or not at all.
            assert served <= {text for text, _, _ in TEXTS[name not in {"place", "key of text"} :]}


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE long SET fragment = replace(fragment, 'plenty', 'few')",
        "DELETE FROM long",
        "UPDATE long SET id = 1",
        'UPDATE memories SET fragment = \'{"content":"short","tags":[]}\' WHERE fragment IS NULL',
        "UPDATE memories SET fragment = NULL WHERE id = 1",
    ],
)
def test_a_long_text_is_sealed_like_a_short_one(owner: str, filled: Path, change: str) -> None:
    long = "there is plenty of " + "red text, " * 500
    with LocalVectorBackend(owner, filled) as store:
        blob = canonical.root(store.iter_blob())
        number = store.remember(long)
        assert store.recall("plenty", k=1)[0]["content"] == long
        assert store.check()
    edit(filled, change)
    with LocalVectorBackend(owner, filled) as store:
        assert store.check().state is Integrity.BROKEN
        with pytest.raises(Tampered):
            store.records([number, "1"])
        store.clear()
        fill(store)
        assert canonical.root(store.iter_blob()) == blob
    with closing(sqlite3.connect(filled)) as connection:
        assert connection.execute("SELECT count(*) FROM long").fetchone() == (0,)


@pytest.mark.parametrize(
    "change",
    [
        "DELETE FROM memories WHERE id = 5",
        "DELETE FROM memories WHERE id = 2",
        "DELETE FROM memories",
        "UPDATE store SET changes = changes + 1",
        "UPDATE store SET changes = changes - 1",
        "UPDATE store SET sequence = 1",
        "UPDATE store SET sequence = sequence + 100",
        "UPDATE store SET plain = 0",
        "UPDATE store SET records = records - 1",
        "UPDATE store SET total = zeroblob(32)",
        "UPDATE store SET nonce = zeroblob(16)",
        "UPDATE store SET mac = zeroblob(16)",
        "UPDATE store SET mac = 'text', total = 7",
    ],
)
def test_a_row_left_out_or_an_edited_counter_is_found(owner: str, filled: Path, change: str) -> None:
    edit(filled, change)
    with LocalVectorBackend(owner, filled) as store:
        report = store.check()
        assert report.state is Integrity.BROKEN
        assert report.findings


@pytest.mark.parametrize(
    "change", ["changes = 0", "sequence = 0", "records = 0", "plain = 0", "total = zeroblob(32)",
             "nonce = zeroblob(16)", "mac = zeroblob(16)"]
)  # fmt: skip
def test_an_edited_counter_is_not_sealed_again_by_the_next_write(
    owner: str, filled: Path, change: str
) -> None:
    edit(filled, f"UPDATE store SET {change}")
    with LocalVectorBackend(owner, filled) as store:
        for write in (lambda: store.remember("more"), lambda: store.forget("1"), lambda: fill(store)):
            with pytest.raises(Tampered) as caught:
                write()
            assert caught.value.hint
        assert store.check().state is Integrity.BROKEN


def test_an_empty_store_whose_counters_were_edited_is_found(owner: str, path: Path) -> None:
    LocalVectorBackend(owner, path).close()
    edit(path, "UPDATE store SET changes = 7")
    with LocalVectorBackend(owner, path) as store:
        assert store.check().state is Integrity.BROKEN


def test_an_edited_identity_of_an_odd_record_is_found(owner: str, path: Path) -> None:
    with LocalVectorBackend(owner, path) as store:
        store.import_blob(canonical.encode(owner, [Record("a", ("b", "b"))]))
        assert store.remember("a", ["b"]) == "1"
    edit(path, "UPDATE memories SET identity = CAST(replace(CAST(identity AS TEXT), 'a', 'c') AS BLOB)")
    with LocalVectorBackend(owner, path) as store:
        assert store.check().state is Integrity.BROKEN


def test_no_id_is_given_twice_whatever_the_counters_say(owner: str, filled: Path) -> None:
    edit(filled, "UPDATE store SET sequence = 0")
    with LocalVectorBackend(owner, filled) as store:
        store.import_blob(canonical.encode(owner, [Record("new"), Record("apples are red", ("fruit",))]))
        ids = {stored.id for stored in store.iter_records()} | {store.remember("more")}
        assert ids.isdisjoint("12345")
        assert len(ids) == 3


def test_genuine_rows_of_other_times_and_stores_do_not_fit(owner: str, filled: Path, tmp_path: Path) -> None:
    """Only bytes that a store wrote itself, in the wrong place or at the wrong time."""
    earlier = tmp_path / "earlier.db"
    shutil.copy(filled, earlier)
    with LocalVectorBackend(owner, filled) as store:
        store.forget("2")
        store.remember("melons are green")
    attached = f"ATTACH '{earlier}' AS earlier"
    for edits in (
        ["INSERT INTO memories SELECT * FROM earlier.memories WHERE id = 2"],
        [
            "INSERT INTO memories SELECT * FROM earlier.memories WHERE id = 2",
            "DELETE FROM memories WHERE id = 6",
        ],
        ["DELETE FROM store", "INSERT INTO store SELECT * FROM earlier.store"],
        ["DELETE FROM memories", "INSERT INTO memories SELECT * FROM earlier.memories"],
    ):
        copy = tmp_path / "copy.db"
        shutil.copy(filled, copy)
        edit(copy, attached, *edits)
        with LocalVectorBackend(owner, copy) as store:
            assert store.check().state is Integrity.BROKEN
    other = tmp_path / "other.db"
    with LocalVectorBackend(owner, other) as store:
        fill(store)
    with LocalVectorBackend(owner, filled) as store:
        assert store.check()
    edit(
        filled,
        f"ATTACH '{other}' AS other",
        "DELETE FROM memories WHERE id = 3",
        "INSERT INTO memories SELECT * FROM other.memories WHERE id = 3",
    )
    with LocalVectorBackend(owner, filled) as store:
        assert store.check().state is Integrity.BROKEN
        with pytest.raises(Tampered):
            store.recall("sky")


def test_the_sum_of_all_rows_never_shows(owner: str, path: Path) -> None:
    """Whoever saw sums could find other rows with the same one (they are a linear function of the rows)."""

    def seen() -> bytes:
        with closing(sqlite3.connect(path)) as reader:
            return bytes(reader.execute("SELECT total FROM store").fetchone()[0])

    with LocalVectorBackend(owner, path) as store:
        sums = []
        for _ in range(3):
            sums.append(seen())
            store.forget(store.remember("passing"))
        assert len(set(sums)) == 3
        assert store.check()


def test_a_filter_serves_nothing_that_does_not_fit(owner: str, filled: Path) -> None:
    edit(filled, "INSERT INTO tags VALUES ('stone', 1)", "INSERT INTO sessions VALUES ('walk', 1)")
    with LocalVectorBackend(owner, filled) as store:
        with pytest.raises(Tampered):
            store.recall("red", tags=["stone"])
        with pytest.raises(Tampered):
            store.recall("red", session="walk")
        assert store.forget(tag="stone") == 2
        assert store.recall("apples", k=1)[0]["content"] == "apples are red"


@pytest.mark.parametrize("column", ["key", "identity"])
def test_remembering_what_an_edited_row_pretends_to_be_is_refused(
    owner: str, filled: Path, column: str
) -> None:
    """Else the new memory would be lost: it would be taken for one that is there already."""
    key = row_of(Record("new")).key.hex()
    edit(filled, f"UPDATE memories SET {column} = x'{key}' WHERE id = 1")
    with LocalVectorBackend(owner, filled) as store, pytest.raises(Tampered):
        store.remember("new")


def test_an_edited_row_is_not_forgotten_as_if_it_were_genuine(owner: str, filled: Path) -> None:
    edit(filled, ROW_EDITS["content"])
    with LocalVectorBackend(owner, filled) as store:
        with pytest.raises(Tampered):
            store.forget("1")
        assert store.count() == 5
        assert store.forget("2") == 1
        assert store.clear() == 4
        assert store.check()
        assert store.remember("a new start")


@pytest.mark.parametrize(
    "change", [*map(ROW_EDITS.get, ("content", "place", "session", "time", "mac", "identity")),
             "DELETE FROM memories WHERE id = 1", "UPDATE store SET changes = 3, mac = x''"]
)  # fmt: skip
def test_importing_makes_an_edited_store_genuine_again(owner: str, filled: Path, change: str) -> None:
    with LocalVectorBackend(owner, filled) as store:
        blob, before = store.export_blob(), {stored.id: stored for stored in store.iter_records()}
    edit(filled, change)
    with LocalVectorBackend(owner, filled) as store:
        counter = store.change_counter()
        store.import_blob(blob)
        assert store.export_blob() == blob
        assert store.check().state is Integrity.KEPT
        assert store.change_counter() > counter
        after = {stored.id: stored for stored in store.iter_records()}
        if "store" in change:  # no row can be told from a genuine one that was left out of the count
            assert after.keys().isdisjoint(before)
        else:
            assert after.keys() - before.keys() == {"6"}
            assert all(after[number] == before[number] for number in "2345")
        assert recall_all(store) == {text for text, _, _ in TEXTS}


def test_a_flipped_bit_is_noticed_or_changes_nothing(owner: str, filled: Path) -> None:
    with LocalVectorBackend(owner, filled) as store:
        recall_all(store)
        before = [
            (stored.id, stored.fragment, stored.session, stored.time) for stored in store.iter_records()
        ]
    data = filled.read_bytes()
    chance = random.Random(6)
    noticed = 0
    for _ in range(400):
        flipped = bytearray(data)
        flipped[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        filled.write_bytes(flipped)
        for leftover in filled.parent.glob("memory.db-*"):
            leftover.unlink()
        try:
            with LocalVectorBackend(owner, filled) as store:
                kept = bool(store.check())
                after = [(one.id, one.fragment, one.session, one.time) for one in store.iter_records()]
        except MyceliumError:
            kept, after = False, []
        noticed += not kept
        assert not kept or after == before
    assert noticed > 5
