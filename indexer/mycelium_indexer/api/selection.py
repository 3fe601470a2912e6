"""Which network and contract a request is about, and how far those have been followed."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mycelium_indexer.api.problems import Refusal

if TYPE_CHECKING:
    from mycelium_indexer.api.settings import ApiSettings
    from mycelium_indexer.store.base import IndexStore
    from mycelium_indexer.values import Progress, Source

__all__ = ["UNKNOWN", "Selector", "Standing"]

UNKNOWN: dict[str, Any] = {"contract": None, "network": None, "as_of_ledger": None, "lag": None}
"""What an answer says of its standing when it has none."""

_RETRY_SECONDS = "5"


@dataclass(frozen=True, slots=True)
class Standing:
    """A source and how far it had been followed before the answer was read: everything up to that ledger is
    in the answer, and what came later may be."""

    source: Source
    progress: Progress

    def members(self, now: float) -> dict[str, Any]:
        """What every JSON answer carries."""
        return {
            "contract": self.source.contract,
            "network": self.source.network,
            "as_of_ledger": self.progress.ledger,
            "lag": round(self.progress.lag(now), 3),
        }


class Selector:
    """Finds sources. Remembers for a moment what it found, so that most requests ask the database once.

    The memory is bounded: only what is in the database is remembered. May be used from many threads.
    """

    def __init__(self, store: IndexStore, settings: ApiSettings) -> None:
        self._store = store
        self._settings = settings
        self._lock = threading.Lock()
        self._found: dict[tuple[str | None, str | None], tuple[float, Standing]] = {}

    def select(self, network: str | None = None, contract: str | None = None) -> Standing:
        """The standing of a network (passphrase) and contract, each the configured one unless given.

        Raises:
            Refusal: there is none, it is not the only one, or nothing was ingested yet.
            BackendError: the database cannot be used.
        """
        key = (network, contract)
        now = self._settings.clock()
        with self._lock:
            remembered = self._found.get(key)
        if remembered is not None and 0 <= now - remembered[0] < self._settings.standing_seconds:
            return remembered[1]
        source = self._source(network, contract)
        progress = self._store.progress(source)
        if progress is None:
            raise _nothing_ingested()
        standing = Standing(source, progress)
        with self._lock:
            self._found[key] = (now, standing)
        return standing

    def remembered(self) -> dict[str, Any]:
        """What is remembered of the configured source, for answers that do not ask the database."""
        with self._lock:
            remembered = self._found.get((None, None))
        return dict(UNKNOWN) if remembered is None else remembered[1].members(self._settings.clock())

    def _source(self, network: str | None, contract: str | None) -> Source:
        chosen_network = network or self._settings.network
        chosen_contract = contract or self._settings.contract
        if chosen_network is not None and chosen_contract is not None:
            source = self._store.find_source(chosen_network, chosen_contract)
            found = [] if source is None else [source]
        else:
            found = [
                source
                for source in self._store.sources()
                if source.current
                and source.network == (chosen_network or source.network)
                and source.contract == (chosen_contract or source.contract)
            ]
        if len(found) == 1:
            return found[0]
        if found:
            raise Refusal(
                "ambiguous-source",
                "there is more than one: name one by the parameters `network` and `contract`",
                members=UNKNOWN,
            )
        if (chosen_network, chosen_contract) == (self._settings.network, self._settings.contract):
            raise _nothing_ingested()  # also for who names what is the configured one anyway
        raise Refusal("unknown-source", "this index does not follow that contract there", members=UNKNOWN)


def _nothing_ingested() -> Refusal:
    # Not 404: that an owner has no anchor can only be said by an index that has looked.
    return Refusal(
        "nothing-ingested",
        "the first events of this contract are still to come; ask again",
        members=UNKNOWN,
        headers={"Retry-After": _RETRY_SECONDS},
    )
