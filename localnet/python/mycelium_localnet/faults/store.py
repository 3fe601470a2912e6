"""The faults of a chain file: set, found, used up. All within the caller's transaction.

They are kept in the file, so that every process that has it open shows them, and they outlive all of them.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from mycelium_localnet.envelopes import present
from mycelium_localnet.faults.kinds import Fault, FaultKind

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Collection

_COLUMNS = "SELECT id, kind, remaining, hits, methods, seed, options, held FROM faults ORDER BY id"


def add(connection: sqlite3.Connection, fault: Fault) -> int:
    """Set a fault, and return its number."""
    own = {
        "seconds": fault.seconds,
        "ledgers": fault.ledgers,
        "key": None if fault.key is None else fault.key.hex(),
        "owner": fault.owner,
        "carried_out": fault.carried_out,
    }
    cursor = connection.execute(
        "INSERT INTO faults (kind, remaining, hits, methods, seed, options, held)"
        " VALUES (?, ?, 0, ?, ?, ?, '[]')",
        (fault.kind, fault.count, json.dumps(fault.methods), fault.seed, json.dumps(own)),
    )
    return present(cursor.lastrowid)


def everything(connection: sqlite3.Connection) -> list[Fault]:
    """What is set, in the order in which it was."""
    return [_fault(row) for row in connection.execute(_COLUMNS)]


def clear(connection: sqlite3.Connection) -> int:
    """Remove all faults; returns how many there were."""
    return connection.execute("DELETE FROM faults").rowcount


def find(
    connection: sqlite3.Connection, names: Collection[str], kinds: Collection[FaultKind]
) -> Fault | None:
    """The fault of one of these kinds that hits a request for these methods: the one that was set first."""
    for fault in everything(connection):
        if fault.kind in kinds and fault.concerns(names):
            return fault
    return None


def take(
    connection: sqlite3.Connection, names: Collection[str], kinds: Collection[FaultKind]
) -> Fault | None:
    """Use up one hit of what `find` finds. The fault is returned as it was before."""
    fault = find(connection, names, kinds)
    if fault is not None:
        connection.execute(
            "UPDATE faults SET remaining = remaining - 1, hits = hits + 1 WHERE id = ?", (fault.id,)
        )
        connection.execute("DELETE FROM faults WHERE id = ? AND remaining = 0", (fault.id,))
    return fault


def hold(connection: sqlite3.Connection, fault: Fault, transaction_hash: str) -> None:
    """Remember a transaction that a fault keeps from its ledger, as long as there is the fault."""
    held = json.dumps([*fault.held, transaction_hash])
    connection.execute("UPDATE faults SET held = ? WHERE id = ?", (held, fault.id))


def _fault(row: tuple[Any, ...]) -> Fault:
    number, kind, remaining, hits, methods, seed, own, held = row
    options = json.loads(own)
    key = options.pop("key")
    fault = Fault(cast("FaultKind", kind), remaining, tuple(json.loads(methods)), seed, **options)
    key = None if key is None else bytes.fromhex(key)
    return replace(fault, key=key, id=number, hits=hits, held=tuple(json.loads(held)))
