"""What a server dropped before it was read: recorded, never passed over, and repaired from a kept list."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import logging
import threading
from typing import TYPE_CHECKING, Any

import pytest
from stellar_sdk.client.response import Response

from mycelium_indexer.api.answers import anchor_as_json
from mycelium_indexer.ingest.kept import parse_kept
from mycelium_indexer.values import IndexedAnchor, LedgerRange, Repaired
from mycelium_sdk.errors import ChainUnavailable, InputError, Tampered
from mycelium_sdk.strkey import encode_contract
from mycelium_sdk.testing.event_server import EventServer, forged_history
from tests.indexer.ingest.test_following import ALICE, BOB, owner

if TYPE_CHECKING:
    from tests.indexer.ingest.conftest import Follower

CAROL = owner(3)
VAULT = encode_contract(hashlib.sha256(b"a contract may own a memory").digest())


@pytest.fixture
def trimmed(server: EventServer, follower: Follower) -> EventServer:
    """Alice has 3 versions that were read and 10 that came later, of which the server has the last 2; Bob 2
    that were read; Carol and a contract are new."""
    alice = forged_history(ALICE, 13)
    server.add(*alice[:3], *forged_history(BOB, 2))
    follower.follow()
    for anchor in alice[3:11]:
        server.add(anchor)
    server.add(*forged_history(CAROL, 4)[:3])
    server.add(*forged_history(VAULT, 1))
    server.oldest = server.latest + 1
    server.add(alice[11])
    server.add(alice[12], forged_history(CAROL, 4)[3])
    return server


def test_a_gap_for_each_known_owner(
    trimmed: EventServer, follower: Follower, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "mycelium_indexer"):
        follower.follow()
    assert "dropped events" in caplog.text
    assert follower.versions(ALICE) == [13, 12, 3, 2, 1], "nothing lost that the server still had"
    assert follower.gaps(ALICE) == [(4, 11)]
    assert (follower.versions(BOB), follower.gaps(BOB)) == ([2, 1], [])
    assert (follower.versions(CAROL), follower.gaps(CAROL)) == ([4], [(1, 3)])
    assert follower.store.latest(follower.source, VAULT) is None
    assert follower.store.missed(follower.source) == [LedgerRange(3, trimmed.oldest - 1)]
    latest = follower.store.latest(follower.source, ALICE)
    assert latest is not None
    assert latest.ledger == trimmed.latest, "its event came after the state told of it"
    progress = follower.store.progress(follower.source)
    assert progress is not None
    assert progress.ledger == trimmed.latest


def test_the_newest_anchor_is_there_before_its_event_is(trimmed: EventServer, follower: Follower) -> None:
    """The first step alone: gaps and the newest anchor by the state; only then events again."""
    assert follower.ingester.poll_once()
    assert follower.versions(ALICE) == [13, 3, 2, 1]
    assert follower.gaps() == [(4, 12)]


def test_a_restart_in_the_middle_loses_nothing(
    trimmed: EventServer, follower: Follower, monkeypatch: pytest.MonkeyPatch
) -> None:
    def dies(*_arguments: Any, **_options: Any) -> bool:
        raise ChainUnavailable("killed before the cursor was moved")

    with monkeypatch.context() as patched:
        patched.setattr(follower.store, "advance", dies)
        with pytest.raises(ChainUnavailable):
            follower.ingester.poll_once()
    follower.restart()
    follower.follow()
    assert follower.versions(ALICE) == [13, 12, 3, 2, 1]
    assert follower.gaps(ALICE) == [(4, 11)]


def test_stopping_while_the_state_is_read(trimmed: EventServer, follower: Follower) -> None:
    before = follower.store.progress(follower.source)
    stop = threading.Event()
    stop.set()
    assert not follower.ingester.poll_once(stop)
    assert follower.store.progress(follower.source) == before
    follower.follow()
    assert follower.versions(ALICE) == [13, 12, 3, 2, 1]


def test_ledgers_that_are_dropped_while_the_state_is_read(trimmed: EventServer, follower: Follower) -> None:
    """The state is of later: it covers them, and is not read again for them."""

    def drop(method: str, _params: dict[str, Any]) -> Response | None:
        if method == "getLedgerEntries":
            trimmed.oldest = trimmed.latest
        return None

    trimmed.intercept = drop
    follower.follow()
    assert follower.versions(ALICE) == [13, 3, 2, 1]
    assert follower.store.missed(follower.source) == [LedgerRange(3, trimmed.latest - 1)]
    # Twice for the contract's kind and the owners, and not once more.
    assert trimmed.calls.count("getLedgerEntries") == 2
    server = trimmed
    server.latest += 5
    server.oldest = server.latest
    follower.follow()
    assert server.calls.count("getLedgerEntries") == 3


def test_many_owners_in_few_questions(server: EventServer, follower: Follower) -> None:
    people = [owner(n) for n in range(450)]
    histories = [forged_history(name, 3) for name in people]
    server.add(*(history[0] for history in histories))
    follower.restart(page=1000)
    follower.follow()
    server.add(*(history[1] for history in histories))
    server.add(*(history[2] for history in histories[::3]))
    server.oldest = server.latest + 1
    server.latest += 1
    server.calls.clear()
    follower.follow()
    assert server.calls.count("getLedgerEntries") == 1 + 3, "200 at a time"
    assert follower.store.totals(follower.source).gaps == 150
    for number, name in enumerate(people):
        assert follower.versions(name) == ([3, 1] if number % 3 == 0 else [2, 1])


def test_a_server_that_refuses_what_it_says_it_has(server: EventServer, follower: Follower) -> None:
    """Several behind one address, with more or less of the past: ask again, and record no gap."""
    for anchor in forged_history(ALICE, 15):
        server.add(anchor)
    follower.ingester.poll_once()

    def refuse(method: str, params: dict[str, Any]) -> Response | None:
        if method != "getEvents" or not (params.get("pagination") or {}).get("cursor"):
            return None
        error = {"code": -32600, "message": "startLedger must be within the ledger range"}
        return Response(200, json.dumps({"jsonrpc": "2.0", "id": 1, "error": error}), {}, server.URL)

    server.intercept = refuse
    with pytest.raises(ChainUnavailable, match="says that it has"):
        follower.ingester.poll_once()
    server.intercept = lambda _method, _params: None
    follower.follow()
    assert follower.versions(ALICE) == list(range(15, 0, -1))
    assert follower.store.missed(follower.source) == []


def test_the_oldest_ledger_is_dropped_just_as_reading_begins(server: EventServer, follower: Follower) -> None:
    for anchor in forged_history(ALICE, 15):
        server.add(anchor)
    asked = 0

    def drop(method: str, _params: dict[str, Any]) -> Response | None:
        nonlocal asked
        asked += method == "getEvents"
        server.oldest = 5 if asked >= 2 else 1
        return None

    server.intercept = drop
    follower.follow()
    assert follower.versions(ALICE) == list(range(15, 3, -1))
    progress = follower.store.progress(follower.source)
    assert progress is not None
    assert progress.first_ledger == 5


# -- repairing


def kept(*names: str, versions: int = 13) -> list[dict[str, Any]]:
    """What somebody kept, as an indexer serves it: newest first."""
    return [
        anchor_as_json(IndexedAnchor(anchor, 7, "ab" * 32, None))
        for name in names
        for anchor in reversed(forged_history(name, versions))
    ]


def test_repaired_from_a_kept_list(trimmed: EventServer, follower: Follower) -> None:
    follower.follow()
    page = {"items": kept(ALICE), "next": None, "complete": True, "gaps": []}
    repaired = follower.store.repair(follower.source, parse_kept(json.dumps(page).encode(), "kept"))
    assert repaired == Repaired(8, 0)
    assert follower.gaps(ALICE) == []
    found = follower.store.history(follower.source, ALICE, below=None, limit=99)
    assert [one.anchor for one in reversed(found)] == forged_history(ALICE, 13)
    lines = b"\n".join(json.dumps(item).encode() for item in kept(CAROL, BOB, versions=4)[1:-2])
    assert follower.store.repair(follower.source, parse_kept(lines + b"\n\n", "kept")) == Repaired(3, 2)
    assert follower.gaps() == []


def test_a_forged_list_is_refused(trimmed: EventServer, follower: Follower) -> None:
    follower.follow()
    items = kept(ALICE)
    items[6]["uri_hex"] = b"https://elsewhere.example".hex()
    with pytest.raises(Tampered, match=f"version 7 of {ALICE}"):
        follower.store.repair(follower.source, parse_kept(json.dumps(items).encode(), "kept"))
    assert follower.gaps(ALICE) == [(4, 11)]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"owner": "S" * 56}, "owner"),
        ({"owner": None}, "owner"),
        ({"version": "3"}, "version"),
        ({"version": 0}, "version"),
        ({"version": True}, "version"),
        ({"version": 2**63}, "version"),
        ({"root": "AB" * 32}, "root"),
        ({"root": "ab" * 31}, "root"),
        ({"root": None}, "root"),
        ({"uri_hex": None}, "uri_hex"),
        ({"uri_hex": "0"}, "uri_hex"),
        ({"acl_hex": 7}, "acl_hex"),
        ({"previous": "ab"}, "previous"),
        ({"timestamp": -1}, "timestamp"),
        ({"timestamp": None}, "without"),
        ({"ledger": 1.5}, "ledger"),
        ({"tx": "nothing"}, "tx"),
    ],
)
def test_what_is_no_kept_anchor(change: dict[str, object], says: str) -> None:
    items = kept(ALICE)
    items[3] |= change
    with pytest.raises(InputError, match="anchor 4 of the list") as caught:
        parse_kept(json.dumps({"items": items}).encode(), "the list")
    assert says in caught.value.message
    assert "SSSS" not in caught.value.message, "it may be a seed"


@pytest.mark.parametrize(
    "data", [b"", b"\xff", b"7", b'"text"', b"[7]", b'{"items": 7}', b"{}\n{", b"[" * 100_000, b'{"a": 1}']
)
def test_what_is_no_list(data: bytes) -> None:
    if data == b"":
        assert parse_kept(data, "the list") == []
        return
    with pytest.raises(InputError):
        parse_kept(data, "the list")


def test_uris_of_any_bytes_come_through_a_kept_list() -> None:
    odd = dataclasses.replace(forged_history(ALICE, 1)[0], uri=b"\xff<script>", acl=b"\x00")
    data = json.dumps(anchor_as_json(IndexedAnchor(odd, None, None, None))).encode()
    assert parse_kept(data, "kept") == [odd]
