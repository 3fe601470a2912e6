"""The seam between ingester, API and database.

One set of queries serves SQLite and PostgreSQL; both pass the same tests. Writes are single transactions, so
that rows and cursor always agree, whoever is killed in the middle and however many ingesters run at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mycelium_indexer.values import (
        Batch,
        Gap,
        IndexedAnchor,
        LedgerRange,
        OwnerPage,
        Position,
        Progress,
        Repaired,
        SetAside,
        Source,
        Totals,
    )
    from mycelium_sdk.chain.anchors import Anchor

__all__ = ["IndexStore"]


class IndexStore(Protocol):
    """May be used from many threads; several processes may use one database. `open_store` opens one.

    Every method raises `BackendError` or one of its kinds when the database cannot be used.
    """

    # -- sources

    def source(self, network: str, contract: str, chain_id: str) -> Source:
        """The current source of this network (passphrase) and contract on this chain, made if there is none.

        Another chain id than the current source's makes that chain's source current, with a new epoch if it
        was never seen; the older one stays readable. '' is one chain.
        """
        ...

    def start_anew(self, source: Source) -> Source:
        """A new epoch of the source, since its chain started anew without saying so by its chain id. If the
        source is not current any more, somebody noticed before: the current one."""
        ...

    def sources(self) -> list[Source]:
        """All of them, the current ones first."""
        ...

    def find_source(self, network: str, contract: str) -> Source | None:
        """The current source of this network and contract."""
        ...

    # -- what the ingester writes

    def progress(self, source: Source) -> Progress | None:
        """How far it has been followed, None before the first page."""
        ...

    def apply(self, source: Source, batch: Batch, *, after: str | None) -> bool:
        """Take in one page, in one transaction; False, with nothing changed, if the cursor is not `after`
        any more: another ingester was quicker.

        An event that is there already changes nothing. An anchor whose version is not the one after the
        owner's newest leaves a gap for those between; an older one fills its place in a gap; one without an
        event that an event turns up for gets its place. The latest anchor of an owner never goes back. What
        contradicts an anchor that is there, by itself or by the hash chain, is set aside.
        """
        ...

    def advance(
        self, source: Source, progress: Progress, *, after: str | None, missed: LedgerRange | None = None
    ) -> bool:
        """Record progress without events: an empty page, or, with `missed`, a later place to go on from since
        the server has dropped events. False as in `apply`."""
        ...

    def take_state(self, source: Source, anchors: Iterable[IndexedAnchor], *, ledger: int) -> list[Gap]:
        """Take in owners' anchors as the contract's state had them at `ledger`, in one transaction. What lies
        between them and what was known becomes gaps, which are returned. The cursor stays."""
        ...

    def repair(self, source: Source, anchors: Iterable[Anchor]) -> Repaired:
        """Fill gaps by anchors that somebody kept, of any owners in any order, in one transaction.

        Only what the hash chain proves is taken, so without ledger and transaction, which it does not prove.

        Raises:
            Tampered: one of them is not what the next version commits to; the message names owner and
                version, and nothing was changed.
            InputError: the contract is an older deployment, whose anchors commit to nothing.
        """
        ...

    # -- what the API reads

    def latest(self, source: Source, owner: str) -> IndexedAnchor | None:
        """The owner's newest anchor."""
        ...

    def history(
        self, source: Source, owner: str, *, below: int | None, limit: int
    ) -> tuple[IndexedAnchor, ...]:
        """At most `limit` anchors of an owner, newest first, those with versions below `below`."""
        ...

    def gaps(self, source: Source, owner: str | None = None) -> list[Gap]:
        """What is missing, of one owner or of all, the oldest versions first."""
        ...

    def missed(self, source: Source) -> list[LedgerRange]:
        """Ledgers whose events were dropped before they were read, the oldest first."""
        ...

    def owners(self, source: Source, *, after: Position | None, limit: int) -> OwnerPage:
        """Owners by their newest anchor, newest first."""
        ...

    def known_owners(self, source: Source, *, after: str | None, limit: int) -> list[tuple[str, int]]:
        """Owners in the order of their addresses, each with its newest version."""
        ...

    def set_aside(self, source: Source, *, limit: int) -> list[SetAside]:
        """The events that were set aside last."""
        ...

    def totals(self, source: Source) -> Totals:
        """How much there is. Cheap: kept up to date by the writes."""
        ...

    def close(self) -> None:
        """Let go of connections. Closing twice is harmless."""
        ...
