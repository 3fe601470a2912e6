"""Snapshots of a chain, and going back to them.

A snapshot costs nothing but its row: what an entry was before a ledger changed it is kept anyway (table
`former`), and history is only ever added to. They live in the chain file, so they survive a restart, and a
process that is killed while it reverts has reverted or has not.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from mycelium_localnet import options
from mycelium_localnet.envelopes import present
from mycelium_localnet.errors import InvalidRequestError
from mycelium_localnet.schedule import Schedule, now
from mycelium_localnet.schema import pack_list, unpack_list

if TYPE_CHECKING:
    import sqlite3

_HISTORY = (
    "DELETE FROM ledgers WHERE sequence > ?",
    "DELETE FROM transactions WHERE ledger > ?",
    "DELETE FROM events WHERE ledger > ?",
    "DELETE FROM former WHERE ledger > ?",
)


def take(connection: sqlite3.Connection) -> int:
    """Remember the chain as it is, within the caller's transaction. Returns the snapshot's number."""
    (ledger,) = connection.execute("SELECT max(sequence) FROM ledgers").fetchone()
    rows = connection.execute("SELECT hash, source, envelope, received FROM pending ORDER BY position")
    pending = pack_list(
        pack_list((name, source.encode(), envelope, str(received).encode()))
        for name, source, envelope, received in rows
    )
    settings = json.dumps(options.load(connection), sort_keys=True)
    cursor = connection.execute(
        "INSERT INTO snapshots (ledger, settings, pending) VALUES (?, ?, ?)", (ledger, settings, pending)
    )
    return present(cursor.lastrowid)


def revert(connection: sqlite3.Connection, snapshot: int) -> None:
    """Make everything as it was at a snapshot, within the caller's transaction: entries, history, events,
    the clock, the queue and how ledgers close. The snapshot is used up, and those taken after it are gone.

    Intervals begin anew. Raises InvalidRequestError when there is no such snapshot.
    """
    query = "SELECT ledger, settings, pending FROM snapshots WHERE id = ?"
    row = connection.execute(query, (snapshot,)).fetchone()
    if row is None:
        raise InvalidRequestError(
            f"there is no snapshot {snapshot}",
            hint="each can be gone back to once, and takes those with it that were made after it",
        )
    ledger, settings, pending = row
    connection.execute("DELETE FROM snapshots WHERE id >= ?", (snapshot,))
    _restore_entries(connection, ledger)
    for statement in _HISTORY:
        connection.execute(statement, (ledger,))
    _restore_settings(connection, json.loads(settings))
    connection.execute("DELETE FROM pending")
    connection.executemany(
        "INSERT INTO pending (hash, source, envelope, received) VALUES (?, ?, ?, ?)",
        (
            (name, source.decode(), envelope, int(received))
            for name, source, envelope, received in map(unpack_list, unpack_list(pending))
        ),
    )


def _restore_entries(connection: sqlite3.Connection, ledger: int) -> None:
    """The entries as they were after `ledger`: of each one's former values, the first one behind it."""
    connection.execute("DELETE FROM entries WHERE key IN (SELECT key FROM former WHERE ledger > ?)", [ledger])
    # Next to min(), SQLite takes the other columns from the row that has the minimum. What the triggers wrote
    # for the deletions is behind every ledger, and no minimum. Without the hint it would read all of the
    # table, which is as large as the chain is old.
    connection.execute(
        "INSERT INTO entries (key, entry, live_until, ttl_modified, type)"
        " SELECT key, entry, live_until, ttl_modified, type FROM"
        " (SELECT key, entry, live_until, ttl_modified, type, min(ledger)"
        " FROM former INDEXED BY former_by_ledger WHERE ledger > ? GROUP BY key) WHERE entry IS NOT NULL",
        (ledger,),
    )


def _restore_settings(connection: sqlite3.Connection, settings: dict[str, str]) -> None:
    connection.execute("DELETE FROM settings")
    connection.executemany("INSERT INTO settings (key, value) VALUES (?, ?)", settings.items())
    options.save_schedule(connection, Schedule.from_settings(settings).started(now()))
