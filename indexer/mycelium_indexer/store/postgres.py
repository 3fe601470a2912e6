"""The database in a schema of a PostgreSQL server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import create_engine, event, inspect
from sqlalchemy.schema import CreateSchema

from mycelium_indexer.store.database import Database
from mycelium_sdk.errors import BackendError, InputError

if TYPE_CHECKING:
    import psycopg
    from sqlalchemy import Connection

__all__ = ["SCHEMA", "connect"]

SCHEMA = "mycelium_indexer"
_CONNECT_SECONDS = 10.0
_STATEMENT_SECONDS = 30.0
_BUSY_SECONDS = 30.0

_MIGRATING = 0x4D594958
"""The key of the lock that whoever makes tables holds."""

_HINT = "check `[indexer] database_url`, or MYCELIUM_INDEXER_DATABASE_URL, and that the server runs"


def connect(url: str, *, connections: int, schema: str = SCHEMA) -> Database:
    """The database at a URL as libpq takes it; its tables are in `schema`.

    Connects when it is first used. Raises `InputError` for a URL that cannot be read, and `ConfigError`
    where PostgreSQL's client library is missing.
    """
    from mycelium_sdk.backends import postgres as _installed  # noqa: F401 - says so where it is not

    import psycopg  # isort: skip

    from mycelium_sdk.backends.postgres import problems
    from mycelium_sdk.backends.postgres.target import target as read_target

    try:
        target = read_target(
            url,
            schema,
            connect_timeout=_CONNECT_SECONDS,
            statement_timeout=_STATEMENT_SECONDS,
            busy_timeout=_BUSY_SECONDS,
        )
    except InputError:
        raise InputError(
            "the address of the indexer's database cannot be read",
            hint="write postgresql://user:password@host:5432/database, with special characters as %XX",
        ) from None

    def opened() -> psycopg.Connection[Any]:
        try:
            return psycopg.connect(**target.parameters)  # type: ignore[arg-type]
        except psycopg.Error as cause:
            found = problems.not_connected(cause, target)
            raise type(found)(found.message, hint=_HINT) from None

    def explain(cause: BaseException) -> BackendError:
        if isinstance(cause, psycopg.Error):
            return problems.explanation(cause, target)
        return BackendError(f"cannot use {target.place}: {type(cause).__name__}")

    engine = create_engine(
        "postgresql+psycopg://",
        creator=opened,
        pool_size=connections,
        max_overflow=0,
        pool_timeout=_BUSY_SECONDS,
        pool_pre_ping=True,
    ).execution_options(schema_translate_map={None: schema})

    def bound(connection: Connection) -> None:
        # For each transaction: a pooler before the server may give each of them another session.
        connection.exec_driver_sql(
            f"SET LOCAL statement_timeout = {_STATEMENT_SECONDS * 1000:.0f};"
            f" SET LOCAL lock_timeout = {_BUSY_SECONDS * 1000:.0f}"
        )

    event.listen(engine, "begin", bound)

    def begin_migration(connection: Connection) -> None:
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_MIGRATING})")
        if not inspect(connection).has_schema(schema):
            connection.execute(CreateSchema(schema))

    return Database(engine, explain, target.place, begin_migration)
