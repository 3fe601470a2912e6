"""Anchors, histories and lists of owners as JSON, read from the store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mycelium_indexer.api.cursors import history_cursor, history_place, owners_cursor, owners_place
from mycelium_indexer.api.problems import Refusal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mycelium_indexer.api.selection import Standing
    from mycelium_indexer.store.base import IndexStore
    from mycelium_indexer.values import Gap, IndexedAnchor

__all__ = ["anchor_as_json", "history_state", "latest_state", "owners_state"]

_LOOKS = 3
"""How often a history is read at most, when anchors arrive between its queries."""


def anchor_as_json(indexed: IndexedAnchor) -> dict[str, Any]:
    """An anchor as formats.md section 7 has it: bytes in lower-case hex, `uri` null unless it is UTF-8."""
    anchor = indexed.anchor
    return {
        "owner": anchor.owner,
        "version": anchor.version,
        "root": anchor.root.hex(),
        "uri": anchor.uri_text,
        "uri_hex": anchor.uri.hex(),
        "acl_hex": anchor.acl.hex(),
        "previous": None if anchor.previous is None else anchor.previous.hex(),
        "timestamp": anchor.timestamp,
        "ledger": indexed.ledger,
        "tx": indexed.transaction,
    }


def latest_state(store: IndexStore, standing: Standing, owner: str) -> dict[str, Any]:
    """The owner's newest anchor. Raises Refusal if there is none."""
    found = store.latest(standing.source, owner)
    if found is None:
        raise _unknown_owner(store, standing)
    return anchor_as_json(found)


def history_state(
    store: IndexStore, standing: Standing, owner: str, *, cursor: str | None, limit: int
) -> dict[str, Any]:
    """A page of an owner's anchors, newest first, with what is missing of the whole history.

    Raises Refusal if the owner has no anchor or the cursor is none of this history.
    """
    source = standing.source
    below = None if cursor is None else history_place(source, owner, cursor)
    for _ in range(_LOOKS):
        found = store.history(source, owner, below=below, limit=limit + 1)
        gaps = store.gaps(source, owner)
        items, more = found[:limit], len(found) > limit
        if _explained(items, gaps, below=below, to_the_end=not more):
            break
    else:
        raise Refusal(
            "database-unavailable",
            "versions are missing that the index does not list as missing; ask again",
            headers={"Retry-After": "1"},
        )
    if not items and (below is None or store.latest(source, owner) is None):
        raise _unknown_owner(store, standing)
    return {
        "items": [anchor_as_json(item) for item in items],
        "next": history_cursor(source, owner, items[-1].anchor.version) if more else None,
        "complete": not gaps,
        "gaps": [
            {"first": gap.first, "last": gap.last, "noticed_ledger": gap.noticed_ledger} for gap in gaps
        ],
    }


def owners_state(store: IndexStore, standing: Standing, *, cursor: str | None, limit: int) -> dict[str, Any]:
    """A page of owners by their newest anchor, newest first. Raises Refusal for a cursor that is none."""
    source = standing.source
    after = None if cursor is None else owners_place(source, cursor)
    page = store.owners(source, after=after, limit=limit)
    following = page.following
    return {
        "items": [anchor_as_json(item) for item in page.items],
        "next": None if following is None else owners_cursor(source, following),
    }


def _explained(
    items: Sequence[IndexedAnchor], gaps: Sequence[Gap], *, below: int | None, to_the_end: bool
) -> bool:
    """Whether each version that a page passes over lies in a gap.

    Items and gaps are read one after the other: an anchor that fills a gap between the two would make a
    history with a hole look complete.
    """
    expected = below - 1 if below is not None else items[0].anchor.version if items else 0
    for version in [*(item.anchor.version for item in items), *([0] if to_the_end else [])]:
        if version < expected and not _covered(version + 1, expected, gaps):
            return False
        expected = version - 1
    return True


def _covered(first: int, last: int, gaps: Sequence[Gap]) -> bool:
    """Whether all versions from `first` to `last` lie in gaps, which come the oldest first."""
    for gap in gaps:
        if gap.first <= first <= gap.last:
            first = gap.last + 1
    return first > last


def _unknown_owner(store: IndexStore, standing: Standing) -> Refusal:
    missed = [{"first": one.first, "last": one.last} for one in store.missed(standing.source)]
    return Refusal(
        "unknown-owner",
        "no anchor of this owner was seen since `first_ledger`, apart from `missed_ledgers`",
        members={"first_ledger": standing.progress.first_ledger, "missed_ledgers": missed},
    )
