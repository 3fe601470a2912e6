"""Private files and folders: who may read them, and writes that survive a crash.

Whatever holds keys or memories is a file of mode 0600 in a folder of mode 0700. What is found with looser
modes is refused, with the command that mends it, rather than tightened behind the user's back: it may have
been read already. The operating system's errors are turned into this package's in one place, `file_error`.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import stat
import time
from typing import TYPE_CHECKING, BinaryIO

from mycelium_sdk.errors import BackendError, MyceliumError, WalletError

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Iterator
    from pathlib import Path

_ABANDONED_SECONDS = 3600.0
_temporary_name = re.compile(r"\.[0-9a-f]{16}\.tmp")

_NO_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS}

_PROBLEMS: dict[int, tuple[str, str]] = {
    errno.ENOSPC: ("the disk is full", "free some space, then try again; nothing was lost"),
    errno.EDQUOT: ("the disk quota is used up", "free some space, then try again; nothing was lost"),
    errno.EROFS: ("the file system is read-only", "choose a path that can be written"),
    errno.EACCES: ("permission denied", "check who owns the file and its folders"),
    errno.EPERM: ("the operation is not permitted", "check who owns the file and its folders"),
    errno.ENOENT: ("it does not exist", "check the path"),
    errno.ENOTDIR: ("a part of the path is a file where a folder should be", "check the path"),
    errno.EISDIR: ("it is a folder", "give the path of a file"),
    errno.EEXIST: ("it exists already", "choose another path"),
    errno.ELOOP: ("its symbolic links lead in a circle", "give the path of the file itself"),
    errno.ENAMETOOLONG: ("the name is too long", "choose a shorter path"),
    errno.EMFILE: ("this process has too many files open", "raise the limit, `ulimit -n`"),
}

_CHOSEN_WITH: dict[type[MyceliumError], str] = {BackendError: "MYCELIUM_HOME", WalletError: "--wallet"}
"""What says where files lie whose errors are of exactly this kind; others were named by a person."""


def file_error(
    cause: OSError, path: Path, doing: str, kind: type[MyceliumError] = BackendError
) -> MyceliumError:
    """The error of `kind` that explains what the operating system said when `doing`, e.g. "write", a file."""
    number = cause.errno or 0
    problem, hint = _PROBLEMS.get(number, (os.strerror(number) if number else "an unknown error", None))
    if number == errno.EROFS and kind in _CHOSEN_WITH:
        hint = f"{hint}, e.g. with {_CHOSEN_WITH[kind]}"
    if number == errno.ENOENT and not path.parent.is_dir():
        problem, hint = "its folder does not exist", f"make it: `mkdir -p {_quoted(path.parent)}`"
    return kind(f"cannot {doing} {path}: {problem}", hint=hint)


@contextlib.contextmanager
def file_errors(path: Path, doing: str, kind: type[MyceliumError] = BackendError) -> Iterator[None]:
    """Turn every `OSError` of the block into the error of `kind` that explains it."""
    try:
        yield
    except OSError as cause:
        raise file_error(cause, path, doing, kind) from cause


def _real(path: Path) -> Path:
    """The file that a path leads to, which must be there. Raises `OSError`."""
    try:
        return path.resolve(strict=True)
    except RuntimeError:  # what Python before 3.13 makes of links in a circle
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path)) from None


def ensure_private_folder(path: Path, *, kind: type[MyceliumError] = BackendError) -> Path:
    """Make the folder, and missing ones above it, with mode 0700. One that others may use is refused."""
    with file_errors(path, "make the folder", kind):
        missing = []
        folder = path
        while not folder.exists():
            missing.append(folder)
            folder = folder.parent
        for folder in reversed(missing):
            with contextlib.suppress(FileExistsError):  # another process made it first
                folder.mkdir(mode=0o700)
                folder.chmod(0o700)  # whatever the umask is
        mode = path.stat().st_mode
    if not stat.S_ISDIR(mode):
        raise kind(f"{path} is not a folder", hint="move the file away, or choose another path")
    _refuse_others(path, mode, "700", kind)
    return path


def require_private(path: Path, *, kind: type[MyceliumError] = BackendError) -> None:
    """Refuse a file that is not a regular one, or that others than its owner may use."""
    with file_errors(path, "check", kind):
        mode = path.stat().st_mode
    _require_regular(path, mode, kind)
    _refuse_others(path, mode, "600", kind)


def read_private(
    path: Path,
    *,
    max_bytes: int,
    kind: type[MyceliumError] = BackendError,
    exposed: type[MyceliumError] | None = None,
) -> bytes:
    """Read a small private file whole, checking the mode of the very file that is read.

    `exposed` is raised if others than the owner may use the file (default: `kind`).
    """
    with _open_regular(path, kind) as file, file_errors(path, "read", kind):
        status = os.fstat(file.fileno())
        _refuse_others(path, status.st_mode, "600", exposed or kind)
        data = file.read(min(status.st_size, max_bytes) + 1)  # so much memory is taken, whatever there is
    if len(data) > max_bytes:
        raise kind(f"{path} is larger than {max_bytes} bytes, so it is not what it should be")
    return data


def create_private(
    path: Path, data: bytes | Iterable[bytes], *, kind: type[MyceliumError] = BackendError
) -> None:
    """Write a new file of mode 0600 that is complete and on the disk once it has its name.

    Never replaces a file or a symbolic link: `kind` is raised, from `FileExistsError`, when the name is
    taken.
    """
    with file_errors(path, "create", kind), _temporary(path.parent, data) as temporary:
        try:
            path.hardlink_to(temporary)  # unlike a rename, fails if the name exists
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            _rename_new(temporary, path)
        sync_folder(path.parent)


def replace_private(
    path: Path, data: bytes | Iterable[bytes], *, kind: type[MyceliumError] = BackendError
) -> None:
    """Give a file new contents, mode 0600, atomically: a reader or a crash finds the old or the new ones."""
    with file_errors(path, "write", kind), _temporary(path.parent, data) as temporary:
        temporary.replace(path)
        sync_folder(path.parent)


def is_there(path: Path, *, kind: type[MyceliumError] = BackendError) -> bool:
    """Whether there is something at the path. Raises `kind` where that cannot be told, which is no "no"."""
    with file_errors(path, "read", kind):
        try:
            path.stat()
        except (FileNotFoundError, NotADirectoryError):
            return False
    return True


def sync_folder(folder: Path) -> None:
    """Put the names in a folder on the disk, where the file system can. Raises `OSError`."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno != errno.EINVAL:  # not a notion of this file system
            raise
    finally:
        os.close(descriptor)


