"""Private SQLite files: versions that change meanwhile, and files that are moved while they are open."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import pytest

from mycelium_sdk.errors import BackendError, NewerFile
from mycelium_sdk.private_database import PrivateDatabase

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator
    from pathlib import Path

_MIGRATIONS = ("CREATE TABLE a(x)", "CREATE TABLE b(x)", "CREATE TABLE c(x)")


def _opened(path: Path, version: int = 1) -> PrivateDatabase:
    return PrivateDatabase(path, application_id=7, migrations=_MIGRATIONS[:version])


def _put(database: PrivateDatabase, value: str) -> None:
    with database.writing() as connection:
        connection.execute("INSERT INTO a VALUES (?)", (value,))


def _held(database: PrivateDatabase) -> list[str]:
    with database.reading() as connection:
        return [value for (value,) in connection.execute("SELECT x FROM a ORDER BY rowid")]


def _values(path: Path, version: int = 1) -> list[str]:
    with contextlib.closing(_opened(path, version)) as database:
        return _held(database)


def _move(path: Path, name: str) -> Path:
    for suffix in ("-wal", "-shm", ""):
        part = path.with_name(path.name + suffix)
        if part.exists():
            part.rename(path.with_name(name + suffix))
    return path.with_name(name)


def _upgraded_meanwhile(monkeypatch: pytest.MonkeyPatch, path: Path, version: int) -> None:
    """Have a release with `version` open the file right before the next transaction on it begins."""
    begin = PrivateDatabase._transaction

    @contextlib.contextmanager
    def late(self: PrivateDatabase, connection: sqlite3.Connection) -> Iterator[None]:
        monkeypatch.setattr(PrivateDatabase, "_transaction", begin)
        _opened(path, version).close()
        with begin(self, connection):
            yield

    monkeypatch.setattr(PrivateDatabase, "_transaction", late)


def test_a_newer_release_that_upgrades_meanwhile_is_not_undone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "state.db"
    _opened(path).close()
    _upgraded_meanwhile(monkeypatch, path, 3)
    with pytest.raises(NewerFile, match="newer release"):
        _opened(path, 2)
    with contextlib.closing(_opened(path, 3)) as newer, newer.reading() as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (3,)


def test_an_equal_release_that_upgrades_meanwhile_does_it_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "state.db"
    _opened(path).close()
    _upgraded_meanwhile(monkeypatch, path, 2)
    _opened(path, 2).close()
    assert _values(path, 2) == []


def test_a_replaced_file_is_said_once_and_used(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    with contextlib.closing(_opened(path)) as database:
        _put(database, "before")
        away = _move(path, "away.db")
        with contextlib.closing(_opened(path)) as other:
            _put(other, "of another")
            with pytest.raises(BackendError, match="replaced by another file"):
                _put(database, "refused")
            _put(database, "after")
            assert _held(database) == ["of another", "after"]
    assert _values(path) == ["of another", "after"]
    assert _values(away) == ["before"]


def test_without_its_file_nothing_is_done_or_made(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    with contextlib.closing(_opened(path)) as database:
        _put(database, "before")
        away = path.rename(tmp_path / "away.db")  # without its log
        for _ in range(2):
            with pytest.raises(BackendError, match="moved away or removed"):
                _held(database)
            with pytest.raises(BackendError, match="moved away or removed"):
                _put(database, "refused")
        assert not path.exists()
        assert _values(away) == ["before"]
        path.touch(mode=0o600)
        with pytest.raises(BackendError, match="moved away or removed"):
            _put(database, "refused")
        away.replace(path)
        _put(database, "put back")
    assert _values(path) == ["before", "put back"]


def test_a_file_that_is_moved_during_a_write_is_not_written(tmp_path: Path) -> None:
    path = tmp_path / "state.db"

    def write() -> None:
        with database.writing() as connection:
            connection.execute("INSERT INTO a VALUES ('refused')")
            _move(path, "away.db")

    with contextlib.closing(_opened(path)) as database:
        with pytest.raises(BackendError, match="moved away or removed"):
            write()
        assert _values(tmp_path / "away.db") == []
