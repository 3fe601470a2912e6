"""Moving and stopping the chain's clock, which no ledger needs to close for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mycelium_localnet import options
from mycelium_localnet.clock import SETTINGS, Clock
from mycelium_localnet.errors import InvalidRequestError

if TYPE_CHECKING:
    import sqlite3

_END: Final = 253_402_300_799
"""9999-12-31T23:59:59Z: what can still be written as a date."""


def set_time(connection: sqlite3.Connection, moment: int) -> Clock:
    """Set the clock to `moment` (Unix seconds), within the caller's transaction. It goes on from there, or
    stands there if it is frozen.

    Raises InvalidRequestError for a time before the last ledger: ledgers do not go back.
    """
    (last,) = connection.execute("SELECT close_time FROM ledgers ORDER BY sequence DESC LIMIT 1").fetchone()
    if not last <= moment <= _END:
        raise InvalidRequestError(
            f"the clock cannot be set to {moment}: the last ledger closed at {last}, and time ends at {_END}",
            hint="times are Unix seconds; to go back, revert to a snapshot, or reset the chain",
        )
    return _save(connection, _load(connection).set_to(moment))


def freeze(connection: sqlite3.Connection, *, frozen: bool) -> Clock:
    """Stop the clock where it is, or let it go on from there, within the caller's transaction."""
    clock = _load(connection)
    if frozen is (clock.frozen_at is not None):
        return clock
    return _save(connection, clock.stopped() if frozen else clock.running())


def _load(connection: sqlite3.Connection) -> Clock:
    return Clock.from_settings(options.load(connection))


def _save(connection: sqlite3.Connection, clock: Clock) -> Clock:
    connection.executemany("DELETE FROM settings WHERE key = ?", [(key,) for key in SETTINGS])
    rows = clock.to_settings().items()
    connection.executemany("INSERT INTO settings (key, value) VALUES (?, ?)", rows)
    return clock
