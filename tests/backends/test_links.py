"""What a memory file was given when it was anchored: kept by it and its copies, and by nothing else."""

from __future__ import annotations

import gzip
import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from mycelium_sdk.backends.integrity import Integrity
from mycelium_sdk.backends.local import LocalVectorBackend, schema
from mycelium_sdk.errors import InputError, Tampered
from tests.backends.programs import killed_ever_later, put_old_file, start

LINK, OTHER = bytes(range(16)), bytes(range(16, 32))

VERSION_2 = Path(__file__).with_name("version_2.db.gz")
"""Made by the code of version 2: five memories with tags and a session, a long one, one forgotten."""
VERSION_2_STORE = "b68ad14a84c850774de21a56622366d1"
VERSION_2_KEY = b"c45920a2ee58b67bf8c63b32267b138922825848d22a29293b41e62c8916f4f0\n"
VERSION_2_ROOT = "96efe024addf730c7b596a156d4fc6a7ebf6fb1b1da130db964db29c3e8d569a"


def test_links_are_per_chain_and_outlive_everything_but_their_removal(owner: str, path: Path) -> None:
    with LocalVectorBackend(owner, path) as store:
        assert store.keeps_links
        assert store.link("one chain") is None
        store.set_link("one chain", LINK)
        store.set_link("another chain", OTHER)
    with LocalVectorBackend(owner, path) as store:
        assert (store.link("one chain"), store.link("another chain")) == (LINK, OTHER)
        store.remember("one")
        blob = store.export_blob()
        store.remember("two")
        assert store.link("one chain") == LINK
        store.import_blob(blob)
        assert store.link("one chain") == LINK
        store.clear()
        assert store.link("one chain") == LINK
        store.remember("three")
        store.forget("3", secure=True)
        store.set_link("one chain", OTHER)
        store.set_link("another chain", None)
        assert (store.link("one chain"), store.link("another chain")) == (OTHER, None)
        assert store.check().state is Integrity.KEPT


def test_a_link_is_no_write(owner: str, path: Path) -> None:
    with LocalVectorBackend(owner, path) as store:
        store.remember("one")
        before = store.stats(), store.root()
        store.set_link("chain", LINK)
        assert (store.stats(), store.root()) == before


def test_a_link_of_another_length_is_refused(owner: str, path: Path) -> None:
    with LocalVectorBackend(owner, path) as store, pytest.raises(InputError):
        store.set_link("chain", b"short")


def test_a_copy_has_the_link_of_its_time(owner: str, path: Path, tmp_path: Path) -> None:
    with LocalVectorBackend(owner, path) as store:
        store.set_link("chain", LINK)
    copy = tmp_path / "copy.db"
    shutil.copy(path, copy)
    copy.chmod(0o600)
    with LocalVectorBackend(owner, path) as store:
        store.set_link("chain", OTHER)
    with LocalVectorBackend(owner, copy) as store:
        assert store.link("chain") == LINK


@pytest.mark.parametrize(
    "edit",
    [
        "UPDATE store SET links = x''",
        "UPDATE store SET links = (SELECT links FROM newer.store)",
        "UPDATE store SET (links, mac) = (SELECT links, mac FROM newer.store)",
        "UPDATE store SET links = NULL",
        "UPDATE store SET links = 'text'",
        # The same bytes under the seal, divided elsewhere.
        "UPDATE store SET total = CAST(total || links AS BLOB), links = x''",
        "UPDATE store SET links = CAST(substr(total, 32) || links AS BLOB), total = substr(total, 1, 31)",
    ],
)
def test_a_link_cannot_be_carried_over_to_another_copy(
    owner: str, path: Path, tmp_path: Path, edit: str
) -> None:
    with LocalVectorBackend(owner, path) as store:
        store.remember("one")
        store.set_link("chain", LINK)
    newer = tmp_path / "newer.db"
    shutil.copy(path, newer)
    newer.chmod(0o600)
    with LocalVectorBackend(owner, newer) as store:
        store.remember("two")
        store.set_link("chain", OTHER)
    with closing(sqlite3.connect(path, isolation_level=None)) as editor:
        editor.execute("ATTACH ? AS newer", (str(newer),))
        try:
            editor.execute(edit)
        except sqlite3.IntegrityError:
            editor.execute("UPDATE store SET links = 7")
    with LocalVectorBackend(owner, path) as store:
        assert store.link("chain") is None
        assert store.check().state is Integrity.BROKEN
        store.set_link("chain", OTHER)
        assert store.link("chain") is None
        with pytest.raises(Tampered):
            store.remember("three")
        store.clear()
        assert store.link("chain") is None
        store.set_link("chain", OTHER)
        assert store.link("chain") == OTHER


