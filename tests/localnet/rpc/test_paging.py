"""getTransactions and getLedgers: pages, cursors, and going on while ledgers close."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.localnet.rpc.conftest import Net, Probe


def tip(net: Net) -> int:
    value: int = net.result("getHealth")["latestLedger"]
    return value


@pytest.fixture
def busy(probe: Probe) -> Probe:
    """Seven transactions, some ledgers without any."""
    for number in range(4):
        probe.invoke("put", number, 1)
        probe.net.chain.skip_ledgers(number + 1)
    return probe


def walk(net: Net, method: str, start: int, limit: int) -> list[dict[str, Any]]:
    """Every item from a start, page by page."""
    items = "transactions" if method == "getTransactions" else "ledgers"
    params: dict[str, Any] = {"startLedger": start, "pagination": {"limit": limit}}
    found: list[dict[str, Any]] = []
    while True:
        page = net.result(method, params)
        assert len(page[items]) <= limit
        found += page[items]
        params = {"pagination": {"limit": limit, "cursor": page["cursor"]}}
        if len(page[items]) < limit:
            # Nothing more at the tip, and the cursor stays there.
            again = net.result(method, params)
            assert (again[items], again["cursor"]) == ([], page["cursor"])
            return found


@pytest.mark.parametrize("limit", [1, 2, 3, 6, 7, 8, 200])
def test_transactions_come_once_each_and_in_order(busy: Probe, limit: int) -> None:
    every = busy.net.result("getTransactions", {"startLedger": 2, "pagination": {"limit": 200}})[
        "transactions"
    ]
    assert len(every) == 7
    positions = [(item["ledger"], item["applicationOrder"]) for item in every]
    assert positions == sorted(set(positions))
    assert walk(busy.net, "getTransactions", 2, limit) == every
    later = positions[3][0]
    assert walk(busy.net, "getTransactions", later, limit) == every[3:]


@pytest.mark.parametrize("limit", [1, 2, 5, 17, 200])
def test_ledgers_come_once_each_and_in_order(busy: Probe, limit: int) -> None:
    found = walk(busy.net, "getLedgers", 2, limit)
    assert [item["sequence"] for item in found] == list(range(2, tip(busy.net) + 1))


def test_the_cursor_of_transactions(busy: Probe) -> None:
    page = busy.net.result("getTransactions", {"startLedger": 2, "pagination": {"limit": 3}})
    last = page["transactions"][-1]
    assert page["cursor"] == str(last["ledger"] << 32 | last["applicationOrder"] << 12 | 1)
    rest = busy.net.result("getTransactions", {"pagination": {"cursor": page["cursor"]}})
    # Behind the last transaction the ledgers are empty: the cursor is the tip's, before its first one.
    assert rest["cursor"] == str(tip(busy.net) << 32 | 1)


def test_a_page_that_ends_with_the_tips_own_transaction(probe: Probe) -> None:
    probe.invoke("put", 1, 1)
    page = probe.net.result("getTransactions", {"startLedger": tip(probe.net)})
    assert len(page["transactions"]) == 1
    assert page["cursor"] == str(tip(probe.net) << 32 | 1 << 12 | 1)
    assert (
        probe.net.result("getTransactions", {"pagination": {"cursor": page["cursor"]}})["transactions"] == []
    )


def test_the_default_is_50(net: Net) -> None:
    net.chain.skip_ledgers(120)
    for pagination in (None, {}, {"limit": 0}, {"limit": None}):
        page = net.result("getLedgers", {"startLedger": 2, "pagination": pagination})
        assert [item["sequence"] for item in page["ledgers"]] == list(range(2, 52))
        assert page["cursor"] == "51"


def test_a_ledger_cursor_at_the_tip_waits_there(net: Net) -> None:
    net.chain.skip_ledgers(3)
    end = tip(net)
    page = net.result("getLedgers", {"pagination": {"cursor": str(end)}})
    assert (page["ledgers"], page["cursor"]) == ([], str(end))
    net.chain.close_ledger()
    page = net.result("getLedgers", {"pagination": {"cursor": str(end)}})
    assert [item["sequence"] for item in page["ledgers"]] == [end + 1]


def test_following_transactions_while_they_come(probe: Probe) -> None:
    page = probe.net.result("getTransactions", {"startLedger": tip(probe.net)})
    found, sent = page["transactions"][1:], []
    for number in range(5):
        sent += [probe.invoke("put", number, 1), probe.invoke("put", number, 2)]
        probe.net.chain.skip_ledgers(number + 1)
        page = probe.net.result("getTransactions", {"pagination": {"cursor": page["cursor"], "limit": 3}})
        found += page["transactions"]
    assert [item["txHash"] for item in found] == sent


def test_what_a_transaction_says_is_the_same_everywhere(busy: Probe) -> None:
    for item in walk(busy.net, "getTransactions", 2, 200):
        alone = busy.net.result("getTransaction", {"hash": item["txHash"]})
        for name, value in item.items():
            assert alone[name] == (str(value) if name == "createdAt" else value)


def test_ledgers_and_the_latest_ledger_agree(busy: Probe) -> None:
    latest = busy.net.result("getLatestLedger")
    (ledger,) = busy.net.result("getLedgers", {"startLedger": latest["sequence"]})["ledgers"]
    assert ledger["hash"] == latest["id"]
    assert ledger["ledgerCloseTime"] == latest["closeTime"]
    assert ledger["metadataXdr"] == latest["metadataXdr"]
