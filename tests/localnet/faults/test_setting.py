"""Setting faults: what can be set, which requests are hit, how long it lasts, and who sees it."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any, get_args

import pytest

from mycelium_localnet import IN_PROCESS_URL, Chain, InProcessClient, errors
from mycelium_localnet.faults.kinds import ALL, DOOR_KINDS, FRIENDBOT, KINDS, FaultKind
from mycelium_localnet.rpc.dispatcher import METHODS
from tests.localnet.ledger.lab import keypair

if TYPE_CHECKING:
    from pathlib import Path

    from tests.localnet.faults.conftest import Door


def test_the_names_that_others_know() -> None:
    assert set(KINDS) == set(get_args(FaultKind)) == {
        "try_again_later", "not_found", "http_503", "http_504", "html", "slow", "drop", "retention",
        "archive", "stale", "fork", "never_closes",
    }  # fmt: skip
    public = {name for name in METHODS if not name.startswith("localnet_")}
    assert set(ALL) == public | {FRIENDBOT}
    assert len(ALL) == len(set(ALL))


def test_nothing_goes_wrong_unless_it_is_set(door: Door) -> None:
    assert door.chain.faults() == ()
    for method in ("getHealth", "getLatestLedger", "getNetwork"):
        door.ask(method)
    assert door.chain.serving("getHealth") is door.chain
    assert door.chain.trouble(b"{}") is None


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_can_be_set_and_counts_down(door: Door, kind: FaultKind) -> None:
    method = "sendTransaction" if kind in ("try_again_later", "never_closes") else "getTransaction"
    method = "getLedgerEntries" if kind == "archive" else method
    door.chain.fault(kind, count=3)
    for left in (2, 1, 0):
        if kind in DOOR_KINDS:
            assert door.chain.trouble(json.dumps({"method": method}).encode()) is not None
        else:
            hit = door.chain.serving(method) is not door.chain
            assert hit is (kind != "archive")  # which changes the chain itself
        assert [fault.count for fault in door.chain.faults()] == ([left] if left else [])
        assert [fault.hits for fault in door.chain.faults()] == ([3 - left] if left else [])
    assert door.chain.serving(method) is door.chain
    assert door.chain.trouble(json.dumps({"method": method}).encode()) is None


def test_only_the_named_methods_are_hit(door: Door) -> None:
    door.chain.fault("http_503", count=2, methods=["getHealth", "getFeeStats"])
    assert door.post("getNetwork").status_code == 200
    assert door.post("getHealth").status_code == 503
    assert door.post("getLatestLedger").status_code == 200
    assert door.post("getFeeStats").status_code == 503
    assert door.post("getHealth").status_code == 200


def test_the_one_that_was_set_first_hits(door: Door) -> None:
    door.chain.fault("http_504", count=2, methods=["getHealth"])
    door.chain.fault("http_503", count=2)
    statuses = [
        door.post(method).status_code for method in ("getHealth", "getNetwork", "getHealth", "getHealth")
    ]
    assert statuses == [504, 503, 504, 503]
    assert door.chain.faults() == ()


def test_a_fault_of_the_door_and_one_of_the_answer_meet(door: Door) -> None:
    door.chain.fault("slow", seconds=2)
    door.chain.fault("stale")
    assert door.ask("getLatestLedger")["sequence"] == door.lab.latest().sequence - 1
    assert door.slept == [2.0]
    assert door.chain.faults() == ()


def test_clearing(door: Door) -> None:
    for kind in KINDS:
        door.chain.fault(kind, count=10)
    assert door.chain.clear_faults() == len(KINDS)
    assert door.chain.clear_faults() == 0
    door.ask("getHealth")


def test_faults_are_not_the_chains(door: Door) -> None:
    whole = door.chain.dump()
    snapshot = door.chain.snapshot()
    door.chain.fault("http_503", count=2)
    door.post("getHealth")
    before = door.chain.faults()
    assert door.chain.dump() == whole
    door.chain.revert(snapshot)
    assert door.chain.faults() == before
    assert door.post("getHealth").status_code == 503


_OTHER = """
import sys
from mycelium_localnet import IN_PROCESS_URL, Chain, InProcessClient

with Chain.open(sys.argv[1]) as chain:
    client = InProcessClient(chain)
    for _ in range(2):
        body = {"jsonrpc": "2.0", "id": 1, "method": "getHealth"}
        print(client.post(IN_PROCESS_URL, json_data=body).status_code)
    chain.fault("http_504", count=2)
"""


def test_every_process_and_every_restart_sees_them(tmp_path: Path) -> None:
    path = tmp_path / "chain.db"
    with Chain.open(path) as chain:
        chain.fault("http_503", count=3)
        client, body = InProcessClient(chain), {"jsonrpc": "2.0", "id": 1, "method": "getHealth"}
        done = subprocess.run(
            [sys.executable, "-c", _OTHER, str(path)], capture_output=True, check=True, text=True
        )
        assert done.stdout.split() == ["503", "503"]
        statuses = [client.post(IN_PROCESS_URL, json_data=body).status_code for _ in range(2)]
        assert statuses == [503, 504]
    with Chain.open(path) as chain, Chain.open(path) as other:
        assert [InProcessClient(one).post(IN_PROCESS_URL, json_data=body).status_code
                for one in (other, chain)] == [504, 200]  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "options", "match"),
    [
        ("earthquake", {}, "earthquake"),
        ("drop", {"count": 0}, "count"),
        ("drop", {"count": 2**32}, "count"),
        ("drop", {"seed": -1}, "seed"),
        ("drop", {"seed": 2**63}, "seed"),
        ("drop", {"methods": []}, "empty"),
        ("drop", {"methods": ["getWeather"]}, "getWeather"),
        ("drop", {"methods": ["localnet_reset"]}, "localnet_reset"),
        ("try_again_later", {"methods": ["getHealth"]}, "getHealth"),
        ("stale", {"methods": ["sendTransaction"]}, "sendTransaction"),
        ("drop", {"seconds": 1.0}, "no seconds"),
        ("slow", {"carried_out": True}, "no carried_out"),
        ("http_503", {"carried_out": False}, "no carried_out"),
        ("not_found", {"ledgers": 1}, "no ledgers"),
        ("stale", {"key": b""}, "no key"),
        ("slow", {"seconds": -0.1}, "seconds"),
        ("slow", {"seconds": float("nan")}, "seconds"),
        ("slow", {"seconds": float("inf")}, "seconds"),
        ("fork", {"ledgers": 0}, "ledgers"),
        ("retention", {"ledgers": 1_001}, "ledgers"),
        ("archive", {"owner": "somebody"}, "owner"),
        ("archive", {"key": "***"}, "key"),
        ("archive", {"key": bytes(8) + bytes(32)}, "persistent"),  # an account
        ("archive", {"key": b"\0\0\0\6" + bytes(80)}, "persistent"),  # temporary
        ("archive", {"key": b"\0\0\0\7" + bytes(32), "owner": keypair("alice").public_key}, "both"),
    ],
)
def test_what_cannot_be_set(door: Door, kind: FaultKind, options: dict[str, Any], match: str) -> None:
    with pytest.raises(errors.InvalidRequestError, match=match):
        door.chain.fault(kind, **options)
    assert door.chain.faults() == ()


def test_one_method_may_be_named_without_a_list(door: Door) -> None:
    door.chain.fault("drop", methods="getHealth")
    assert door.chain.faults()[0].methods == ("getHealth",)
