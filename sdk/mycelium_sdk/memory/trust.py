"""What the chain says, checked against what was verified before.

One rule: a client never goes back. The highest (version, root) ever seen on a chain is kept in the state
folder, and a chain that serves less, or something else, is refused with the evidence kept. A newer anchor
must lead back to that one, as its hash chain tells: by its own `previous` where it is the next, by the served
history where it is a later one. Where no server has that history any more, the newer anchor is believed, and
nothing that was anchored before counts as proved to be in its past.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from mycelium_sdk.errors import ChainReset, ChainUnavailable, Fork, Rollback
from mycelium_sdk.memory.cross_check import Statement, require_agreement
from mycelium_sdk.memory.lineage import Lineage
from mycelium_sdk.memory.sighting import AnchorSource, HistoricSource, Sighting, entry_of, fork
from mycelium_sdk.state import ChainKey, Mark, StateStore

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mycelium_sdk.facts import LastAnchor

__all__ = ["MAX_LAG_LEDGERS", "TrustedChain"]

MAX_LAG_LEDGERS = 24
"""How far behind the highest ledger that was seen a public network's server may be: two minutes."""


class TrustedChain:
    """Reads an owner's anchor and refuses to go back behind the high-water mark, and behind what a memory is
    based on.

    `witnesses` gives other servers of the same network, asked each time as well; what they say must agree.
    `based_on` gives the last anchor of the memory that looks, and its chain: one that was made here, or
    verified and loaded, by this machine or one that shares its store.
    """

    def __init__(
        self,
        source: HistoricSource,
        state: StateStore,
        owner: str,
        passphrase: str,
        witnesses: Callable[[], Sequence[AnchorSource]],
        *,
        based_on: Callable[[], tuple[ChainKey, LastAnchor] | None] = lambda: None,
    ) -> None:
        self.past = Lineage(source, state, owner)
        self._based_on = based_on
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
            based = self._based_on()
            seen, written = self._look(known, cross_check=cross_check)
            if based is not None and based[0] == seen.key:
                self._require_basis(seen, based[1])
            mark = known.get(seen.key.chain_id)
            anchor = seen.anchor
            if anchor is None:
                return seen
            raised = None if seen.mark is None else replace(seen.mark, ledger=max(seen.ledger, written))
            if mark is not None and mark.version == anchor.version:
                if mark.entry is not None or anchor.previous is None:
                    return seen
                raised = replace(mark, entry=entry_of(anchor))
            if raised is not None and self._state.raise_mark(seen.key, raised, anchor.uri_text, after=mark):
                return seen
            # Somebody else raised it meanwhile: what was seen is to be checked against that.

    def look_afresh(self) -> Sighting:
        """Read the anchor as if nothing had been seen before, and remember nothing. Raises as `look` does."""
        return self._look({}, cross_check=True)[0]

    def _look(self, known: Mapping[str, Mark], *, cross_check: bool) -> tuple[Sighting, int]:
        """What is seen, and the ledger that wrote it where the server was asked for that, else 0."""
        # The ledger is read before the anchor, so that the anchor is at least as new as the ledger says.
        identity = self._source.identity()
        key = ChainKey(self._passphrase, self._source.contract_id, self._owner, identity.chain_id or "")
        # Before the contract is asked for: on a chain that was made anew it is not there.
        self._require_known_chain(key, known, identity.latest_ledger)
        if not identity.latest_ledger:
            return Sighting(key, None, 0, identity.close_time), 0
        mark = known.get(key.chain_id)
        anchor = self._source.get_anchor(self._owner)
        seen = Sighting(key, anchor, identity.latest_ledger, identity.close_time)
        if mark is not None:
            self._check(seen, mark)
        written = self._hear_witnesses(seen, mark) if cross_check else 0
        if anchor is not None:
            seen = replace(seen, proved_from=self.past.descent(seen, anchor, mark))
        return seen, written

    def confirm(self, made: Mark) -> None:
        """Look whether the chain shows what was just made, or does not show it yet, or what came after it.

        Raises what `look` raises; Fork also where it shows another anchor as that version.
        """
        seen = self.look()
        if seen.anchor is not None and seen.version == made.version and seen.anchor.root != made.root:
            raise fork(
                self._state,
                seen.key,
                f"it names another root for version {made.version}",
                seen=seen.mark,
                known=made,
            )

    # -- other servers

    def _hear_witnesses(self, seen: Sighting, mark: Mark | None) -> int:
        """The ledger that wrote what is seen, as far as it is asked for and can be; 0 without witnesses."""
        witnesses = self._witnesses()
        if not witnesses:
            return 0
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
        return min(own.written or 0, seen.ledger + MAX_LAG_LEDGERS)

    def _statement(self, source: AnchorSource, name: str, seen: Sighting) -> Statement:
        written = None if seen.anchor is None else source.entry_state(self._owner).last_modified
        return Statement(name, seen.key.chain_id, seen.anchor, written, seen.ledger, seen.close_time)

    # -- what was seen before

    def _require_basis(self, seen: Sighting, last: LastAnchor) -> None:
        """Refuse what is behind the anchor that the memory is based on, which may be newer than every mark: a
        server did not show it yet, or another machine has recorded it."""
        if seen.version > last.version:
            return
        based = Mark(last.version, last.root, 0)
        if seen.version == last.version:
            if seen.anchor is not None and seen.anchor.root != last.root:
                raise fork(
                    self._state,
                    seen.key,
                    f"the chain serves another root for version {last.version} than the one that this memory"
                    " is based on",
                    seen=seen.mark,
                    known=based,
                )
            return
        if not seen.key.chain_id and seen.close_time <= last.anchored_at:
            raise ChainUnavailable(
                f"the server is behind: it does not show version {last.version} yet, which this memory is"
                " based on",
                hint="try again in a moment",
            )
        self._state.keep_evidence(seen.key, "ROLLBACK", seen.mark, based)
        served = "no anchor" if seen.anchor is None else f"version {seen.version}"
        raise Rollback(f"the chain serves {served}, and this memory is based on version {last.version}")

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
            raise fork(
                self._state,
                seen.key,
                f"the chain serves another root for version {mark.version} than it did before",
                seen=seen.mark,
                known=mark,
            )
        if mark.entry not in (None, entry_of(seen.anchor)):
            raise fork(
                self._state,
                seen.key,
                f"the chain serves another version {mark.version} than it did before, with the same root",
                seen=seen.mark,
                known=mark,
            )

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
