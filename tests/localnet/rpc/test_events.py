"""getEvents on a chain: which events there are, ids, ranges, cursors, and paging without loss or repeat."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from stellar_sdk import scval

from mycelium_localnet import Chain
from mycelium_localnet.rpc import events as events_module

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.localnet.rpc.conftest import Net, Probe

TRANSACTION_MASK, OPERATION_MASK = 0xFFFFF, 0xFFF


def oldest(net: Net) -> int:
    value: int = net.result("getHealth")["oldestLedger"]
    return value


def everything(net: Net, **params: object) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = net.result(
        "getEvents", {"startLedger": oldest(net), "pagination": {"limit": 10_000}} | params
    )["events"]
    return found


def end_of(ledger: int) -> str:
    """The cursor behind everything in a ledger."""
    return f"{ledger << 32 | TRANSACTION_MASK << 12 | OPERATION_MASK:019d}-4294967295"


@pytest.fixture
def busy(probe: Probe) -> Probe:
    """A chain with events in several ledgers, empty ones between them."""
    for number in range(4):
        probe.invoke("emit", number, 1, 2)
        probe.net.chain.skip_ledgers(2)
        probe.invoke("put", number, 1)
    return probe


def test_the_events_of_one_call(probe: Probe) -> None:
    transaction_hash = probe.invoke("emit", 5, 6, 7)
    ledger = probe.net.result("getTransaction", {"hash": transaction_hash})["ledger"]
    found = everything(probe.net, startLedger=ledger)
    assert {event["txHash"] for event in found} == {transaction_hash}
    assert {event["ledger"] for event in found} == {ledger}
    ours = found[1:-1]
    assert [event["id"] for event in ours] == [
        f"{ledger << 32 | 1 << 12:019d}-{number:010d}" for number in range(4)
    ]
    assert [event["contractId"] for event in ours] == [probe.contract_id] * 4
    assert [(event["transactionIndex"], event["operationIndex"]) for event in ours] == [(1, 0)] * 4
    topics = [[scval.to_native(topic) for topic in event["topic"]] for event in ours]
    assert topics == [["zero"], ["one", 5], ["two", 5, 6], ["three", 5, 6, 7]]
    assert [scval.to_native(event["value"]) for event in ours] == [0, 1, 2, 3]
    fee, refund = found[0], found[-1]
    assert fee["id"] == f"{ledger << 32:019d}-0000000000"
    assert refund["id"] == f"{ledger << 32 | TRANSACTION_MASK << 12:019d}-0000000000"
    assert [scval.to_native(event["topic"][0]) for event in (fee, refund)] == ["fee", "fee"]
    assert scval.from_int128(fee["value"]) > 0 > scval.from_int128(refund["value"])


def test_filters_on_a_chain(busy: Probe) -> None:
    every = everything(busy.net)
    one = scval.to_symbol("one").to_xdr()
    for filters, expected in (
        ([], every),
        ([{"contractIds": [busy.contract_id]}], [e for e in every if e["contractId"] == busy.contract_id]),
        ([{"type": "system"}], [e for e in every if e["type"] == "system"]),
        ([{"topics": [["*", "*"]]}], [e for e in every if len(e["topic"]) == 2]),
        ([{"topics": [[one, "**"]]}], [e for e in every if e["topic"][0] == one]),
        (
            [{"topics": [[one, scval.to_uint32(2).to_xdr()]]}, {"topics": [["*"]]}],
            [e for e in every if len(e["topic"]) == 1 or e["topic"] == [one, scval.to_uint32(2).to_xdr()]],
        ),
    ):
        assert everything(busy.net, filters=filters) == expected
    assert len(every) > 30


def test_the_range_is_from_start_to_before_end(busy: Probe) -> None:
    every = everything(busy.net)
    first, last = every[0]["ledger"], every[-1]["ledger"]
    for start in range(first, last + 1):
        for end in (start, start + 1, last, last + 1, last + 1000):
            page = busy.net.result(
                "getEvents", {"startLedger": start, "endLedger": end, "pagination": {"limit": 10_000}}
            )
            assert page["events"] == [event for event in every if start <= event["ledger"] < end]
            assert page["cursor"] == end_of(min(end - 1, page["latestLedger"]))


def test_an_empty_page_still_has_a_cursor_to_go_on_with(probe: Probe) -> None:
    probe.net.chain.skip_ledgers(5)
    page = probe.net.result("getEvents", {"startLedger": probe.net.result("getHealth")["latestLedger"]})
    assert page["events"] == []
    assert page["cursor"] == end_of(page["latestLedger"])
    again = probe.net.result("getEvents", {"pagination": {"cursor": page["cursor"]}})
    assert again["events"] == []
    assert again["cursor"] == page["cursor"]
    transaction_hash = probe.invoke("emit", 1, 2, 3)
    news = probe.net.result("getEvents", {"pagination": {"cursor": page["cursor"]}})["events"]
    assert {event["txHash"] for event in news} == {transaction_hash}
    assert len(news) == 6


def test_a_full_page_ends_at_its_last_event(busy: Probe) -> None:
    page = busy.net.result("getEvents", {"startLedger": oldest(busy.net), "pagination": {"limit": 3}})
    assert len(page["events"]) == 3
    assert page["cursor"] == page["events"][-1]["id"]


def test_the_default_limit_is_100(probe: Probe) -> None:
    for number in range(17):
        probe.invoke("emit", number, 0, 0)
    for pagination in (None, {}, {"limit": None}, {"limit": 0}):
        page = probe.net.result("getEvents", {"startLedger": oldest(probe.net), "pagination": pagination})
        assert len(page["events"]) == 100


def test_a_call_scans_only_so_many_ledgers(busy: Probe, monkeypatch: pytest.MonkeyPatch) -> None:
    every = everything(busy.net, filters=[{"topics": [["*"]]}])
    assert events_module.SCAN_LEDGERS == 10_000
    monkeypatch.setattr(events_module, "SCAN_LEDGERS", 3)
    start = oldest(busy.net)
    page = busy.net.result("getEvents", {"startLedger": start, "filters": [{"topics": [["*"]]}]})
    assert page["cursor"] == end_of(start + 2)
    found = page["events"]
    while page["cursor"] != end_of(page["latestLedger"]):
        params = {"filters": [{"topics": [["*"]]}], "pagination": {"cursor": page["cursor"]}}
        page = busy.net.result("getEvents", params)
        found += page["events"]
    assert found == every


@pytest.fixture(scope="module")
def crowded(make_probe: Callable[[Chain], Probe]) -> Iterator[Probe]:
    with Chain.open(":memory:", seed=b"crowded") as chain:
        probe = make_probe(chain)
        for number in range(6):
            probe.invoke("emit", number % 3, number % 2, 9)
            if number % 2:
                chain.skip_ledgers(number)
        yield probe


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    limits=st.lists(st.integers(1, 12), min_size=1, max_size=5),
    topic=st.sampled_from([None, [["**"]], [["*", "*"]], [["*"], ["*", "*", "**"]]]),
    ours_only=st.booleans(),
)
def test_paging_neither_loses_nor_repeats(
    crowded: Probe, limits: list[int], topic: Any, ours_only: bool
) -> None:
    filters = [{"topics": topic, "contractIds": [crowded.contract_id] if ours_only else None}]
    expected = everything(crowded.net, filters=filters)
    params: dict[str, Any] = {"startLedger": oldest(crowded.net)}
    found: list[dict[str, Any]] = []
    turn = 0
    while True:
        limit = limits[turn % len(limits)]
        turn += 1
        params["pagination"] = params.get("pagination", {}) | {"limit": limit}
        page = crowded.net.result("getEvents", params | {"filters": filters})
        found += page["events"]
        params = {"pagination": {"cursor": page["cursor"]}}
        if len(page["events"]) < limit:
            break
    assert found == expected
    assert [event["id"] for event in found] == sorted({event["id"] for event in found})


def test_paging_while_ledgers_close(probe: Probe) -> None:
    hashes = [probe.invoke("emit", 0, 0, 0)]
    page = probe.net.result(
        "getEvents",
        {"startLedger": oldest(probe.net), "filters": [{"topics": [["*"]]}], "pagination": {"limit": 1}},
    )
    found = page["events"]
    for number in range(1, 6):
        hashes += [probe.invoke("emit", number, 0, 0), probe.invoke("emit", number, 1, 0)]
        params = {"filters": [{"topics": [["*"]]}], "pagination": {"cursor": page["cursor"], "limit": 2}}
        page = probe.net.result("getEvents", params)
        found += page["events"]
    assert [event["txHash"] for event in found] == hashes
