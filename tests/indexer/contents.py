"""Everything that a store holds of a source, for comparing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mycelium_indexer.store.base import IndexStore
    from mycelium_indexer.values import Source

__all__ = ["contents"]


def contents(store: IndexStore, source: Source) -> dict[str, Any]:
    """All of it, but for when it was asked, and the numbers that the database gives its rows."""
    owners = store.known_owners(source, after=None, limit=1_000_000)
    progress = store.progress(source)
    assert progress is not None
    return {
        "cursor": progress.cursor,
        "ledger": progress.ledger,
        "close_time": progress.close_time,
        "first_ledger": progress.first_ledger,
        "owners": owners,
        "listed": store.owners(source, after=None, limit=1_000_000).items,
        "anchors": {name: store.history(source, name, below=None, limit=1_000_000) for name, _ in owners},
        "gaps": store.gaps(source),
        "missed": store.missed(source),
        "set_aside": store.set_aside(source, limit=1_000_000),
        "totals": store.totals(source),
    }
