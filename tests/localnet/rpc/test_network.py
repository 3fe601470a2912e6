"""Who the network is, and that the parts of its latest ledger belong together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stellar_sdk import xdr as stellar_xdr

from mycelium_localnet import Chain, Dispatcher

if TYPE_CHECKING:
    from tests.localnet.rpc.conftest import Net


def test_get_network_says_who_it_is(net: Net) -> None:
    network = net.result("getNetwork")
    assert network["passphrase"] == "Standalone Network ; February 2017"
    assert network["friendbotUrl"] == "http://node.invalid/friendbot"
    assert network["chainId"] == net.chain.chain_id


def test_get_latest_ledger_is_one_ledger(net: Net) -> None:
    answer = net.result("getLatestLedger")
    header = stellar_xdr.LedgerHeader.from_xdr(answer["headerXdr"])
    meta = stellar_xdr.LedgerCloseMeta.from_xdr(answer["metadataXdr"])
    assert header.ledger_seq.uint32 == answer["sequence"]
    assert header.scp_value.close_time.time_point.uint64 == int(answer["closeTime"])
    assert meta.v2 is not None
    assert meta.v2.ledger_header.hash.hash.hex() == answer["id"]
    assert meta.v2.ledger_header.header.to_xdr() == answer["headerXdr"]


def test_the_friendbot_of_a_door_without_a_socket_has_an_absolute_address(net: Net) -> None:
    door = type(net)(net.chain, Dispatcher(net.chain))
    assert door.result("getNetwork")["friendbotUrl"] == "http://localnet.invalid/friendbot"


def test_another_passphrase_is_another_network() -> None:
    with Chain.open(":memory:", passphrase="Another Network") as chain:
        answer = Dispatcher(chain).handle(b'{"jsonrpc": "2.0", "id": 1, "method": "getNetwork"}')
    assert b'"passphrase":"Another Network"' in (answer or b"")


def test_skipped_ledgers_are_ledgers(net: Net) -> None:
    net.chain.skip_ledgers(300)
    health = net.result("getHealth")
    latest = net.result("getLatestLedger")
    assert health["latestLedger"] == latest["sequence"] > 300
    (before,) = net.result("getLedgers", {"startLedger": latest["sequence"] - 1, "pagination": {"limit": 1}})[
        "ledgers"
    ]
    header = stellar_xdr.LedgerHeader.from_xdr(latest["headerXdr"])
    assert header.previous_ledger_hash.hash.hex() == before["hash"]
