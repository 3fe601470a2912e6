"""Servers that lag, forget, lie or archive, as the chain client sees them; and the transport by itself.

Each test of the client runs twice: with the faults of the embedded chain, and with those of the transport.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from stellar_sdk import Keypair, StrKey, xdr
from stellar_sdk.client.response import Response

from mycelium_localnet import IN_PROCESS_URL, Chain, InProcessClient
from mycelium_localnet.faults import kinds as localnet_kinds
from mycelium_sdk.chain import operations
from mycelium_sdk.chain.base import EntryStatus, TransactionStatus
from mycelium_sdk.errors import (
    ChainError,
    InputError,
)
from mycelium_sdk.testing.faults import KINDS, FaultyClient
from tests.chain.faulty import OWNER, Scene, open_scene, root

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mycelium_sdk.testing.faults import FaultKind

OTHER = Keypair.from_raw_ed25519_seed(bytes(31) + b"\x07")


@pytest.fixture(params=["chain", "transport"])
def scene(request: pytest.FixtureRequest) -> Iterator[Scene]:
    with open_scene(request.param) as opened:
        yield opened


def test_both_have_the_same_faults_and_decide_alike() -> None:
    from mycelium_sdk.testing import faults

    assert KINDS == localnet_kinds.KINDS
    assert faults._CONCERNS.keys() == localnet_kinds._CONCERNS.keys()
    for kind, methods in faults._CONCERNS.items():
        here, there = set(methods), set(localnet_kinds._CONCERNS[kind])
        # The transport cannot archive anything, so that only the answer that says so is concerned.
        assert here == (there & {"getLedgerEntries"} if kind == "archive" else there)
    for seed in range(3):
        for hits in range(20):
            ours = faults.Fault("drop", 1, (), seed, 1.0, 1, None, None, None, hits)
            theirs = localnet_kinds.Fault("drop", seed=seed, hits=hits)
            assert ours.is_carried_out() == theirs.is_carried_out()


def test_a_server_that_lags_shows_the_older_anchor(scene: Scene) -> None:
    latest = scene.chain.identity().latest_ledger
    assert scene.anchors.get_anchor(OWNER) is not None
    scene.anchor(2)
    scene.trouble.fault("stale", methods=["simulateTransaction"])
    older = scene.anchors.get_anchor(OWNER)
    assert older is not None
    assert (older.version, older.root) == (1, root(1))
    newer = scene.anchors.get_anchor(OWNER)
    assert newer is not None
    assert (newer.version, newer.root) == (2, root(2))
    scene.trouble.fault("stale", methods=["getLatestLedger"])
    assert scene.chain.identity().latest_ledger == latest


def test_a_lagging_sequence_number_costs_a_rebuild_and_nothing_else(scene: Scene) -> None:
    scene.anchor(2)
    scene.trouble.fault("stale", methods=["getLedgerEntries"])
    assert scene.anchor(3) == 3
    assert scene.version() == 3
    assert len(scene.applied()) == 3


def test_a_server_on_another_branch_shows_another_root(scene: Scene) -> None:
    scene.anchor(2)
    true = scene.anchors.get_anchor(OWNER)
    seen = []
    for seed in (1, 1, 2):
        scene.trouble.fault("fork", methods=["simulateTransaction"], seed=seed)
        seen.append(scene.anchors.get_anchor(OWNER))
    assert true is not None
    assert all(anchor is not None and anchor.version == true.version for anchor in seen)
    assert seen[0] == seen[1] != seen[2]
    assert true not in seen
    assert scene.anchors.get_anchor(OWNER) == true
    (state,) = scene.chain.entries(scene.anchors.entry_keys(OWNER)[:1])
    scene.trouble.fault("fork", methods=["getLedgerEntries"])
    (other,) = scene.chain.entries(scene.anchors.entry_keys(OWNER)[:1])
    assert (other.status, other.live_until) == (state.status, state.live_until)
    assert other.data != state.data


class Both:
    """One chain, asked with its own fault and through the transport with the same: the answers must agree."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.localnet = scene.localnet
        assert isinstance(scene.trouble, FaultyClient)
        self.faulty = scene.trouble

    def post(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        answer: dict[str, Any] = self.faulty.post(IN_PROCESS_URL, json_data=body).json()
        answer.get("error", {}).pop("message", None)
        return answer

    def ask(self, kind: FaultKind, method: str, params: dict[str, Any], **options: Any) -> dict[str, Any]:
        """The answer that both give."""
        self.faulty.fault(kind, methods=[method], **options)
        there = self.post(method, params)
        self.localnet.fault(kind, methods=[method], **options)
        here = self.post(method, params)
        assert not self.faulty.faults()
        assert not self.localnet.faults()
        assert here == there
        return here


@pytest.fixture
def both() -> Iterator[Both]:
    """A chain with some anchors of two owners."""
    with open_scene("transport") as scene:
        scene.anchor(2)
        scene.localnet.fund(OTHER.public_key)
        scene.anchors.set_anchor(OTHER, root(50))
        scene.anchor(3)
        yield Both(scene)


@pytest.mark.parametrize("ledgers", [1, 2, 3, 4, 100])
def test_both_tell_the_same_lie(both: Both, ledgers: int) -> None:
    """One seed makes one branch, wherever the lie is told."""
    keys = [
        key.to_xdr() for owner in (OWNER, OTHER.public_key) for key in both.scene.anchors.entry_keys(owner)
    ]
    questions: list[tuple[str, dict[str, Any]]] = [
        ("getLedgerEntries", {"keys": [*keys, operations.account_key(OWNER).to_xdr()]}),
        ("getEvents", {"startLedger": 2}),
        ("getTransaction", {"hash": both.scene.applied()[-1]}),
        ("getTransaction", {"hash": both.scene.applied()[0]}),
    ]
    lies = 0
    for method, params in questions:
        lie = both.ask("fork", method, params, ledgers=ledgers, seed=7)
        lies += lie != both.post(method, params)
    assert lies == (4 if ledgers == 100 else 3)


@pytest.mark.parametrize("ledgers", [1, 2, 3, 100])
def test_both_forget_the_same(both: Both, ledgers: int) -> None:
    tip = both.scene.chain.identity().latest_ledger
    first = both.post("getHealth", {})["result"]["oldestLedger"]
    errors = 0
    for start in range(first, tip + 1):
        for method, cursor in (
            ("getEvents", f"{start << 32:019d}-0000000000"),
            ("getTransactions", str(start << 32 | 1 << 12 | 1)),
            ("getLedgers", str(start)),
        ):
            errors += "error" in both.ask("retention", method, {"startLedger": start}, ledgers=ledgers)
            if start < tip - ledgers or start > tip - ledgers + 1:
                both.ask("retention", method, {"pagination": {"cursor": cursor}}, ledgers=ledgers)
    assert errors == 3 * max(0, tip - ledgers + 1 - first)
    for transaction in both.scene.applied():
        both.ask("retention", "getTransaction", {"hash": transaction}, ledgers=ledgers)
    both.ask("retention", "getHealth", {}, ledgers=ledgers)


def test_both_lag_alike(both: Both) -> None:
    """The transport replays what it has seen: here, every ledger."""
    keys = {"keys": [key.to_xdr() for key in both.scene.anchors.entry_keys(OWNER)]}
    for number in range(10, 16):
        both.post("getLedgerEntries", keys)
        both.scene.anchor(number)
    seen = {
        both.ask("stale", "getLedgerEntries", keys, ledgers=n)["result"]["latestLedger"] for n in range(1, 7)
    }
    assert len(seen) == 6
    both.faulty.fault("stale", ledgers=1_000)
    both.post("getLedgerEntries", keys)
    assert len(both.faulty.faults()) == 1  # nothing so old was seen, so that the truth was told


def test_both_archive_alike(both: Both) -> None:
    contract = both.scene.anchors.contract_id
    keys = [
        key.to_xdr() for owner in (OWNER, OTHER.public_key) for key in both.scene.anchors.entry_keys(owner)
    ]
    keys = list(dict.fromkeys([*keys, operations.instance_key(contract).to_xdr()]))
    archived = []
    options: list[dict[str, str]] = [{"owner": OTHER.public_key}, {}, {"key": keys[0]}]
    for wanted in options:
        both.faulty.fault("archive", **wanted)  # type: ignore[arg-type]
        there = both.post("getLedgerEntries", {"keys": keys})["result"]["entries"]
        snapshot = both.localnet.snapshot()
        both.localnet.fault("archive", **wanted)  # type: ignore[arg-type]
        here = both.post("getLedgerEntries", {"keys": keys})["result"]["entries"]
        both.localnet.revert(snapshot)
        assert [entry["liveUntilLedgerSeq"] for entry in here] == [
            entry["liveUntilLedgerSeq"] for entry in there
        ]
        archived.append([entry["key"] for entry in here if entry["liveUntilLedgerSeq"] == 0])
    assert len(archived[0]) == len(archived[2]) == 1
    assert len(archived[1]) == 2


def test_trimmed_history_is_an_error_that_stays(scene: Scene) -> None:
    first = scene.chain.identity().latest_ledger
    old = scene.applied()[0]
    scene.anchor(2)
    scene.trouble.fault("retention", count=4)
    with pytest.raises(ChainError, match="startLedger"):
        scene.chain.events(scene.anchors.contract_id, start_ledger=first)
    page = scene.chain.events(scene.anchors.contract_id, start_ledger=first + 1)
    assert [event.ledger for event in page.events] == [first + 1]
    assert page.oldest_ledger == first + 1
    assert scene.chain.transaction(old).status is TransactionStatus.NOT_FOUND
    assert scene.chain.transaction(scene.hashes[0]).status is TransactionStatus.SUCCESS
    assert scene.chain.transaction(old).status is TransactionStatus.SUCCESS
    assert len(scene.chain.events(scene.anchors.contract_id, start_ledger=first).events) == 2


def test_an_archived_entry_is_told_from_an_absent_one(scene: Scene) -> None:
    keys = scene.anchors.entry_keys(OWNER)
    scene.trouble.fault("archive", owner=OWNER, methods=["getLedgerEntries"])
    states = scene.chain.entries(keys)
    assert EntryStatus.ARCHIVED in {state.status for state in states}
    scene.trouble.fault("archive", key=operations.instance_key(scene.anchors.contract_id).to_xdr())
    (instance,) = scene.chain.entries([operations.instance_key(scene.anchors.contract_id)])
    assert instance.status is EntryStatus.ARCHIVED
    stranger = StrKey.encode_ed25519_public_key(bytes(31) + b"\x01")
    scene.trouble.fault("archive", owner=stranger, count=1)
    assert EntryStatus.ABSENT not in {state.status for state in scene.chain.entries(keys)}
    # A read works on archived entries, and a write restores what it needs.
    anchor = scene.anchors.get_anchor(OWNER)
    assert anchor is not None
    assert anchor.version == 1
    assert scene.anchor(2) == 2


@pytest.mark.parametrize(
    ("kind", "options", "match"),
    [
        ("earthquake", {}, "earthquake"),
        ("drop", {"count": 0}, "count"),
        ("drop", {"seed": -1}, "seed"),
        ("slow", {"seconds": float("nan")}, "seconds"),
        ("stale", {"ledgers": 0}, "ledgers"),
        ("drop", {"methods": []}, "nothing"),
        ("not_found", {"methods": ["getEvents"]}, "getEvents"),
        ("archive", {"owner": "bob"}, "owner"),
    ],
)
def test_what_the_transport_cannot_be_set_to(kind: Any, options: dict[str, Any], match: str) -> None:
    with Chain.open(":memory:") as localnet:
        faulty = FaultyClient(InProcessClient(localnet))
        with pytest.raises(InputError, match=match):
            faulty.fault(kind, **options)
        assert faulty.faults() == ()


def test_temporary_entries_are_lost_and_never_archived(both: Both) -> None:
    (key,) = [key for key in both.scene.anchors.entry_keys(OWNER) if key.contract_data is not None][:1]
    assert key.contract_data is not None
    persistent = key.to_xdr()
    key.contract_data.durability = xdr.ContractDataDurability.TEMPORARY
    entries = [{"key": one, "liveUntilLedgerSeq": 9} for one in (persistent, key.to_xdr())]
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"entries": entries, "latestLedger": 5}})

    class Inner(InProcessClient):
        def post(self, url: str, *_body: object, **_more: object) -> Response:
            return Response(200, body, {}, url)

    faulty = FaultyClient(Inner(both.localnet))
    faulty.fault("archive")
    found = faulty.post(IN_PROCESS_URL, json_data={"method": "getLedgerEntries"}).json()["result"]["entries"]
    assert [entry["liveUntilLedgerSeq"] for entry in found] == [0, 9]


def test_the_transport_counts_what_reached_the_network() -> None:
    with open_scene("transport") as scene:
        assert isinstance(scene.trouble, FaultyClient)
        scene.trouble.sent.clear()
        scene.trouble.fault("http_503", methods=["sendTransaction"])
        scene.trouble.fault("drop", methods=["sendTransaction"], carried_out=True)
        assert scene.anchor(2) == 2
        assert len(scene.trouble.sent) == 1
        assert xdr.TransactionEnvelope.from_xdr(scene.trouble.sent[0]).v1 is not None


def test_the_transport_hits_the_friendbot_and_closes_what_it_wraps() -> None:
    closed: list[bool] = []

    class Inner(InProcessClient):
        def close(self) -> None:
            closed.append(True)

    with Chain.open(":memory:") as localnet:
        faulty = FaultyClient(Inner(localnet))
        faulty.fault("html", methods=["friendbot"], carried_out=False)
        faulty.fault("http_503", count=1)
        url = "http://localnet.invalid/friendbot"
        assert [faulty.get(url, {"addr": OWNER}).status_code for _ in range(3)] == [502, 503, 200]
        with pytest.raises(NotImplementedError):
            faulty.stream(url)
        faulty.close()
    assert closed == [True]
