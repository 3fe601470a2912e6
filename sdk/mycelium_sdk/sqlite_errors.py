"""SQLite's errors in this package's words, in one place."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from typing import TYPE_CHECKING

from mycelium_sdk.errors import BackendError, StoreLocked

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

REMAKE = "close what uses it, move the file away, then `mycelium memory rehydrate`"

_PROBLEMS = {
    sqlite3.SQLITE_FULL: ("the disk is full", "free some space, then try again; nothing was lost"),
    sqlite3.SQLITE_READONLY: ("it cannot be written", "check the permissions of the file and its folder"),
    sqlite3.SQLITE_PERM: ("permission denied", "check the permissions of the file and its folder"),
    sqlite3.SQLITE_CANTOPEN: ("it cannot be opened", "check the permissions of the file and its folder"),
    sqlite3.SQLITE_IOERR: (
        "the disk reports an error",
        "check the disk; what was acknowledged before is kept",
    ),
    sqlite3.SQLITE_CORRUPT: ("it is damaged", REMAKE),
    sqlite3.SQLITE_NOTADB: ("it is damaged", REMAKE),
    sqlite3.SQLITE_TOOBIG: ("a text is too large for it", "split the text into several memories"),
}

_DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
_UNWRITABLE = {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN}
_READ_ONLY = (
    "the file system is read-only",
    "make it writable; or copy the home folder to where it can be written, and name that by MYCELIUM_HOME",
)


class InTheWay(sqlite3.OperationalError):
    """Another connection is in the way, where SQLite says so in a row instead of an error."""

    sqlite_errorcode = sqlite3.SQLITE_BUSY


def is_busy(error: sqlite3.Error) -> bool:
    """Whether another connection was in the way, so that the same statement may succeed a moment later."""
    return _primary(error) in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}


@contextlib.contextmanager
def explained(path: Path | None, *, remake: str = REMAKE) -> Iterator[None]:
    """Turn every `sqlite3.Error` of the block into the `BackendError` that explains it.

    `path` is the database's file, None for a memory that has none. `remake`: what to do about a damaged one.
    """
    try:
        yield
    except sqlite3.Error as cause:
        name = "the memory" if path is None else str(path)
        if is_busy(cause):
            raise StoreLocked(
                f"{name} is in use by another process", hint="try again when the other process is done"
            ) from cause
        known = _PROBLEMS.get(_primary(cause))
        if known is None:
            # Neither said nor chained: SQLite and its module quote what they stumble over, memory text too.
            raise BackendError(f"cannot use {name}: it is damaged", hint=remake) from None
        if _primary(cause) in _DAMAGED:
            known = known[0], remake
        if _primary(cause) in _UNWRITABLE and path is not None and _is_read_only(path.parent):
            known = _READ_ONLY
        if _primary(cause) == sqlite3.SQLITE_IOERR and path is not None and _is_full(path.parent):
            known = _PROBLEMS[sqlite3.SQLITE_FULL]  # which SQLite says of some of its files only
        raise BackendError(f"cannot use {name}: {known[0]}", hint=known[1]) from cause


def _is_read_only(folder: Path) -> bool:
    try:
        return bool(os.statvfs(folder).f_flag & os.ST_RDONLY)
    except OSError:
        return False


def _is_full(folder: Path) -> bool:
    try:
        return os.statvfs(folder).f_bavail == 0
    except OSError:
        return False


def _primary(error: sqlite3.Error) -> int:
    # Errors raised by the Python module itself carry no code.
    code: int = getattr(error, "sqlite_errorcode", 0)
    return code & 0xFF
