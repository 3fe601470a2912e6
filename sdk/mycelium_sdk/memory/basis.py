"""What a memory is based on: its last anchor, wherever that is kept, and the link that ties its store to it.

The change counter alone cannot tell an old copy of a memory's store, or a new one in the place of a lost
one, from the store itself: written to often enough, it looks as if it were ahead. So the store is given a
random link whenever it is anchored or loaded, and the last anchor says which one that was.

The order makes every crash harmless. An anchoring's link is on disk with its intent, then in the store,
before anything is signed, so that no other store is ever taken for the one that was anchored. Where what is
here is adopted, the last anchor names the link before the store has it, and both the new and the old one
count until it has.
"""

from __future__ import annotations

import contextlib
import os
from dataclasses import replace
from typing import TYPE_CHECKING

from mycelium_sdk.errors import MyceliumError, UnanchoredWrites
from mycelium_sdk.facts import ChainKey, Intent, LastAnchor
from mycelium_sdk.memory.standing import Standing, standing_of
from mycelium_sdk.steps import Step, reached

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mycelium_sdk.backends.base import BaseBackend
    from mycelium_sdk.facts import LastAnchors, Mark
    from mycelium_sdk.state import StateStore

__all__ = ["Basis"]

_LINK_BYTES = 16
_NOTHING = b""
"""Stands for no link, where None stands for a store that keeps none."""


