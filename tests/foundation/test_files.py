"""Private files: modes, atomic writes, and what is said when the system refuses."""

from __future__ import annotations

import contextlib
import errno
import os
import sqlite3
import stat
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from mycelium_sdk import files
from mycelium_sdk.errors import BackendError, BlobError, MyceliumError, WalletError, WalletPermissions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def _names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture(params=[0o000, 0o022, 0o077, 0o777], ids=oct, autouse=True)
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    """Every test here runs under several umasks: none of them may decide who can read a private file."""
    before = os.umask(request.param)
    try:
        yield request.param
    finally:
        os.umask(before)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder that a strict umask does not make unusable."""
    path = tmp_path / "a folder"
    path.mkdir()
    path.chmod(0o755)
    return path


@pytest.mark.parametrize("write", [files.create_private, files.replace_private])
def test_files_are_private_and_complete(folder: Path, write: Callable[[Path, bytes], None]) -> None:
    path = folder / "secret"
    write(path, b"one")
    assert (path.read_bytes(), _mode(path), path.stat().st_nlink) == (b"one", 0o600, 1)
    assert _names(folder) == ["secret"]


def test_data_may_come_in_pieces(folder: Path) -> None:
    files.replace_private(folder / "blob", (bytes([number]) * 1000 for number in range(100)))
    assert len((folder / "blob").read_bytes()) == 100_000


def test_creating_never_overwrites(folder: Path) -> None:
    path = folder / "secret"
    files.create_private(path, b"one")
    with pytest.raises(WalletError, match="exists already") as caught:
        files.create_private(path, b"two", kind=WalletError)
    assert isinstance(caught.value.__cause__, FileExistsError)
    assert path.read_bytes() == b"one"
    assert _names(folder) == ["secret"]


def test_creating_does_not_follow_a_link(folder: Path) -> None:
    path = folder / "secret"
    path.symlink_to(folder / "elsewhere")
    with pytest.raises(BackendError, match="exists already"):
        files.create_private(path, b"one")
    assert not (folder / "elsewhere").exists()


def test_replacing_replaces_a_link_and_not_its_target(folder: Path) -> None:
    target = folder / "target"
    target.write_bytes(b"untouched")
    path = folder / "secret"
    path.symlink_to(target)
    files.replace_private(path, b"one")
    assert (path.is_symlink(), path.read_bytes(), target.read_bytes()) == (False, b"one", b"untouched")


def test_of_two_who_create_one_wins(folder: Path) -> None:
    barrier = threading.Barrier(8)
    won: list[int] = []

    def create(number: int) -> None:
        barrier.wait()
        with contextlib.suppress(BackendError):
            files.create_private(folder / "secret", b"%d" % number * 1000)
            won.append(number)

    threads = [threading.Thread(target=create, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == 1
    assert (folder / "secret").read_bytes() == b"%d" % won[0] * 1000
    assert _names(folder) == ["secret"]


def test_creating_works_where_there_are_no_hard_links(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(errno.EPERM, "no links here")

    monkeypatch.setattr(os, "link", refuse)
    files.create_private(folder / "secret", b"one")
    assert ((folder / "secret").read_bytes(), _mode(folder / "secret")) == (b"one", 0o600)
    with pytest.raises(BackendError, match="exists already"):
        files.create_private(folder / "secret", b"two")
    assert (folder / "secret").read_bytes() == b"one"


@pytest.mark.parametrize("write", [files.create_private, files.replace_private])
def test_a_full_disk_loses_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch, write: Callable[[Path, bytes], None]
) -> None:
    path = folder / ("old" if write is files.replace_private else "new")
    files.create_private(folder / "old", b"one")

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(BackendError, match="the disk is full") as caught:
        write(path, b"two")
    assert caught.value.hint
    assert "free some space" in caught.value.hint
    assert (_names(folder), (folder / "old").read_bytes()) == (["old"], b"one")


def test_an_interrupted_write_leaves_the_old_file(folder: Path) -> None:
    path = folder / "blob"
    files.create_private(path, b"old")

    def pieces() -> Iterator[bytes]:
        yield b"new"
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        files.replace_private(path, pieces())
    assert (_names(folder), path.read_bytes()) == (["blob"], b"old")


def test_file_and_folder_are_synced(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[str] = []
    fsync = os.fsync

    def watch(descriptor: int) -> None:
        synced.append(str(Path(f"/proc/self/fd/{descriptor}").readlink()))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", watch)
    files.replace_private(folder / "blob", b"one")
    assert synced[0].endswith(".tmp")
    assert synced[1:] == [str(folder)]


def test_a_folder_that_cannot_be_synced_is_no_error(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(number: int) -> Callable[[int], None]:
        def fsync(_: int) -> None:
            raise OSError(number, "no")

        return fsync

    monkeypatch.setattr(os, "fsync", refuse(errno.EINVAL))
    files.sync_folder(folder)
    monkeypatch.setattr(os, "fsync", refuse(errno.EIO))
    with pytest.raises(OSError, match="no"):
        files.sync_folder(folder)


@pytest.mark.parametrize(
    ("number", "says"),
    [
        (errno.ENOSPC, "the disk is full"),
        (errno.EDQUOT, "quota"),
        (errno.EROFS, "read-only"),
        (errno.EACCES, "permission denied"),
        (errno.EIO, os.strerror(errno.EIO)),
        (None, "an unknown error"),
    ],
)
def test_the_systems_errors_are_explained(folder: Path, number: int | None, says: str) -> None:
    cause = OSError("?") if number is None else OSError(number, "?")
    error = files.file_error(cause, folder / "x", "write", BlobError)
    assert isinstance(error, BlobError)
    assert str(error).startswith(f"cannot write {folder / 'x'}: ")
    assert says in str(error)
    with pytest.raises(BlobError) as caught, files.file_errors(folder / "x", "write", BlobError):
        raise cause
    assert (str(caught.value), caught.value.__cause__) == (str(error), cause)


@pytest.mark.parametrize("write", [files.create_private, files.replace_private])
def test_a_missing_folder_is_named_with_its_fix(folder: Path, write: Callable[[Path, bytes], None]) -> None:
    with pytest.raises(BackendError, match="its folder does not exist") as caught:
        write(folder / "no such" / "file", b"")
    assert caught.value.hint == f"make it: `mkdir -p '{folder / 'no such'}'`"


def test_folders_are_made_private(folder: Path) -> None:
    made = files.ensure_private_folder(folder / "a" / "b")
    assert made == folder / "a" / "b"
    assert {_mode(folder / "a"), _mode(made)} == {0o700}
    assert files.ensure_private_folder(made) == made


@pytest.mark.parametrize("mode", [0o755, 0o750, 0o701, 0o770, 0o1777])
def test_a_folder_that_others_may_use_is_refused_with_the_fix(folder: Path, mode: int) -> None:
    folder.chmod(mode)
    with pytest.raises(BackendError, match="by others") as caught:
        files.ensure_private_folder(folder)
    assert caught.value.hint == f"run `chmod 700 '{folder}'`"
    assert _mode(folder) == mode
    folder.chmod(0o700)
    files.ensure_private_folder(folder)


def test_a_file_is_no_folder(folder: Path) -> None:
    (folder / "file").write_bytes(b"")
    with pytest.raises(BackendError, match="not a folder"):
        files.ensure_private_folder(folder / "file")
    with pytest.raises(BackendError, match="a file where a folder should be"):
        files.ensure_private_folder(folder / "file" / "below")


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o620, 0o602, 0o601])
def test_a_file_that_others_may_use_is_refused_with_the_fix(folder: Path, mode: int) -> None:
    path = folder / "secret"
    files.create_private(path, b"one")
    path.chmod(mode)
    for check in (
        lambda: files.require_private(path),
        lambda: files.read_private(path, max_bytes=10),
        lambda: files.open_private_sqlite(path),
    ):
        with pytest.raises(BackendError, match=f"by others than its owner .mode {mode:o}") as caught:
            check()
        assert caught.value.hint == f"run `chmod 600 '{path}'`"
    with pytest.raises(WalletPermissions):
        files.read_private(path, max_bytes=10, kind=WalletError, exposed=WalletPermissions)


@pytest.mark.parametrize("mode", [0o600, 0o400])
def test_a_private_file_is_read(folder: Path, mode: int) -> None:
    path = folder / "secret"
    files.create_private(path, b"one")
    path.chmod(mode)
    files.require_private(path)
    assert files.read_private(path, max_bytes=3) == b"one"
    with pytest.raises(BackendError, match="larger than 2 bytes"):
        files.read_private(path, max_bytes=2)


def test_what_is_no_regular_file_is_refused_without_waiting(folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    for path in (folder / "pipe", folder):
        with pytest.raises(BackendError, match="not a regular file"):
            files.read_private(path, max_bytes=1)
        with pytest.raises(BackendError, match="not a regular file"):
            files.require_private(path)
    for check in (files.require_private, lambda path: files.read_private(path, max_bytes=1)):
        with pytest.raises(BackendError, match="it does not exist"):
            check(folder / "missing")


def test_a_database_is_private_with_everything_beside_it(folder: Path) -> None:
    path = folder / "a?b#c%20 d\u00e9.db"
    connection = files.open_private_sqlite(path)
    with contextlib.closing(connection):
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE t(x)")
        beside = {entry.name.removeprefix(path.name): _mode(entry) for entry in folder.iterdir()}
        assert beside == {"": 0o600, "-wal": 0o600, "-shm": 0o600}
        with contextlib.closing(files.open_private_sqlite(path)) as second:
            assert second.execute("SELECT count(*) FROM t").fetchone() == (0,)


def test_a_database_connection_serves_any_thread_without_hidden_transactions(folder: Path) -> None:
    with contextlib.closing(files.open_private_sqlite(folder / "x.db", timeout=1.5)) as connection:
        thread = threading.Thread(target=lambda: connection.execute("CREATE TABLE t(x)"))
        thread.start()
        thread.join()
        connection.execute("INSERT INTO t VALUES (1)")
        assert not connection.in_transaction
        assert connection.execute("PRAGMA busy_timeout").fetchone() == (1500,)


@pytest.mark.parametrize("suffix", ["-wal", "-shm", "-journal"])
def test_a_database_with_an_exposed_companion_is_refused(folder: Path, suffix: str) -> None:
    path = folder / "x.db"
    files.open_private_sqlite(path).close()
    companion = folder / f"x.db{suffix}"
    companion.write_bytes(b"")
    companion.chmod(0o644)
    with pytest.raises(BackendError, match=f"x.db{suffix} can be used by others"):
        files.open_private_sqlite(path)


def test_what_lies_beside_a_database_that_was_read_only_is_writable_again(folder: Path) -> None:
    """SQLite gives its files the mode that the database has when they are made."""
    path = folder / "state.db"
    with contextlib.closing(files.open_private_sqlite(path)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE kept(x)")
        for suffix in ("-wal", "-shm"):
            path.with_name(path.name + suffix).chmod(0o400)
        with contextlib.closing(files.open_private_sqlite(path)):
            assert {_mode(entry) for entry in folder.iterdir()} == {0o600}


def test_a_database_needs_an_existing_folder_and_a_file(folder: Path) -> None:
    with pytest.raises(BackendError, match="its folder does not exist"):
        files.open_private_sqlite(folder / "missing" / "x.db")
    with pytest.raises(BackendError, match="not a regular file"):
        files.open_private_sqlite(folder)
    (folder / "dangling.db").symlink_to(folder / "missing" / "x.db")
    with pytest.raises(BackendError, match="does not exist"):
        files.open_private_sqlite(folder / "dangling.db")
    (folder / "circle.db").symlink_to(folder / "circle.db")
    with pytest.raises(BackendError, match="its symbolic links lead in a circle"):
        files.open_private_sqlite(folder / "circle.db")


def test_sqlite_refusing_to_open_is_explained(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise sqlite3.OperationalError("unable to open database file")

    monkeypatch.setattr(sqlite3, "connect", refuse)
    with pytest.raises(MyceliumError, match="unable to open database file") as caught:
        files.open_private_sqlite(folder / "x.db")
    assert isinstance(caught.value.__cause__, sqlite3.OperationalError)
