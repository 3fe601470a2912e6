"""Opening the database, and its transactions: what differs between SQLite and PostgreSQL, apart from both."""

from __future__ import annotations

import contextlib
import re
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import func, insert, select

from mycelium_indexer.store import tables
from mycelium_indexer.store.problems import explained
from mycelium_sdk.errors import BackendError, InputError, NewerFile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from sqlalchemy import Connection, Engine

    from mycelium_indexer.store.problems import Explain

__all__ = ["Database", "open_database"]

WRITES = "mycelium_writes"
"""The execution option of a connection whose transaction will write."""

_POSTGRES = re.compile(r"postgres(ql)?://")
_SQLITE = "sqlite:///"


@dataclass(frozen=True, slots=True)
class Database:
    """An open database. `explain` says what its driver's errors mean, `place` where it is, without secrets.

    `begin_migration` is what must come first in the transaction that makes or changes tables: whatever keeps
    others from doing the same at once, and what tells the database from other programs' ones.
    """

    engine: Engine
    explain: Explain
    place: str
    begin_migration: Callable[[Connection], None]

    @contextlib.contextmanager
    def reading(self) -> Iterator[Connection]:
        """A transaction that changes nothing."""
        with explained(self.explain), self.engine.connect() as connection:
            yield connection

    @contextlib.contextmanager
    def writing(self) -> Iterator[Connection]:
        """A transaction that is durable when the block ends, and undone if it raises."""
        with (
            explained(self.explain),
            self.engine.connect().execution_options(**{WRITES: True}) as connection,
            connection.begin(),
        ):
            yield connection

    def prepare(
        self,
        *,
        read_only: bool = False,
        migrations: Sequence[Callable[[Connection], None]] = tables.MIGRATIONS,
        now: Callable[[], float] = time.time,
    ) -> None:
        """Bring the tables up to date, each migration recorded in the transaction that makes them all.

        Raises:
            NewerFile: a newer release made the tables.
            BackendError: there are none, or older ones, and the database is to be read only.
        """
        with self.reading() as connection:
            version = self._version(connection)
        if version > len(migrations):
            raise NewerFile(
                f"{self.place} was written by a newer release of the indexer", hint="upgrade mycelium-memory"
            )
        if version == len(migrations):
            return
        if read_only:
            raise BackendError(
                f"{self.place} has not the indexer's tables yet", hint="run `mycelium indexer run` first"
            )
        with self.writing() as connection:
            self.begin_migration(connection)
            tables.schema_versions.create(connection, checkfirst=True)
            # Another process may have been first.
            for number, migrate in enumerate(migrations, 1):
                if number > self._version(connection):
                    migrate(connection)
                    connection.execute(
                        insert(tables.schema_versions).values(version=number, applied_at=now())
                    )

    def close(self) -> None:
        """Close all connections. Harmless when repeated."""
        self.engine.dispose()

    def _version(self, connection: Connection) -> int:
        table = tables.schema_versions
        schema = self.engine.get_execution_options().get("schema_translate_map", {}).get(None)
        if not self.engine.dialect.has_table(connection, table.name, schema=schema):
            return 0
        return connection.execute(select(func.max(table.c.version))).scalar() or 0


def open_database(url: str, *, read_only: bool = False, connections: int = 8) -> Database:
    """The database at `url`, with its tables: see `mycelium_indexer.store.open_store`."""
    if _POSTGRES.match(url):
        from mycelium_indexer.store.postgres import connect

        database = connect(url, connections=connections)
    else:
        from mycelium_indexer.store.sqlite import connect as open_file

        database = open_file(_path(url), connections=connections)
    try:
        database.prepare(read_only=read_only)
    except BaseException:
        database.close()
        raise
    return database


def _path(url: str) -> Path:
    path = url.removeprefix(_SQLITE)
    if not path or "://" in path or path == ":memory:":
        raise InputError(
            "the address of the indexer's database cannot be used",
            hint="set `[indexer] database_url` to postgresql://user@host/database, or to the path of a file",
        )
    return Path(path).expanduser()
