"""What `secure` adds to forgetting: tables rewritten, so that none of their files holds what was deleted."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from psycopg import sql

from mycelium_sdk.backends.postgres.schema import WITH_TEXT
from mycelium_sdk.errors import StoreLocked

if TYPE_CHECKING:
    from mycelium_sdk.backends.postgres.connections import Connections
    from mycelium_sdk.backends.postgres.pool import Connection

_PAUSE = 0.05

_OTHERS = """
WITH others AS (
    SELECT backend_xmin, backend_xid FROM pg_stat_activity
    WHERE pid <> pg_backend_pid() AND (datname = current_database() OR datname IS NULL)),
held(by) AS (
    SELECT backend_xmin FROM others UNION ALL SELECT backend_xid FROM others
    UNION ALL SELECT transaction FROM pg_prepared_xacts WHERE database = current_database()
    UNION ALL SELECT xmin FROM pg_replication_slots)
SELECT 1 FROM held WHERE age(by) >= age(%s::xid) LIMIT 1
"""
"""Whether anybody in the database may still see what that transaction deleted, so that it would be kept."""


def scrub(connections: Connections, transaction: str | None) -> None:
    """Rewrite the tables. `transaction`: the one that deleted, which everybody must be past by then; None if
    nothing was deleted now, but perhaps earlier.

    Raises `BackendError` if the role may not, or others do not let go of the tables in time.
    """
    target = connections.target
    with connections.outside() as connection:
        milliseconds = round(target.busy_timeout * 1000)
        connection.execute(sql.SQL("SET lock_timeout = {}").format(sql.Literal(milliseconds)))
        try:
            if transaction is not None:
                _wait_for_others(connection, transaction, time.monotonic() + target.busy_timeout)
            for table in WITH_TEXT:
                name = sql.Identifier(target.schema, table)
                connection.execute(sql.SQL("VACUUM (FULL) {}").format(name))
        finally:
            if not connection.closed:
                connection.execute("RESET lock_timeout")


def _wait_for_others(connection: Connection, transaction: str, deadline: float) -> None:
    """Wait until nobody sees the state before the deletion: what somebody sees is not rewritten away."""
    while connection.execute(_OTHERS, (transaction,)).fetchone():
        if time.monotonic() > deadline:
            raise StoreLocked("others still read the state before", hint="end their exports, then try again")
        time.sleep(_PAUSE)
