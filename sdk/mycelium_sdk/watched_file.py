"""Noticing that the file of an open database is not at its path any more.

SQLite goes on writing into a file that was moved away, removed or replaced, where nobody looks any more. So
the file that is open is known by its device and inode, which no other file has meanwhile, and compared with
what the path names. To rewrite a database (VACUUM) keeps its file.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
from typing import TYPE_CHECKING

from mycelium_sdk.errors import BackendError
from mycelium_sdk.files import file_error

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

__all__ = ["Losses", "WatchedFile", "identity", "missing"]

_TRIES = 3


def identity(path: Path) -> tuple[int, int] | None:
    """Device and inode of the file at the path, None where there is none.

    Raises `BackendError` where that cannot be told.
    """
    try:
        status = os.stat(path)  # noqa: PTH116 - a third of the time of Path.stat
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as cause:
        raise file_error(cause, path, "check") from cause
    return status.st_dev, status.st_ino


def missing(path: Path) -> BackendError:
    """The error for a file that is not there any more."""
    return BackendError(
        f"{path} was moved away or removed while it was open; nothing was done",
        hint="put it back; or close the memory and open it again, which begins a new file",
    )


def _replaced(path: Path) -> BackendError:
    return BackendError(
        f"{path} was replaced by another file while it was open; nothing was done",
        hint="look at it, then try again: the file that is there now is used from now on",
    )


def _log_of(path: Path) -> Path:
    """Where SQLite keeps the log, which it looks for beside what a link names."""
    real = path.resolve()
    return real.with_name(f"{real.name}-wal")


def _refuse_left_log(path: Path) -> None:
    """Refuse to make a file beside a log that belongs to another one: SQLite would remove the log."""
    log = _log_of(path)
    with contextlib.suppress(OSError):
        if log.stat().st_size:
            raise BackendError(
                f"{path} is not there, but its log is, {log}: the file was moved away without it",
                hint="move the log too, beside the file: it holds what was written last; or remove it",
            )


class WatchedFile:
    """One file, from when it was opened at `path` on. `make`: whether opening may make it."""

    def __init__(self, path: Path, *, make: bool) -> None:
        self.path = path.absolute()
        self._make = make
        self._identity: tuple[int, int] | None = None
        self._process = os.getpid()
        self._log: tuple[int, int] | None = None
        self.lost = False
        """Whether it was let go of, since it is not at the path."""

    @property
    def may_make(self) -> bool:
        """Whether a file that is not there, or empty, is no file that was lost."""
        return self._make and self._identity is None

    def open(self, connect: Callable[[], sqlite3.Connection]) -> sqlite3.Connection:
        """A connection to the file; `connect` opens one to what is at the path.

        Raises `BackendError` if that is not the file any more.
        """
        for _ in range(_TRIES):
            before = identity(self.path)
            if before is None:
                if not self.may_make:
                    raise missing(self.path)
                _refuse_left_log(self.path)
            connection = connect()
            after = identity(self.path)
            # A file system that lies over another one may give a file its own inode when it is opened.
            if after is not None and before in (None, after) and self._identity in (None, after):
                self._identity = after
                if self._process != os.getpid():  # the parent's may be gone, and others made
                    self._process, self._log = os.getpid(), None
                return connection
            connection.close()
        raise _replaced(self.path)

    def there(self) -> bool:
        """Whether the path names the file still."""
        if self.lost or identity(self.path) != self._identity:
            return False
        if self._log is None:  # SQLite makes it at the first use, and keeps it while a connection is open
            self._log = identity(_log_of(self.path))
        return True

    def require(self) -> None:
        """Raise `BackendError` if it does not."""
        if not self.there():
            raise missing(self.path) if identity(self.path) is None else _replaced(self.path)

    def let_go(self, connection: sqlite3.Connection | None) -> None:
        """Close the last connection to the file, which is lost.

        What its log holds goes into it first, so that a file which was moved away without its log is whole.
        Not where another file has its place: others may use that log with it by now.
        """
        self.lost = True  # another file may get its number
        if connection is None:
            return
        with contextlib.suppress(sqlite3.Error, BackendError):
            if identity(self.path) is None:
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.close()  # SQLite removes no log of a file that has moved

    def refuse_its_log(self) -> None:
        """Raise `BackendError` while the log of this file, which is lost, lies beside the one that has its
        place: SQLite would read what it holds into that one."""
        log = _log_of(self.path)
        with contextlib.suppress(FileNotFoundError):
            back = identity(self.path) == self._identity
            own = self._log is not None and identity(log) == self._log
            if own and not back and log.stat().st_size:
                raise BackendError(
                    f"{log} belongs to the file that was at {self.path} before; nothing was done",
                    hint="close what uses the memory, move the log away, and open the memory again",
                )


class Losses:
    """Tells each thread once that a file was lost: what it began with one is not finished with another.

    Ids, change counters and roots of the one say nothing of the other.
    """

    def __init__(self) -> None:
        self._count = 0
        self._known = threading.local()

    def add(self) -> None:
        """One more."""
        self._count += 1

    def told(self) -> None:
        """This thread knows."""
        self._known.count = self._count

    def tell(self, path: Path) -> None:
        """Raise `BackendError` in a thread that used a file which is lost, and does not know it."""
        known = getattr(self._known, "count", self._count)
        self._known.count = self._count
        if known != self._count:
            raise _replaced(path)