def open_private_sqlite(
    path: Path, *, timeout: float = 5.0, kind: type[MyceliumError] = BackendError
) -> sqlite3.Connection:
    """Open a SQLite file, made with mode 0600 if missing; `-wal` and `-shm` take the file's own mode from
    SQLite.

    The folder must exist. The connection is in autocommit mode (`BEGIN` is the caller's) and may be used
    from any thread, one at a time. `timeout` is SQLite's busy timeout in seconds.
    """
    import sqlite3

    with file_errors(path, "open", kind):
        try:
            _write_new(path, [])
        except FileExistsError:
            real = _real(path)
            _require_regular(path, real.stat().st_mode, kind)
            for suffix in ("", "-wal", "-shm", "-journal"):
                file = real.with_name(real.name + suffix)
                with contextlib.suppress(FileNotFoundError):
                    mode = file.stat().st_mode
                    _refuse_others(file, mode, "600", kind)
                    if suffix and not mode & stat.S_IWUSR and os.access(real, os.W_OK):
                        # SQLite gave it the mode that the file had then, and could not write at all now.
                        file.chmod(0o600)
    try:
        return sqlite3.connect(
            f"{path.absolute().as_uri()}?mode=rw",
            uri=True,
            timeout=timeout,
            isolation_level=None,
            check_same_thread=False,
        )
    except sqlite3.OperationalError as cause:
        raise kind(f"cannot open {path}: {cause}", hint="check who owns the file and its folders") from cause


@contextlib.contextmanager
def _temporary(folder: Path, data: bytes | Iterable[bytes]) -> Iterator[Path]:
    """A complete private file beside its destination; gone afterwards if it was not renamed."""
    _sweep(folder)
    path = folder / f".{os.urandom(8).hex()}.tmp"
    try:
        with _new_file(path) as file:
            with contextlib.suppress(OSError):  # not every file system has locks; nobody sweeps there
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _fill(file, [data] if isinstance(data, bytes) else data)
            yield path
    finally:
        path.unlink(missing_ok=True)


def _sweep(folder: Path) -> None:
    """Remove the temporary files of processes that were killed.

    A writer holds a lock on its file until that has its name. The age is for what a lock does not show: a
    writer on another machine, or one that has the file and not yet the lock.
    """
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if _temporary_name.fullmatch(entry.name):
                _remove_abandoned(folder / entry.name)


def _remove_abandoned(path: Path) -> None:
    with contextlib.suppress(OSError):
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            status = os.fstat(descriptor)
            if stat.S_ISREG(status.st_mode) and time.time() - status.st_mtime > _ABANDONED_SECONDS:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                path.unlink()
        finally:
            os.close(descriptor)


def _write_new(path: Path, chunks: Iterable[bytes]) -> None:
    with _new_file(path) as file:
        _fill(file, chunks)


def _rename_new(temporary: Path, path: Path) -> None:
    """Give a whole file a name that nothing has, where a link cannot; those who do so here take turns."""
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with contextlib.suppress(OSError):
            fcntl.flock(folder, fcntl.LOCK_EX)
        if os.path.lexists(path):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
        temporary.replace(path)
    finally:
        os.close(folder)


def _new_file(path: Path) -> BinaryIO:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    os.fchmod(descriptor, 0o600)  # whatever the umask is
    return open(descriptor, "wb")  # noqa: PTH123 - a descriptor, and the caller's to close


def _fill(file: BinaryIO, chunks: Iterable[bytes]) -> None:
    for chunk in chunks:
        file.write(chunk)
    file.flush()
    os.fsync(file.fileno())


def _open_regular(path: Path, kind: type[MyceliumError]) -> BinaryIO:
    with file_errors(path, "open", kind):
        # Non-blocking, since opening a named pipe would otherwise wait for a writer for ever.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        _require_regular(path, os.fstat(descriptor).st_mode, kind)
    except BaseException:
        os.close(descriptor)
        raise
    return open(descriptor, "rb")  # noqa: PTH123 - a descriptor, and the caller's to close


def _require_regular(path: Path, mode: int, kind: type[MyceliumError]) -> None:
    if not stat.S_ISREG(mode):
        raise kind(f"{path} is not a regular file", hint="give the path of a file")


def _refuse_others(path: Path, mode: int, wanted: str, kind: type[MyceliumError]) -> None:
    if mode & 0o077:
        raise kind(
            f"{path} can be used by others than its owner (mode {stat.S_IMODE(mode):03o})",
            hint=f"run `chmod {wanted} {_quoted(path)}`",
        )


def _quoted(path: Path) -> str:
    """The path as a shell takes it. Loaded only where something is wrong."""
    from shlex import quote

    return quote(str(path))
