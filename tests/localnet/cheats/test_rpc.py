"""The cheats as JSON-RPC: every method, its parameters, its answer, and what it refuses."""

from __future__ import annotations

import json
import re
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from mycelium_localnet import Chain, Dispatcher
from mycelium_localnet.clock import FROZEN_START
from mycelium_localnet.errors import ChainBusyError
from mycelium_localnet.rpc.cheats import CHEATS
from tests.localnet.ledger.lab import keypair

if TYPE_CHECKING:
    from collections.abc import Iterator

README = Path(__file__).parents[3] / "localnet" / "README.md"
ALICE = keypair("alice").public_key
_ids = count(1)

# What other programs rely on: names and parameters. Each is a method of Chain as well, in snake_case.
METHODS = {
    "localnet_snapshot": set(),
    "localnet_revert": {"snapshot"},
    "localnet_skipLedgers": {"count"},
    "localnet_setTime": {"time"},
    "localnet_freezeTime": {"frozen"},
    "localnet_fund": {"address", "amount"},
    "localnet_setBalance": {"address", "balance"},
    "localnet_closeLedger": set(),
    "localnet_setInterval": {"interval", "closing"},
    "localnet_dump": set(),
    "localnet_load": {"dump"},
    "localnet_reset": {"seed"},
    "localnet_accounts": {"fund"},
    "localnet_fault": {
        "kind", "count", "methods", "seed", "seconds", "ledgers", "key", "owner", "carriedOut",
    },
    "localnet_clearFaults": set(),
}  # fmt: skip


@pytest.fixture
def chain() -> Iterator[Chain]:
    with Chain.open(":memory:", seed=b"rpc", clock="frozen", profile="short-ttl") as opened:
        yield opened


def call(chain: Chain, method: str, params: object = None) -> dict[str, Any]:
    body = {"jsonrpc": "2.0", "id": next(_ids), "method": method, "params": params}
    answer: dict[str, Any] = json.loads(Dispatcher(chain).handle(json.dumps(body).encode()) or b"")
    assert answer["id"] == body["id"]
    return answer


def result(chain: Chain, method: str, params: object = None) -> dict[str, Any]:
    answer = call(chain, f"localnet_{method}", params)
    assert "error" not in answer, answer
    found: dict[str, Any] = answer["result"]
    return found


def test_the_names() -> None:
    assert set(CHEATS) == set(METHODS)
    for name in METHODS:
        words = name.removeprefix("localnet_")
        assert hasattr(Chain, re.sub("([A-Z])", r"_\1", words).lower())


def test_every_method_stands_in_the_readme_with_its_parameters() -> None:
    rows = re.findall(r"^\| `(localnet_\w+)` \| (.*?) \|", README.read_text("utf-8"), re.MULTILINE)
    listed = {name: set(re.findall(r"`(\w+)`", parameters)) for name, parameters in rows}
    assert {name: listed.get(name) for name in METHODS} == METHODS


def test_snapshots(chain: Chain) -> None:
    before = chain.dump()
    first, second = result(chain, "snapshot"), result(chain, "snapshot", {})
    assert first == {"snapshot": 1}
    assert second == {"snapshot": 2}
    result(chain, "fund", {"address": ALICE})
    assert result(chain, "revert", {"snapshot": 1}) == {"latestLedger": 1}
    assert chain.dump() == before


def test_time(chain: Chain) -> None:
    assert result(chain, "setTime", {"time": FROZEN_START + 9}) == {"time": FROZEN_START + 9}
    assert result(chain, "freezeTime") == {"time": FROZEN_START + 9}
    assert result(chain, "freezeTime", {"frozen": True}) == {"time": FROZEN_START + 9}
    assert result(chain, "freezeTime", {"frozen": False})["time"] - FROZEN_START - 9 in range(60)
    assert chain.set_time(FROZEN_START + 1_000) - FROZEN_START - 1_000 in range(60)
    with chain._storage.read() as connection:
        assert connection.execute("SELECT value FROM settings WHERE key = 'clock'").fetchone() == ("wall",)


def test_ledgers(chain: Chain) -> None:
    assert result(chain, "closeLedger") == {"latestLedger": 2}
    assert result(chain, "skipLedgers", {"count": 10}) == {"latestLedger": 12}
    assert result(chain, "setInterval", {"interval": 0.5}) == {"latestLedger": 12}
    assert chain.close_due_ledger() is not None
    result(chain, "setInterval", {"closing": "manual"})
    assert chain.close_due_ledger() is None
    pending = result(chain, "fund", {"address": ALICE})["hash"]
    with chain.read() as view:
        assert view.is_pending(bytes.fromhex(pending))
    assert result(chain, "setInterval") == {"latestLedger": 13}


