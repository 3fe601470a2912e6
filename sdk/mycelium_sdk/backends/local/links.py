"""What a memory file was given when it was anchored or loaded, by which an old copy of it is told from it.

One link for each chain, in the store's sealed row, so that none can be carried over to another copy: 16 bytes
of a digest of the chain's name, then the 16 bytes of the link.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from mycelium_sdk.backends.local.seals import Head
from mycelium_sdk.errors import InputError, IntegrityKeyMissing, Tampered

if TYPE_CHECKING:
    import sqlite3

    from mycelium_sdk.backends.local.seals import Sealers

_BYTES = 16


def find(connection: sqlite3.Connection, sealers: Sealers, chain: str) -> bytes | None:
    """The link for this chain; None if there is none, or nothing vouches for it."""
    try:
        head, _ = Head.read(connection, sealers.of)
    except (Tampered, IntegrityKeyMissing):
        return None
    return _taken_apart(head.links).get(_digest(chain))


def put(connection: sqlite3.Connection, sealers: Sealers, chain: str, link: bytes | None) -> None:
    """Set or drop the link for this chain; nothing, where nothing vouches for the store's row.

    Raises `InputError` for a link of another length than 16 bytes.
    """
    if link is not None and len(link) != _BYTES:
        raise InputError(f"a link has {_BYTES} bytes")
    try:
        head, sealer = Head.read(connection, sealers.of)
    except (Tampered, IntegrityKeyMissing):
        return
    links = _taken_apart(head.links)
    links.pop(_digest(chain), None)
    if link is not None:
        links[_digest(chain)] = link
    head.links = b"".join(digest + links[digest] for digest in sorted(links))
    head.write(connection, sealer)


def _digest(chain: str) -> bytes:
    return hashlib.sha256(chain.encode("utf-8")).digest()[:_BYTES]


def _taken_apart(links: bytes) -> dict[bytes, bytes]:
    pairs = (links[start : start + 2 * _BYTES] for start in range(0, len(links), 2 * _BYTES))
    return {pair[:_BYTES]: pair[_BYTES:] for pair in pairs}
