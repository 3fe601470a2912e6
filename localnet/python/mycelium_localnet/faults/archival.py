"""Which entries the fault `archive` takes away."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from stellar_sdk import StrKey

from mycelium_localnet import keys, pack

if TYPE_CHECKING:
    import sqlite3

    from mycelium_localnet.faults.kinds import Fault

# LedgerKey of a contract's instance: type, the contract's address, a key without a value, durability.
_INSTANCE: Final = pack.u32(20)  # SCV_LEDGER_KEY_CONTRACT_INSTANCE
_INSTANCE_AT: Final = slice(40, 44)


def wanted_keys(connection: sqlite3.Connection, fault: Fault) -> list[bytes]:
    """LedgerKeys of the entry that the fault names, or of the contract data whose keys hold the owner's
    address, or of all contract data. Instances and code only by their key."""
    if fault.key is not None:
        return [fault.key]
    # SCAddress of an account: its type, the key's type, the key.
    part = b"" if fault.owner is None else bytes(8) + StrKey.decode_ed25519_public_key(fault.owner)
    rows = connection.execute(
        "SELECT key FROM entries WHERE type = ? AND instr(key, ?) > 0 ORDER BY key",
        (keys.CONTRACT_DATA, part),
    )
    return [key for (key,) in rows if keys.is_persistent(key) and key[_INSTANCE_AT] != _INSTANCE]
