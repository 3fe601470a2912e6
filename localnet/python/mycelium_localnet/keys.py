"""Ledger keys as bytes: building the few that the chain needs, and telling kinds apart without decoding."""

from __future__ import annotations

from hashlib import sha256
from typing import Final

ACCOUNT: Final = 0
CONTRACT_DATA: Final = 6
CONTRACT_CODE: Final = 7
CONFIG_SETTING: Final = 8
TTL: Final = 9


def entry_type(key: bytes) -> int:
    """The LedgerEntryType of a LedgerKey."""
    return int.from_bytes(key[:4], "big")


def account(public_key: bytes) -> bytes:
    """LedgerKey of the account of a raw ed25519 public key."""
    return bytes(8) + public_key


def account_of(key: bytes) -> bytes:
    """The raw public key that an account's LedgerKey names."""
    return key[-32:]


def config_setting(identifier: int) -> bytes:
    """LedgerKey of a config setting entry."""
    return CONFIG_SETTING.to_bytes(4, "big") + identifier.to_bytes(4, "big")


def ttl_hash(key: bytes) -> bytes:
    """What a TTL entry names its entry by: the SHA-256 of the LedgerKey."""
    return sha256(key).digest()


def has_ttl(key: bytes) -> bool:
    """Whether the entry is subject to TTL and archival: contract data and contract code."""
    return entry_type(key) in (CONTRACT_DATA, CONTRACT_CODE)


def is_temporary(key: bytes) -> bool:
    """Whether it is temporary contract data; its durability is the last field of the key."""
    return entry_type(key) == CONTRACT_DATA and key[-4:] == bytes(4)


def is_persistent(key: bytes) -> bool:
    """Whether the entry is archived, rather than lost, when its TTL ends."""
    return has_ttl(key) and not is_temporary(key)
