"""What the indexer keeps and gives: values without behaviour, shared by ingester, store and API."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mycelium_sdk.chain.anchors import Anchor

__all__ = [
    "Batch",
    "Gap",
    "IndexedAnchor",
    "Landmark",
    "LedgerRange",
    "OwnerPage",
    "Position",
    "Progress",
    "Repaired",
    "SetAside",
    "Source",
    "Totals",
]


@dataclass(frozen=True, slots=True)
class Source:
    """One contract on one chain: `id` within the database; `network`: the passphrase; `contract`: the
    C-address.

    `chain_id` is '' where the network serves none. `epoch` counts from 1 the chains that this network and
    contract were seen on: a network that started anew is another source, and only one of them is current.
    """

    id: int
    network: str
    contract: str
    chain_id: str
    epoch: int
    current: bool


@dataclass(frozen=True, slots=True)
class IndexedAnchor:
    """An anchor and where it was made.

    `event_id` orders all events of a chain and is None for an anchor that was read from the contract's state
    or given by somebody who kept it. `ledger` and `transaction` (hex) are None where they are not known.
    """

    anchor: Anchor
    ledger: int | None
    transaction: str | None
    event_id: str | None


@dataclass(frozen=True, slots=True)
class Gap:
    """Versions of an owner, both ends included, that are not in the database, and since which ledger that is
    known."""

    owner: str
    first: int
    last: int
    noticed_ledger: int


@dataclass(frozen=True, slots=True)
class LedgerRange:
    """Ledgers, both ends included, whose events a server dropped before they were read: owners who anchored
    in them and never since are not known."""

    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Repaired:
    """What a list of kept anchors brought: `filled` were missing and are in now. `unproved` were left out,
    since nothing in the database commits to them: another one between is missing, or the owner is not
    known."""

    filled: int
    unproved: int


@dataclass(frozen=True, slots=True)
class SetAside:
    """An event that is no anchor, though the contract emitted it; the reason holds nothing of its data."""

    event_id: str
    ledger: int
    transaction: str
    reason: str


@dataclass(frozen=True, slots=True)
class Landmark:
    """A ledger and its hash (hex), by which a chain that started anew is noticed."""

    ledger: int
    hash: str


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a source has been followed.

    `cursor`: where to go on. `ledger`: everything up to it is in, and `close_time` is when it closed, or an
    earlier one (Unix seconds). `landmark`: where the chain serves no id. `latest_ledger`: the server's when
    it was last asked, and `asked_at` (Unix seconds) when. `first_ledger`: where following began.
    """

    cursor: str
    ledger: int
    close_time: int
    landmark: Landmark | None
    latest_ledger: int
    asked_at: float
    first_ledger: int

    def lag(self, now: float) -> float:
        """Seconds by which the answers may be behind the chain."""
        return max(0.0, now - self.close_time)


@dataclass(frozen=True, slots=True)
class Batch:
    """What one page of events brings, in the chain's order, with the progress that it makes."""

    anchors: tuple[IndexedAnchor, ...]
    set_aside: tuple[SetAside, ...]
    progress: Progress


@dataclass(frozen=True, slots=True)
class Position:
    """A place in a list, for going on after it: the sort key of the last item that was given."""

    order: int
    owner: str


@dataclass(frozen=True, slots=True)
class OwnerPage:
    """Latest anchors of owners, newest first, and where to go on, None at the end."""

    items: tuple[IndexedAnchor, ...]
    following: Position | None


@dataclass(frozen=True, slots=True)
class Totals:
    """How much a source holds."""

    owners: int
    anchors: int
    gaps: int
    set_aside: int
