"""The part of `AgentMemory` that is about other machines and other versions."""

from __future__ import annotations

import abc
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from mycelium_sdk.chain.history import AnchorHistory
    from mycelium_sdk.chain.keeping import Kept, Offer
    from mycelium_sdk.memory.commitment import Commitment
    from mycelium_sdk.memory.past import Difference, Purged
    from mycelium_sdk.memory.portability import Synced
    from mycelium_sdk.memory.publishing import Publish
    from mycelium_sdk.memory.sources import Fetch

__all__ = ["PortableMemory"]


class PortableMemory(abc.ABC):
    """Sync, history and keeping the anchor alive."""

    @property
    @abc.abstractmethod
    def _commitment(self) -> Commitment: ...

    @property
    @abc.abstractmethod
    def is_dirty(self) -> bool:
        """Whether there are writes that are not anchored on this network and contract."""

    def sync(self, fetch: Fetch | None = None, publish: Publish | None = None) -> Synced:
        """Bring this memory and the anchored one together, and anchor what comes of it.

        For several machines with one wallet. What another machine anchored is fetched, verified and merged:
        what either side forgot since both last agreed is forgotten, what either side remembered is kept, and
        of a forget and a remember of the same memory the remember wins (remembering again what is still held
        is no write). That the other side remembered again what it had forgotten is told by the times in its
        context file: without that file, or where its clock is behind, a forget here counts. If another
        machine anchors at the same moment it begins again, after a pause. Once every machine has synced
        without a write in between, all hold the same.

        `fetch` as for `rehydrate`, `publish` as for `anchor`. Raises as those two do, with nothing lost;
        `VersionConflict` if others are quicker again and again.
        """
        return self._commitment.portability.sync(fetch, publish, lambda: self.is_dirty)

    def history(self) -> AnchorHistory:
        """Every version that is still known of, newest first: root, URI, time, ledger, transaction.

        Each is proved by the anchor on the chain, which commits to the one before it, and so on (not on older
        deployments: `verified` is False there). How far back it goes depends on what the RPC server, or the
        indexer, still has: `complete` says whether to version 1, `notes` if the indexer was of no use.

        Raises:
            NotAnchored: there is none. Tampered, WrongOwner: somebody serves a false history.
            ChainError, Rollback, Fork: see `verify`; also if the indexer contradicts the chain.
        """
        return self._commitment.portability.history()

    def diff(self, first: int, second: int | None = None, fetch: Fetch | None = None) -> Difference:
        """What was added and what was removed from version `first` to version `second`, or to the memory as
        it is here.

        Raises InputError for a version that is not in the history; BlobError and its kinds, or Tampered, if a
        version's blob is not to be had.
        """
        return self._commitment.portability.difference(first, second, fetch)

    def purge(self, versions: Iterable[int] | None = None) -> list[Purged]:
        """Remove the published copies of these versions from `blobs/` and from their `file://` places;
        without `versions`, of all but the latest. Each file that was removed.

        What was forgotten is in older versions still. Copies in other people's hands, and on servers, are out
        of reach. The latest version's blob is never removed: loading the memory needs it.
        """
        return self._commitment.portability.purge(versions)

    def keep_alive(
        self, *, include_contract: bool = False, accept: Callable[[Offer], bool] = lambda _: True
    ) -> list[Kept]:
        """Extend the anchor's time to live if less than 30 days are left, and restore it if it was archived.

        `include_contract`: the contract and its code as well, which costs more than a hundred anchors.
        `accept` is asked before each transaction, with its price in stroops. How long each part lives now, in
        ledgers.

        Raises:
            NotAnchored: there is no anchor. ChainError: it had no effect, or as `anchor`.
        """
        return self._commitment.portability.keep_alive(accept, include_contract=include_contract)
