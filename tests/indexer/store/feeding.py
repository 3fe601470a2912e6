"""Feeding a store by hand: pages of made-up anchors, and what came of them."""

from __future__ import annotations

import dataclasses
import hashlib
from typing import TYPE_CHECKING

from mycelium_indexer.values import Batch, IndexedAnchor, Progress
from mycelium_sdk.strkey import encode_account, encode_contract

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mycelium_indexer.store.base import IndexStore
    from mycelium_indexer.values import SetAside, Source
    from mycelium_sdk.chain.anchors import Anchor

NETWORK = "Test Network ; a 'quoted' one"
CONTRACT = encode_contract(hashlib.sha256(b"contract").digest())


def owner(number: int) -> str:
    return encode_account(hashlib.sha256(b"owner %d" % number).digest())


ALICE, BOB = owner(1), owner(2)


def event(anchor: Anchor, ledger: int, number: int = 1) -> IndexedAnchor:
    """The anchor as the event of the ledger's n-th transaction."""
    identity = f"{ledger << 32 | number << 12:019d}-{0:010d}"
    return IndexedAnchor(anchor, ledger, hashlib.sha256(identity.encode()).hexdigest(), identity)


def state(anchor: Anchor) -> IndexedAnchor:
    """The anchor as the contract's state has it."""
    return IndexedAnchor(anchor, None, None, None)


def progress(ledger: int, **change: object) -> Progress:
    found = Progress(
        cursor=f"{(ledger + 1 << 32) - 1:019d}-4294967295", ledger=ledger,
        close_time=1_800_000_000 + 5 * ledger, landmark=None, latest_ledger=ledger, asked_at=1.5,
        first_ledger=1,
    )  # fmt: skip
    return dataclasses.replace(found, **change)  # type: ignore[arg-type]


class Feed:
    """One source of a store, fed page after page."""

    def __init__(self, store: IndexStore, contract: str = CONTRACT) -> None:
        self.store = store
        self.source: Source = store.source(NETWORK, contract, "")

    def page(self, ledger: int, *anchors: Anchor | IndexedAnchor, aside: Sequence[SetAside] = ()) -> bool:
        """A page that ends with this ledger, where anchors were made by its transactions."""
        found = [
            one if isinstance(one, IndexedAnchor) else event(one, ledger, number)
            for number, one in enumerate(anchors, 1)
        ]
        known = self.store.progress(self.source)
        batch = Batch(tuple(found), tuple(aside), progress(ledger))
        return self.store.apply(self.source, batch, after=None if known is None else known.cursor)

    def versions(self, name: str = ALICE) -> list[int]:
        found = self.store.history(self.source, name, below=None, limit=1000)
        return [one.anchor.version for one in found]

    def gaps(self, name: str | None = ALICE) -> list[tuple[int, int]]:
        return [(gap.first, gap.last) for gap in self.store.gaps(self.source, name)]

    def latest(self, name: str = ALICE) -> IndexedAnchor:
        found = self.store.latest(self.source, name)
        assert found is not None
        return found