class Basis:
    """One memory's last anchors and links. Whoever writes holds the home folder's anchoring lock."""

    def __init__(self, backend: BaseBackend, state: StateStore) -> None:
        self._backend = backend
        self._state = state
        self._shared = backend.last_anchors()
        self._last: LastAnchors = state if self._shared is None else self._shared

    def newest(self, network: str, contract: str) -> tuple[ChainKey, LastAnchor] | None:
        """The last anchor on the chain of that network and contract that was recorded last."""
        key = self._last.newest_chain(network, contract, self._backend.owner)
        last = None if key is None else self._last.last_anchor(key)
        return None if key is None or last is None else (key, last)

    def last(self, key: ChainKey) -> LastAnchor | None:
        """The anchor that the memory is based on, on this chain."""
        return self._last.last_anchor(key)

    def is_its_store(self, key: ChainKey, last: LastAnchor) -> bool:
        """Whether the store is the one that `last` was made from or loaded into, as far as links tell."""
        if last.link is None or not self._backend.keeps_links:
            return True
        link = self._link(key)
        accepted = (last.link, last.link_before)
        if link in accepted:
            return True
        intent = self._state.intent(key)
        return intent is not None and link == intent.link and intent.link_before in accepted

    def standing(
        self, key: ChainKey, last: LastAnchor | None, *, root: bytes, change_counter: int
    ) -> Standing:
        """How the memory stands to `last`, from its root, recomputed from the rows, and change counter."""
        its_store = last is None or self.is_its_store(key, last)
        return standing_of(root, change_counter, last, its_store=its_store)

    def writes_since(self, key: ChainKey, last: LastAnchor) -> int:
        """How many writes there are since `last`; all of them in a store that `last` does not know."""
        counter = self._backend.change_counter()
        if counter < last.change_counter or not self.is_its_store(key, last):
            return counter
        return counter - last.change_counter

    # -- an anchoring

    def intend(
        self, key: ChainKey, root: bytes, uri: str, *, expected_version: int, change_counter: int
    ) -> Intent:
        """Record what is about to be anchored, and mark the store with it."""
        keeps = self._backend.keeps_links
        intent = Intent(
            root,
            uri,
            expected_version,
            change_counter,
            link=os.urandom(_LINK_BYTES) if keeps else None,
            link_before=self._link(key) if keeps else None,
        )
        self._state.put_intent(key, intent)
        reached(Step.INTENDED)
        if keeps:
            self._backend.set_link(key.chain, intent.link)
        reached(Step.LINKED)
        return intent

    def abandon(self, key: ChainKey, intent: Intent) -> None:
        """Leave everything as it was before `intend`: it is known not to have happened."""
        if intent.link is not None and self._backend.keeps_links and self._link(key) == intent.link:
            self._backend.set_link(key.chain, intent.link_before or None)
        self._state.drop_intent(key)

    def fulfil(self, key: ChainKey, intent: Intent, version: int, *, anchored_at: float) -> None:
        """Record that what was intended is anchored, and be done with the intent."""
        anchor, last = fulfilled(intent, version, anchored_at), self.last(key)
        loaded = last is not None and last.link not in (None, intent.link, intent.link_before)
        if last is not None and loaded and self._backend.keeps_links and self._link(key) == last.link:
            # Something was loaded on a person's word since it was sent, and the store has the link of that.
            anchor = replace(anchor, link=last.link, link_before=None)
        self._record(key, anchor)

    # -- a memory that was found, or made, to be what is anchored

    def adopt(self, key: ChainKey, anchor: LastAnchor) -> None:
        """Record that the memory is based on `anchor`, given without links; nothing where that is known."""
        last = self.last(key)
        same = last is not None and (last.version, last.root) == (anchor.version, anchor.root)
        if same and last is not None:
            anchor = replace(anchor, anchored_at=last.anchored_at)  # which an older contract does not tell
            if self._is_settled(key, last):
                if last.change_counter != anchor.change_counter:
                    self._record(key, replace(anchor, link=last.link))
                return
        if not self._backend.keeps_links:
            self._record(key, anchor)
            reached(Step.RECORDED)
            return
        link = os.urandom(_LINK_BYTES)
        self._record(key, replace(anchor, link=link, link_before=self._link(key)))
        reached(Step.RECORDED)
        self._backend.set_link(key.chain, link)
        reached(Step.LINKED)
        self._last.record_last(key, replace(anchor, link=link))
        reached(Step.CONFIRMED)

    @contextlib.contextmanager
    def let_go(self, key: ChainKey) -> Iterator[None]:
        """Forget what the memory is based on, since an older version is loaded in the block, on purpose.

        A memory that is based on nothing is not anchored unasked, so a crash before the older anchor is
        adopted is harmless. Where the block fails and nothing was loaded, the memory is based on what it was.
        """
        last, counter = self.last(key), self._backend.change_counter()
        self._last.forget_last(key.network, key.contract, key.owner)
        try:
            yield
        except BaseException as error:
            if last is not None:
                with contextlib.suppress(MyceliumError):
                    # Refused as others wrote, or nothing changed: an error may also come when all is done.
                    if isinstance(error, UnanchoredWrites) or self._backend.change_counter() == counter:
                        self._last.record_last(key, last)
            raise

    def start_anew(self, key: ChainKey, mark: Mark | None, uri: str | None, last: LastAnchor | None) -> None:
        """Forget what was seen and recorded on every chain of this network and contract, but for what is in
        flight on the chain of `key`, and begin again there with `mark`, whose anchor has that URI, and
        `last`."""
        if self._shared is not None:
            self._shared.forget_last(key.network, key.contract, key.owner)
            if last is not None:
                self._shared.record_last(key, last)
        self._state.start_anew(key, mark, uri, last if self._shared is None else None)

    def _is_settled(self, key: ChainKey, last: LastAnchor) -> bool:
        if not self._backend.keeps_links:
            return True
        return last.link_before is None and last.link == self._link(key)

    def _link(self, key: ChainKey) -> bytes:
        return self._backend.link(key.chain) or _NOTHING

    def _record(self, key: ChainKey, anchor: LastAnchor) -> None:
        if self._shared is None:
            self._state.record(key, anchor)
            return
        # The intent goes last: while it is there, the next run records what a crash left unrecorded.
        self._shared.record_last(key, anchor)
        self._state.settle(key, anchor)


def fulfilled(intent: Intent, version: int, anchored_at: float) -> LastAnchor:
    """What the memory is based on once `intent` is anchored.

    Without a signature the store may not have the link yet: then an equal memory was anchored elsewhere.
    """
    before = intent.link_before if intent.transaction_hash is None else None
    return LastAnchor(
        version, intent.root, intent.uri, intent.change_counter, anchored_at, intent.link, before
    )
