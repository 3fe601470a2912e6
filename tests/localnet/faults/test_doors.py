"""What befalls requests as a whole: as clients of HTTP see it, and whether the request took effect."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

import pytest
import stellar_sdk.exceptions
from stellar_sdk import SorobanServer
from stellar_sdk.soroban_server_async import SorobanServerAsync

from mycelium_localnet import IN_PROCESS_URL, AsyncInProcessClient, Chain, Dispatcher
from mycelium_localnet.errors import ChainClosedError
from mycelium_localnet.faults.door import Reply, Trouble
from tests.localnet.faults.conftest import FRIENDBOT_URL
from tests.localnet.ledger.lab import create, keypair

if TYPE_CHECKING:
    from pathlib import Path

    from mycelium_localnet.faults.kinds import FaultKind
    from tests.localnet.faults.conftest import Door


@pytest.mark.parametrize(
    ("kind", "status", "content_type", "words"),
    [
        ("http_503", 503, "text/plain; charset=utf-8", "unavailable"),
        ("http_504", 504, "text/plain; charset=utf-8", "timeout"),
        ("html", 502, "text/html; charset=utf-8", "<h1>502 Bad Gateway</h1>"),
    ],
)
def test_a_status_and_a_body(door: Door, kind: FaultKind, status: int, content_type: str, words: str) -> None:
    door.chain.fault(kind, count=2)
    response = door.post("getHealth")
    assert (response.status_code, response.headers["Content-Type"]) == (status, content_type)
    assert words in response.text
    with pytest.raises(json.JSONDecodeError):
        response.json()
    with pytest.raises((ValueError, stellar_sdk.exceptions.BaseRequestError)):
        SorobanServer(IN_PROCESS_URL, door.client).get_health()
    assert SorobanServer(IN_PROCESS_URL, door.client).get_health().status == "healthy"


def test_a_dropped_connection(door: Door) -> None:
    door.chain.fault("drop")
    server = SorobanServer(IN_PROCESS_URL, door.client)
    with pytest.raises(stellar_sdk.exceptions.ConnectionError, match="without an answer") as caught:
        server.get_health()
    assert isinstance(caught.value.__cause__, ConnectionResetError)
    assert server.get_health().status == "healthy"


def test_a_slow_answer_is_the_true_one(door: Door) -> None:
    door.chain.fault("slow", seconds=7.5, count=2)
    door.chain.fault("slow")
    assert [door.ask("getHealth")["status"] for _ in range(4)] == ["healthy"] * 4
    assert door.slept == [7.5, 7.5, 1.0]


async def test_the_asynchronous_client(door: Door) -> None:
    slept: list[float] = []
    client = AsyncInProcessClient(door.chain, sleep=slept.append)
    door.chain.fault("slow", seconds=3)
    door.chain.fault("drop")
    door.chain.fault("html")
    async with SorobanServerAsync(IN_PROCESS_URL, client) as server:
        await server.get_health()
        with pytest.raises(stellar_sdk.exceptions.ConnectionError):
            await server.get_health()
        with pytest.raises((ValueError, stellar_sdk.exceptions.BaseRequestError)):
            await server.get_health()
        assert (await server.get_health()).status == "healthy"
    assert slept == [3.0]


@pytest.mark.parametrize("kind", ["http_504", "html", "drop"])
@pytest.mark.parametrize("carried_out", [True, False])
def test_an_answer_that_is_lost_may_hide_an_effect(door: Door, kind: FaultKind, carried_out: bool) -> None:
    envelope = door.lab.build(keypair("alice"), create("new"))
    door.chain.fault(kind, carried_out=carried_out)
    try:
        response = door.post("sendTransaction", {"transaction": envelope.to_xdr()})
        assert response.status_code in (502, 504)
    except stellar_sdk.exceptions.ConnectionError:
        assert kind == "drop"
    assert door.applied(envelope) is carried_out
    assert door.send(envelope) == ("TRY_AGAIN_LATER" if carried_out else "PENDING")
    assert door.applied(envelope)


def test_a_server_that_is_not_available_did_nothing(door: Door) -> None:
    envelope = door.lab.build(keypair("alice"), create("new"))
    door.chain.fault("http_503")
    assert door.post("sendTransaction", {"transaction": envelope.to_xdr()}).status_code == 503
    assert not door.applied(envelope)


def effects(door: Door, seed: int) -> list[bool]:
    """For eight lost requests, which of them took effect."""
    found = []
    door.chain.fault("drop", count=8, seed=seed, methods=["friendbot"])
    for number in range(8):
        owner = keypair(f"{seed} {number}")
        with pytest.raises(stellar_sdk.exceptions.ConnectionError):
            door.client.get(FRIENDBOT_URL, {"addr": owner.public_key})
        with door.chain.read() as view:
            found.append(view.entry(bytes(8) + owner.raw_public_key()) is not None)
    return found


def test_the_seed_decides_which_requests_took_effect(door: Door) -> None:
    """Pinned: a test that was written with a seed stays what it is."""
    assert effects(door, 0) == [True, False, False, False, False, False, True, False]
    assert effects(door, 1) == [True, False, True, True, False, False, True, True]


def test_the_friendbot_is_hit_as_well(door: Door) -> None:
    address = keypair("new").public_key
    door.chain.fault("http_503", methods=["friendbot"])
    door.ask("getHealth")
    assert door.client.get(FRIENDBOT_URL, {"addr": address}).status_code == 503
    door.chain.fault("html")
    assert door.client.post(f"{FRIENDBOT_URL}?addr={address}").status_code == 502
    assert door.chain.faults() == ()


def test_cheats_are_never_hit(door: Door) -> None:
    door.chain.fault("http_503", count=100)
    assert door.post("getHealth").status_code == 503
    assert door.ask("localnet_closeLedger")["latestLedger"] == door.lab.latest().sequence
    assert door.chain.trouble(b'[{"method": "getHealth"}, {"method": "localnet_clearFaults"}]') is None
    assert door.ask("localnet_clearFaults") == {"cleared": 1}
    door.ask("getHealth")


def test_a_batch_is_one_request(door: Door) -> None:
    batch = json.dumps([{"method": "getHealth"}, {"method": "getNetwork"}, 5, {"method": 7}]).encode()
    door.chain.fault("drop", methods=["getNetwork"], carried_out=False)
    assert door.chain.trouble(batch) == Trouble(carried_out=False, dropped=True)
    assert door.chain.trouble(batch) is None


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"7", b"\xff", b'"getHealth"', b"[" * 100_000])
def test_what_is_no_call_is_hit_by_what_hits_everything(door: Door, body: bytes) -> None:
    door.chain.fault("html", methods=["getHealth"])
    assert door.chain.trouble(body) is None
    door.chain.fault("http_503")
    found = door.chain.trouble(body)
    assert found is not None
    assert found.reply == Reply(503, "text/plain; charset=utf-8", b"service unavailable\n")
    assert not found.carried_out


def test_an_answer_is_lost_for_a_notification_too(door: Door) -> None:
    door.chain.fault("http_503")
    response = door.client.post(IN_PROCESS_URL, json_data={"jsonrpc": "2.0", "method": "getHealth"})
    assert response.status_code == 503


async def test_requests_at_once_use_up_one_hit_each(door: Door) -> None:
    door.chain.fault("http_503", count=5)
    client = AsyncInProcessClient(door.chain)
    body = {"jsonrpc": "2.0", "id": 1, "method": "getHealth"}
    responses = await asyncio.gather(*(client.post(IN_PROCESS_URL, json_data=body) for _ in range(12)))
    assert sorted(response.status_code for response in responses) == [200] * 7 + [503] * 5


def test_what_is_wrong_with_the_chain_is_told_by_the_answer(tmp_path: Path) -> None:
    path = tmp_path / "chain.db"
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "getHealth"}).encode()
    with Chain.open(path) as chain:
        chain.fault("http_503")
        for file in tmp_path.iterdir():
            file.unlink()
        assert chain.trouble(body) is None
        answer = Dispatcher(chain).handle(body)
        assert answer is not None
        assert json.loads(answer)["error"]["code"] == -32603
    with pytest.raises(ChainClosedError):
        chain.trouble(body)
