"""The root of a large memory, kept in its file with the change counter that it belongs to.

Sealed, and bound to the counter; still it says nothing about rows that were edited behind the store's back.
"""

from __future__ import annotations

import hmac
from typing import TYPE_CHECKING

from mycelium_sdk.errors import BackendError, IntegrityKeyMissing

if TYPE_CHECKING:
    from mycelium_sdk.backends.local.connections import Connections
    from mycelium_sdk.backends.local.seals import Sealer, Sealers

WORTH_KEEPING = 10_000
"""A root of fewer records is sooner computed than stored."""

_PATIENCE = 0.25


def find(connections: Connections, sealers: Sealers) -> bytes | None:
    """The root of the state as it is now, None where it is not kept."""
    with connections.reading() as connection:
        row = connection.execute(
            "SELECT s.id, r.changes, r.root, r.mac FROM root r JOIN store s ON s.changes = r.changes"
        ).fetchone()
    if row is None:
        return None
    store, changes, root, mac = row
    try:
        genuine = _mac(sealers.of(store), changes, root)
    except (IntegrityKeyMissing, TypeError):
        return None
    return root if isinstance(mac, bytes) and hmac.compare_digest(mac, genuine) else None


def keep(connections: Connections, sealers: Sealers, changes: int, root: bytes) -> None:
    """Keep it where that pays and the file can be written now."""
    try:
        with connections.reading() as connection:
            store, records = connection.execute("SELECT id, records FROM store").fetchone()
        if records < WORTH_KEEPING:
            return
        mac = _mac(sealers.of(store), changes, root)
        with connections.writing(timeout=_PATIENCE) as connection:
            connection.execute("INSERT OR REPLACE INTO root VALUES (1, ?, ?, ?)", (changes, root, mac))
    except BackendError:  # it can be computed again
        return


def _mac(sealer: Sealer, changes: int, root: bytes) -> bytes:
    return sealer.tag(str(changes).encode("ascii") + b" " + root, b"mycelium root")
