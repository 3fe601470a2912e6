"""Telling whether a server still serves the chain that was followed, or one that started anew."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mycelium_indexer.values import Landmark
from mycelium_sdk.errors import ChainUnavailable

if TYPE_CHECKING:
    from mycelium_indexer.values import Progress
    from mycelium_sdk.chain.base import ChainClient, EventPage
    from mycelium_sdk.retry import Pace

__all__ = ["ChainWatch"]

_LOOK_AGAIN_SECONDS = 60.0
"""For so long a chain without events is taken to be the same one."""


class ChainWatch:
    """Looks at a chain's ledger hashes: a chain that started anew, or was put back to an earlier state and
    went on differently, has others.

    The bodies of ledgers come with their hashes, so this is asked for when there is something to decide.
    """

    def __init__(self, chain: ChainClient, pace: Pace) -> None:
        self._chain = chain
        self._monotonic = pace.monotonic
        self._looked_at: float | None = None

    def is_due(self) -> bool:
        """Whether it is long ago that the chain was looked at."""
        return self._looked_at is None or self._monotonic() - self._looked_at >= _LOOK_AGAIN_SECONDS

    def landmark(self, ledger: int) -> Landmark | None:
        """The hash of a ledger, by which to know the chain again; None where the server does not tell."""
        head = self._chain.ledger(ledger)
        return None if head is None else Landmark(head.sequence, head.hash)

    def is_same(self, progress: Progress, tip: EventPage) -> bool:
        """Whether the chain that gave the page is the one that was followed, as far as can be told.

        Raises:
            ChainUnavailable: the server is behind what was read before; nothing can be told yet.
        """
        known = progress.landmark
        if known is not None and tip.oldest_ledger <= known.ledger <= tip.latest_ledger:
            found = self.landmark(known.ledger)
            if found is not None and found != known:
                return False
        if tip.latest_ledger < progress.ledger:
            # One chain's ledgers close one after the other: a lower one that closed later is another's.
            if tip.latest_close_time > progress.close_time:
                return False
            raise ChainUnavailable(
                f"the server is at ledger {tip.latest_ledger}, behind ledger {progress.ledger} that was read"
                " before",
                hint="wait for the server to catch up, or use another one",
            )
        self._looked_at = self._monotonic()
        return True
