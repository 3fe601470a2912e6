"""The ingester: one contract's events, page after page, into the store."""

from __future__ import annotations

import dataclasses
import logging
from typing import TYPE_CHECKING

from mycelium_indexer.ingest.chains import ChainWatch
from mycelium_indexer.ingest.events import sort_events
from mycelium_indexer.ingest.pages import fresh_events, place_before, progress_after
from mycelium_indexer.ingest.state import read_state
from mycelium_indexer.values import Batch, IndexedAnchor, LedgerRange
from mycelium_sdk.chain.cursors import ledger_of
from mycelium_sdk.errors import ChainError, ChainUnavailable, InputError, MyceliumError, WrongDomain
from mycelium_sdk.retry import RetryPolicy

if TYPE_CHECKING:
    import threading
    from collections.abc import Iterable, Iterator

    from mycelium_indexer.ingest.events import Note, Sorted
    from mycelium_indexer.ingest.state import OwnerState
    from mycelium_indexer.store.base import IndexStore
    from mycelium_indexer.values import Gap, Progress, Source
    from mycelium_sdk.chain.anchor_client import MemoryAnchorClient
    from mycelium_sdk.chain.anchors import Anchor
    from mycelium_sdk.chain.base import ChainEvent, EventPage

__all__ = ["BACK_OFF", "Ingester"]

BACK_OFF = RetryPolicy(first_delay=1.0, max_delay=60.0)
"""How long to wait after failures. For as long as it takes: an indexer outlives its server's bad days."""

_PAGE = 1000
_OWNERS_AT_ONCE = 1000

_log = logging.getLogger("mycelium_indexer.ingest")


