"""One look at the chain, as a value, and what is needed of a chain to take one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from mycelium_sdk.chain.anchors import previous_of
from mycelium_sdk.errors import Fork
from mycelium_sdk.facts import ChainKey, Mark

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mycelium_sdk.chain.anchors import Anchor
    from mycelium_sdk.chain.base import ChainIdentity, EntryState
    from mycelium_sdk.chain.history import HistorySource, NamedSource
    from mycelium_sdk.state import StateStore

__all__ = ["AnchorSource", "HistoricSource", "Sighting", "entry_of", "fork"]


class AnchorSource(Protocol):
    """What is needed of the contract's client to read an owner's anchor."""

    @property
    def contract_id(self) -> str:
        """The contract's C-address."""
        ...

    def identity(self) -> ChainIdentity:
        """The network and its latest ledger, 0 where there is no chain yet."""
        ...

    def get_anchor(self, owner: str) -> Anchor | None:
        """The owner's anchor, None if there is none; an archived one is returned."""
        ...

    def entry_state(self, owner: str) -> EntryState:
        """Whether the owner's entry is live, expiring, archived or absent."""
        ...


class HistoricSource(AnchorSource, Protocol):
    """One that also knows who serves histories."""

    def history_sources(self) -> Sequence[HistorySource | NamedSource]:
        """Who may know the owner's past anchors; what they say is proved before it is used."""
        ...


@dataclass(frozen=True, slots=True)
class Sighting:
    """One look at the chain: the anchor (None: never anchored), the latest ledger and its close time (Unix
    seconds) then, and which chain it was.

    `proved_from`: the lowest version from which on every anchor is proved to lead to this one; 0 without one.
    """

    key: ChainKey
    anchor: Anchor | None
    ledger: int
    close_time: int
    proved_from: int = 0

    @property
    def version(self) -> int:
        """The anchor's version, 0 if never anchored."""
        return 0 if self.anchor is None else self.anchor.version

    @property
    def mark(self) -> Mark | None:
        """The sighting as a high-water mark."""
        if self.anchor is None:
            return None
        return Mark(
            self.anchor.version,
            self.anchor.root,
            self.ledger,
            entry_of(self.anchor),
            self.proved_from or None,
        )


def entry_of(anchor: Anchor) -> bytes | None:
    """What the anchor after this one carries as `previous`; None for an older deployment's."""
    return None if anchor.previous is None else previous_of(anchor)


def fork(state: StateStore, key: ChainKey, message: str, *, seen: Mark | None, known: Mark) -> Fork:
    """The error that what is `seen` contradicts what is `known`; the evidence is kept."""
    state.keep_evidence(key, "FORK", seen, known)
    return Fork(message)
