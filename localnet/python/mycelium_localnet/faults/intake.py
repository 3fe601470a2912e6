"""What a server answers that takes no transaction, or takes it and never puts it into a ledger."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from mycelium_localnet import headers

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable

    from mycelium_localnet.rows import Submission


def examine(
    connection: sqlite3.Connection, submit: Callable[[], Submission], fee_write_1kb: int
) -> Submission:
    """What `submit` answers on this connection, without anything coming of it: no ledger closes."""
    latest = headers.latest(connection, fee_write_1kb)
    connection.execute("SAVEPOINT examine")
    try:
        answer = submit()
    finally:
        connection.execute("ROLLBACK TO examine")
        connection.execute("RELEASE examine")
    return replace(answer, latest_ledger=latest.sequence, close_time=latest.close_time)
