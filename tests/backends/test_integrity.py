"""An edit of the memory file behind the store's back shows: to `check`, to `recall`, to the next write."""

# ruff: noqa: S311, S608 - edits are SQL put together, flips are chosen at random

from __future__ import annotations

import random
import shutil
import sqlite3
import stat
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from mycelium_sdk import canonical
from mycelium_sdk.backends.base import Context, Integrity
from mycelium_sdk.backends.local import LocalVectorBackend
from mycelium_sdk.backends.local.rows import row_of
from mycelium_sdk.errors import BackendError, InputError, IntegrityKeyMissing, MyceliumError, Tampered
from mycelium_sdk.records import Record

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from mycelium_sdk.backends.base import BaseBackend

TEXTS = [
    ("apples are red", ["fruit"], "market"),
    ("bananas are yellow", ["fruit"], None),
    ("the sky is blue", None, "walk"),
    ("cherries are red, " + "and small " * 20, ["fruit", "stone"], "market"),
    ("plums are blue", ["fruit", "stone"], None),
]


def _fill(store: BaseBackend) -> list[str]:
    return store.remember_many(
        {"content": text, "tags": tags, "session": session} for text, tags, session in TEXTS
    )


@pytest.fixture
def filled(owner: str, path: Path) -> Path:
    """A closed memory file."""
    with LocalVectorBackend(owner, path) as store:
        _fill(store)
    return path


