"""Past anchors from a chain's events: all of them, or less and said so, or a lie and noticed."""

from __future__ import annotations

import dataclasses
import itertools
from typing import TYPE_CHECKING, Any

import pytest
from stellar_sdk import Keypair, scval, xdr

from mycelium_sdk.chain import history
from mycelium_sdk.chain.anchors import EVENT_NAME
from mycelium_sdk.chain.base import EventPage
from mycelium_sdk.chain.history import (
    AnchorHistory,
    HistorySource,
    NamedSource,
    PastAnchor,
    event_history,
    latest_of,
    proved_history,
)
from mycelium_sdk.errors import ChainUnavailable, MyceliumError, NotAnchored, Tampered, WrongOwner

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.contract.conftest import Host

VERSIONS = 7


@pytest.fixture
def anchored(host: Host) -> Host:
    for number in range(1, VERSIONS + 1):
        host.client.set_anchor(host.owner, bytes([number]) * 32, f"file:///{number}".encode())
        host.client.set_anchor(host.other, bytes([100 + number]) * 32)
    return host


def _history(host: Host, *sources: HistorySource) -> AnchorHistory:
    latest = latest_of(host.client, host.owner.public_key)
    return proved_history(latest, sources or [event_history(host.client)])


def _served(host: Host) -> list[PastAnchor]:
    return list(event_history(host.client)(latest_of(host.client, host.owner.public_key)))


def test_every_version_with_its_ledger_and_transaction(anchored: Host) -> None:
    found = _history(anchored)
    assert found.verified
    assert found.complete
    assert [one.anchor.version for one in found.anchors] == list(range(VERSIONS, 0, -1))
    assert [one.anchor.uri for one in found.anchors][-1] == b"file:///1"
    ledgers = [one.ledger for one in found.anchors]
    assert ledgers == sorted(ledgers, key=lambda ledger: -(ledger or 0))
    oldest = found.find(1)
    assert oldest is not None
    assert oldest.transaction is not None
    state = anchored.chain.transaction(oldest.transaction)
    assert state.ledger == oldest.ledger
    assert found.find(VERSIONS + 1) is None


def test_the_first_version_needs_nobody_but_for_its_transaction(host: Host) -> None:
    host.client.set_anchor(host.owner, bytes([1]) * 32)

    def gone(_: PastAnchor) -> list[PastAnchor]:
        raise ChainUnavailable("gone")

    found = _history(host, gone)
    assert (len(found.anchors), found.verified, found.complete) == (1, True, True)
    assert found.anchors[0].transaction is None
    assert len(found.notes) == 1
    (told,) = _history(host, lambda _: _served(host)).anchors
    assert told.transaction is not None
    latest = latest_of(host.client, host.owner.public_key)

    def never(_: PastAnchor) -> list[PastAnchor]:
        raise AssertionError("asked")

    assert proved_history(latest, [never], down_to=1).complete


def test_nobody_anchored(host: Host) -> None:
    with pytest.raises(NotAnchored):
        latest_of(host.client, Keypair.random().public_key)


def test_what_a_server_has_dropped_is_missing_and_said_so(anchored: Host) -> None:
    served = _served(anchored)
    found = _history(anchored, lambda _: served[:3])
    assert [one.anchor.version for one in found.anchors] == [7, 6, 5]
    assert (found.verified, found.complete) == (True, False)
    # Another one that has more is asked as well, and one that knows nothing does no harm.
    assert _history(anchored, lambda _: [], lambda _: served[:3], lambda _: served).complete
    assert len(_history(anchored, lambda _: []).anchors) == 1
    # One that has not seen the latest yet serves the rest.
    assert _history(anchored, lambda _: served[1:]).complete


def _altered(past: PastAnchor, **fields: object) -> PastAnchor:
    return dataclasses.replace(past, anchor=dataclasses.replace(past.anchor, **fields))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "forge",
    [
        lambda served: [*served[:2], *served[3:]],
        lambda served: [*served[:2], served[3], served[2], *served[4:]],
        lambda served: [*served[:2], _altered(served[2], root=bytes(31) + b"\1"), *served[3:]],
        lambda served: [*served[:2], _altered(served[2], uri=b"https://elsewhere"), *served[3:]],
        lambda served: [*served[:-1], _altered(served[-1], previous=bytes(32))],
        lambda served: [*served[:3], served[2], *served[3:]],
        lambda served: [_altered(served[0], root=bytes(31) + b"\1"), *served[1:]],
        lambda served: [*served, _altered(served[-1], version=0)],
    ],
)
def test_a_history_that_omits_reorders_alters_or_invents_is_caught(
    anchored: Host, forge: Callable[[list[PastAnchor]], list[PastAnchor]]
) -> None:
    served = _served(anchored)
    with pytest.raises(Tampered):
        _history(anchored, lambda _: forge(served))


