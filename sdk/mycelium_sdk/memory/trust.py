"""What the chain says, checked against what was verified before.

One rule: a client never goes back. The highest (version, root) ever seen on a chain is kept in the state
folder, and a chain that serves less, or something else, is refused with the evidence kept. A newer anchor
must lead back to that one, as its hash chain tells: by its own `previous` where it is the next, by the served
history where it is a later one. Where no server has that history any more, the newer anchor is believed, and
nothing that was anchored before counts as proved to be in its past.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from mycelium_sdk.chain.anchors import previous_of
from mycelium_sdk.chain.history import PastAnchor, proved_history
from mycelium_sdk.errors import (
    ChainError,
    ChainReset,
    ChainUnavailable,
    Fork,
    Rollback,
    VerificationError,
)
from mycelium_sdk.memory.cross_check import Statement, require_agreement
from mycelium_sdk.state import ChainKey, Mark, StateStore

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mycelium_sdk.chain.anchors import Anchor
    from mycelium_sdk.chain.base import ChainIdentity, EntryState
    from mycelium_sdk.chain.history import AnchorHistory, HistorySource, NamedSource

__all__ = ["MAX_LAG_LEDGERS", "AnchorSource", "HistoricSource", "Sighting", "TrustedChain"]

MAX_LAG_LEDGERS = 24
"""How far behind the highest ledger that was seen a public network's server may be: two minutes."""


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
            self.anchor.version, self.anchor.root, self.ledger, _entry(self.anchor), self.proved_from or None
        )


