"""Rows of the tables as values, and values as rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mycelium_indexer.store import tables
from mycelium_indexer.values import IndexedAnchor, Landmark, Progress, Source
from mycelium_sdk.chain.anchors import Anchor

if TYPE_CHECKING:
    from sqlalchemy import Row

__all__ = [
    "ANCHOR_COLUMNS",
    "anchor_of",
    "anchor_row",
    "place_row",
    "progress_of",
    "progress_row",
    "source_of",
]

_anchors = tables.anchors.c

ANCHOR_COLUMNS = (
    _anchors.version,
    _anchors.root,
    _anchors.uri,
    _anchors.acl,
    _anchors.previous,
    _anchors.timestamp,
    _anchors.ledger,
    _anchors.transaction,
    _anchors.event_id,
)
"""What `anchor_of` reads, in its order."""


def anchor_of(owner: str, columns: tuple[Any, ...]) -> IndexedAnchor:
    """An owner's anchor, of the `ANCHOR_COLUMNS`."""
    version, root, uri, acl, previous, timestamp, ledger, transaction, event_id = columns
    return IndexedAnchor(
        Anchor(owner, version, root, uri, acl, previous, timestamp),
        ledger,
        None if transaction is None else transaction.hex(),
        event_id,
    )


def anchor_row(owner_id: int | None, source_id: int, one: IndexedAnchor) -> dict[str, Any]:
    """The row of an anchor; of an owner that has no id yet, without it."""
    anchor = one.anchor
    return {
        "owner": owner_id,
        "source": source_id,
        "version": anchor.version,
        "root": anchor.root,
        "uri": anchor.uri,
        "acl": anchor.acl,
        "previous": anchor.previous,
        "timestamp": anchor.timestamp,
        **place_row(one),
    }


def place_row(one: IndexedAnchor) -> dict[str, Any]:
    """The columns that say where an anchor was made."""
    return {
        "ledger": one.ledger,
        "transaction": None if one.transaction is None else bytes.fromhex(one.transaction),
        "event_id": one.event_id,
    }


def source_of(row: Row[Any]) -> Source:
    """A source, of a row of `sources`."""
    return Source(row.id, row.network, row.contract, row.chain_id, row.epoch, row.current)


def progress_of(row: Row[Any]) -> Progress | None:
    """How far it is, of a row of `sources`; None before the first page."""
    if row.cursor is None:
        return None
    landmark = None if row.landmark_ledger is None else Landmark(row.landmark_ledger, row.landmark_hash)
    return Progress(
        cursor=row.cursor,
        ledger=row.ledger,
        close_time=row.close_time,
        landmark=landmark,
        latest_ledger=row.latest_ledger,
        asked_at=row.asked_at,
        first_ledger=row.first_ledger,
    )


def progress_row(progress: Progress) -> dict[str, Any]:
    """The columns of `sources` that say how far it is."""
    landmark = progress.landmark
    return {
        "cursor": progress.cursor,
        "ledger": progress.ledger,
        "close_time": progress.close_time,
        "landmark_ledger": None if landmark is None else landmark.ledger,
        "landmark_hash": None if landmark is None else landmark.hash,
        "latest_ledger": progress.latest_ledger,
        "asked_at": progress.asked_at,
        "first_ledger": progress.first_ledger,
    }
