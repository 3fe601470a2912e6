"""Chains that start anew, with or without saying so, and servers that are only behind."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import pytest

from mycelium_sdk.errors import ChainUnavailable
from mycelium_sdk.testing.event_server import EventServer, forged_history
from tests.indexer.ingest.test_following import ALICE, BOB

if TYPE_CHECKING:
    from stellar_sdk.client.response import Response

    from tests.indexer.ingest.conftest import Clock, Follower

START = 1_800_000_000


def _read(follower: Follower, server: EventServer, ledgers: int) -> None:
    follower.transport = server
    for anchor in forged_history(ALICE, ledgers):
        server.add(anchor)
    follower.restart()
    follower.follow()


def _is_kept_apart(follower: Follower, before: int) -> None:
    newest, older = follower.store.sources()
    assert (newest.epoch, older.epoch) == (2, 1)
    assert follower.source == newest
    kept = follower.store.history(older, ALICE, below=None, limit=99)
    assert [one.anchor.version for one in kept] == list(range(before, 0, -1))
    assert follower.store.latest(newest, ALICE) is None
    assert follower.versions(BOB) == [2, 1]


@pytest.mark.parametrize("restarted", [True, False])
@pytest.mark.parametrize("ledgers", [3, 40])
def test_another_chain_id(follower: Follower, restarted: bool, ledgers: int) -> None:
    first = EventServer(chain_id="aa")
    _read(follower, first, 20)
    newer = EventServer(seed="second", chain_id="bb")
    newer.add(*forged_history(BOB, 2), ledger=ledgers)
    first.intercept = newer.answer
    if restarted:
        follower.restart()
    follower.follow()
    _is_kept_apart(follower, 20)
    assert follower.source.chain_id == "bb"


def test_the_first_chain_again_is_followed_where_it_was_left(follower: Follower) -> None:
    first = EventServer(chain_id="aa")
    _read(follower, first, 20)
    second = EventServer(seed="second", chain_id="bb")
    second.add(*forged_history(BOB, 2))
    follower.transport = second
    follower.restart()
    follower.follow()
    first.add(forged_history(ALICE, 21)[20])
    follower.transport = first
    follower.restart()
    follower.follow()
    assert (follower.source.chain_id, follower.source.epoch) == ("aa", 1)
    assert follower.versions(ALICE) == list(range(21, 0, -1))


@pytest.mark.parametrize("ledger", [21, 22, 60])
def test_another_ledger_hash(follower: Follower, caplog: pytest.LogCaptureFixture, ledger: int) -> None:
    """A chain that serves no id, and is as long as the one before or longer."""
    _read(follower, EventServer(), 20)
    newer = EventServer(seed="second", since=START + 10_000)
    newer.add(*forged_history(BOB, 2), ledger=ledger)
    follower.transport = newer
    follower.restart()
    with caplog.at_level(logging.WARNING, "mycelium_indexer"):
        follower.follow()
    _is_kept_apart(follower, 20)
    assert "started anew" in caplog.text


def test_a_shorter_chain_that_is_later(follower: Follower) -> None:
    _read(follower, EventServer(), 20)
    newer = EventServer(seed="second", since=START + 10_000)
    newer.add(*forged_history(BOB, 2))
    follower.transport = newer
    follower.restart()
    follower.follow()
    _is_kept_apart(follower, 20)


def test_a_chain_that_began_while_it_was_read(follower: Follower) -> None:
    """Between a page and what is asked about it."""
    first = EventServer(chain_id="aa")
    _read(follower, first, 20)
    first.add(forged_history(ALICE, 21)[20])
    newer = EventServer(seed="second", chain_id="bb")
    newer.add(*forged_history(BOB, 2), ledger=30)

    def change(method: str, params: dict[str, Any]) -> Response | None:
        if method == "getEvents":
            page = first.answer(method, params)
            first.intercept = newer.answer
            return page
        return None

    first.intercept = change
    follower.follow()
    _is_kept_apart(follower, 20)


def test_what_is_put_back_and_goes_on_differently(follower: Follower) -> None:
    """The same chain id, as after a revert of a local chain."""
    _read(follower, EventServer(chain_id="aa"), 20)
    newer = EventServer(seed="second", chain_id="aa")
    newer.add(*forged_history(BOB, 2), ledger=25)
    follower.transport = newer
    follower.restart()
    follower.follow()
    _is_kept_apart(follower, 20)


def test_a_server_that_is_behind_is_waited_for(follower: Follower, clock: Clock) -> None:
    server = EventServer()
    _read(follower, server, 20)
    latest, server.latest = server.latest, 15
    for _ in range(2):
        with pytest.raises(ChainUnavailable, match="behind"):
            follower.ingester.poll_once()
        follower.restart()
    server.latest = latest
    server.add(forged_history(ALICE, 21)[20])
    follower.run(waits=1)
    assert [one.epoch for one in follower.store.sources()] == [1]
    assert follower.versions(ALICE) == list(range(21, 0, -1))


def test_a_start_ledger_counts_for_the_first_chain_only(follower: Follower) -> None:
    _read(follower, EventServer(chain_id="aa"), 20)
    newer = EventServer(seed="second", chain_id="bb")
    newer.add(*forged_history(BOB, 2))
    follower.transport = newer
    follower.restart(start_ledger=15)
    follower.follow()
    assert follower.versions(BOB) == [2, 1]


def test_the_hash_is_looked_at_when_there_is_reason(follower: Follower, clock: Clock) -> None:
    """Ledgers of a public network are large: no look at one with each poll."""
    server = EventServer()
    _read(follower, server, 20)
    server.calls.clear()
    for _ in range(5):
        server.latest += 1
        follower.follow()
    assert "getLedgers" not in server.calls
    clock.seconds += 61
    follower.follow()
    assert "getLedgers" in server.calls
    server.calls.clear()
    server.add(forged_history(ALICE, 21)[20])
    follower.follow()
    assert "getLedgers" in server.calls