class TrustedChain:
    """Reads an owner's anchor and refuses to go back behind the high-water mark.

    `witnesses` gives other servers of the same network, asked each time as well; what they say must agree.
    """

    def __init__(
        self,
        source: HistoricSource,
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

    def look(self, *, cross_check: bool = True) -> Sighting:
        """Read the anchor and check it; without `cross_check`, no witness is asked.

        Raises:
            ChainUnavailable: the chain could not be asked; this says nothing about the anchor.
            ChainReset: the chain started anew since something was verified on it.
            Rollback: it serves an older version than one verified before.
            Fork: it serves another root for a version verified before, or an anchor that does not lead back
                to it, or servers contradict each other.
        """
        while True:
            # What is known is read before the chain is asked: everything known by then must still hold on it.
            known = self._state.known(self._passphrase, self._source.contract_id, self._owner)
            seen = self._look(known, cross_check=cross_check)
            mark = known.get(seen.key.chain_id)
            anchor = seen.anchor
            if anchor is None:
                return seen
            raised = seen.mark
            if mark is not None and mark.version == anchor.version:
                if mark.entry is not None or anchor.previous is None:
                    return seen
                raised = replace(mark, entry=_entry(anchor))
            if raised is not None and self._state.raise_mark(seen.key, raised, anchor.uri_text, after=mark):
                return seen
            # Somebody else raised it meanwhile: what was seen is to be checked against that.

    def look_afresh(self) -> Sighting:
        """Read the anchor as if nothing had been seen before, and remember nothing. Raises as `look` does."""
        return self._look({}, cross_check=True)

    def _look(self, known: Mapping[str, Mark], *, cross_check: bool) -> Sighting:
        # The ledger is read before the anchor, so that the anchor is at least as new as the ledger says.
        identity = self._source.identity()
        key = ChainKey(self._passphrase, self._source.contract_id, self._owner, identity.chain_id or "")
        # Before the contract is asked for: on a chain that was made anew it is not there.
        self._require_known_chain(key, known, identity.latest_ledger)
        if not identity.latest_ledger:
            return Sighting(key, None, 0, identity.close_time)
        mark = known.get(key.chain_id)
        anchor = self._source.get_anchor(self._owner)
        seen = Sighting(key, anchor, identity.latest_ledger, identity.close_time)
        if mark is not None:
            self._check(seen, mark)
        if cross_check:
            self._hear_witnesses(seen, mark)
        if anchor is not None:
            seen = replace(seen, proved_from=self._descent(seen, anchor, mark))
        return seen

    def confirm(self, made: Mark) -> None:
        """Look whether the chain shows what was just made, or does not show it yet, or what came after it.

        Raises what `look` raises; Fork also where it shows another anchor as that version.
        """
        seen = self.look()
        if seen.anchor is not None and seen.version == made.version and seen.anchor.root != made.root:
            raise self._fork(f"it names another root for version {made.version}", seen.mark, made, seen.key)

    # -- the past of what was seen

    def learn(self, seen: Sighting, history: AnchorHistory) -> None:
        """Remember the anchors of a proved history that ends in what was seen.

        Raises Fork, with the evidence kept, if one of them is not the one that was verified before.
        """
        known = self._state.known_roots(seen.key)
        for one in history.anchors:
            version, root = one.anchor.version, one.anchor.root
            if root not in known.get(version, {root}):
                before = Mark(version, next(iter(known[version])), seen.ledger)
                raise self._fork(
                    f"the history of version {seen.version} has another version {version} than the one that"
                    " was verified before",
                    Mark(version, root, one.ledger or seen.ledger),
                    before,
                    seen.key,
                )
        self._state.know(
            seen.key,
            [(one.anchor.version, one.anchor.root, one.anchor.uri_text) for one in history.anchors],
        )
        if seen.mark is not None:
            self._state.prove(seen.key, seen.mark, proved_from=history.anchors[-1].anchor.version)

    def proved(self, seen: Sighting, version: int) -> Anchor | None:
        """The anchor of an earlier version that what was seen is proved to come after; None where nobody
        serves a history that goes back so far.

        Raises Fork: see `learn`.
        """
        if seen.anchor is None or seen.version <= version:
            return seen.anchor if seen.version == version else None
        history = self._history(seen, seen.anchor, down_to=version)
        past = None if history is None else history.find(version)
        return None if past is None else past.anchor

    def was_anchored(self, seen: Sighting, root: bytes) -> bool:
        """Whether what was seen, or a version that it is proved to come after, has this root."""
        if seen.anchor is None or seen.anchor.root == root:
            return seen.anchor is not None
        history = self._history(seen, seen.anchor, down_to=1)
        return history is not None and any(one.anchor.root == root for one in history.anchors)

    def comes_after(self, seen: Sighting, version: int, root: bytes) -> bool:
        """Whether what was seen is proved to be that version, or to come after it; of an older deployment,
        whose anchors commit to nothing, the numbers are all there is. Raises Fork: see `learn`."""
        if seen.anchor is None or seen.version <= version:
            return seen.anchor is not None and (seen.version, seen.anchor.root) == (version, root)
        if seen.anchor.previous is None:
            return True
        if seen.proved_from <= version and self._state.known_roots(seen.key).get(version) == {root}:
            return True
        past = self.proved(seen, version)
        return past is not None and past.root == root

    def _descent(self, seen: Sighting, anchor: Anchor, mark: Mark | None) -> int:
        """The lowest version from which on every anchor is proved to lead to what was seen."""
        if mark is None:
            return anchor.version
        before = mark.proved_from or mark.version
        if anchor.version == mark.version or anchor.previous is None:
            return before
        if anchor.version == mark.version + 1 and mark.entry is not None:
            if anchor.previous != mark.entry:
                raise self._fork(
                    f"version {anchor.version} does not come after the version {mark.version} that was seen"
                    " before",
                    seen.mark,
                    mark,
                    seen.key,
                )
            return before
        history = self._history(seen, anchor, down_to=mark.version)
        if history is None:
            return anchor.version
        oldest = history.anchors[-1].anchor.version
        return before if oldest <= mark.version else oldest

    def _history(self, seen: Sighting, anchor: Anchor, *, down_to: int) -> AnchorHistory | None:
        """A served history, learnt; None where none proves anything. A forged one counts as none: whoever
        serves it could as well have served none."""
        try:
            written = self._source.entry_state(self._owner).last_modified
            history = proved_history(
                PastAnchor(anchor, written), self._source.history_sources(), down_to=down_to
            )
        except (ChainError, VerificationError):
            return None
        if not history.verified:
            return None
        self.learn(seen, history)
        return history

    # -- other servers

    def _hear_witnesses(self, seen: Sighting, mark: Mark | None) -> None:
        witnesses = self._witnesses()
        if not witnesses:
            return
        own = self._statement(self._source, "the configured server", seen)
        known = mark is not None and mark.version == seen.version  # with this root, or it was refused
        if known and mark is not None and own.written is not None:
            # It was there by then, whatever the server says now of when it was written.
            own = replace(own, written=min(own.written, mark.ledger))
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

    # -- what was seen before

    def _require_known_chain(self, key: ChainKey, known: Mapping[str, Mark], ledger: int) -> None:
        if known and key.chain_id not in known:
            self._state.keep_evidence(key, "CHAIN_RESET", None, None)
            if not ledger:
                raise ChainReset("the file of the chain that this memory was anchored on is not there")
            raise ChainReset("this network is another chain than the one this memory was anchored on")

    def _check(self, seen: Sighting, mark: Mark) -> None:
        if seen.ledger < mark.ledger:
            self._refuse_earlier_ledger(seen, mark)
        if seen.version < mark.version:
            self._state.keep_evidence(seen.key, "ROLLBACK", seen.mark, mark)
            served = "no anchor" if seen.anchor is None else f"version {seen.version}"
            raise Rollback(f"the chain serves {served}, but version {mark.version} was seen before")
        if seen.anchor is None or seen.version > mark.version:
            return
        if seen.anchor.root != mark.root:
            raise self._fork(
                f"the chain serves another root for version {mark.version} than it did before",
                seen.mark,
                mark,
                seen.key,
            )
        if mark.entry not in (None, _entry(seen.anchor)):
            raise self._fork(
                f"the chain serves another version {mark.version} than it did before, with the same root",
                seen.mark,
                mark,
                seen.key,
            )

    def _fork(self, message: str, seen: Mark | None, mark: Mark, key: ChainKey) -> Fork:
        self._state.keep_evidence(key, "FORK", seen, mark)
        return Fork(message)

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


def _entry(anchor: Anchor) -> bytes | None:
    """What the anchor after this one carries as `previous`; None for an older deployment's."""
    return None if anchor.previous is None else previous_of(anchor)
