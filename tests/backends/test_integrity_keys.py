"""The key that vouches for a memory file: where it is, and what is done without it."""

# ruff: noqa: S608 - edits are SQL put together

from __future__ import annotations

import shutil
import stat
from typing import TYPE_CHECKING, Any

import pytest

from mycelium_sdk import canonical
from mycelium_sdk.backends.integrity import Integrity
from mycelium_sdk.backends.local import LocalVectorBackend
from mycelium_sdk.errors import BackendError, IntegrityKeyMissing, Tampered
from mycelium_sdk.records import Record
from tests.backends.tampering import ROW_EDITS, edit, fill, recall_all

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


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
        fill(store)
        assert recall_all(store)
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
    edit(filled, ROW_EDITS[name])  # the order of the rows, and so the root, is as it was
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


@pytest.mark.parametrize("clearing", [False, True])
def test_replacing_and_clearing_need_no_key(owner: str, filled: Path, home: Path, *, clearing: bool) -> None:
    for _ in range(2):  # the second time there is nothing left to clear
        _lose_key(home)
        with LocalVectorBackend(owner, filled) as store:
            counter = store.change_counter()
            if clearing:
                store.clear()
            else:
                store.import_blob(canonical.encode(owner, [Record("new")]))
            assert store.check()
            assert store.change_counter() >= counter
            assert store.remember("after") not in {"1", "2", "3", "4", "5"}
            store.forget(tag="none")
            if clearing:
                store.clear()


@pytest.mark.parametrize("name", ["../../outside", "", "A" * 32, "0" * 31])
def test_the_file_chooses_no_path_for_its_key(owner: str, filled: Path, home: Path, name: str) -> None:
    (home / "outside.key").write_text("00" * 32)
    (home / "outside.key").chmod(0o600)
    edit(filled, f"UPDATE store SET id = '{name}'")
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