def test_money(chain: Chain) -> None:
    answer = result(chain, "fund", {"address": ALICE, "amount": "9007199254740993"})
    with chain.read() as view:
        assert view.transaction(bytes.fromhex(answer["hash"])) is not None
        found = view.entry(bytes(8) + keypair("alice").raw_public_key())
    assert found is not None
    assert (9_007_199_254_740_993).to_bytes(8, "big") in found[0]
    assert result(chain, "setBalance", {"address": ALICE, "balance": 5}) == {"latestLedger": 3}
    much = 8 * 10**18 + 1
    assert result(chain, "setBalance", {"address": ALICE, "balance": str(much)}) == {"latestLedger": 4}
    with chain.read() as view:
        found = view.entry(bytes(8) + keypair("alice").raw_public_key())
    assert found is not None
    assert much.to_bytes(8, "big") in found[0]


def test_accounts(chain: Chain) -> None:
    listed = result(chain, "accounts", {"fund": False})["accounts"]
    assert [set(one) for one in listed] == [{"name", "address", "secret", "funded"}] * 10
    assert not any(one["funded"] for one in listed)
    assert all(one["funded"] for one in result(chain, "accounts")["accounts"])


def test_dump_load_and_reset(chain: Chain) -> None:
    chain.accounts()
    chain_id, whole = chain.chain_id, chain.dump()
    dumped = result(chain, "dump")
    assert set(dumped) == {"dump"}
    first = result(chain, "reset")
    assert first == {"chainId": chain.chain_id}
    assert first["chainId"] != chain_id
    assert result(chain, "load", dumped) == {"latestLedger": 11, "chainId": chain_id}
    assert chain.dump() == whole
    assert result(chain, "reset", {"seed": b"rpc".hex()}) == {"chainId": chain_id}


def test_faults(chain: Chain) -> None:
    assert result(chain, "fault", {"kind": "drop"}) == {"fault": 1}
    everything = {
        "kind": "html", "count": 4, "methods": ["getHealth", "friendbot"], "seed": 2**63 - 1,
        "carriedOut": False,
    }  # fmt: skip
    assert result(chain, "fault", everything) == {"fault": 2}
    assert result(chain, "fault", {"kind": "slow", "seconds": 0.25}) == {"fault": 3}
    assert result(chain, "fault", {"kind": "stale", "ledgers": 3}) == {"fault": 4}
    assert result(chain, "fault", {"kind": "archive", "owner": ALICE}) == {"fault": 5}
    drop, html, slow, stale, archive = chain.faults()
    assert (drop.kind, drop.count, drop.methods, drop.carried_out) == ("drop", 1, (), None)
    assert (html.count, html.methods, html.seed) == (4, ("getHealth", "friendbot"), 2**63 - 1)
    assert html.carried_out is False
    assert (slow.seconds, stale.ledgers, archive.owner) == (0.25, 3, ALICE)
    assert result(chain, "clearFaults") == {"cleared": 5}
    assert chain.faults() == ()