def test_another_owner_s_anchor_is_caught(anchored: Host) -> None:
    served = _served(anchored)
    others = list(event_history(anchored.client)(latest_of(anchored.client, anchored.other.public_key)))
    with pytest.raises(WrongOwner):
        _history(anchored, lambda _: [*served[:2], others[2], *served[3:]])


def test_events_that_were_trimmed(anchored: Host) -> None:
    anchored.chain.localnet.fault("retention", count=10, methods=["getEvents"], ledgers=4)
    found = _history(anchored)
    assert found.verified
    assert not found.complete


def test_a_server_that_fails_says_so(anchored: Host) -> None:
    def failing(_: PastAnchor) -> list[PastAnchor]:
        raise MyceliumError("gone")

    with pytest.raises(MyceliumError, match="gone"):
        _history(anchored, failing)


@pytest.mark.parametrize("empty", [True, False])
def test_a_server_whose_events_do_not_end_is_given_up(
    anchored: Host, monkeypatch: pytest.MonkeyPatch, empty: bool
) -> None:
    events = anchored.chain.events

    def the_same(contract_id: str, **wanted: Any) -> EventPage:
        wanted.pop("cursor", None)
        page = events(contract_id, **{"start_ledger": 1, **wanted})
        return dataclasses.replace(page, events=() if empty else page.events[:1], cursor="1-0")

    monkeypatch.setattr(anchored.chain, "events", the_same)
    with pytest.raises(ChainUnavailable, match="again and again"):
        _history(anchored)


def test_no_more_anchors_are_looked_at_than_there_are_versions(anchored: Host) -> None:
    served = _served(anchored)
    with pytest.raises(Tampered):
        _history(anchored, lambda _: itertools.cycle(served))


def test_nothing_is_read_below_the_version_that_is_needed(anchored: Host) -> None:
    latest, served = latest_of(anchored.client, anchored.owner.public_key), _served(anchored)
    read: list[int] = []

    def reading(_: PastAnchor) -> Iterator[PastAnchor]:
        for one in served:
            read.append(one.anchor.version)
            yield one

    def never(_: PastAnchor) -> list[PastAnchor]:
        raise AssertionError("asked")

    def needed(version: int, *sources: HistorySource | NamedSource) -> AnchorHistory:
        return proved_history(latest, sources, down_to=version)

    found = needed(5, NamedSource("the first", reading, "ask another"), never)
    assert (read, [one.anchor.version for one in found.anchors]) == ([7, 6, 5], [7, 6, 5])
    assert (found.verified, found.complete) == (True, False)
    assert [len(needed(version, never).anchors) for version in (VERSIONS, VERSIONS + 1)] == [1, 1]
    # Two that have a part each make it together; what neither has is missing.
    parts: list[HistorySource] = [lambda _: served[:2], lambda _: served[2:5]]
    assert needed(4, *parts, never).find(4) == served[3]
    assert not needed(2, *parts).complete
    assert [needed(version, reading).complete for version in (2, 1, 0)] == [False, True, True]
    assert read == [7, 6, 5, *range(7, 1, -1), *range(7, 0, -1), *range(7, 0, -1)]


def test_a_lie_above_the_version_that_is_needed_is_caught(anchored: Host) -> None:
    latest, served = latest_of(anchored.client, anchored.owner.public_key), _served(anchored)
    forged = [*served[:2], _altered(served[2], uri=b"https://elsewhere"), *served[3:]]
    with pytest.raises(Tampered):
        proved_history(latest, [lambda _: forged], down_to=5)
    assert len(proved_history(latest, [lambda _: forged], down_to=6).anchors) == 2


def _endless(host: Host, monkeypatch: pytest.MonkeyPatch, *, within_the_ledger: bool) -> list[int]:
    """Let the server repeat the first version's event for ever, each time further on; how many were given."""
    (event, *_) = host.chain.events(host.client.contract_id, start_ledger=1, topics=_topics(host)).events
    given: list[int] = []

    def more(_: str, *, limit: int = 100, **_wanted: object) -> EventPage:
        if limit > 1:
            given.append(len(given) + 1)
        place = (event.ledger << 32) + len(given) if within_the_ledger else len(given) << 32
        page = f"{place:019d}-0000000000"
        ledger = place >> 32
        return EventPage((dataclasses.replace(event, id=page, ledger=ledger),), page, 10**6, 1, 10**9)

    monkeypatch.setattr(host.chain, "events", more)
    return given