def _edit(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as editor:
        for statement in statements:
            assert editor.execute(statement).rowcount != 0, "the edit touched nothing"


def _recall_all(store: BaseBackend) -> set[str]:
    return {hit["content"] for hit in store.recall("apples bananas sky cherries plums red blue yellow", k=50)}


def test_what_nobody_edited_is_kept(owner: str, filled: Path) -> None:
    with LocalVectorBackend(owner, filled) as store:
        assert _recall_all(store) == {text for text, _, _ in TEXTS}
        store.forget(tag="stone")
        store.remember("melons are green")
        store.import_blob(canonical.encode(owner, [Record("a", ("b", "b")), Record("a", ("b", "b"))]))
        store.remember("pears are green", session="market")
        report = store.check()
        assert report
        assert (report.state, report.checked, report.findings) == (Integrity.KEPT, 2, ())


ROW_EDITS = {
    "content": "UPDATE memories SET fragment = replace(fragment, 'red', 'bad') WHERE id = 1",
    "content with its place": "UPDATE memories SET fragment = replace(fragment, 'red', 'bad'),"
    " key = CAST(replace(CAST(key AS TEXT), 'red', 'bad') AS BLOB) WHERE id = 1",
    "tags": "UPDATE memories SET fragment = replace(fragment, 'fruit', 'stone') WHERE id = 1",
    "place": "UPDATE memories SET key = x'61' WHERE id = 1",
    "id": "UPDATE memories SET id = 77 WHERE id = 1",
    "identity": "UPDATE memories SET identity = x'6100' WHERE id = 1",
    "copies": "UPDATE memories SET copies = 2 WHERE id = 1",
    "session": "UPDATE memories SET session = 'walk' WHERE id = 1",
    "session dropped": "UPDATE memories SET session = NULL WHERE id = 1",
    "session given": "UPDATE memories SET session = 'market' WHERE id = 2",
    "time": "UPDATE memories SET time = time - 86400 WHERE id = 1",
    "time dropped": "UPDATE memories SET time = NULL WHERE id = 1",
    "mac": "UPDATE memories SET mac = zeroblob(16) WHERE id = 1",
    "another row's mac": "UPDATE memories SET mac = (SELECT mac FROM memories WHERE id = 2) WHERE id = 1",
    "a row put in": "INSERT INTO memories SELECT x'6162', 6, identity, copies, session, time, mac,"
    " replace(fragment, 'red', 'bad') FROM memories WHERE id = 1",
    "no record": "UPDATE memories SET fragment = 'red' WHERE id = 1",
    "not ASCII": "UPDATE memories SET fragment = replace(fragment, 'red', 'réd') WHERE id = 1",
    "no text": "UPDATE memories SET fragment = CAST(x'ff726564' AS TEXT) WHERE id = 1",
    "bytes": "UPDATE memories SET fragment = CAST(fragment AS BLOB) WHERE id = 1",
    "session of bytes": "UPDATE memories SET session = CAST(session AS BLOB) WHERE id = 1",
    "key of text": "UPDATE memories SET key = CAST(key AS TEXT) WHERE id = 1",
    "time of text": "UPDATE memories SET time = 'yesterday' WHERE id = 1",
    "copies of text": "UPDATE memories SET copies = 'one' WHERE id = 1",
    "mac of text": "UPDATE memories SET mac = 'mac' WHERE id = 1",
}


@pytest.mark.parametrize("name", ROW_EDITS)
@pytest.mark.parametrize("indexed", [False, True])
def test_an_edited_row_is_found_and_never_served(
    owner: str, filled: Path, name: str, monkeypatch: pytest.MonkeyPatch, *, indexed: bool
) -> None:
    if indexed:
        monkeypatch.setattr("mycelium_sdk.backends.local.search.TAIL", 0)
        with LocalVectorBackend(owner, filled) as store:
            _recall_all(store)
    _edit(filled, ROW_EDITS[name])
    with LocalVectorBackend(owner, filled) as store:
        try:
            report = store.check()
            assert report.state is Integrity.BROKEN
            assert not report
            assert not any(text in finding for finding in report.findings for text in ("apples", "réd"))
        except Tampered:
            assert name == "no text"  # the file does not even say what the row is
        try:
            served = _recall_all(store)
        except Tampered:
            pass
        else:
            # What only its place in the file was changed of is served as it was written, or not at all.
            assert served <= {text for text, _, _ in TEXTS[name not in {"place", "key of text"} :]}


@pytest.mark.parametrize(
    "edit",
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
def test_a_row_left_out_or_an_edited_counter_is_found(owner: str, filled: Path, edit: str) -> None:
    _edit(filled, edit)
    with LocalVectorBackend(owner, filled) as store:
        report = store.check()
        assert report.state is Integrity.BROKEN
        assert report.findings


@pytest.mark.parametrize(
    "edit", ["changes = 0", "sequence = 0", "records = 0", "plain = 0", "total = zeroblob(32)",
             "nonce = zeroblob(16)", "mac = zeroblob(16)"]
)  # fmt: skip
def test_an_edited_counter_is_not_sealed_again_by_the_next_write(owner: str, filled: Path, edit: str) -> None:
    _edit(filled, f"UPDATE store SET {edit}")
    with LocalVectorBackend(owner, filled) as store:
        for write in (lambda: store.remember("more"), lambda: store.forget("1"), lambda: _fill(store)):
            with pytest.raises(Tampered) as caught:
                write()
            assert caught.value.hint
        assert store.check().state is Integrity.BROKEN


def test_an_empty_store_whose_counters_were_edited_is_found(owner: str, path: Path) -> None:
    LocalVectorBackend(owner, path).close()
    _edit(path, "UPDATE store SET changes = 7")
    with LocalVectorBackend(owner, path) as store:
        assert store.check().state is Integrity.BROKEN


def test_an_edited_identity_of_an_odd_record_is_found(owner: str, path: Path) -> None:
    with LocalVectorBackend(owner, path) as store:
        store.import_blob(canonical.encode(owner, [Record("a", ("b", "b"))]))
        assert store.remember("a", ["b"]) == "1"
    _edit(path, "UPDATE memories SET identity = CAST(replace(CAST(identity AS TEXT), 'a', 'c') AS BLOB)")
    with LocalVectorBackend(owner, path) as store:
        assert store.check().state is Integrity.BROKEN


def test_no_id_is_given_twice_whatever_the_counters_say(owner: str, filled: Path) -> None:
    _edit(filled, "UPDATE store SET sequence = 0")
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
        _edit(copy, attached, *edits)
        with LocalVectorBackend(owner, copy) as store:
            assert store.check().state is Integrity.BROKEN
    other = tmp_path / "other.db"
    with LocalVectorBackend(owner, other) as store:
        _fill(store)
    with LocalVectorBackend(owner, filled) as store:
        assert store.check()
    _edit(
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
    _edit(filled, "INSERT INTO tags VALUES ('stone', 1)", "INSERT INTO sessions VALUES ('walk', 1)")
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
    _edit(filled, f"UPDATE memories SET {column} = x'{key}' WHERE id = 1")
    with LocalVectorBackend(owner, filled) as store, pytest.raises(Tampered):
        store.remember("new")


def test_an_edited_row_is_not_forgotten_as_if_it_were_genuine(owner: str, filled: Path) -> None:
    _edit(filled, ROW_EDITS["content"])
    with LocalVectorBackend(owner, filled) as store:
        with pytest.raises(Tampered):
            store.forget("1")
        assert store.count() == 5
        assert store.forget("2") == 1
        assert store.clear() == 4
        assert store.check()
        assert store.remember("a new start")


@pytest.mark.parametrize(
    "edit", [*map(ROW_EDITS.get, ("content", "place", "session", "time", "mac", "identity")),
             "DELETE FROM memories WHERE id = 1", "UPDATE store SET changes = 3, mac = x''"]
)  # fmt: skip
def test_importing_makes_an_edited_store_genuine_again(owner: str, filled: Path, edit: str) -> None:
    with LocalVectorBackend(owner, filled) as store:
        blob, before = store.export_blob(), {stored.id: stored for stored in store.iter_records()}
    _edit(filled, edit)
    with LocalVectorBackend(owner, filled) as store:
        counter = store.change_counter()
        store.import_blob(blob)
        assert store.export_blob() == blob
        assert store.check().state is Integrity.KEPT
        assert store.change_counter() > counter
        after = {stored.id: stored for stored in store.iter_records()}
        if "store" in edit:  # no row can be told from a genuine one that was left out of the count
            assert after.keys().isdisjoint(before)
        else:
            assert after.keys() - before.keys() == {"6"}
            assert all(after[number] == before[number] for number in "2345")
        assert _recall_all(store) == {text for text, _, _ in TEXTS}


def test_a_flipped_bit_is_noticed_or_changes_nothing(owner: str, filled: Path) -> None:
    with LocalVectorBackend(owner, filled) as store:
        _recall_all(store)
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


# -- the key


def test_the_key_is_a_private_file_outside_the_memory_file(owner: str, filled: Path, home: Path) -> None:
    (key,) = (home / "state" / "integrity").iterdir()
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert stat.S_IMODE(key.parent.stat().st_mode) == 0o700
    secret = bytes.fromhex(key.read_text())
    assert len(secret) == 32
    data = b"".join(file.read_bytes() for file in filled.parent.iterdir())
    assert secret not in data
    assert secret.hex().encode() not in data
    assert key.stem.encode() in data


def test_a_memory_that_ends_with_the_process_has_no_key_file(owner: str, home: Path) -> None:
    with LocalVectorBackend(owner, ":memory:") as store:
        _fill(store)
        assert _recall_all(store)
        assert store.check().state is Integrity.KEPT
    assert list(home.iterdir()) == []


def test_the_folder_of_keys_can_be_chosen(owner: str, path: Path, tmp_path: Path, home: Path) -> None:
    with LocalVectorBackend(owner, path, integrity=tmp_path / "keys") as store:
        store.remember("a")
    assert len(list((tmp_path / "keys").iterdir())) == 1
    assert list(home.iterdir()) == []


def test_a_moved_or_copied_file_finds_its_key(owner: str, filled: Path, tmp_path: Path) -> None:
    moved = tmp_path / "moved.db"
    shutil.copy(filled, tmp_path / "copied.db")
    filled.rename(moved)
    for file in (moved, tmp_path / "copied.db"):
        with LocalVectorBackend(owner, file) as store:
            assert store.check()
            store.remember("more")
            assert store.check()


def _lose_key(home: Path) -> None:
    shutil.rmtree(home / "state" / "integrity")


def test_without_the_key_nothing_is_vouched_for(owner: str, filled: Path, home: Path) -> None:
    with LocalVectorBackend(owner, filled) as store:
        blob = store.export_blob()
    _lose_key(home)
    with LocalVectorBackend(owner, filled) as store:
        for act in (
            lambda: store.recall("red"),
            lambda: store.remember("more"),
            lambda: store.forget("1"),
            lambda: store.forget(tag="fruit"),
        ):
            with pytest.raises(IntegrityKeyMissing) as caught:
                act()
            assert "verify" in str(caught.value.hint)
        assert store.check().state is Integrity.UNKNOWN
        assert not store.check()
        assert store.count() == 5
        assert store.export_blob() == blob


def test_a_file_is_adopted_iff_its_root_is_the_given_one(owner: str, filled: Path, home: Path) -> None:
    with LocalVectorBackend(owner, filled) as store:
        before, root, counter = store.all_records(), canonical.root(store.iter_blob()), store.change_counter()
    _lose_key(home)
    with LocalVectorBackend(owner, filled) as store:
        with pytest.raises(Tampered) as caught:
            store.adopt(canonical.root(b"another"))
        assert caught.value.hint
        assert store.check().state is Integrity.UNKNOWN
        store.adopt(root)
        assert store.check().state is Integrity.KEPT
        assert (store.all_records(), store.change_counter()) == (before, counter)
        assert store.recall("sky", session="walk")[0]["content"] == "the sky is blue"
        assert store.recall("red", tags=["stone"])[0]["tags"] == ["fruit", "stone"]
        assert store.remember("more") == "6"
    with LocalVectorBackend(owner, filled) as store:
        assert store.check()


def test_an_adopted_file_gives_the_same_blob(owner: str, path: Path, home: Path) -> None:
    texts = [f"{'they begin alike, ' * 5}{ending}" for ending in "dacb"]
    blob = canonical.encode(owner, [*map(Record, texts), Record("twice"), Record("twice")])
    with LocalVectorBackend(owner, path) as store:
        store.import_blob(blob)
    _lose_key(home)
    with LocalVectorBackend(owner, path) as store:
        store.adopt(canonical.root(blob))
        assert store.export_blob() == blob
        assert store.count() == 6
        assert store.check()


@pytest.mark.parametrize("name", ["place", "identity"])
def test_what_only_pretends_to_have_the_root_is_not_adopted(
    owner: str, filled: Path, home: Path, name: str
) -> None:
    with LocalVectorBackend(owner, filled) as store:
        root = store.root()
    _edit(filled, ROW_EDITS[name])  # the order of the rows, and so the root, is as it was
    _lose_key(home)
    with LocalVectorBackend(owner, filled) as store:
        with pytest.raises(Tampered):
            store.adopt(root)
        assert store.check().state is Integrity.UNKNOWN


def test_another_process_sees_that_the_store_was_adopted(owner: str, filled: Path, home: Path) -> None:
    with LocalVectorBackend(owner, filled) as one:
        assert one.recall("sky")
        kept = home / "kept"
        (home / "state" / "integrity").rename(kept)
        with LocalVectorBackend(owner, filled) as other:
            other.adopt(other.root())
        assert one.recall("sky")
        assert one.remember("more")
        assert one.check()


def test_replacing_and_clearing_need_no_key(owner: str, filled: Path, home: Path) -> None:
    for start_again in (lambda store: store.import_blob(canonical.encode(owner, [Record("new")])),
                        lambda store: store.clear(), lambda store: store.clear()):  # fmt: skip
        _lose_key(home)
        with LocalVectorBackend(owner, filled) as store:
            counter = store.change_counter()
            start_again(store)
            assert store.check()
            assert store.change_counter() >= counter
            assert store.remember("after") not in {"1", "2", "3", "4", "5"}


@pytest.mark.parametrize("name", ["../../outside", "", "A" * 32, "0" * 31])
def test_the_file_chooses_no_path_for_its_key(owner: str, filled: Path, home: Path, name: str) -> None:
    (home / "outside.key").write_text("00" * 32)
    (home / "outside.key").chmod(0o600)
    _edit(filled, f"UPDATE store SET id = '{name}'")
    with LocalVectorBackend(owner, filled) as store, pytest.raises(IntegrityKeyMissing):
        store.recall("red")


@pytest.mark.parametrize("spoil", [lambda key: key.write_text("no key"), lambda key: key.chmod(0o644)])
def test_a_key_that_is_damaged_or_open_to_others_is_refused(
    owner: str, filled: Path, home: Path, spoil: Callable[[Path], Any]
) -> None:
    (key,) = (home / "state" / "integrity").iterdir()
    spoil(key)
    with LocalVectorBackend(owner, filled) as store, pytest.raises(BackendError, match=key.stem) as caught:
        store.recall("red")
    assert caught.value.hint


def test_a_failed_key_makes_no_file(owner: str, path: Path, home: Path) -> None:
    (home / "state").write_text("in the way")
    with pytest.raises(BackendError):
        LocalVectorBackend(owner, path)
    assert not path.exists() or path.stat().st_size == 0
    (home / "state").unlink()
    with LocalVectorBackend(owner, path) as store:
        assert store.remember("a") == "1"


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
