"""The past of what a chain shows: what it is proved to come after, and what contradicts what was verified."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mycelium_sdk.chain.history import PastAnchor, proved_history
from mycelium_sdk.errors import ChainError, VerificationError
from mycelium_sdk.facts import LastAnchor, Mark
from mycelium_sdk.memory.sighting import entry_of, fork

if TYPE_CHECKING:
    from collections.abc import Callable

    from mycelium_sdk.chain.anchors import Anchor
    from mycelium_sdk.chain.history import AnchorHistory
    from mycelium_sdk.memory.sighting import HistoricSource, Sighting
    from mycelium_sdk.state import StateStore

__all__ = ["Lineage"]


class Lineage:
    """Proves one owner's anchors by those that came after them, and remembers what is proved."""

    def __init__(self, source: HistoricSource, state: StateStore, owner: str) -> None:
        self._source = source
        self._state = state
        self._owner = owner

    def learn(self, seen: Sighting, history: AnchorHistory) -> None:
        """Remember the anchors of a proved history that ends in what was seen.

        Raises Fork, with the evidence kept, if one of them is not the one that was verified before.
        """
        known = self._state.known_roots(seen.key)
        for one in history.anchors:
            version, root = one.anchor.version, one.anchor.root
            if root not in known.get(version, {root}):
                before = Mark(version, next(iter(known[version])), seen.ledger)
                raise fork(
                    self._state,
                    seen.key,
                    f"the history of version {seen.version} has another version {version} than the one that"
                    " was verified before",
                    seen=Mark(version, root, one.ledger or seen.ledger),
                    known=before,
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

    def review(self, seen: Sighting) -> None:
        """Compare all that is served of the past with all that was verified. Raises Fork: see `learn`."""
        if seen.anchor is not None:
            self._history(seen, seen.anchor, down_to=1)

    def with_root(self, seen: Sighting, root: bytes) -> Anchor | None:
        """The newest anchor with this root among what was seen and the versions that it is proved to come
        after."""
        if seen.anchor is None or seen.anchor.root == root:
            return seen.anchor
        history = self._history(seen, seen.anchor, down_to=1)
        anchors = () if history is None else history.anchors
        return next((one.anchor for one in anchors if one.anchor.root == root), None)

    def as_base(
        self, seen: Sighting, root: bytes, *, change_counter: int, newest: Callable[[], float]
    ) -> LastAnchor | None:
        """What a memory with this root and counter is based on, if nobody knows any more: the version that it
        is exactly, where it is one that was made after the `newest` of its records (Unix seconds). Records of
        later may only happen to be those that a version had."""
        anchor = self.with_root(seen, root)
        if anchor is None or anchor.timestamp is None or newest() >= anchor.timestamp:
            return None
        anchored_at = float(anchor.timestamp)
        return LastAnchor(anchor.version, anchor.root, anchor.uri_text, change_counter, anchored_at)

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

    def descent(self, seen: Sighting, anchor: Anchor, mark: Mark | None) -> int:
        """The lowest version from which on every anchor is proved to lead to what was seen."""
        if mark is None:
            return anchor.version
        before = mark.proved_from or mark.version
        if anchor.version == mark.version or anchor.previous is None:
            return before
        if anchor.version == mark.version + 1 and mark.entry is not None:
            if anchor.previous != mark.entry:
                raise fork(
                    self._state,
                    seen.key,
                    f"version {anchor.version} does not come after the version {mark.version} that was seen"
                    " before",
                    seen=seen.mark,
                    known=mark,
                )
            return before
        history = self._history(seen, anchor, down_to=mark.version)
        if history is None:
            return anchor.version
        past = history.find(mark.version)
        if past is None:
            return history.anchors[-1].anchor.version
        if mark.entry not in (None, entry_of(past.anchor)):
            raise fork(
                self._state,
                seen.key,
                f"version {anchor.version} comes after another version {mark.version} than the one that was"
                " seen before",
                seen=seen.mark,
                known=mark,
            )
        return before

    def _history(self, seen: Sighting, anchor: Anchor, *, down_to: int) -> AnchorHistory | None:
        """A served history, learnt; None where nobody serves one that proves anything.

        A forged one counts as none: whoever serves it could as well have served none, and what another source
        serves is asked for all the same. Raises ChainUnavailable where a source cannot be asked now, and no
        other one goes as far.
        """
        latest = PastAnchor(anchor, self._source.entry_state(self._owner).last_modified)
        sources = self._source.history_sources()
        found: AnchorHistory | None = None
        trouble: ChainError | None = None
        for chosen in (sources, *((source,) for source in sources if len(sources) > 1)):
            try:
                history = proved_history(latest, chosen, down_to=down_to)
            except VerificationError:
                continue
            except ChainError as error:
                trouble = error if error.retryable else trouble
                continue
            if found is None or len(history.anchors) > len(found.anchors):
                found = history
            if found.anchors[-1].anchor.version <= down_to:
                break
        if trouble is not None and (found is None or found.anchors[-1].anchor.version > down_to):
            raise trouble
        if found is None or not found.verified:
            return None
        self.learn(seen, found)
        return found
