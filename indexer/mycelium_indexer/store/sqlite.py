"""The database in one private SQLite file."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, Any

from sqlalchemy import create_engine, event
from sqlalchemy.pool import QueuePool

from mycelium_indexer.store.database import WRITES, Database
from mycelium_sdk import sqlite_errors
from mycelium_sdk.errors import BackendError, ForeignFile
from mycelium_sdk.files import open_private_sqlite

if TYPE_CHECKING:
    from pathlib import Path

    from sqlalchemy import Connection

__all__ = ["connect"]

APPLICATION_ID = 0x4D594958
"""`application_id` in the file's header ("MYIX")."""

_BUSY_SECONDS = 30.0
_REMAKE = "move the file away: `mycelium indexer run` makes it anew from what the chain's server still has"


def connect(path: Path, *, connections: int) -> Database:
    """The database in the file at `path`, made 0600 where missing; its folder must be there.

    Raises:
        ForeignFile: it is another program's.
        BackendError: it cannot be opened, or others may use it.
    """

    def explain(cause: BaseException) -> BackendError:
        if not isinstance(cause, sqlite3.Error):
            return BackendError(f"cannot use {path}: {type(cause).__name__}")
        try:
            with sqlite_errors.explained(path, remake=_REMAKE):
                raise cause
        except BackendError as error:
            return error

    try:
        _claim(path)
    except sqlite3.Error as cause:
        raise explain(cause) from None

    def opened() -> sqlite3.Connection:
        connection = open_private_sqlite(path, timeout=_BUSY_SECONDS)
        # A killed process loses nothing by it. A power cut may lose the last transactions, rows and cursor
        # alike, which are read again.
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA foreign_keys = ON")
        return connection

    engine = create_engine(
        "sqlite+pysqlite://",
        creator=opened,
        poolclass=QueuePool,
        pool_size=connections,
        max_overflow=0,
        pool_timeout=_BUSY_SECONDS,
    )

    def begin(connection: Connection) -> None:
        # The driver begins nothing by itself. Who will write takes the lock at once: a transaction that reads
        # first cannot wait for it.
        writes = connection.get_execution_options().get(WRITES)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    event.listen(engine, "begin", begin)
    return Database(engine, explain, str(path), _mark)


def _mark(connection: Connection) -> None:
    connection.exec_driver_sql(f"PRAGMA application_id = {APPLICATION_ID}")


def _claim(path: Path) -> None:
    """Leave other programs' files as they are, and put one of ours into WAL mode."""
    connection = open_private_sqlite(path, timeout=_BUSY_SECONDS)
    try:
        found: tuple[Any, ...] = connection.execute(
            "SELECT (SELECT application_id FROM pragma_application_id), (SELECT count(*) FROM sqlite_master)"
        ).fetchone()
        application, things = found
        if application not in (0, APPLICATION_ID) or (application == 0 and things):
            raise ForeignFile(f"{path} belongs to another program", hint="move it away; it was not touched")
        connection.execute("PRAGMA journal_mode = WAL")
    finally:
        connection.close()