@pytest.mark.parametrize(
    ("method", "params", "names"),
    [
        ("revert", None, "snapshot is missing"),
        ("revert", {"snapshot": "1"}, "snapshot must be"),
        ("revert", {"snapshot": 7}, "no snapshot 7"),
        ("skipLedgers", {}, "count is missing"),
        ("skipLedgers", {"count": 0}, "0"),
        ("skipLedgers", {"count": 10_000_001}, "10,000,001"),
        ("skipLedgers", {"count": -1}, "count must be"),
        ("skipLedgers", {"count": 1.5}, "count must be"),
        ("skipLedgers", [3], "by name"),
        ("setTime", {}, "time is missing"),
        ("setTime", {"time": "now"}, "time must be"),
        ("setTime", {"time": 1}, "cannot be set to 1"),
        ("setTime", {"time": 2**62}, "time ends"),
        ("freezeTime", {"frozen": "yes"}, "frozen must be"),
        ("fund", {}, "address is missing"),
        ("fund", {"address": "bob"}, "address"),
        ("fund", {"address": keypair("alice").secret}, "address"),
        ("fund", {"address": ALICE, "amount": "1.5"}, "amount must be"),
        ("fund", {"address": ALICE, "amount": 0.5}, "amount must be"),
        ("fund", {"address": ALICE, "amount": -1}, "-1"),
        ("fund", {"address": ALICE, "amount": 2**63}, str(2**63)),
        ("fund", {"address": ALICE, "amount": 1}, "LOW_RESERVE"),
        ("fund", {"address": "G" + "A" * 55}, "address"),
        ("setBalance", {"address": ALICE}, "balance is missing"),
        ("setBalance", {"balance": 1}, "address is missing"),
        ("setBalance", {"address": ALICE, "balance": True}, "balance must be"),
        ("setBalance", {"address": ALICE, "balance": str(2**63)}, str(2**63)),
        ("setBalance", {"address": ALICE, "balance": str(2**63 - 1)}, "so many coins"),
        ("setBalance", {"address": "M" + ALICE[1:], "balance": 1}, "address"),
        ("setInterval", {"interval": "5"}, "interval must be"),
        ("setInterval", {"interval": 0.001}, "0.001"),
        ("setInterval", {"closing": "never"}, "never"),
        ("setInterval", {"closing": "manual", "interval": 3}, "manual"),
        ("setInterval", {"closing": 5}, "closing must be"),
        ("load", {}, "dump is missing"),
        ("load", {"dump": "?"}, "base64"),
        ("load", {"dump": "bm90aGluZw=="}, "not a dump"),
        ("load", {"dump": "bXljZWxpdW0tbG9jYWxuZXQgZHVtcCA5Cg=="}, "later version"),
        ("reset", {"seed": "xyz"}, "hexadecimal"),
        ("reset", {"seed": ""}, "1 to 64 bytes"),
        ("reset", {"seed": "00" * 65}, "1 to 64 bytes"),
        ("reset", {"seed": 5}, "seed must be"),
        ("accounts", {"fund": 1}, "fund must be"),
        ("fault", {}, "kind is missing"),
        ("fault", {"kind": "earthquake"}, "earthquake"),
        ("fault", {"kind": "drop", "count": 0}, "count"),
        ("fault", {"kind": "drop", "count": "many"}, "count must be"),
        ("fault", {"kind": "drop", "methods": "getHealth"}, "methods must be"),
        ("fault", {"kind": "drop", "methods": []}, "methods is empty"),
        ("fault", {"kind": "drop", "methods": ["getWeather"]}, "getWeather"),
        ("fault", {"kind": "drop", "methods": ["localnet_clearFaults"]}, "localnet_clearFaults"),
        ("fault", {"kind": "not_found", "methods": ["getEvents"]}, "getEvents"),
        ("fault", {"kind": "drop", "seed": -1}, "seed must be"),
        ("fault", {"kind": "drop", "seconds": 1}, "seconds"),
        ("fault", {"kind": "slow", "seconds": -1}, "seconds"),
        ("fault", {"kind": "slow", "seconds": 3601}, "seconds"),
        ("fault", {"kind": "stale", "ledgers": 0}, "ledgers"),
        ("fault", {"kind": "fork", "ledgers": 1001}, "ledgers"),
        ("fault", {"kind": "archive", "owner": "bob"}, "owner"),
        ("fault", {"kind": "archive", "key": "?"}, "key"),
        ("fault", {"kind": "archive", "key": "AAAAAA=="}, "persistent"),
        ("fault", {"kind": "html", "carriedOut": "no"}, "carriedOut must be"),
        ("fault", {"kind": "http_503", "carriedOut": True}, "carried_out"),
    ],
)
def test_what_cannot_be_is_refused(chain: Chain, method: str, params: object, names: str) -> None:
    before = chain.dump()
    error = call(chain, f"localnet_{method}", params)["error"]
    assert error["code"] == -32602
    assert names in error["message"]
    assert keypair("alice").secret not in json.dumps(error)
    assert set(error) <= {"code", "message", "data"}
    assert isinstance(error.get("data", ""), str)
    assert chain.dump() == before
    assert chain.faults() == ()


def test_an_account_that_is_there_is_not_funded_again(chain: Chain) -> None:
    result(chain, "fund", {"address": ALICE})
    error = call(chain, "localnet_fund", {"address": ALICE})["error"]
    assert error["code"] == -32602
    assert "exists already" in error["message"]


def test_a_busy_chain_is_not_the_callers_fault(chain: Chain, monkeypatch: pytest.MonkeyPatch) -> None:
    def busy(_chain: Chain) -> int:
        raise ChainBusyError("busy", hint="wait")

    monkeypatch.setattr(Chain, "snapshot", busy)
    error = call(chain, "localnet_snapshot")["error"]
    assert (error["code"], error["message"], error["data"]) == (-32603, "busy", "wait")


def test_without_an_id_there_is_no_answer_but_an_effect(chain: Chain) -> None:
    body = b'{"jsonrpc": "2.0", "method": "localnet_closeLedger"}'
    assert Dispatcher(chain).handle(body) is None
    with chain.read() as view:
        assert view.latest().sequence == 2


def test_in_a_batch_each_is_done_in_its_order(chain: Chain) -> None:
    body = json.dumps(
        [
            {"jsonrpc": "2.0", "id": number, "method": method}
            for number, method in enumerate(
                ("localnet_closeLedger", "getLatestLedger", "localnet_closeLedger")
            )
        ]
    )
    answers = json.loads(Dispatcher(chain).handle(body.encode()) or b"")
    assert [answer["result"].get("latestLedger", answer["result"].get("sequence")) for answer in answers] == [
        2,
        2,
        3,
    ]