def test_without_its_key_a_store_keeps_none(owner: str, path: Path, home: Path) -> None:
    with LocalVectorBackend(owner, path) as store:
        store.set_link("chain", LINK)
    for key in (home / "state" / "integrity").iterdir():
        key.unlink()
    with LocalVectorBackend(owner, path) as store:
        store.set_link("chain", OTHER)
        assert store.link("chain") is None
        store.clear()
        assert store.link("chain") is None
        store.remember("one")
        store.set_link("chain", OTHER)
        assert store.link("chain") == OTHER


def test_processes_that_write_lose_no_link(owner: str, path: Path) -> None:
    with LocalVectorBackend(owner, path) as store:
        store.set_link("chain", LINK)
        script = """
            with LocalVectorBackend(owner, path) as backend:
                for number in range(30):
                    backend.remember(f"{sys.argv[3]} {number}")
        """
        writers = [start(owner, path, script, name) for name in ("a", "b")]
        for _ in range(15):
            store.set_link("chain", os.urandom(16))
        store.set_link("chain", OTHER)
        for writer in writers:
            writer.communicate()
            assert writer.returncode == 0
        assert store.link("chain") == OTHER
        assert store.count() == 60
        assert store.check().state is Integrity.KEPT


@pytest.fixture
def version_2(path: Path, home: Path) -> Path:
    path.write_bytes(gzip.decompress(VERSION_2.read_bytes()))
    path.chmod(0o600)
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (2,)
    for folder in (home / "state", home / "state" / "integrity"):
        folder.mkdir(mode=0o700)
    key = home / "state" / "integrity" / f"{VERSION_2_STORE}.key"
    key.write_bytes(VERSION_2_KEY)
    key.chmod(0o600)
    return key


def test_a_file_without_links_becomes_one_with_them(
    owner: str, path: Path, version_2: Path, tmp_path: Path
) -> None:
    with LocalVectorBackend(owner, path) as store:
        assert store.check().state is Integrity.KEPT
        assert (store.count(), store.change_counter()) == (5, 7)
        assert store.root().hex() == VERSION_2_ROOT
        assert {hit["content"] for hit in store.recall("note 4", k=1)} == {"note 4"}
        assert store.link("chain") is None
        store.set_link("chain", LINK)
        assert store.remember("new") == "7"
        assert store.link("chain") == LINK
    LocalVectorBackend(owner, tmp_path / "new.db").close()
    tables = []
    for file in (path, tmp_path / "new.db"):
        with closing(sqlite3.connect(file)) as connection:
            assert connection.execute("PRAGMA user_version").fetchone() == (schema.VERSION,)
            assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
            tables.append(sorted(connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_master")))
    assert tables[0] == tables[1]


def test_an_old_file_whose_key_is_lost_is_upgraded_all_the_same(
    owner: str, path: Path, version_2: Path
) -> None:
    version_2.unlink()
    with LocalVectorBackend(owner, path) as store:
        assert store.check().state is Integrity.UNKNOWN
        store.adopt(bytes.fromhex(VERSION_2_ROOT))
        assert store.check().state is Integrity.KEPT


def test_an_upgrade_from_version_2_killed_at_any_point_is_done_again(
    owner: str, path: Path, version_2: Path
) -> None:
    before = path.read_bytes()
    script = "LocalVectorBackend(owner, path).close()"
    for _ in killed_ever_later(
        owner, path, script, prepare=lambda: put_old_file(path, before), more_than=0, factor=1
    ):
        with LocalVectorBackend(owner, path) as store:
            assert store.check().state is Integrity.KEPT
            assert store.root().hex() == VERSION_2_ROOT