def _topics(host: Host) -> list[xdr.SCVal]:
    return [scval.to_symbol(EVENT_NAME), scval.to_address(host.owner.public_key)]


def test_a_server_that_goes_on_giving_events_is_given_up(
    anchored: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There cannot be more of them than the owner has versions."""
    latest = latest_of(anchored.client, anchored.owner.public_key)
    given = _endless(anchored, monkeypatch, within_the_ledger=True)
    with pytest.raises(ChainUnavailable, match="more events of this owner than there are versions"):
        proved_history(latest, [event_history(anchored.client)])
    assert len(given) == VERSIONS + 1


def test_events_are_read_up_to_the_ledger_of_the_anchor(
    anchored: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the server says about its latest ledger."""
    latest = latest_of(anchored.client, anchored.owner.public_key)
    many = dataclasses.replace(latest, anchor=dataclasses.replace(latest.anchor, version=2**62))
    given = _endless(anchored, monkeypatch, within_the_ledger=False)
    found = list(event_history(anchored.client)(dataclasses.replace(many, ledger=5)))
    assert (len(found), len(given)) == (5, 6)


def test_events_that_only_trickle_in_end_in_time_and_take_little_memory(
    anchored: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    latest = latest_of(anchored.client, anchored.owner.public_key)
    many = dataclasses.replace(latest, anchor=dataclasses.replace(latest.anchor, version=2**62))
    monkeypatch.setattr(history, "_MOST_ANCHORS", 10)
    monkeypatch.setattr(history, "_MOST_PAGES", 50)
    given = _endless(anchored, monkeypatch, within_the_ledger=True)
    with pytest.raises(ChainUnavailable, match="without coming to an end"):
        event_history(anchored.client)(many)
    assert len(given) == 51
    with pytest.raises(ChainUnavailable, match="without coming to an end"):
        event_history(anchored.client, seconds=-1)(many)
    assert len(given) == 52, "the first page may take its time, and there is no second one"


def test_of_very_many_anchors_the_oldest_are_left_out(
    anchored: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history, "_MOST_ANCHORS", 3)
    found = _history(anchored)
    assert [one.anchor.version for one in found.anchors] == [7, 6, 5]
    assert (found.verified, found.complete) == (True, False)


def test_a_page_that_ends_before_the_anchor_is_not_the_end(
    anchored: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As from servers that look through so many ledgers at a time: pages that hold nothing, and full ones
    that leave off within a ledger."""
    anchored.client.set_anchor(anchored.other, bytes([99]) * 32)
    events, pages = anchored.chain.events, []

    def sliced(contract_id: str, **wanted: Any) -> EventPage:
        page = events(contract_id, **{**wanted, "limit": 1})
        pages.append(page)
        return page

    monkeypatch.setattr(anchored.chain, "events", sliced)
    assert _history(anchored).complete
    assert len(pages) > VERSIONS
    pages.clear()

    def empty_first(contract_id: str, **wanted: Any) -> EventPage:
        page = sliced(contract_id, **wanted)
        if len(pages) == 2:
            return dataclasses.replace(page, events=(), cursor=f"{page.oldest_ledger << 32:019d}-0")
        return page

    monkeypatch.setattr(anchored.chain, "events", empty_first)
    assert _history(anchored).complete


def test_anchors_that_were_made_meanwhile_are_passed_over(anchored: Host) -> None:
    latest = latest_of(anchored.client, anchored.owner.public_key)
    anchored.client.set_anchor(anchored.owner, bytes([50]) * 32)
    for ledger in (latest.ledger, None):
        found = list(event_history(anchored.client)(dataclasses.replace(latest, ledger=ledger)))
        assert [one.anchor.version for one in found] == list(range(VERSIONS, 0, -1))


def test_a_transaction_that_is_no_hash_is_not_told(anchored: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    events = anchored.chain.events

    def renamed(contract_id: str, **wanted: Any) -> EventPage:
        page = events(contract_id, **wanted)
        return dataclasses.replace(
            page, events=tuple(dataclasses.replace(one, transaction="\ud800") for one in page.events)
        )

    monkeypatch.setattr(anchored.chain, "events", renamed)
    found = _history(anchored)
    assert found.complete
    assert [one.transaction for one in found.anchors] == [None] * VERSIONS
