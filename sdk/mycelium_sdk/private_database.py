"""A private SQLite file of the SDK: made, upgraded, shared by threads, processes and forked children."""

from __future__ import annotations

import contextlib
import os
import threading
from typing import TYPE_CHECKING

from mycelium_sdk.errors import BackendError, ForeignFile, NewerFile
from mycelium_sdk.files import open_private_sqlite
from mycelium_sdk.sqlite_errors import explained
from mycelium_sdk.watched_file import Losses, WatchedFile, identity, missing

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator, Sequence
    from pathlib import Path

__all__ = ["PrivateDatabase"]

_BUSY_SECONDS = 30.0

_left_to_parents: list[sqlite3.Connection] = []
"""In a forked child: its parent's connections, kept since SQLite closes one that is let go of, and may remove
the log with it, into which another process has written meanwhile."""


class PrivateDatabase:
    """One SQLite file, mode 0600, in WAL mode with full synchronisation; every write is one transaction.

    `application_id` tells it from other programs' files. `migrations`: statements, separated by semicolons,
    that make version 1 of an empty file, version 2 of version 1, and so on; each with the record of its
    version in one transaction.

    Raises:
        ForeignFile, NewerFile: the file is another program's, or a newer release's.
        StoreLocked: another process holds it longer than half a minute.
        BackendError: it cannot be made, read or written, or was closed; it was moved away or removed; another
            file took its place, which is said once in each thread that used it, and used from then on.
    """

    def __init__(self, path: Path, *, application_id: int, migrations: Sequence[str]) -> None:
        self.path = path
        self._application_id = application_id
        self._migrations = migrations
        self._lock = threading.RLock()
        self._closed = False
        self._process = os.getpid()
        self._losses = Losses()
        self._file = WatchedFile(path, make=True)
        self._connection: sqlite3.Connection | None = self._opened(self._file)

    def close(self) -> None:
        """Close the file. Closing twice is harmless."""
        self._leave_to_parent()
        with self._lock:
            self._closed = True
            if self._connection is not None:
                self._connection.close()

    @contextlib.contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """The connection, for statements that change nothing."""
        with self._held() as connection, explained(self.path):
            yield connection

    @contextlib.contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """The connection in a transaction, which is durable when the block ends, and undone if it raises."""
        with self._held() as connection, self._transaction(connection):
            yield connection
            self._file.require()

    @contextlib.contextmanager
    def _held(self) -> Iterator[sqlite3.Connection]:
        """The connection, which no other thread uses: this process's own, to the file that is at the path."""
        self._require_open()  # first of all: a closed file is not opened again for a child
        self._leave_to_parent()
        with self._lock:
            self._require_open()
            if not self._file.there():
                self._go_on()
            if self._connection is None:
                self._connection = self._opened(self._file)
            self._losses.tell(self._file.path)
            yield self._connection

    def _require_open(self) -> None:
        # SQLite's module says it without an error code, as it does of damage.
        if self._closed:
            raise BackendError("the memory is closed", hint="open it again")

    def _leave_to_parent(self) -> None:
        """In a forked child: leave the connection alone, since to use or close the parent's would harm its
        file."""
        if self._process != os.getpid():
            self._process = os.getpid()
            self._lock = threading.RLock()  # a thread that only the parent has may hold the old one
            if self._connection is not None:
                _left_to_parents.append(self._connection)
            self._connection = None

    def _go_on(self) -> None:
        """Open what has the place of the file that was open."""
        if not self._file.lost:
            self._losses.add()
        self._file.let_go(self._connection)
        self._connection = None
        if identity(self._file.path) is None:
            self._losses.told()
            raise missing(self._file.path)
        self._file.refuse_its_log()
        found = WatchedFile(self._file.path, make=False)
        self._connection = self._opened(found)
        self._file = found

    def _opened(self, file: WatchedFile) -> sqlite3.Connection:
        return file.open(lambda: self._connected(file))

    def _connected(self, file: WatchedFile) -> sqlite3.Connection:
        connection = open_private_sqlite(file.path, timeout=_BUSY_SECONDS)
        try:
            self._prepare(connection, make=file.may_make)
        except BaseException:
            connection.close()
            raise
        return connection

    def _prepare(self, connection: sqlite3.Connection, *, make: bool) -> None:
        newest = len(self._migrations)
        with explained(self.path):
            version = self._version(connection)
            if version == 0 and not make:
                raise missing(self.path)
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
        if version < newest:
            with self._transaction(connection):
                # Another process may have been first, one of a newer release even.
                for migration in self._migrations[self._version(connection) :]:
                    for statement in migration.split(";"):
                        connection.execute(statement)
                connection.execute(f"PRAGMA application_id = {self._application_id}")
                connection.execute(f"PRAGMA user_version = {newest}")

    def _version(self, connection: sqlite3.Connection) -> int:
        """The version of the file as it is now. Raises `ForeignFile`, `NewerFile`."""
        # Of one state: another process may be making the tables.
        sql = (
            "SELECT (SELECT application_id FROM pragma_application_id),"
            " (SELECT user_version FROM pragma_user_version), (SELECT count(*) FROM sqlite_master)"
        )
        application, version, tables = connection.execute(sql).fetchone()
        if application not in (0, self._application_id) or (application == 0 and tables):
            raise ForeignFile(
                f"{self.path} belongs to another program", hint="move it away; it was not touched"
            )
        if version > len(self._migrations):
            raise NewerFile(f"{self.path} was written by a newer release", hint="upgrade mycelium-memory")
        return int(version)

    @contextlib.contextmanager
    def _transaction(self, connection: sqlite3.Connection) -> Iterator[None]:
        with explained(self.path):
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise
