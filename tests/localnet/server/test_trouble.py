"""Trouble over HTTP: faults that are set on purpose, and a chain file that goes away."""

from __future__ import annotations

import http.client
from typing import TYPE_CHECKING, Any

import pytest
from stellar_sdk import Keypair

from tests.localnet.server.process import JSON, serving

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.localnet.server.process import ServerProcess

HEALTH = b'{"jsonrpc":"2.0","id":1,"method":"getHealth"}'


@pytest.fixture(scope="module")
def running() -> Iterator[ServerProcess]:
    with serving() as started:
        yield started
        assert started.complaints() == ""


@pytest.fixture
def server(running: ServerProcess) -> Iterator[ServerProcess]:
    """A server that nothing is wrong with, before and after."""
    yield running
    running.call("localnet_clearFaults")
    assert running.call("getHealth")["status"] == "healthy"


def arm(server: ServerProcess, kind: str, **options: Any) -> None:
    server.call("localnet_fault", {"kind": kind, **options})


def latest(server: ServerProcess) -> int:
    found: int = server.call("getHealth")["latestLedger"]
    return found


@pytest.mark.parametrize(
    ("kind", "status", "content_type"),
    [
        ("http_503", 503, "text/plain; charset=utf-8"),
        ("http_504", 504, "text/plain; charset=utf-8"),
        ("html", 502, "text/html; charset=utf-8"),
    ],
)
def test_statuses(server: ServerProcess, kind: str, status: int, content_type: str) -> None:
    arm(server, kind, count=2)
    for _ in range(2):
        answer = server.ask("POST", "/rpc", HEALTH, {**JSON, "Origin": "http://a"})
        assert (answer.status, answer.headers["Content-Type"]) == (status, content_type)
        assert answer.headers["Access-Control-Allow-Origin"] == "*"
        assert b"healthy" not in answer.body
    assert server.ask("POST", "/rpc", HEALTH, JSON).status == 200


@pytest.mark.parametrize("carried_out", [True, False])
def test_a_connection_that_is_closed_without_an_answer(server: ServerProcess, carried_out: bool) -> None:
    before = latest(server)
    address = Keypair.random().public_key
    arm(server, "drop", methods=["friendbot"], carriedOut=carried_out)
    with pytest.raises(http.client.RemoteDisconnected):
        server.fund(address)
    assert latest(server) == before + carried_out
    assert server.fund(address).status == (400 if carried_out else 200)


def test_a_dropped_call_and_the_next_one(server: ServerProcess) -> None:
    arm(server, "drop", count=3)
    for _ in range(3):
        with pytest.raises(http.client.RemoteDisconnected):
            server.ask("POST", "/rpc", HEALTH, JSON)
    assert server.ask("POST", "/rpc", HEALTH, JSON).status == 200


def test_what_is_refused_anyway_uses_up_no_fault(server: ServerProcess) -> None:
    arm(server, "http_503")
    assert server.ask("GET", "/rpc").status == 405
    assert server.ask("POST", "/rpc", HEALTH).status == 415
    assert server.ask("POST", "/nothing", HEALTH, JSON).status == 404
    assert server.ask("POST", "/rpc", HEALTH, JSON).status == 503


def test_a_slow_answer_is_the_true_one(server: ServerProcess) -> None:
    arm(server, "slow", seconds=0.05)
    assert server.ask("POST", "/rpc", HEALTH, JSON).json["result"]["status"] == "healthy"


def test_a_slow_answer_keeps_nobody_else_waiting(tmp_path: Path) -> None:
    with serving() as server:
        arm(server, "slow", seconds=3600, methods=["getHealth"])
        waiting = server.connect()
        waiting.request("POST", "/rpc", HEALTH, JSON)
        assert server.call("getNetwork")["protocolVersion"] == 28
        # And the end does not wait for it.
        assert server.end() == 0
        assert waiting.getresponse().status == 503
        waiting.close()
        assert server.complaints() == ""


def test_answers_that_are_not_true(server: ServerProcess) -> None:
    transaction = server.fund(Keypair.random().public_key).json["hash"]
    arm(server, "not_found")
    statuses = [server.call("getTransaction", {"hash": transaction})["status"] for _ in range(2)]
    assert statuses == ["NOT_FOUND", "SUCCESS"]


def test_a_file_that_goes_away_is_told_and_nothing_breaks(tmp_path: Path) -> None:
    path = tmp_path / "chain.db"
    with serving("--state", path) as server:
        assert server.call("getHealth")["status"] == "healthy"
        path.unlink()
        answer = server.ask("POST", "/rpc", HEALTH, JSON)
        assert answer.status == 200
        assert answer.json["error"]["code"] == -32603
        assert "deleted or replaced" in answer.json["error"]["message"]
        funding = server.fund(Keypair.random().public_key)
        assert funding.status == 503
        assert "deleted or replaced" in funding.json["detail"]
        assert server.end() == 0
        assert "Traceback" not in server.complaints()


def test_closing_by_hand_and_at_intervals(server: ServerProcess) -> None:
    """What the cheats set, the server keeps to."""
    before = latest(server)
    assert server.call("localnet_closeLedger")["latestLedger"] == before + 1
    server.call("localnet_setInterval", {"interval": 3600})
    assert server.call("getHealth")["latestLedger"] == before + 1
    server.call("localnet_setInterval", {"closing": "instant"})
    assert server.fund(Keypair.random().public_key).json["ledger"] == before + 2
