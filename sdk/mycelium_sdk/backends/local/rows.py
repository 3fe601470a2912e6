"""A record as it is stored: where it stands in canonical order, what it is equal to, and its text."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, NamedTuple

from mycelium_sdk.canonical import fragment, order_key, order_keys, record_from_fragment
from mycelium_sdk.errors import NonCanonical
from mycelium_sdk.records import Record

if TYPE_CHECKING:
    from collections.abc import Iterable

PREFIX_BYTES = 64
"""So much of an order key is kept; a longer one is cut there and told apart by a digest."""

_SEVERAL = 2

_digest = hashlib.blake2b(digest_size=16)
"""Copied for each key: that takes less than to begin anew."""


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
    identity, tags = distinct(record.content, record.tags)
    return Row(_cut(order_key(record)), identity, fragment(record) if text is None else text, tags)


def keys_of(contents: Iterable[str], tags: Iterable[tuple[str, ...]]) -> list[bytes]:
    """The keys of many records, given in columns; the tags of each are sorted."""
    return list(map(_cut, order_keys(contents, tags)))


def distinct(content: str, tags: tuple[str, ...]) -> tuple[bytes | None, tuple[str, ...]]:
    """The `identity` and the `tags` of a record's row."""
    if len(tags) < _SEVERAL:
        return None, tags
    different = tuple(sorted(set(tags)))
    if len(different) == len(tags):
        return None, different
    return _cut(order_key(Record(content, different))), different


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


def _cut(full: bytes) -> bytes:
    if len(full) <= PREFIX_BYTES:
        return full
    digest = _digest.copy()
    digest.update(full)
    return full[:PREFIX_BYTES] + digest.digest()
