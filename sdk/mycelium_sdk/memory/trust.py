"""What the chain says, checked against what was verified before.

One rule: a client never goes back. The highest (version, root) ever seen on a chain is kept in the state
folder, and a chain that serves less, or something else, is refused with the evidence kept.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from mycelium_sdk.errors import ChainReset, ChainUnavailable, Fork, Rollback
from mycelium_sdk.memory.cross_check import Statement, require_agreement
from mycelium_sdk.state import ChainKey, Mark, StateStore

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mycelium_sdk.chain.anchors import Anchor
    from mycelium_sdk.chain.base import ChainIdentity, EntryState

__all__ = ["MAX_LAG_LEDGERS", "AnchorSource", "Sighting", "TrustedChain"]

MAX_LAG_LEDGERS = 24
"""How far behind the highest ledger that was seen a public network's server may be: two minutes."""


class AnchorSource(Protocol):
    """What is needed of the contract's client to read an owner's anchor."""

    @property
    def contract_id(self) -> str:
        """The contract's C-address."""
        ...

    def identity(self) -> ChainIdentity:
        """The network and its latest ledger."""
        ...

    def get_anchor(self, owner: str) -> Anchor | None:
        """The owner's anchor, None if there is none; an archived one is returned."""
        ...

    def entry_state(self, owner: str) -> EntryState:
        """Whether the owner's entry is live, expiring, archived or absent."""
        ...


@dataclass(frozen=True, slots=True)
class Sighting:
    """One look at the chain: the anchor (None: never anchored), the latest ledger and its close time (Unix
    seconds) then, and which chain it was."""

    key: ChainKey
    anchor: Anchor | None
    ledger: int
    close_time: int

    @property
    def version(self) -> int:
        """The anchor's version, 0 if never anchored."""
        return 0 if self.anchor is None else self.anchor.version

    @property
    def mark(self) -> Mark | None:
        """The sighting as a high-water mark."""
        return None if self.anchor is None else Mark(self.anchor.version, self.anchor.root, self.ledger)


class TrustedChain:
    """Reads an owner's anchor and refuses to go back behind the high-water mark.

    `witnesses` gives other servers of the same network, asked each time as well; what they say must agree.
    """

    def __init__(
        self,
        source: AnchorSource,
        state: StateStore,
        owner: str,
        passphrase: str,
        witnesses: Callable[[], Sequence[AnchorSource]],
    ) -> None:
        self._source = source
        self._passphrase = passphrase
        self._state = state
        self._owner = owner
        self._witnesses = witnesses

    def look(self) -> Sighting:
        """Read the anchor and check it.

        Raises:
            ChainUnavailable: the chain could not be asked; this says nothing about the anchor.
            ChainReset: the chain started anew since something was verified on it.
            Rollback: it serves an older version than one verified before.
            Fork: it serves another root for the version verified before, or servers contradict each other.
        """
        contract, passphrase = self._source.contract_id, self._passphrase
        # What is known is read before the chain is asked: everything known by then must still hold on it.
        known = self._state.known(passphrase, contract, self._owner)
        # The ledger is read before the anchor, so that the anchor is at least as new as the ledger says.
        identity = self._source.identity()
        key = ChainKey(passphrase, contract, self._owner, identity.chain_id or "")
        # Before the contract is asked for: on a chain that was made anew it is not there.
        self._require_known_chain(key, known)
        anchor = self._source.get_anchor(self._owner)
        seen = Sighting(key, anchor, identity.latest_ledger, identity.close_time)
        self._check(seen, known)
        self._hear_witnesses(seen)
        mark = known.get(key.chain_id)
        if seen.anchor is not None and (mark is None or seen.version > mark.version):
            self._state.raise_mark(
                key, Mark(seen.version, seen.anchor.root, seen.ledger), seen.anchor.uri_text
            )
        return seen

    def _hear_witnesses(self, seen: Sighting) -> None:
        witnesses = self._witnesses()
        if not witnesses:
            return
        own = self._statement(self._source, "the configured server", seen)
        for number, witness in enumerate(witnesses, start=1):
            identity = witness.identity()
            anchor = witness.get_anchor(self._owner)
            key = replace(seen.key, chain_id=identity.chain_id or "")
            sighting = Sighting(key, anchor, identity.latest_ledger, identity.close_time)
            try:
                require_agreement(own, self._statement(witness, f"witness {number}", sighting))
            except Fork:
                self._state.keep_evidence(seen.key, "FORK", sighting.mark, seen.mark)
                raise

    def _statement(self, source: AnchorSource, name: str, seen: Sighting) -> Statement:
        written = None if seen.anchor is None else source.entry_state(self._owner).last_modified
        return Statement(name, seen.key.chain_id, seen.anchor, written, seen.ledger, seen.close_time)

    def _require_known_chain(self, key: ChainKey, known: Mapping[str, Mark]) -> None:
        if known and key.chain_id not in known:
            self._state.keep_evidence(key, "CHAIN_RESET", None, None)
            raise ChainReset("this network is another chain than the one this memory was anchored on")

    def _check(self, seen: Sighting, known: Mapping[str, Mark]) -> None:
        mark = known.get(seen.key.chain_id)
        if mark is None:
            return
        if seen.ledger < mark.ledger:
            self._refuse_earlier_ledger(seen, mark)
        if seen.version < mark.version:
            self._state.keep_evidence(seen.key, "ROLLBACK", seen.mark, mark)
            served = "no anchor" if seen.anchor is None else f"version {seen.version}"
            raise Rollback(f"the chain serves {served}, but version {mark.version} was seen before")
        if seen.anchor is not None and seen.version == mark.version and seen.anchor.root != mark.root:
            self._state.keep_evidence(seen.key, "FORK", seen.mark, mark)
            raise Fork(f"the chain serves another root for version {mark.version} than it did before")

    def _refuse_earlier_ledger(self, seen: Sighting, mark: Mark) -> None:
        """A public network's servers may be some ledgers apart; a chain with an id has one truth."""
        behind = mark.ledger - seen.ledger
        if not seen.key.chain_id and behind <= MAX_LAG_LEDGERS:
            if seen.version < mark.version:
                raise ChainUnavailable(
                    f"the server is {behind} ledgers behind what was seen before",
                    hint="try again in a moment",
                )
            return
        self._state.keep_evidence(seen.key, "CHAIN_RESET", seen.mark, mark)
        raise ChainReset(f"the chain is at ledger {seen.ledger}, but ledger {mark.ledger} was seen before")
