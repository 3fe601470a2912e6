"""Connections to one memory file: one that writes, as many that read as threads read at once.

A writer waits for other processes up to a bound; a reader sees one unchanging state and waits for nobody
(WAL).
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
import time
from typing import TYPE_CHECKING, TypeVar

from mycelium_sdk.backends.local import schema
from mycelium_sdk.backends.local.rows import full_key
from mycelium_sdk.errors import BackendError, Tampered
from mycelium_sdk.files import open_private_sqlite
from mycelium_sdk.sqlite_errors import REMAKE, InTheWay, is_busy
from mycelium_sdk.sqlite_errors import explained as explained_by_sqlite
from mycelium_sdk.watched_file import WatchedFile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from mycelium_sdk.backends.local.seals import Sealers

T = TypeVar("T")

_SQLITE_TIMEOUT = 0.25
_PAUSE = 0.005
_MOST_IDLE = 8
_LONG_LOG_BYTES = 16 << 20
_BULK_CACHE_KIB = 64 << 10

_abandoned: list[sqlite3.Connection] = []
"""Connections that a forked child inherited: using or even closing them there could damage the parent's
file."""


class Connections:
    """`path` None is a memory that lives in this process only, over a single connection. `synchronous` is
    SQLite's word for how durable a commit is. `make`: whether a file that is not there is made.

    All are to one file: nothing is written once the path does not name it any more.
    """

    def __init__(
        self,
        path: Path | None,
        owner: str,
        sealers: Sealers,
        *,
        timeout: float,
        synchronous: str = "FULL",
        make: bool = True,
    ) -> None:
        self._file = None if path is None else WatchedFile(path, make=make)
        self._path = None if self._file is None else self._file.path
        self._owner = owner
        self._sealers = sealers
        self._timeout = timeout
        self._synchronous = synchronous
        self._lock = threading.RLock()
        self._idle: list[sqlite3.Connection] = []
        self._writer: sqlite3.Connection | None = None
        self._closed = False
        self._process = os.getpid()
        with explained(self._path):
            self._writer = self._open()

    @property
    def path(self) -> Path | None:
        """Where the file was opened, whatever the working folder is by now."""
        return self._path

    @contextlib.contextmanager
    def writing(self, *, timeout: float | None = None) -> Iterator[sqlite3.Connection]:
        """A transaction that holds the write lock. Committed at the end of the block, rolled back by an
        exception.

        Raises `StoreLocked` if another process keeps the lock for `timeout` seconds, `BackendError` if the
        file is not at its path.
        """
        with self.exclusive() as connection, self.transaction(connection, timeout=timeout):
            yield connection

    @contextlib.contextmanager
    def transaction(self, connection: sqlite3.Connection, *, timeout: float | None = None) -> Iterator[None]:
        """The same on a connection that the caller has."""
        with explained(self._path):
            self.patiently(lambda: connection.execute("BEGIN IMMEDIATE"), timeout=timeout)
            try:
                yield
                if self._file is not None:
                    self._file.require()
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    @contextlib.contextmanager
    def exclusive(self) -> Iterator[sqlite3.Connection]:
        """The writing connection, outside a transaction; other threads wait."""
        self._check_process()
        with self._lock, explained(self._path):
            self._require_open()
            if self._writer is None:
                self._writer = self._open()
            yield self._writer

    @contextlib.contextmanager
    def dedicated(self) -> Iterator[sqlite3.Connection]:
        """A connection of one's own for long work, so that other threads need not wait."""
        if self._path is None:
            with self.exclusive() as connection:
                yield connection
            return
        self._require_open()
        with explained(self._path), contextlib.closing(self._open()) as connection:
            connection.execute(f"PRAGMA cache_size = {-_BULK_CACHE_KIB}")
            yield connection
            # What a long transaction left in the log goes into the file, unless somebody still reads. It is
            # committed in any case, so what is wrong now is no reason to say that it failed.
            with contextlib.suppress(sqlite3.OperationalError):
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    @contextlib.contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """One unchanging state, for short work."""
        if self._path is None:
            with self.exclusive() as connection:
                yield connection
            return
        with self.viewing() as connection:
            yield connection

    @contextlib.contextmanager
    def viewing(self) -> Iterator[sqlite3.Connection]:
        """One unchanging state, for as long as the caller likes, while anybody writes."""
        self._check_process()
        with explained(self._path):
            connection = self._borrow()
            try:
                self.patiently(lambda: _begin_view(connection))
                yield connection
                connection.execute("ROLLBACK")
            except BaseException:
                connection.close()
                raise
            self._give_back(connection)

    def patiently(self, act: Callable[[], T], *, timeout: float | None = None) -> T:
        """Do it, again and again while others are in the way, up to the bound."""
        deadline = time.monotonic() + (self._timeout if timeout is None else timeout)
        while True:
            try:
                return act()
            except sqlite3.OperationalError as error:
                if not is_busy(error) or time.monotonic() >= deadline:
                    raise
            time.sleep(_PAUSE)

    def scrub(self, connection: sqlite3.Connection) -> None:
        """Rewrite the file and empty its log, so that neither holds anything that was deleted."""
        with explained(self._path):
            self.patiently(lambda: connection.execute("VACUUM"))
            self.patiently(lambda: _empty_log(connection))

    def close(self) -> None:
        """Close all; those in use are closed when their use ends. Harmless when repeated."""
        self._check_process()
        with self._lock:
            self._closed = True
            for connection in (*self._idle, self._writer):
                if connection is not None:
                    connection.close()
            self._idle.clear()
            self._writer = None

    def lost(self) -> bool:
        """Whether the path names another file by now, or none. False once this was closed."""
        return self._file is not None and not self._closed and not self._file.there()

    def let_go(self) -> bool:
        """Close all connections to a file that is lost; whether that was not done before."""
        self._check_process()
        with self._lock:
            if self._file is None or self._file.lost:
                return False
            for connection in self._idle:
                connection.close()
            self._idle.clear()
            writer, self._writer = self._writer, None
            self._file.let_go(writer)
            return True

    def refuse_its_log(self) -> None:
        """See `WatchedFile.refuse_its_log`."""
        if self._file is not None:
            self._file.refuse_its_log()

    def alone(self) -> threading.RLock:
        """What is held while connections are given and taken."""
        self._check_process()
        return self._lock

    def _open(self) -> sqlite3.Connection:
        return self._connect() if self._file is None else self._file.open(self._connect)

    def _connect(self) -> sqlite3.Connection:
        if self._path is None:
            connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        else:
            if self._path.exists():
                schema.check_file(self._path)
            connection = open_private_sqlite(self._path, timeout=_SQLITE_TIMEOUT)
            schema.never_look_again(self._path)
        make = self._file is None or self._file.may_make
        try:
            connection.create_function("full_key", 1, full_key, deterministic=True)
            connection.execute("PRAGMA trusted_schema = OFF")
            connection.execute(f"PRAGMA synchronous = {self._synchronous}")
            connection.execute(f"PRAGMA journal_size_limit = {_LONG_LOG_BYTES}")
            self.patiently(
                lambda: schema.prepare(connection, self._path, self._owner, self._sealers, make=make)
            )
        except BaseException:
            connection.close()
            raise
        return connection

    def _borrow(self) -> sqlite3.Connection:
        with self._lock:
            self._require_open()
            if self._path is None:
                copy = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
                copy.create_function("full_key", 1, full_key, deterministic=True)
                with self.exclusive() as original:
                    original.backup(copy)
                return copy
            if self._idle:
                return self._idle.pop()
        return self._open()

    def _give_back(self, connection: sqlite3.Connection) -> None:
        with self._lock:
            kept = self._file is not None and not self._file.lost and not self._closed
            if kept and len(self._idle) < _MOST_IDLE:
                self._idle.append(connection)
                return
        connection.close()

    def _require_open(self) -> None:
        if self._closed:
            raise BackendError("the memory is closed", hint="open it again")
        if self._file is not None and self._file.lost:
            self._file.require()

    def _check_process(self) -> None:
        if self._process == os.getpid() or self._path is None:
            return
        _abandoned.extend(self._idle)
        if self._writer is not None:
            _abandoned.append(self._writer)
        self._process = os.getpid()
        self._lock = threading.RLock()  # a thread that exists only in the parent may hold the old one
        self._idle = []
        self._writer = None


@contextlib.contextmanager
def explained(path: Path | None) -> Iterator[None]:
    """Turn every `sqlite3.Error` of the block into the error that explains it."""
    with explained_by_sqlite(path):
        try:
            yield
        except sqlite3.OperationalError as cause:
            # The module's own complaint about text that is no UTF-8. It quotes the text, so it is not
            # chained.
            if getattr(cause, "sqlite_errorcode", None) is None and "Could not decode" in str(cause):
                raise Tampered("a stored text was changed behind the store's back: it is no text") from None
            raise
        except UnicodeDecodeError:  # the module's, from a message about a damaged table
            raise BackendError(
                f"cannot use {path}: it is damaged",
                hint=REMAKE,
            ) from None


def _begin_view(connection: sqlite3.Connection) -> None:
    """Begin, and read once: only that fixes the state that is seen."""
    try:
        connection.execute("BEGIN")
        connection.execute("SELECT changes FROM store").fetchone()
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _empty_log(connection: sqlite3.Connection) -> None:
    busy, _, _ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    if busy:
        raise InTheWay("a reader holds the log")
