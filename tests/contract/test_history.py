"""Past anchors from a chain's events: all of them, or less and said so, or a lie and noticed."""

from __future__ import annotations

import dataclasses
import itertools
from typing import TYPE_CHECKING, Any

import pytest
from stellar_sdk import Keypair

from mycelium_sdk.chain.history import (
    AnchorHistory,
    HistorySource,
    PastAnchor,
    event_history,
    latest_of,
    proved_history,
)
from mycelium_sdk.errors import ChainUnavailable, MyceliumError, NotAnchored, Tampered, WrongOwner

if TYPE_CHECKING:
    from collections.abc import Callable

    from mycelium_sdk.chain.base import EventPage
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
    return list(event_history(host.client)(host.owner.public_key))


def test_every_version_with_its_ledger_and_transaction(anchored: Host) -> None:
    history = _history(anchored)
    assert history.verified
    assert history.complete
    assert [one.anchor.version for one in history.anchors] == list(range(VERSIONS, 0, -1))
    assert [one.anchor.uri for one in history.anchors][-1] == b"file:///1"
    ledgers = [one.ledger for one in history.anchors]
    assert ledgers == sorted(ledgers, key=lambda ledger: -(ledger or 0))
    oldest = history.find(1)
    assert oldest is not None
    assert oldest.transaction is not None
    state = anchored.chain.transaction(oldest.transaction)
    assert state.ledger == oldest.ledger
    assert history.find(VERSIONS + 1) is None


def test_the_first_version_needs_nobody(host: Host) -> None:
    host.client.set_anchor(host.owner, bytes([1]) * 32)

    def never(_: str) -> list[PastAnchor]:
        raise AssertionError("asked")

    history = _history(host, never)
    assert (len(history.anchors), history.verified, history.complete) == (1, True, True)


def test_nobody_anchored(host: Host) -> None:
    with pytest.raises(NotAnchored):
        latest_of(host.client, Keypair.random().public_key)


def test_what_a_server_has_dropped_is_missing_and_said_so(anchored: Host) -> None:
    served = _served(anchored)
    history = _history(anchored, lambda _: served[:3])
    assert [one.anchor.version for one in history.anchors] == [7, 6, 5]
    assert (history.verified, history.complete) == (True, False)
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
    others = list(event_history(anchored.client)(anchored.other.public_key))
    with pytest.raises(WrongOwner):
        _history(anchored, lambda _: [*served[:2], others[2], *served[3:]])


def test_events_that_were_trimmed(anchored: Host) -> None:
    anchored.chain.localnet.fault("retention", count=10, methods=["getEvents"], ledgers=4)
    history = _history(anchored)
    assert history.verified
    assert not history.complete


def test_a_server_that_fails_says_so(anchored: Host) -> None:
    def failing(_: str) -> list[PastAnchor]:
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
        return dataclasses.replace(page, events=(), cursor="1-0") if empty else page

    monkeypatch.setattr(anchored.chain, "events", the_same)
    with pytest.raises(ChainUnavailable, match="again and again"):
        _history(anchored)


def test_no_more_anchors_are_looked_at_than_there_are_versions(anchored: Host) -> None:
    served = _served(anchored)
    with pytest.raises(Tampered):
        _history(anchored, lambda _: itertools.cycle(served))
