"""An owner's past anchors, from the events that a server still has, proved by the anchor on the chain."""

from __future__ import annotations

import contextlib
import itertools
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mycelium_sdk.chain.anchors import EVENT_NAME, Anchor, anchor_from_event_xdr, verify_history
from mycelium_sdk.chain.cursors import ends_ledger, ledger_of, place_of
from mycelium_sdk.chain.plausible import is_hash
from mycelium_sdk.errors import ChainError, ChainUnavailable, NotAnchored, Tampered, WrongOwner

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mycelium_sdk.chain.anchor_client import MemoryAnchorClient
    from mycelium_sdk.chain.base import ChainClient, ChainEvent

__all__ = ["AnchorHistory", "HistorySource", "NamedSource", "PastAnchor", "event_history", "proved_history"]

EVENTS_SECONDS = 120.0
"""When no further page of events is asked for; the one that was begun by then may take its time."""

_PAGE = 1000
_MOST_PAGES = 10_000  # a server looks through 10,000 ledgers at a time, of 120,960 that it keeps
_MOST_ANCHORS = 100_000  # the newest ones, of up to 4 KiB each


@dataclass(frozen=True, slots=True)
class PastAnchor:
    """An anchor, the ledger and the transaction (hex) that made it; None where the server does not tell.

    Both are the server's word: the hash chain proves the anchor, and not where it was made.
    """

    anchor: Anchor
    ledger: int | None = None
    transaction: str | None = None


@dataclass(frozen=True, slots=True)
class AnchorHistory:
    """An owner's anchors, newest first, without a gap.

    `verified`: each is the one that the anchor on the chain commits to; False only for an older deployment,
    whose anchors commit to nothing. `complete`: they go back to version 1. `notes` say which sources were not
    used, and why.
    """

    anchors: tuple[PastAnchor, ...]
    verified: bool
    complete: bool
    notes: tuple[str, ...] = ()

    def find(self, version: int) -> PastAnchor | None:
        """The anchor of a version, None if the history does not go back so far."""
        return next((one for one in self.anchors if one.anchor.version == version), None)


HistorySource = Callable[[PastAnchor], Iterable[PastAnchor]]
"""Given the anchor on the chain, gives its owner's anchors from that one, or an older one, downwards; nothing
that it says is believed. It is read only as far as it is needed."""


@dataclass(frozen=True, slots=True)
class NamedSource:
    """A source that can be done without, unless `required`: if it cannot be asked, a note says so.

    `name` is for messages. The errors of `read` name it by themselves. `advice`: what to do if it serves a
    false history.
    """

    name: str
    read: HistorySource
    advice: str
    required: bool = False


def proved_history(
    latest: PastAnchor, sources: Iterable[HistorySource | NamedSource], *, down_to: int | None = None
) -> AnchorHistory:
    """The longest history that the sources give, proved by `latest`, which was read from the chain.

    A source may know nothing, have lost the older part, or lack the newest anchors, which another one then
    gives. `down_to`: the version below which nothing is needed, so that nothing below it is read; without it
    everything is wanted. Sources after the first that brings the history that far are not asked. Of an older
    deployment there is only `latest`: nothing would prove more.

    Raises:
        Tampered, WrongOwner: a source omitted, moved, altered or invented an anchor.
        ChainError: a source that cannot be done without cannot be asked.
    """
    proved: tuple[PastAnchor, ...] = (latest,)
    last = 1 if down_to is None else max(1, down_to)
    if latest.anchor.version == 1:
        verify_history(latest.anchor, [latest.anchor])
    if latest.anchor.previous is None or (down_to is not None and latest.anchor.version <= last):
        return AnchorHistory(proved, latest.anchor.previous is not None, latest.anchor.version == 1)
    notes: list[str] = []
    apart: list[_Served] = []  # they begin below what is proved so far
    for source in sources:
        try:
            served = _Served(source, _verified(source, latest, down_to or 0))
        except ChainError as error:
            # Of the first version a source only adds which transaction made it.
            if latest.anchor.version > 1 and (not isinstance(source, NamedSource) or source.required):
                raise
            name = source.name if isinstance(source, NamedSource) else "a source"
            notes.append(f"{name} was not used: {error.message}")
            continue
        if served.anchors:
            apart.append(served)
            # The one that begins highest first: it may reach down to where the next one begins.
            for one in sorted(apart, key=lambda one: -one.newest):
                proved = one.joined(proved)
        if proved[-1].anchor.version <= last:
            break
    return AnchorHistory(proved, verified=True, complete=proved[-1].anchor.version == 1, notes=tuple(notes))


