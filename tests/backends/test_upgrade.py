"""A file of version 1 becomes one of today, whole, whoever opens it and whenever that is interrupted."""

from __future__ import annotations

import gzip
import hashlib
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from mycelium_sdk.backends.integrity import Integrity
from mycelium_sdk.backends.local import LocalVectorBackend, schema, upgrade
from mycelium_sdk.errors import ForeignFile, NewerFile, Tampered
from tests.backends.programs import killed_ever_later, put_old_file, start

VERSION_1 = Path(__file__).with_name("version_1.db.gz")
"""Made by the code of version 1: an imported blob with every oddity, memories with tags and sessions, some
forgotten, an index that lacks the last few, and vectors of an embedder."""


class Old(NamedTuple):
    """What a file of version 1 says, read without the code under test."""

    rows: list[tuple[Any, ...]]
    changes: int
    root: bytes


@pytest.fixture
def old(owner: str, path: Path) -> Old:
    path.write_bytes(gzip.decompress(VERSION_1.read_bytes()))
    path.chmod(0o600)
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (1,)
        rows = connection.execute(
            "SELECT id, fragment, copies, sequence, session, time FROM memories ORDER BY order_key"
        ).fetchall()
        changes = connection.execute("SELECT changes FROM store").fetchone()[0]
    records = ",".join(fragment for _, fragment, copies, *_ in rows for _ in range(copies))
    blob = f'{{"owner":"{owner}","records":[{records}]}}'
    return Old(rows, changes, hashlib.sha256(blob.encode("ascii")).digest())


def _check_is_as(store: LocalVectorBackend, old: Old) -> None:
    stored = [
        (int(one.id), one.fragment, one.copies, one.sequence, one.session, one.time)
        for one in store.iter_records()
    ]
    assert stored == old.rows
    assert store.change_counter() == old.changes
    assert hashlib.sha256(store.export_blob()).digest() == old.root
    assert store.check().state is Integrity.KEPT


def test_everything_that_is_true_stays(owner: str, path: Path, old: Old) -> None:
    with LocalVectorBackend(owner, path) as store:
        _check_is_as(store, old)
        assert sum("upgrade" in hit["content"] for hit in store.recall("upgrade", k=100)) == 8
        assert {hit["session"] for hit in store.recall("upgrade", k=100, session="s1")} == {"s1"}
        assert len(store.recall("upgrade", k=100, tags=["t2", "all"])) == 4
        assert store.recall("言葉", k=1)[0]["tags"] == ["言葉"]
        assert store.recall("indexed", k=1)[0]["content"] == "not indexed yet"
        assert store.remember("not indexed yet") == str(max(row[0] for row in old.rows))
        assert int(store.remember("new")) > max(row[0] for row in old.rows)
        assert store.forget(tag="all") == 8
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (schema.VERSION,)
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def test_an_upgraded_file_has_the_tables_of_a_new_one(
    owner: str, path: Path, old: Old, tmp_path: Path
) -> None:
    LocalVectorBackend(owner, path).close()
    LocalVectorBackend(owner, tmp_path / "new.db").close()
    tables = []
    for file in (path, tmp_path / "new.db"):
        with closing(sqlite3.connect(file)) as connection:
            tables.append(sorted(connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_master")))
    assert tables[0] == tables[1]


def test_several_processes_may_upgrade_at_once(owner: str, path: Path, old: Old) -> None:
    script = """
        with LocalVectorBackend(owner, path) as backend:
            assert backend.count() == 23, backend.count()
            assert backend.check()
    """
    processes = [start(owner, path, script) for _ in range(4)]
    for process in processes:
        process.communicate()
        assert process.returncode == 0
    with LocalVectorBackend(owner, path) as store:
        _check_is_as(store, old)


def test_an_upgrade_killed_at_any_point_is_done_again(owner: str, path: Path, old: Old) -> None:
    before = path.read_bytes()
    script = "LocalVectorBackend(owner, path).close()"
    for _ in killed_ever_later(owner, path, script, prepare=lambda: put_old_file(path, before), more_than=6):
        with LocalVectorBackend(owner, path) as store:
            _check_is_as(store, old)


def test_another_owners_old_file_is_not_touched(other_owner: str, path: Path, old: Old) -> None:
    before = path.read_bytes()
    with pytest.raises(ForeignFile):
        LocalVectorBackend(other_owner, path)
    assert path.read_bytes() == before


def test_an_old_file_with_a_row_that_is_no_record_is_not_touched(owner: str, path: Path, old: Old) -> None:
    with closing(sqlite3.connect(path)) as editor:
        editor.execute("UPDATE memories SET fragment = 'none' WHERE id = 20 OR id = 22")
        editor.commit()
    before = path.read_bytes()
    with pytest.raises(Tampered, match="memory 22"):
        LocalVectorBackend(owner, path)
    assert path.read_bytes() == before


@pytest.mark.usefixtures("old")
def test_a_newer_version_that_upgrades_the_file_meanwhile_is_not_used(
    owner: str, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = upgrade.upgrade

    def late(*arguments: Any) -> None:
        with closing(sqlite3.connect(path, isolation_level=None)) as newer:
            newer.execute(f"PRAGMA user_version = {schema.VERSION + 1}")
        real(*arguments)

    monkeypatch.setattr(upgrade, "upgrade", late)
    with pytest.raises(NewerFile, match="newer version"):
        LocalVectorBackend(owner, path)
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (schema.VERSION + 1,)
