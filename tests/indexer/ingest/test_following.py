"""Following a server's events: in order, once each, whatever the server does."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import logging
from typing import TYPE_CHECKING, Any

import pytest
from stellar_sdk import scval, xdr
from stellar_sdk.client.response import Response

from mycelium_indexer.store import open_store
from mycelium_indexer.values import Totals
from mycelium_sdk.chain.anchors import EVENT_NAME, anchor_to_value
from mycelium_sdk.errors import ChainError, ChainUnavailable, InputError, StoreLocked, WrongDomain
from mycelium_sdk.strkey import encode_account
from mycelium_sdk.testing.event_server import EventServer, forged_history
from tests.indexer.contents import contents
from tests.indexer.ingest.conftest import Follower

if TYPE_CHECKING:
    from pathlib import Path

    from tests.indexer.ingest.conftest import Clock


def owner(number: int) -> str:
    return encode_account(hashlib.sha256(b"owner %d" % number).digest())


ALICE, BOB = owner(1), owner(2)


def test_every_anchor_where_it_was_made(server: EventServer, follower: Follower) -> None:
    histories = [forged_history(owner(n), 7) for n in range(5)]
    for version in range(7):
        server.add(*(history[version] for history in histories))
    follower.follow()
    for history in histories:
        found = follower.store.history(follower.source, history[0].owner, below=None, limit=99)
        assert [one.anchor for one in reversed(found)] == history
        assert [one.ledger for one in reversed(found)] == list(range(2, 9))
        assert len({one.transaction for one in found}) == 7
    progress = follower.store.progress(follower.source)
    assert progress is not None
    assert (progress.ledger, progress.latest_ledger, progress.first_ledger) == (8, 8, 1)
    assert progress.close_time == server.close_time(8)
    assert progress.asked_at == follower.clock.seconds
    assert follower.store.totals(follower.source) == Totals(5, 35, 0, 0)


def test_what_comes_later_appears_with_the_next_look(server: EventServer, follower: Follower) -> None:
    history = forged_history(ALICE, 3)
    for version, anchor in enumerate(history, 1):
        server.add(anchor)
        assert not follower.ingester.poll_once()
        assert follower.versions(ALICE)[0] == version


def test_progress_while_there_is_more_to_read(server: EventServer, follower: Follower) -> None:
    for anchor in forged_history(ALICE, 25):
        server.add(anchor)
    assert follower.ingester.poll_once()
    progress = follower.store.progress(follower.source)
    assert progress is not None
    # The tenth event was in ledger 11, which may hold more.
    assert (progress.ledger, progress.latest_ledger) == (10, 26)
    assert progress.close_time == server.close_time(10)


def test_a_restart_goes_on_where_it_was_left(server: EventServer, follower: Follower) -> None:
    for anchor in forged_history(ALICE, 25):
        server.add(anchor)
    follower.ingester.poll_once()
    follower.restart()
    server.calls.clear()
    follower.follow()
    assert follower.versions(ALICE) == list(range(25, 0, -1))
    assert server.calls.count("getEvents") == 2


@pytest.mark.parametrize(("wanted", "begins"), [(None, 5), (3, 5), (12, 12)])
def test_where_it_begins_is_said(
    server: EventServer, follower: Follower, caplog: pytest.LogCaptureFixture, wanted: int | None, begins: int
) -> None:
    for anchor in forged_history(ALICE, 20):
        server.add(anchor)
    server.oldest = 5
    follower.restart(start_ledger=wanted)
    with caplog.at_level(logging.INFO, "mycelium_indexer"):
        follower.follow()
    said = next(record for record in caplog.records if "begin" in record.getMessage())
    assert said.fields["ledger"] == begins  # type: ignore[attr-defined]
    assert (said.levelno == logging.WARNING) == (wanted == 3), "later than was asked for"
    assert follower.versions(ALICE)[-1] == begins - 1
    assert follower.gaps(ALICE) == [(1, begins - 2)], "older versions are known to be missing"
    progress = follower.store.progress(follower.source)
    assert progress is not None
    assert progress.first_ledger == begins


def test_a_start_that_is_not_there_yet(server: EventServer, follower: Follower) -> None:
    follower.restart(start_ledger=500)
    with pytest.raises(InputError, match="not there yet"):
        follower.ingester.poll_once()
    with pytest.raises(InputError):
        follower.restart(start_ledger=0)
    assert server.calls


def test_a_page_without_events_is_not_the_end(server: EventServer, follower: Follower) -> None:
    history = forged_history(ALICE, 2)
    server.add(history[0])
    server.add(history[1], ledger=35_000)  # a server looks through 10,000 ledgers at a time
    follower.follow()
    assert follower.versions(ALICE) == [2, 1]
    assert server.calls.count("getEvents") >= 4


def test_an_empty_page_in_the_middle(server: EventServer, follower: Follower) -> None:
    for anchor in forged_history(ALICE, 25):
        server.add(anchor)
    asked = 0

    def empty(method: str, params: dict[str, Any]) -> Response | None:
        nonlocal asked
        asked += method == "getEvents"
        if method != "getEvents" or asked != 3:
            return None
        answer = json.loads(server.answer(method, params).text)
        answer["result"] |= {"events": [], "cursor": params["pagination"]["cursor"]}
        return Response(200, json.dumps(answer), {}, server.URL)

    server.intercept = empty
    follower.run(waits=2)
    assert follower.versions(ALICE) == list(range(25, 0, -1))


def test_a_server_that_repeats_a_cursor(server: EventServer, follower: Follower) -> None:
    """The same cursor and the same page again, and a cursor that goes back."""
    for anchor in forged_history(ALICE, 35):
        server.add(anchor)
    pages: list[Response] = []

    def repeat(method: str, params: dict[str, Any]) -> Response | None:
        if method != "getEvents":
            return None
        pages.append(server.answer(method, params))
        return pages[-2] if len(pages) in (3, 4, 6) else pages[-1]

    server.intercept = repeat
    follower.run(waits=4)
    assert follower.versions(ALICE) == list(range(35, 0, -1))
    assert follower.store.totals(follower.source) == Totals(1, 35, 0, 0)


def test_a_cursor_that_stays_is_no_reason_to_spin(server: EventServer, follower: Follower) -> None:
    for anchor in forged_history(ALICE, 35):
        server.add(anchor)

    def stay(method: str, params: dict[str, Any]) -> Response | None:
        cursor = (params.get("pagination") or {}).get("cursor")
        if method != "getEvents" or cursor is None:
            return None
        answer = json.loads(server.answer(method, params).text)
        answer["result"] |= {"events": [], "cursor": cursor}
        return Response(200, json.dumps(answer), {}, server.URL)

    server.intercept = stay
    assert follower.ingester.poll_once()
    assert not follower.ingester.poll_once(), "nothing was gained: wait"
    server.intercept = lambda _method, _params: None
    follower.follow()
    assert follower.versions(ALICE) == list(range(35, 0, -1))


def test_a_minute_of_503(server: EventServer, follower: Follower, clock: Clock) -> None:
    for anchor in forged_history(ALICE, 25):
        server.add(anchor)
    follower.ingester.poll_once()
    begun = clock.seconds

    def unavailable(_method: str, _params: dict[str, Any]) -> Response | None:
        return Response(503, "", {}, server.URL) if clock.seconds < begun + 60 else None

    server.intercept = unavailable
    follower.run(waits=8)
    assert clock.waits[:6] == [1.0, 2.0, 4.0, 8.0, 16.0, 16.0], "longer and longer, up to a bound"
    assert follower.versions(ALICE) == list(range(25, 0, -1))
    # A failure after that is waited for shortly again.
    server.intercept = lambda _method, _params: Response(503, "", {}, server.URL)
    del clock.waits[:]
    follower.run(waits=2)
    assert clock.waits == [1.0, 2.0]


def test_waits_are_jittered(server: EventServer, follower: Follower, clock: Clock) -> None:
    clock.luck = 1.0
    server.intercept = lambda _method, _params: Response(503, "", {}, server.URL)
    follower.run(waits=3)
    assert clock.waits == [0.5, 1.0, 2.0]


def test_what_does_not_pass_ends_the_run(server: EventServer, follower: Follower) -> None:
    server.intercept = lambda _method, _params: Response(401, "", {}, server.URL)
    with pytest.raises(ChainError, match="401"):
        follower.run(waits=3)

    def other(method: str, _params: dict[str, Any]) -> Response | None:
        if method != "getNetwork":
            return None
        value = {"passphrase": "Another Network", "protocolVersion": 28, "friendbotUrl": None}
        return Response(200, json.dumps({"jsonrpc": "2.0", "id": 1, "result": value}), {}, server.URL)

    server.intercept = other
    with pytest.raises(WrongDomain):
        follower.run(waits=3)


def test_a_busy_database_is_waited_for(
    server: EventServer, follower: Follower, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.add(*forged_history(ALICE, 2))
    apply, failures = follower.store.apply, [StoreLocked("busy"), StoreLocked("busy")]

    def sometimes(*arguments: Any, **options: Any) -> bool:
        if failures:
            raise failures.pop()
        return apply(*arguments, **options)

    monkeypatch.setattr(follower.store, "apply", sometimes)
    follower.run(waits=3)
    assert follower.versions(ALICE) == [2, 1]


def test_two_at_once_do_no_harm(server: EventServer, follower: Follower) -> None:
    other = Follower(follower.store, server, follower.clock, {"page": 7})
    for anchor in forged_history(ALICE, 60):
        server.add(anchor)
    while len(follower.store.sources()) == 0 or follower.versions(ALICE) != list(range(60, 0, -1)):
        follower.ingester.poll_once()
        other.ingester.poll_once()
    assert follower.store.totals(follower.source) == Totals(1, 60, 0, 0)


def test_who_was_overtaken_writes_nothing(server: EventServer, follower: Follower) -> None:
    other = Follower(follower.store, server, follower.clock, {"page": 10})
    for anchor in forged_history(ALICE, 15):
        server.add(anchor)
    follower.ingester.poll_once()

    def overtake(method: str, params: dict[str, Any]) -> Response | None:
        if method != "getEvents":
            return None
        answer = server.answer(method, params)
        server.intercept = lambda _method, _params: None
        other.follow()
        return answer

    server.intercept = overtake
    assert not follower.ingester.poll_once()
    before = contents(follower.store, follower.source)
    assert not follower.ingester.poll_once()
    assert contents(follower.store, follower.source) == before
    assert follower.versions(ALICE) == list(range(15, 0, -1))


def test_what_is_no_anchor_is_set_aside_and_the_rest_goes_on(
    server: EventServer, follower: Follower, caplog: pytest.LogCaptureFixture
) -> None:
    (good, *later) = forged_history(ALICE, 3)
    name, address = scval.to_symbol(EVENT_NAME).to_xdr(), scval.to_address(BOB).to_xdr()
    value = anchor_to_value(forged_history(BOB, 1)[0])
    huge = anchor_to_value(dataclasses.replace(forged_history(BOB, 1)[0], version=2**64 - 1))
    secret = scval.to_string("what somebody wrote in there")
    server.add(good)
    cases = [
        ([name, address], secret.to_xdr()),
        ([name], secret.to_xdr()),
        ([name], scval.to_map({scval.to_symbol("owner"): scval.to_address(BOB)}).to_xdr()),
        ([scval.to_symbol("other").to_xdr(), address], value.to_xdr()),
        ([], value.to_xdr()),
        ([name, scval.to_string("nobody").to_xdr()], value.to_xdr()),
        ([name, address, address], value.to_xdr()),
        ([name, address], "AAAA"),
        ([name, address], ""),
        ([name, "AAAAEgAAAAk="], value.to_xdr()),
        ([name, address], huge.to_xdr()),
        ([name, address], _deep().to_xdr()),
    ]
    for topics, data in cases:
        server.add_event(topics, data, ledger=server.latest)
    server.add(*later)
    with caplog.at_level(logging.INFO, "mycelium_indexer"):
        follower.follow()
    assert follower.versions(ALICE) == [3, 2, 1]
    assert follower.store.totals(follower.source) == Totals(1, 3, 0, len(cases))
    for aside in follower.store.set_aside(follower.source, limit=99):
        assert aside.reason
        assert "somebody wrote" not in aside.reason
        assert aside.ledger == 2
    assert "somebody wrote" not in caplog.text
    assert "example.org" not in caplog.text, "no URIs either"


def _deep() -> xdr.SCVal:
    """Deeper than what is decoded by recursion."""
    value = scval.to_uint32(1)
    for _ in range(150):
        value = scval.to_vec([value])
    return value


def test_events_of_another_contract_and_hashes_that_are_none(server: EventServer, follower: Follower) -> None:
    server.add(*forged_history(ALICE, 3))

    def changed(method: str, params: dict[str, Any]) -> Response | None:
        if method != "getEvents":
            return None
        answer = json.loads(server.answer(method, params).text)
        events = answer["result"]["events"]
        if len(events) == 3:
            events[0]["contractId"] = "C" + "A" * 55
            events[1]["txHash"] = "'; DROP TABLE anchors; --\x00"
        return Response(200, json.dumps(answer), {}, server.URL)

    server.intercept = changed
    follower.follow()
    assert follower.versions(ALICE) == [3]
    assert {one.reason for one in follower.store.set_aside(follower.source, limit=9)} == {
        "it is another contract's event", "its transaction hash is none",
    }  # fmt: skip
    assert all("DROP" not in one.transaction for one in follower.store.set_aside(follower.source, limit=9))


@pytest.mark.parametrize("cursor", ["", "later", "1-2-3", "12345678901234567890123-0000000001"])
def test_cursors_that_are_none(server: EventServer, follower: Follower, cursor: str) -> None:
    server.add(*forged_history(ALICE, 1))

    def changed(method: str, params: dict[str, Any]) -> Response | None:
        if method != "getEvents":
            return None
        answer = json.loads(server.answer(method, params).text)
        answer["result"]["cursor"] = cursor
        return Response(200, json.dumps(answer), {}, server.URL)

    server.intercept = changed
    with pytest.raises((WrongDomain, ChainUnavailable)):
        follower.ingester.poll_once()
    assert follower.store.progress(follower.source) is None


def test_any_bytes_survive(server: EventServer, follower: Follower) -> None:
    nasty = [
        b"'; DROP TABLE owners; --",
        b"<img src=x onerror=alert(1)>",
        b"\xff\xfe\x00\x80",
        bytes(range(256)),
    ]
    anchors = [
        dataclasses.replace(forged_history(owner(n), 1)[0], uri=text, acl=text * 2)
        for n, text in enumerate(nasty)
    ]
    server.add(*anchors)
    follower.follow()
    for anchor in anchors:
        latest = follower.store.latest(follower.source, anchor.owner)
        assert latest is not None
        assert latest.anchor == anchor


def test_wiped_and_read_again_it_is_the_same(server: EventServer, follower: Follower, tmp_path: Path) -> None:
    histories = [forged_history(owner(n), 9) for n in range(12)]
    for version in range(9):
        server.add(*(history[version] for history in histories if version != 4 or history[0].owner < "GM"))
    server.add_event([], scval.to_void().to_xdr())
    follower.follow()
    again = open_store(str(tmp_path / "again.db"))
    # Pages of another size, so other transactions.
    Follower(again, server, follower.clock, {"page": 17}).follow()
    (source,) = again.sources()
    found = contents(again, source)
    assert found == contents(follower.store, follower.source)
    assert [one.event_id for one in found["set_aside"]] == [server.last_id]
    again.close()