@dataclass(frozen=True, slots=True)
class _Served:
    """What a source gave, each anchor the one that the anchor above it commits to."""

    source: HistorySource | NamedSource
    anchors: list[PastAnchor]

    @property
    def newest(self) -> int:
        return self.anchors[0].anchor.version

    def joined(self, proved: tuple[PastAnchor, ...]) -> tuple[PastAnchor, ...]:
        """The longer history that both make, proved by the first anchor; `proved` if there is none."""
        above = [one for one in proved if one.anchor.version > self.newest]
        if above and above[-1].anchor.version != self.newest + 1:
            return proved
        whole = (*above, *self.anchors)
        with _blaming(self.source):
            verify_history(proved[0].anchor, (one.anchor for one in whole))
        return max(whole, proved, key=len)  # of two that go as far the source's, which has transactions


def _verified(source: HistorySource | NamedSource, latest: PastAnchor, last: int) -> list[PastAnchor]:
    """What a source gives from the latest version down to `last`, read no further than each anchor commits to
    the next."""
    given = source.read(latest) if isinstance(source, NamedSource) else source(latest)
    taken: list[PastAnchor] = []

    def taking() -> Iterator[Anchor]:
        for one in given:
            if one.anchor.version <= latest.anchor.version:
                taken.append(one)
                yield one.anchor
                if one.anchor.version <= last:
                    return

    with _blaming(source):
        anchors = taking()
        first = next(anchors, None)
        if first is not None:
            top = first if first.version < latest.anchor.version else latest.anchor
            verify_history(top, itertools.chain((first,), anchors))
    return taken


@contextlib.contextmanager
def _blaming(source: HistorySource | NamedSource) -> Iterator[None]:
    """Name the source in what proves it wrong."""
    try:
        yield
    except (Tampered, WrongOwner) as error:
        if not isinstance(source, NamedSource) or error.message.startswith(source.name):
            raise
        raise type(error)(
            f"{source.name} serves a false history: {error.message}", hint=source.advice
        ) from error


def latest_of(client: MemoryAnchorClient, owner: str) -> PastAnchor:
    """The owner's anchor on the chain, and the ledger that wrote it. Raises `NotAnchored`."""
    anchor = client.get_anchor(owner)
    if anchor is None:
        raise NotAnchored("this owner has never anchored on this network and contract")
    return PastAnchor(anchor, client.entry_state(owner).last_modified)


def event_history(client: MemoryAnchorClient, *, seconds: float = EVENTS_SECONDS) -> HistorySource:
    """What the events say that the client's server still has; nothing for an older deployment.

    Ends whatever the server does: `ChainUnavailable` is raised if it does not come to the anchor on the chain
    within `seconds`, or gives more anchors than there are versions. Of more than 100,000 the oldest are left
    out.
    """

    def source(latest: PastAnchor) -> list[PastAnchor]:
        if client.is_legacy:
            return []
        newest = latest.anchor.version
        kept: deque[PastAnchor] = deque(maxlen=_MOST_ANCHORS)
        count = 0
        for event in _events(client.chain, client.contract_id, latest, time.monotonic() + seconds):
            past = _decoded(event)
            if past.anchor.version > newest:  # made after the anchor was read
                continue
            count += 1
            if count > newest:
                raise _endless("more events of this owner than there are versions")
            kept.append(past)
        return list(reversed(kept))

    return source


def _events(
    chain: ChainClient, contract_id: str, latest: PastAnchor, deadline: float
) -> Iterator[ChainEvent]:
    """The owner's events, oldest first, up to the ledger of the anchor on the chain, or the latest one where
    that is not known."""
    from stellar_sdk import scval

    topics = [scval.to_symbol(EVENT_NAME), scval.to_address(latest.anchor.owner)]
    start = chain.events(contract_id, start_ledger=chain.identity().latest_ledger, topics=topics, limit=1)
    end = start.latest_ledger if latest.ledger is None else latest.ledger
    page = chain.events(contract_id, start_ledger=start.oldest_ledger, topics=topics, limit=_PAGE)
    place = (-1, 0)
    for _ in range(_MOST_PAGES):
        for event in page.events:
            if event.ledger > end:
                return
            yield event
        reached = ledger_of(page.cursor)
        # A page without events is not the end: a server looks through so many ledgers at a time.
        if not page.events and reached >= page.latest_ledger:
            return
        if reached > end or (reached == end and ends_ledger(page.cursor)):
            return
        if place_of(page.cursor) <= place:
            raise _endless("the same events again and again")
        if time.monotonic() > deadline:
            break
        place = place_of(page.cursor)
        page = chain.events(contract_id, cursor=page.cursor, topics=topics, limit=_PAGE)
    raise _endless("events of this owner without coming to an end")


def _endless(what: str) -> ChainUnavailable:
    return ChainUnavailable(f"the server gives {what}", hint="ask another RPC server")


def _decoded(event: ChainEvent) -> PastAnchor:
    anchor = anchor_from_event_xdr(event.topic_xdr, event.value_xdr)
    return PastAnchor(anchor, event.ledger, event.transaction if is_hash(event.transaction) else None)
