"""What the numbers and names of an answer about a chain can be; nothing else is taken in, from nobody.

Databases, dates and XDR hold so much and no more, and what a server chooses reaches all of them.
"""

from __future__ import annotations

import re

__all__ = [
    "chain_id",
    "hash_text",
    "is_hash",
    "is_ledger",
    "is_moment",
    "is_version",
    "ledger",
    "moment",
]

_FIRST_TOO_LATE = 253_370_764_800  # 9999-01-01: dates go so far in every time zone, and no further
_CHAIN_ID = re.compile(r"[!-~]{1,128}", re.ASCII)
_HASH = re.compile(r"[0-9a-f]{64}", re.ASCII)


def is_version(number: int) -> bool:
    """Whether an anchor can have this version: the contract counts from 1, by ones."""
    return 1 <= number < 1 << 63


def is_hash(text: str) -> bool:
    """Whether this is a hash of 32 bytes in lower-case hexadecimal."""
    return _HASH.fullmatch(text) is not None


def is_ledger(number: int) -> bool:
    """Whether a ledger can have this number, or it says that there is none (0)."""
    return 0 <= number < 1 << 32


def is_moment(seconds: int) -> bool:
    """Whether a ledger can have closed then (Unix seconds): before the year 9999."""
    return 0 <= seconds < _FIRST_TOO_LATE


def ledger(number: int, *, least: int = 0) -> int:
    """A ledger's sequence number, from `least`. Raises ValueError."""
    if not is_ledger(number) or number < least:
        raise ValueError("a ledger that cannot be")
    return number


def moment(seconds: int) -> int:
    """When a ledger closed, in Unix seconds. Raises ValueError."""
    if not is_moment(seconds):
        raise ValueError("a time that cannot be")
    return seconds


def chain_id(text: object) -> str | None:
    """The name of a chain, None for a chain without one. Raises ValueError."""
    if text is None:
        return None
    if not isinstance(text, str) or _CHAIN_ID.fullmatch(text) is None:
        raise ValueError("a chain's name that cannot be")
    return text


def hash_text(text: str) -> str:
    """A hash of 32 bytes in lower-case hexadecimal. Raises ValueError."""
    if not is_hash(text):
        raise ValueError("a hash that is none")
    return text
