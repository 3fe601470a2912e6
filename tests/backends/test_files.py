"""Which files are opened, which are refused untouched, and who may read them."""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
import tempfile
import traceback
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from mycelium_sdk.backends.local import LocalVectorBackend, schema
from mycelium_sdk.errors import BackendError, ForeignFile, InputError, NewerFile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def _state(folder: Path) -> dict[str, tuple[int, bytes]]:
    return {entry.name: (entry.stat().st_mode, entry.read_bytes()) for entry in folder.iterdir()}


def _sqlite(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)
    path.chmod(0o600)


def _text(path: Path) -> None:
    path.write_text("a letter that is not a database, and longer than a header of one hundred bytes " * 3)
    path.chmod(0o600)


@pytest.mark.parametrize(
    "make",
    [
        _text,
        lambda path: _sqlite(path, "CREATE TABLE t(x)"),
        lambda path: _sqlite(path, "PRAGMA journal_mode = WAL", "CREATE TABLE t(x)"),
        lambda path: _sqlite(
            path, "PRAGMA application_id = 7", "PRAGMA user_version = 1", "CREATE TABLE store(x)"
        ),
    ],
    ids=["text", "sqlite", "wal", "numbered"],
)
def test_another_programs_file_is_refused_untouched(
    owner: str, path: Path, make: Callable[[Path], None]
) -> None:
    make(path)
    before = _state(path.parent)
    with pytest.raises(ForeignFile) as caught:
        LocalVectorBackend(owner, path)
    assert caught.value.hint
    assert _state(path.parent) == before


def test_another_owners_file_is_refused_untouched(owner: str, other_owner: str, path: Path) -> None:
    with LocalVectorBackend(owner, path) as backend:
        backend.remember("mine")
    before = _state(path.parent)
    with pytest.raises(ForeignFile, match=owner):
        LocalVectorBackend(other_owner, path)
    assert _state(path.parent) == before
    with LocalVectorBackend(owner, path) as backend:
        assert backend.count() == 1


def test_a_newer_file_is_refused_untouched(owner: str, path: Path) -> None:
    LocalVectorBackend(owner, path).close()
    _sqlite(path, f"PRAGMA user_version = {schema.VERSION + 1}")
    before = _state(path.parent)
    with pytest.raises(NewerFile) as caught:
        LocalVectorBackend(owner, path)
    assert "upgrade" in str(caught.value.hint)
    assert _state(path.parent) == before


def test_a_newer_file_is_refused_even_if_only_the_log_says_so(owner: str, path: Path) -> None:
    LocalVectorBackend(owner, path).close()
    with closing(sqlite3.connect(path, isolation_level=None)) as newer:
        newer.execute(f"PRAGMA user_version = {schema.VERSION + 1}")
        with pytest.raises(NewerFile):
            LocalVectorBackend(owner, path)


def test_an_empty_file_becomes_a_memory(owner: str, path: Path) -> None:
    path.touch(mode=0o600)
    with LocalVectorBackend(owner, path) as backend:
        backend.remember("first")
    with LocalVectorBackend(owner, path) as backend:
        assert backend.count() == 1


def test_a_damaged_file_says_so(owner: str, path: Path) -> None:
    with LocalVectorBackend(owner, path) as backend:
        backend.remember_many(f"memory {number}" for number in range(2000))
    data = bytearray(path.read_bytes())
    data[4096:] = os.urandom(len(data) - 4096)
    path.write_bytes(data)
    with pytest.raises(BackendError, match="damaged") as caught:
        LocalVectorBackend(owner, path).export_blob()
    assert "rehydrate" in str(caught.value.hint)


def test_a_file_whose_own_definition_is_damaged_says_so(owner: str, path: Path) -> None:
    LocalVectorBackend(owner, path).close()
    _sqlite(
        path,
        "PRAGMA writable_schema = ON",
        "UPDATE sqlite_master SET name = CAST(x'd5ff' AS TEXT), sql = 'CREATE TABLE (' WHERE name = 'tags'",
    )
    with pytest.raises(BackendError, match="damaged") as caught:
        LocalVectorBackend(owner, path)
    assert "rehydrate" in str(caught.value.hint)


@pytest.mark.parametrize("mode", [0o644, 0o660, 0o604, 0o610])
def test_a_file_that_others_can_read_is_refused(owner: str, path: Path, mode: int) -> None:
    LocalVectorBackend(owner, path).close()
    path.chmod(mode)
    with pytest.raises(BackendError) as caught:
        LocalVectorBackend(owner, path)
    assert "chmod 600" in str(caught.value.hint)
    assert stat.S_IMODE(path.stat().st_mode) == mode


@pytest.fixture
def _no_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.mark.usefixtures("_no_umask")
def test_all_files_are_private_whatever_the_umask(owner: str, path: Path) -> None:
    with LocalVectorBackend(owner, path) as backend:
        backend.remember("private")
        backend.recall("private")
        modes = {entry.name: stat.S_IMODE(entry.stat().st_mode) for entry in path.parent.iterdir()}
    assert modes == {"memory.db": 0o600, "memory.db-wal": 0o600, "memory.db-shm": 0o600}
    assert [entry.name for entry in path.parent.iterdir()] == ["memory.db"]


