"""The root of an owner's memory, kept with the change counter that it belongs to.

It says nothing about rows that were edited behind the store's back: what verifies computes it from the rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mycelium_sdk.errors import BackendError

if TYPE_CHECKING:
    from mycelium_sdk.backends.postgres.connections import Connections

WORTH_KEEPING = 10_000
"""A root of fewer records is sooner computed than stored."""

_KEEP = """
UPDATE owners SET root_changes = %s, root = %b WHERE owner = %s AND changes = %s AND records >= %s
"""


def find(connections: Connections, owner: str) -> bytes | None:
    """The root of the state as it is now, None where it is not kept."""
    rows = connections.ask("SELECT root FROM owners WHERE owner = %s AND root_changes = changes", (owner,))
    return rows[0][0] if rows else None


def keep(connections: Connections, owner: str, changes: int, root: bytes) -> None:
    """Keep it where that pays."""
    try:
        connections.run(_KEEP, (changes, root, owner, changes, WORTH_KEEPING))
    except BackendError:  # it can be computed again
        return