class Ingester:
    """Follows the contract of `client` and writes what it says into `store`. For one thread at a time.

    `start_ledger`: where to begin a contract that the store does not know yet, by default the oldest ledger
    that the server still has. `interval`: seconds between looks at a chain that has nothing new. `page`: at
    most so many events at once. `policy`: how to wait after failures, and the clocks. Chain and store stay
    the caller's to close. Give a chain client that does not try again by itself for long: what waits in it
    cannot be stopped.
    """

    def __init__(
        self,
        client: MemoryAnchorClient,
        store: IndexStore,
        *,
        start_ledger: int | None = None,
        interval: float = 5.0,
        page: int = _PAGE,
        policy: RetryPolicy = BACK_OFF,
    ) -> None:
        if start_ledger is not None and start_ledger < 1:
            raise InputError(
                "the start ledger is a number from 1", hint="leave it out to begin at the oldest"
            )
        self._client = client
        self._chain = client.chain
        self._store = store
        self._start_ledger = start_ledger
        self._interval = interval
        self._limit = page
        self._policy = policy
        self._watch = ChainWatch(self._chain, policy.pace)
        self._source: Source | None = None
        self._state_ledger = 0  # up to here the state was read for everybody who is known

    @property
    def contract_id(self) -> str:
        """The contract's C-address."""
        return self._client.contract_id

    @property
    def source(self) -> Source:
        """What is followed. Asks the chain which it is, the first time."""
        return self._source or self._followed()

    def run(self, stop: threading.Event) -> None:
        """Follow the chain until `stop` is set; what is being written then is finished first.

        Failures that may pass are waited for, without end.

        Raises:
            MyceliumError: one that does not pass by itself, such as another network at the server's address.
        """
        waits = self._policy.delays()
        while not stop.is_set():
            try:
                more = self.poll_once(stop)
            except MyceliumError as error:
                if not error.retryable:
                    raise
                wait = max(next(waits), error.retry_after or 0.0)
                fields = {"problem": error.message, "seconds": round(wait, 1)}
                _log.warning("cannot go on, trying again", extra={"fields": fields})
                stop.wait(wait)
                continue
            waits = self._policy.delays()
            if not more:
                stop.wait(self._interval)

    def poll_once(self, stop: threading.Event | None = None) -> bool:
        """Take in one page. True if there is more to be had at once.

        Raises:
            ChainUnavailable, StoreLocked, StoreUnavailable: nothing was done, and the next call may succeed.
            ChainError, BackendError: what the call needs is not as it should be.
        """
        source = self.source
        progress = self._store.progress(source)
        start = self._first_ledger(source) if progress is None else progress.first_ledger
        landmark = self._watch.landmark(start) if progress is None else progress.landmark
        try:
            page = self._page(progress, start)
        except (ChainUnavailable, WrongDomain):
            raise
        except ChainError as error:
            return self._after_refusal(source, progress, start, error, stop)
        events = fresh_events(page, None if progress is None else progress.cursor)
        reached = progress_after(
            page, events, before=progress, start=start, landmark=landmark,
            now=self._policy.pace.now(),
        )  # fmt: skip
        # Servers of our own chains, which are put back and begun anew at will, are asked every time.
        if events or source.chain_id or self._watch.is_due():
            newer = self._watch.landmark(reached.ledger)  # before the check, which vouches for it as well
            if self._started_anew(source, progress or reached, page):
                return True
            reached = dataclasses.replace(reached, landmark=newer or landmark)
        after = None if progress is None else progress.cursor
        if events:
            taken = self._store.apply(source, self._batch(events, reached), after=after)
        else:
            taken = self._store.advance(source, reached, after=after)
        return taken and reached.cursor != after and reached.ledger < page.latest_ledger

    def learn(self, owners: Iterable[str]) -> list[Gap]:
        """Take in the newest anchors of owners from the contract's state, for those who anchored before it
        was followed. What is below them becomes gaps, which are returned. Raises as `poll_once`."""
        gaps: list[Gap] = []
        for states in read_state(self._client, sorted(set(owners))):
            anchors = [_without_place(state.anchor) for state in states if state.anchor is not None]
            gaps += self._store.take_state(self.source, anchors, ledger=states[0].ledger)
        return gaps

    def _followed(self) -> Source:
        identity = self._chain.identity()
        contract = self._client.contract_id
        self._source = self._store.source(identity.passphrase, contract, identity.chain_id or "")
        self._state_ledger = 0
        fields = {"contract": contract, "network": identity.passphrase, "epoch": self._source.epoch}
        _log.info("following", extra={"fields": fields})
        return self._source

    def _page(self, progress: Progress | None, start: int) -> EventPage:
        contract = self._client.contract_id
        if progress is None:
            return self._chain.events(contract, start_ledger=start, limit=self._limit)
        return self._chain.events(contract, cursor=progress.cursor, limit=self._limit)

    def _tip(self) -> EventPage:
        """A page at the end of the chain, for the ledgers that the server still has."""
        latest = self._chain.identity().latest_ledger
        try:
            return self._chain.events(self._client.contract_id, start_ledger=latest, limit=1)
        except (ChainUnavailable, WrongDomain):
            raise
        except ChainError as error:  # one of several behind one address, and not as far as the others
            raise ChainUnavailable(f"the server has not the ledger {latest} that it told of") from error

    def _first_ledger(self, source: Source) -> int:
        """Where to begin: nothing of this source is in the store."""
        tip = self._tip()
        wanted = self._start_ledger if source.epoch == 1 else None
        if wanted is not None and wanted > tip.latest_ledger:
            raise InputError(
                f"the start ledger {wanted} is not there yet: the latest is {tip.latest_ledger}",
                hint="leave it out to begin at the oldest ledger that the server still has",
            )
        start = max(wanted or 0, tip.oldest_ledger)
        fields = {"ledger": start, "oldest_ledger": tip.oldest_ledger, "latest_ledger": tip.latest_ledger}
        if wanted is not None and wanted < start:
            _log.warning("the server has dropped the start ledger, beginning later", extra={"fields": fields})
        else:
            _log.info("beginning", extra={"fields": fields})
        return start

    def _started_anew(self, source: Source, progress: Progress, tip: EventPage) -> bool:
        """Whether the server serves another chain than the one that was followed. Goes over to it, if so."""
        if (self._chain.identity().chain_id or "") != source.chain_id:
            self._source = None
        elif not self._watch.is_same(progress, tip):
            self._source = self._store.start_anew(source)
            self._state_ledger = 0
        else:
            return False
        fields = {"contract": source.contract, "epoch": source.epoch, "ledger": progress.ledger}
        _log.warning("the chain started anew, what was read before is kept apart", extra={"fields": fields})
        return True

    def _after_refusal(
        self, source: Source, progress: Progress | None, start: int, error: ChainError,
        stop: threading.Event | None,
    ) -> bool:  # fmt: skip
        """The server does not give events from there on: find out why, and go on elsewhere."""
        tip = self._tip()
        if progress is not None and self._started_anew(source, progress, tip):
            return True
        wanted = start if progress is None else ledger_of(progress.cursor)
        if wanted >= tip.oldest_ledger:
            raise ChainUnavailable(f"{error.message}, though it says that it has ledger {wanted}") from error
        # On the first page the oldest ledger was dropped just then: the next call asks which it is now.
        return progress is None or self._skip(source, progress, tip, stop)

    def _skip(self, source: Source, progress: Progress, tip: EventPage, stop: threading.Event | None) -> bool:
        """Go on from the oldest ledger that the server still has, once the state has told what was made
        meanwhile: the versions between are gaps, and none is passed over silently."""
        gaps = 0
        if tip.oldest_ledger > self._state_ledger:
            as_of = tip.latest_ledger
            for states in self._states(source):
                as_of = min(as_of, states[0].ledger)
                anchors = [_without_place(state.anchor) for state in states if state.anchor is not None]
                gaps += len(self._store.take_state(source, anchors, ledger=states[0].ledger))
                if stop is not None and stop.is_set():
                    return False  # the cursor stays, so that the next run begins with the state again
            self._state_ledger = as_of
            tip = self._tip()  # reading may have taken long, and the state covers what was dropped meanwhile
        missed = LedgerRange(progress.ledger + 1, tip.oldest_ledger - 1)
        reached = dataclasses.replace(
            progress,
            cursor=place_before(tip.oldest_ledger),
            ledger=missed.last,
            landmark=self._watch.landmark(tip.oldest_ledger),
            latest_ledger=tip.latest_ledger,
            asked_at=self._policy.pace.now(),
        )
        taken = self._store.advance(source, reached, after=progress.cursor, missed=missed)
        if taken:
            fields = {"first_ledger": missed.first, "last_ledger": missed.last, "gaps": gaps}
            _log.warning("the server has dropped events before they were read", extra={"fields": fields})
        return taken

    def _states(self, source: Source) -> Iterator[list[OwnerState]]:
        """The state of all known owners, of those whose anchor is newer than the known one."""
        last: str | None = None
        while known := self._store.known_owners(source, after=last, limit=_OWNERS_AT_ONCE):
            versions = dict(known)
            last = known[-1][0]
            for states in read_state(self._client, list(versions)):
                newer = [
                    state
                    for state in states
                    if state.anchor is not None and state.anchor.version > versions[state.owner]
                ]
                if newer:
                    yield newer

    def _batch(self, events: list[ChainEvent], reached: Progress) -> Batch:
        found = sort_events(events, self._client.contract_id)
        found.anchors += self._resolved(found)
        for one in found.set_aside:
            why = {"event": one.event_id, "reason": one.reason}
            _log.warning("an event was set aside", extra={"fields": why})
        fields = {"anchors": len(found.anchors), "ledger": reached.ledger, "latest": reached.latest_ledger}
        _log.info("read", extra={"fields": fields})
        return Batch(tuple(found.anchors), tuple(found.set_aside), reached)

    def _resolved(self, found: Sorted) -> list[IndexedAnchor]:
        """What the notes of an older deployment are about, from its state: of each owner the newest anchor.

        The ones that were overwritten by then are lost; the store has gaps for them.
        """
        newest = {note.owner: note for note in sorted(found.notes, key=lambda note: note.version)}
        if newest and not self._client.is_legacy:
            for note in found.notes:
                found.put_aside(note.event, "an older deployment's event, and the contract is none")
            return []
        notes = {(note.owner, note.version): note for note in found.notes}
        anchors = []
        for states in read_state(self._client, sorted(newest)):
            for state in states:
                note = newest[state.owner]
                problem = _not_in_state(note, state)
                if problem is not None:
                    found.put_aside(note.event, problem)
                elif state.anchor is not None:
                    anchors.append(_placed(state.anchor, notes.get((state.owner, state.anchor.version))))
        return anchors


def _not_in_state(note: Note, state: OwnerState) -> str | None:
    """Why the state has not what an event told of; None where it has, or something newer.

    Raises:
        ChainUnavailable: the state is older than the event.
    """
    if state.anchor is not None and state.anchor.version >= note.version:
        return None
    if state.ledger < note.event.ledger:
        raise ChainUnavailable("the server's state is older than its events", hint="it will catch up")
    return state.problem or "the contract's state does not hold it"


def _placed(anchor: Anchor, note: Note | None) -> IndexedAnchor:
    if note is None:
        return _without_place(anchor)
    return IndexedAnchor(anchor, note.event.ledger, note.event.transaction, note.event.id)


def _without_place(anchor: Anchor) -> IndexedAnchor:
    return IndexedAnchor(anchor, None, None, None)