@pytest.mark.usefixtures("_no_umask")
def test_the_default_path_is_in_the_home_folder(
    owner: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MYCELIUM_HOME", str(tmp_path / "home"))
    with LocalVectorBackend(owner) as backend:
        assert backend.path == tmp_path / "home" / "memory" / f"{owner}.db"
        backend.remember("at home")
    for folder in (tmp_path / "home", tmp_path / "home" / "memory"):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_the_missing_folder_of_an_explicit_path_is_an_error(owner: str, tmp_path: Path) -> None:
    with pytest.raises(BackendError, match="folder does not exist") as caught:
        LocalVectorBackend(owner, tmp_path / "missing" / "memory.db")
    assert "mkdir" in str(caught.value.hint)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_is_not_a_file(owner: str, tmp_path: Path) -> None:
    with pytest.raises(BackendError, match="not a regular file"):
        LocalVectorBackend(owner, tmp_path)


@pytest.mark.parametrize("path", ["", "a\0b", b"bytes"])
def test_what_is_no_path_is_refused(owner: str, path: str) -> None:
    with pytest.raises(InputError):
        LocalVectorBackend(owner, path)


@pytest.mark.parametrize("owner", ["", "G", "SAV76USXIJOBMEQXPANUOQM6F5LIOTLPDIDVRJBFFE2MDJXG24TAPUU7", None])
def test_what_is_no_owner_is_refused(owner: str, tmp_path: Path) -> None:
    with pytest.raises(InputError):
        LocalVectorBackend(owner, tmp_path / "memory.db")
    assert list(tmp_path.iterdir()) == []


def test_a_link_to_a_memory_is_followed(owner: str, path: Path) -> None:
    LocalVectorBackend(owner, path).close()
    link = path.with_name("link.db")
    link.symlink_to(path)
    with LocalVectorBackend(owner, link) as backend:
        backend.remember("through the link")
    with LocalVectorBackend(owner, path) as backend:
        assert backend.count() == 1


def test_nothing_of_the_text_shows_in_repr(store: LocalVectorBackend, owner: str) -> None:
    store.remember("a secret")
    assert owner in repr(store)
    assert "secret" not in repr(store)


def _as_nobody(act: Callable[[Path], None], folder: Path) -> None:
    """Run in a child process that is not root, which ignores permissions."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            if os.getuid() == 0:
                os.setgid(65534)
                os.setuid(65534)
            act(folder)
            status = 0
        except BaseException:
            traceback.print_exc()
            raise
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.fixture
def open_folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder that an unprivileged user can reach and own, with a home folder of the same kind."""
    folders = [Path(tempfile.mkdtemp(dir="/tmp")) for _ in range(2)]  # pytest's own are closed to others
    for folder in folders:
        if os.getuid() == 0:
            os.chown(folder, 65534, 65534)
    monkeypatch.setenv("MYCELIUM_HOME", str(folders[1]))
    yield folders[0]
    for folder in folders:
        shutil.rmtree(folder)


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")  # the runner itself has threads
def test_a_folder_that_cannot_be_written(owner: str, open_folder: Path) -> None:
    def act(folder: Path) -> None:
        folder.chmod(0o500)
        with pytest.raises(BackendError, match="permission denied"):
            LocalVectorBackend(owner, folder / "memory.db")
        assert list(folder.iterdir()) == []

    _as_nobody(act, open_folder)


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")  # the runner itself has threads
def test_a_file_that_cannot_be_written_can_be_read(owner: str, open_folder: Path) -> None:
    def act(folder: Path) -> None:
        path = folder / "memory.db"
        with LocalVectorBackend(owner, path) as backend:
            backend.remember_many(f"note {number}" for number in range(500))
        path.chmod(0o400)
        with LocalVectorBackend(owner, path) as backend:
            assert [hit["content"] for hit in backend.recall("note 77", k=1)] == ["note 77"]
            with pytest.raises(BackendError, match="cannot be written") as caught:
                backend.remember("more")
            assert caught.value.hint
            assert backend.count() == 500

    _as_nobody(act, open_folder)


def test_a_full_disk_loses_nothing_and_recall_goes_on(store: LocalVectorBackend) -> None:
    store.remember_many(f"note {number}" for number in range(200))
    with store._connections.exclusive() as connection:
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {pages}")
    before = store.export_blob()
    with pytest.raises(BackendError, match="the disk is full"):
        store.remember("x" * 100_000)
    with pytest.raises(BackendError, match="the disk is full"):
        store.remember_many(f"more {number}" for number in range(2000))
    assert store.export_blob() == before
    assert [hit["content"] for hit in store.recall("note 150", k=1)] == ["note 150"]
