"""A private SQLite file of the SDK: made, upgraded, shared by threads, processes and forked children."""

from __future__ import annotations

import contextlib
import os
import threading
from typing import TYPE_CHECKING

from mycelium_sdk.errors import BackendError, ForeignFile, NewerFile
from mycelium_sdk.files import open_private_sqlite
from mycelium_sdk.sqlite_errors import explained

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
        BackendError: it cannot be made, read or written, or was closed.
    """

    def __init__(self, path: Path, *, application_id: int, migrations: Sequence[str]) -> None:
        self.path = path
        self._application_id = application_id
        self._migrations = migrations
        self._lock = threading.RLock()
        self._closed = False
        self._open()

    def close(self) -> None:
        """Close the file. Closing twice is harmless."""
        if self._process != os.getpid():
            self._closed = True
            _left_to_parents.append(self._connection)
            return
        with self._lock:
            self._closed = True
            self._connection.close()

    @contextlib.contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """The connection, for statements that change nothing."""
        with self._held(), explained(self.path):
            yield self._connection

    @contextlib.contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """The connection in a transaction, which is durable when the block ends, and undone if it raises."""
        with self._held(), explained(self.path):
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise

    @contextlib.contextmanager
    def _held(self) -> Iterator[None]:
        """No other thread uses the connection, which is this process's own and open."""
        self._require_open()  # first of all: a closed file is not opened again for a child
        self._leave_to_parent()
        with self._lock:
            self._require_open()
            yield

    def _require_open(self) -> None:
        # SQLite's module says it without an error code, as it does of damage.
        if self._closed:
            raise BackendError("the memory is closed", hint="open it again")

    def _open(self) -> None:
        self._process = os.getpid()
        self._connection = open_private_sqlite(self.path, timeout=_BUSY_SECONDS)
        try:
            self._prepare()
        except BaseException:
            self._connection.close()
            raise

    def _leave_to_parent(self) -> None:
        """In a forked child: a connection of its own, since to use or close the parent's would harm its
        file."""
        if self._process != os.getpid():
            self._lock = threading.RLock()  # a thread that only the parent has may hold the old one
            _left_to_parents.append(self._connection)
            self._open()

    def _prepare(self) -> None:
        newest = len(self._migrations)
        with explained(self.path):
            application, version, tables = self._identity()
            if application not in (0, self._application_id) or (application == 0 and tables):
                raise ForeignFile(
                    f"{self.path} belongs to another program", hint="move it away; it was not touched"
                )
            if version > newest:
                raise NewerFile(f"{self.path} was written by a newer release", hint="upgrade mycelium-memory")
            self._connection.execute("PRAGMA journal_mode = WAL")
            self._connection.execute("PRAGMA synchronous = FULL")
        if version < newest:
            with self.writing() as connection:
                # Another process may have been first.
                for migration in self._migrations[self._identity()[1] :]:
                    for statement in migration.split(";"):
                        connection.execute(statement)
                connection.execute(f"PRAGMA application_id = {self._application_id}")
                connection.execute(f"PRAGMA user_version = {newest}")

    def _identity(self) -> tuple[int, int, int]:
        """Application id, version and number of tables, of one state: another process may be making them."""
        sql = (
            "SELECT (SELECT application_id FROM pragma_application_id),"
            " (SELECT user_version FROM pragma_user_version), (SELECT count(*) FROM sqlite_master)"
        )
        application, version, tables = self._connection.execute(sql).fetchone()
        return application, version, tables
