"""A record as it is stored: where it stands in canonical order, what it is equal to, and its text."""

from __future__ import annotations

import hashlib
from typing import Any, NamedTuple

from mycelium_sdk.canonical import fragment, order_key, record_from_fragment
from mycelium_sdk.errors import NonCanonical
from mycelium_sdk.records import Record

PREFIX_BYTES = 64
"""So much of an order key is kept; a longer one is cut there and told apart by a digest."""

_DIGEST_BYTES = 16


class Row(NamedTuple):
    """`key`: the order key, or what is kept of it. `identity`: for a record with repeated tags, which older
    blobs have, the key that it would have without the repeats, else None. `tags` are distinct."""

    key: bytes
    identity: bytes | None
    fragment: str
    tags: tuple[str, ...]


class Stored(NamedTuple):
    """A row of `memories`, in the order of `STORED`."""

    id: int
    key: bytes
    identity: bytes | None
    copies: int
    session: str | None
    time: float | None
    fragment: str


STORED = "id, key, identity, copies, session, time, fragment"


def row_of(record: Record, text: str | None = None) -> Row:
    """The row of a record; `text` is its fragment where that is known already."""
    tags = record.tags
    if len(tags) > 1:
        tags = tuple(sorted(set(tags)))
    identity = None if len(tags) == len(record.tags) else _key(Record(record.content, tags))
    return Row(_key(record), identity, fragment(record) if text is None else text, tags)


def alike(key: bytes, other: bytes) -> bool:
    """Whether the order of two keys is open, since both were cut at the same place."""
    return len(key) > PREFIX_BYTES < len(other) and key[:PREFIX_BYTES] == other[:PREFIX_BYTES]


def row_again(row: Stored) -> Row | None:
    """The row that the text itself gives, None if the text is no record."""
    try:
        return row_of(record_from_fragment(row.fragment), row.fragment)
    except NonCanonical:
        return None


def full_key(text: Any) -> bytes:
    """The whole order key of a fragment; of what is no record, one that sorts before all."""
    try:
        return order_key(record_from_fragment(text))
    except NonCanonical:
        return b""


def _key(record: Record) -> bytes:
    full = order_key(record)
    if len(full) <= PREFIX_BYTES:
        return full
    return full[:PREFIX_BYTES] + hashlib.blake2b(full, digest_size=_DIGEST_BYTES).digest()
