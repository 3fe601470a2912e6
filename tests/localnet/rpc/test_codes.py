"""What each method refuses, with which code: limits, ranges, types, formats."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from stellar_sdk import Keypair, StrKey, scval
from stellar_sdk import xdr as stellar_xdr

if TYPE_CHECKING:
    from tests.localnet.rpc.conftest import Net

INVALID_REQUEST, INVALID_PARAMS = -32600, -32602

ACCOUNT = Keypair.from_raw_ed25519_seed(bytes(32)).xdr_account_id()
ACCOUNT_KEY = stellar_xdr.LedgerKey(
    stellar_xdr.LedgerEntryType.ACCOUNT, account=stellar_xdr.LedgerKeyAccount(ACCOUNT)
).to_xdr()
TTL_KEY = stellar_xdr.LedgerKey(
    stellar_xdr.LedgerEntryType.TTL, ttl=stellar_xdr.LedgerKeyTtl(stellar_xdr.Hash(bytes(32)))
).to_xdr()
CONTRACT = StrKey.encode_contract(bytes(32))
SYMBOL = scval.to_symbol("x").to_xdr()
SOME_EVENT = "0000000008589938688-0000000000"  # ledger 2, transaction 1, operation 0
TYPE_ERRORS: list[tuple[str, dict[str, Any]]] = [
    ("getLedgerEntries", {"keys": "AAAA"}),
    ("getLedgerEntries", {"keys": [1]}),
    ("getLedgerEntries", {"keys": {"0": "AAAA"}}),
    ("simulateTransaction", {"transaction": 5}),
    ("simulateTransaction", {"transaction": "AAAA", "resourceConfig": []}),
    ("simulateTransaction", {"transaction": "AAAA", "resourceConfig": {"instructionLeeway": -1}}),
    ("simulateTransaction", {"transaction": "AAAA", "resourceConfig": {"instructionLeeway": 2**32}}),
    ("simulateTransaction", {"transaction": "AAAA", "resourceConfig": {"instructionLeeway": 1.5}}),
    ("simulateTransaction", {"transaction": "AAAA", "authMode": 1}),
    ("simulateTransaction", {"transaction": "AAAA", "useUpgradedAuth": "yes"}),
    ("simulateTransaction", {"transaction": "AAAA", "xdrFormat": 1}),
    ("sendTransaction", {"transaction": ["AAAA"]}),
    ("getTransaction", {"hash": 7}),
    ("getTransactions", {"startLedger": "2"}),
    ("getTransactions", {"startLedger": 2.0}),
    ("getTransactions", {"startLedger": True}),
    ("getTransactions", {"startLedger": -2}),
    ("getTransactions", {"startLedger": 2**32}),
    ("getTransactions", {"startLedger": 2, "pagination": []}),
    ("getTransactions", {"startLedger": 2, "pagination": {"limit": -1}}),
    ("getLedgers", {"pagination": {"cursor": 3}}),
    ("getEvents", {"startLedger": "2"}),
    ("getEvents", {"startLedger": 2, "endLedger": -1}),
    ("getEvents", {"startLedger": 2, "filters": {}}),
    ("getEvents", {"startLedger": 2, "filters": ["x"]}),
    ("getEvents", {"startLedger": 2, "filters": [{"type": 1}]}),
    ("getEvents", {"startLedger": 2, "filters": [{"contractIds": CONTRACT}]}),
    ("getEvents", {"startLedger": 2, "filters": [{"topics": ["*"]}]}),
    ("getEvents", {"startLedger": 2, "filters": [{"topics": [[1]]}]}),
    ("getEvents", {"startLedger": 2, "pagination": {"limit": "5"}}),
    ("getEvents", {"startLedger": 2, "pagination": {"limit": -5}}),
]


@pytest.mark.parametrize(("method", "params"), TYPE_ERRORS)
def test_a_value_of_the_wrong_type_is_named(net: Net, method: str, params: dict[str, Any]) -> None:
    code, message = net.error(method, params)
    assert code == INVALID_PARAMS
    assert "must be" in message


@pytest.mark.parametrize(
    ("method", "params", "code"),
    [
        ("getLedgerEntries", {}, INVALID_PARAMS),
        ("getLedgerEntries", {"keys": None}, INVALID_PARAMS),
        ("getLedgerEntries", {"keys": [ACCOUNT_KEY] * 201}, INVALID_PARAMS),
        ("getLedgerEntries", {"keys": ["not base64!"]}, INVALID_PARAMS),
        ("getLedgerEntries", {"keys": [""]}, INVALID_PARAMS),
        ("getLedgerEntries", {"keys": ["AAAA"]}, INVALID_PARAMS),
        ("getLedgerEntries", {"keys": [ACCOUNT_KEY + "AAAA"]}, INVALID_PARAMS),
        ("getLedgerEntries", {"keys": ["\N{SNOWMAN}"]}, INVALID_PARAMS),
        ("getLedgerEntries", {"keys": [ACCOUNT_KEY, TTL_KEY]}, INVALID_PARAMS),
        ("sendTransaction", {}, INVALID_PARAMS),
        ("sendTransaction", {"transaction": ""}, INVALID_PARAMS),
        ("sendTransaction", {"transaction": "AAAA"}, INVALID_PARAMS),
        ("sendTransaction", {"transaction": "not base64!"}, INVALID_PARAMS),
        ("sendTransaction", {"transaction": ACCOUNT_KEY}, INVALID_PARAMS),
        ("getTransaction", {}, INVALID_PARAMS),
        ("getTransaction", {"hash": ""}, INVALID_PARAMS),
        ("getTransaction", {"hash": "ab" * 31}, INVALID_PARAMS),
        ("getTransaction", {"hash": "ab" * 33}, INVALID_PARAMS),
        ("getTransaction", {"hash": "zz" * 32}, INVALID_PARAMS),
        ("getTransaction", {"hash": "a b " * 16}, INVALID_PARAMS),
        ("getTransactions", {}, INVALID_REQUEST),
        ("getTransactions", {"startLedger": 0}, INVALID_REQUEST),
        ("getTransactions", {"startLedger": 1_000_000}, INVALID_REQUEST),
        ("getTransactions", {"startLedger": 2, "pagination": {"limit": 201}}, INVALID_REQUEST),
        ("getTransactions", {"startLedger": 2, "pagination": {"cursor": "8589938689"}}, INVALID_REQUEST),
        ("getTransactions", {"startLedger": 2, "xdrFormat": "yaml"}, INVALID_REQUEST),
        ("getTransactions", {"pagination": {"cursor": "x"}}, INVALID_PARAMS),
        ("getTransactions", {"pagination": {"cursor": "-5"}}, INVALID_PARAMS),
        ("getTransactions", {"pagination": {"cursor": "1"}}, INVALID_PARAMS),
        ("getTransactions", {"pagination": {"cursor": str(2**63)}}, INVALID_PARAMS),
        ("getTransactions", {"pagination": {"cursor": str(1_000_000 << 32)}}, INVALID_PARAMS),
        ("getLedgers", {}, INVALID_REQUEST),
        ("getLedgers", {"startLedger": 0}, INVALID_REQUEST),
        ("getLedgers", {"startLedger": 1_000_000}, INVALID_REQUEST),
        ("getLedgers", {"startLedger": 2, "pagination": {"limit": 201}}, INVALID_REQUEST),
        ("getLedgers", {"startLedger": 2, "pagination": {"cursor": "2"}}, INVALID_REQUEST),
        ("getLedgers", {"startLedger": 2, "xdrFormat": "yaml"}, INVALID_REQUEST),
        ("getLedgers", {"pagination": {"cursor": "x"}}, INVALID_PARAMS),
        ("getLedgers", {"pagination": {"cursor": "1000000"}}, INVALID_PARAMS),
        ("getLedgers", {"pagination": {"cursor": "\N{ARABIC-INDIC DIGIT TWO}"}}, INVALID_PARAMS),
        ("getEvents", {}, INVALID_PARAMS),
        ("getEvents", {"startLedger": 0}, INVALID_PARAMS),
        ("getEvents", {"startLedger": 1_000_000}, INVALID_REQUEST),
        ("getEvents", {"pagination": {"cursor": "0004294967296000000-0000000000"}}, INVALID_REQUEST),
        ("getEvents", {"pagination": {"cursor": ""}}, INVALID_PARAMS),
        ("getEvents", {"pagination": {"cursor": "2"}}, INVALID_PARAMS),
        ("getEvents", {"pagination": {"cursor": "2-x"}}, INVALID_PARAMS),
        ("getEvents", {"pagination": {"cursor": "2--1"}}, INVALID_PARAMS),
        ("getEvents", {"pagination": {"cursor": f"{2**63}-0"}}, INVALID_PARAMS),
        ("getEvents", {"pagination": {"cursor": f"8589938688-{2**32}"}}, INVALID_PARAMS),
        ("getEvents", {"startLedger": 2, "pagination": {"cursor": SOME_EVENT}}, INVALID_PARAMS),
        ("getEvents", {"endLedger": 2, "pagination": {"cursor": SOME_EVENT}}, INVALID_PARAMS),
        ("getEvents", {"startLedger": 2, "pagination": {"limit": 10_001}}, INVALID_PARAMS),
        ("getEvents", {"startLedger": 2, "filters": [{}] * 6}, INVALID_PARAMS),
        ("getEvents", {"startLedger": 2, "filters": [{"type": "diagnostic"}]}, INVALID_PARAMS),
        ("getEvents", {"startLedger": 2, "filters": [{"type": "contract,diagnostic"}]}, INVALID_PARAMS),
        ("getEvents", {"startLedger": 2, "filters": [{"type": "contract,"}]}, INVALID_PARAMS),
        ("getEvents", {"startLedger": 2, "filters": [{"contractIds": [CONTRACT] * 6}]}, INVALID_PARAMS),
        ("getEvents", {"startLedger": 2, "filters": [{"contractIds": ["C123"]}]}, INVALID_PARAMS),
        ("getEvents", {"startLedger": 2, "filters": [{"topics": [["*"]] * 6}]}, INVALID_PARAMS),
        ("getEvents", {"startLedger": 2, "filters": [{"topics": [[]]}]}, INVALID_PARAMS),
        ("getEvents", {"startLedger": 2, "filters": [{"topics": [["*"] * 5]}]}, INVALID_PARAMS),
        ("getEvents", {"startLedger": 2, "filters": [{"topics": [[*["*"] * 5, "**"]]}]}, INVALID_PARAMS),
        ("getEvents", {"startLedger": 2, "filters": [{"topics": [["**", "*"]]}]}, INVALID_PARAMS),
        ("getEvents", {"startLedger": 2, "filters": [{"topics": [["**", "**"]]}]}, INVALID_PARAMS),
        ("getEvents", {"startLedger": 2, "filters": [{"topics": [["***"]]}]}, INVALID_PARAMS),
        ("getEvents", {"startLedger": 2, "filters": [{"topics": [["AAAA"]]}]}, INVALID_PARAMS),
        ("getEvents", {"startLedger": 2, "xdrFormat": "yaml"}, INVALID_PARAMS),
        ("getLedgerEntries", {"keys": [], "xdrFormat": "yaml"}, INVALID_PARAMS),
        ("getTransaction", {"hash": "ab" * 32, "xdrFormat": "yaml"}, INVALID_PARAMS),
        ("sendTransaction", {"transaction": "AAAA", "xdrFormat": "yaml"}, INVALID_PARAMS),
    ],
)
def test_refusals(net: Net, method: str, params: dict[str, Any], code: int) -> None:
    net.chain.skip_ledgers(3)
    found, message = net.error(method, params)
    assert found == code, message
    assert message


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("getLedgerEntries", {"keys": []}),
        ("getLedgerEntries", {"keys": [ACCOUNT_KEY] * 200}),
        ("getTransaction", {"hash": "AB" * 32}),
        ("getTransactions", {"startLedger": 2, "pagination": {"limit": 200}}),
        ("getTransactions", {"startLedger": 2, "pagination": {"limit": 0, "cursor": None}}),
        ("getTransactions", {"startLedger": 2, "pagination": {"cursor": ""}}),
        ("getLedgers", {"startLedger": 2, "pagination": {"limit": 200}}),
        ("getLedgers", {"startLedger": 2, "pagination": None}),
        ("getEvents", {"startLedger": 2}),
        ("getEvents", {"startLedger": 2, "endLedger": None, "filters": None, "pagination": None}),
        ("getEvents", {"startLedger": 2, "pagination": {"limit": 10_000}}),
        ("getEvents", {"startLedger": 2, "pagination": {"limit": 0}}),
        ("getEvents", {"startLedger": 2, "filters": [{}] * 5}),
        ("getEvents", {"startLedger": 2, "filters": [{"type": ""}]}),
        ("getEvents", {"startLedger": 2, "filters": [{"type": "system,contract"}]}),
        ("getEvents", {"startLedger": 2, "filters": [{"type": None, "contractIds": None, "topics": None}]}),
        ("getEvents", {"startLedger": 2, "filters": [{"contractIds": [CONTRACT] * 5}]}),
        ("getEvents", {"startLedger": 2, "filters": [{"topics": [[SYMBOL, "*", "*", "*", "**"]] * 5}]}),
        ("getEvents", {"startLedger": 2, "filters": [{"topics": [["**"]]}]}),
        ("getEvents", {"startLedger": 2, "endLedger": 1}),
        ("getEvents", {"startLedger": 2, "endLedger": 2**32 - 1}),
        ("getHealth", {"xdrFormat": "base64"}),
    ],
)
def test_what_is_just_within_the_limits(net: Net, method: str, params: dict[str, Any]) -> None:
    net.chain.skip_ledgers(3)
    net.result(method, params)


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("getLedgerEntries", {"keys": []}),
        ("getTransaction", {"hash": "ab" * 32}),
        ("getTransactions", {"startLedger": 2}),
        ("getLedgers", {"startLedger": 2}),
        ("getEvents", {"startLedger": 2}),
    ],
)
def test_formats(net: Net, method: str, params: dict[str, Any]) -> None:
    net.chain.skip_ledgers(3)
    plain = net.result(method, params)
    for wanted in (None, "", "base64"):
        assert net.result(method, params | {"xdrFormat": wanted}) == plain
    assert net.error(method, params | {"xdrFormat": "json"})[0] == INVALID_PARAMS


@pytest.mark.parametrize("method", ["simulateTransaction", "sendTransaction"])
def test_json_is_refused_for_transactions_as_well(net: Net, method: str) -> None:
    assert net.error(method, {"transaction": "AAAA", "xdrFormat": "json"})[0] == INVALID_PARAMS
