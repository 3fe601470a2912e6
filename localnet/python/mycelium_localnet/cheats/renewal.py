"""Starting over in the same chain file: emptying it, and making another chain in it."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING

from mycelium_localnet import genesis, options
from mycelium_localnet.clock import FROZEN_START, Clock
from mycelium_localnet.genesis import Identity
from mycelium_localnet.schedule import now

if TYPE_CHECKING:
    import sqlite3

# Snapshots first, since they keep history from being deleted; ledgers before entries, whose changes are
# remembered as long as there are ledgers.
_CLEARING = (
    "DELETE FROM snapshots",
    "DELETE FROM ledgers",
    "DELETE FROM entries",
    "DELETE FROM former",
    "DELETE FROM transactions",
    "DELETE FROM events",
    "DELETE FROM pending",
    "DELETE FROM settings",
    "DELETE FROM faults",
)


def clear(connection: sqlite3.Connection) -> None:
    """Remove everything that a chain file holds, within the caller's transaction."""
    for statement in _CLEARING:
        connection.execute(statement)


def reset(connection: sqlite3.Connection, seed: bytes | None) -> None:
    """Make a new chain of the same network, profile and way of closing, within the caller's transaction.

    Without a `seed` one follows from the old one, so that runs repeat: the chain id is another one. A frozen
    clock stands at its beginning again, a running one shows the machine's time. Raises InvalidRequestError
    for a seed that is none.
    """
    before = options.load_identity(connection)
    clock = Clock.from_settings(options.load(connection))
    schedule = options.load_schedule(connection)
    if seed is None:
        seed = sha256(b"mycelium-localnet reset\0" + bytes.fromhex(before.seed)).digest()
    identity = Identity.make(before.passphrase, before.profile, seed)
    clock = Clock() if clock.frozen_at is None else Clock(frozen_at=FROZEN_START)
    clear(connection)
    options.save(connection, identity, clock, schedule.started(now()))
    genesis.create(connection, identity, clock)
