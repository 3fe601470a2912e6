"""The store in a SQLite file: everything that any store must do, and what is particular to a file."""

from __future__ import annotations

import os
import sqlite3
import stat
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import text

from mycelium_indexer.store import open_store, tables
from mycelium_indexer.store.database import open_database
from mycelium_sdk.errors import BackendError, ForeignFile, InputError, NewerFile, StoreLocked
from mycelium_sdk.testing.event_server import forged_history
from tests.indexer.store.conformance import StoreConformance
from tests.indexer.store.feeding import ALICE, Feed

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from sqlalchemy import Connection

    from mycelium_indexer.store.base import IndexStore


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "index.db"


class TestSqlite(StoreConformance):
    @pytest.fixture
    def opened(self, path: Path) -> Callable[[], IndexStore]:
        return lambda: open_store(str(path))


def test_the_file_is_private(path: Path) -> None:
    before = os.umask(0)
    try:
        feed = Feed(open_store(f"sqlite:///{path}"))
        feed.page(5, *forged_history(ALICE, 1))
    finally:
        os.umask(before)
    files = list(path.parent.iterdir())
    assert {file.name for file in files} == {"index.db", "index.db-wal", "index.db-shm"}
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
    feed.store.close()


def test_a_file_that_others_may_read_is_refused(path: Path) -> None:
    path.touch(mode=0o600)
    path.chmod(0o644)
    with pytest.raises(BackendError, match="can be used by others"):
        open_store(str(path))


def test_another_programs_file_is_refused_and_not_touched(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE theirs(x)")
    connection.commit()
    connection.close()
    path.chmod(0o600)
    before = path.read_bytes()
    with pytest.raises(ForeignFile, match="another program"):
        open_store(str(path))
    assert path.read_bytes() == before


def test_what_is_no_database(path: Path) -> None:
    path.write_bytes(b"nothing of the kind" * 100)
    path.chmod(0o600)
    with pytest.raises(BackendError, match="damaged") as caught:
        open_store(str(path))
    assert "indexer run" in (caught.value.hint or "")
    with pytest.raises(BackendError, match="folder does not exist"):
        open_store(str(path.parent / "missing" / "index.db"))


@pytest.mark.parametrize("url", ["", "sqlite:///", "sqlite:///:memory:", "mysql://host/base", "https://a/b"])
def test_addresses_that_are_none(url: str) -> None:
    with pytest.raises(InputError):
        open_store(url)


def test_a_newer_schema_is_refused(path: Path) -> None:
    open_store(str(path)).close()
    with sqlite3.connect(path) as connection:
        connection.execute("INSERT INTO schema_versions VALUES (99, 0)")
    connection.close()
    with pytest.raises(NewerFile, match="newer release"):
        open_store(str(path))


def test_migrations_are_recorded_with_what_they_change(path: Path) -> None:
    database = open_database(str(path))

    def second(connection: Connection) -> None:
        connection.execute(text("CREATE TABLE more(x INTEGER)"))

    def failing(connection: Connection) -> None:
        connection.execute(text("CREATE TABLE never(x INTEGER)"))
        raise StoreLocked("the power is out")

    with pytest.raises(StoreLocked):
        database.prepare(migrations=[*tables.MIGRATIONS, second, failing])
    assert _schema(path) == ({1}, False), "all of them or none"
    database.prepare(migrations=[*tables.MIGRATIONS, second], now=lambda: 7.0)
    database.prepare(migrations=[*tables.MIGRATIONS, second])
    assert _schema(path) == ({1, 2}, True)
    with pytest.raises(NewerFile):
        database.prepare()
    database.close()


def _schema(path: Path) -> tuple[set[int], bool]:
    connection = sqlite3.connect(path)
    versions = {row[0] for row in connection.execute("SELECT version FROM schema_versions")}
    names = {row[0] for row in connection.execute("SELECT name FROM sqlite_master")}
    connection.close()
    assert "never" not in names
    return versions, "more" in names


def test_to_be_read_only(path: Path) -> None:
    with pytest.raises(BackendError, match="has not the indexer's tables"):
        open_store(str(path), read_only=True)
    Feed(open_store(str(path))).page(5, *forged_history(ALICE, 1))
    store = open_store(str(path), read_only=True)
    (source,) = store.sources()
    assert store.latest(source, ALICE) is not None
    store.close()


def test_a_page_that_fails_leaves_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    feed = Feed(open_store(str(path)))
    feed.page(5, *forged_history(ALICE, 1))

    def fail(*_arguments: Any) -> None:
        raise StoreLocked("in between")

    monkeypatch.setattr("mycelium_indexer.store.sql._update", fail)
    with pytest.raises(StoreLocked, match="in between"):
        feed.page(6, *forged_history(ALICE, 2)[1:])
    monkeypatch.undo()
    assert feed.versions() == [1]
    assert feed.page(6, *forged_history(ALICE, 2)[1:])
    feed.store.close()
