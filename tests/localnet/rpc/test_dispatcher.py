"""JSON-RPC 2.0 itself: ids, batches, notifications, and what is refused with which code."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mycelium_localnet.errors import ChainBusyError
from mycelium_localnet.rpc.dispatcher import METHODS

if TYPE_CHECKING:
    from tests.localnet.rpc.conftest import Net

DOCUMENTED = {
    "getEvents",
    "getFeeStats",
    "getHealth",
    "getLatestLedger",
    "getLedgerEntries",
    "getLedgers",
    "getNetwork",
    "getTransaction",
    "getTransactions",
    "getVersionInfo",
    "sendTransaction",
    "simulateTransaction",
}


def send(net: Net, body: bytes) -> Any:
    answer = net.dispatcher.handle(body)
    return None if answer is None else json.loads(answer)


def message(**members: object) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": "getHealth"} | members).encode()


def test_the_methods_are_those_of_stellar_rpc() -> None:
    assert {name for name in METHODS if not name.startswith("localnet_")} == DOCUMENTED


@pytest.mark.parametrize("identity", ["a", "", "1", 1, 0, -7, 2**70, 1.5, "\N{SNOWMAN}", "\ud800"])
def test_the_id_comes_back_with_its_type(net: Net, identity: object) -> None:
    answer = send(net, message(id=identity))
    assert answer["id"] == identity
    assert type(answer["id"]) is type(identity)
    assert answer["result"]["status"] == "healthy"
    assert "error" not in answer


@pytest.mark.parametrize("params", [None, {}, {"unknown": [1]}])
def test_parameters_may_be_null_empty_or_unknown(net: Net, params: object) -> None:
    assert "result" in send(net, message(params=params))


def test_parameters_may_be_absent(net: Net) -> None:
    assert "result" in send(net, b'{"jsonrpc": "2.0", "id": 1, "method": "getHealth"}')


@pytest.mark.parametrize("params", [[], [1], ["hash"]])
def test_parameters_by_position_are_refused(net: Net, params: object) -> None:
    assert send(net, message(params=params))["error"]["code"] == -32602


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b'{"jsonrpc": "2.0"',
        b"nonsense",
        b"\xff\xfe",
        b'{"jsonrpc": "2.0", "id": NaN, "method": "getHealth"}',
        b"[" * 100_000,
        b'{"jsonrpc": "2.0", "id": ' + b"9" * 5000 + b', "method": "getHealth"}',
    ],
)
def test_what_is_not_json_is_a_parse_error_with_a_null_id(net: Net, body: bytes) -> None:
    answer = send(net, body)
    assert answer["error"]["code"] == -32700
    assert answer["id"] is None
    assert set(answer) == {"jsonrpc", "id", "error"}


@pytest.mark.parametrize(
    ("body", "identity"),
    [
        (b"1", None),
        (b'"getHealth"', None),
        (b"null", None),
        (b"{}", None),
        (message(jsonrpc="1.0"), 1),
        (message(jsonrpc=None), 1),
        (message(method=None), 1),
        (message(method=7), 1),
        (message(method=""), 1),
        (message(params="x"), 1),
        (message(params=7), 1),
        (message(extra=True), 1),
        (message(id=True), None),
        (message(id=[1]), None),
        (message(id={"a": 1}), None),
        (b'{"jsonrpc": "2.0", "id": 1e999, "method": "getHealth"}', None),
        (b'{"jsonrpc": "1.0", "method": "getHealth"}', None),
    ],
)
def test_what_is_no_request_is_an_invalid_request(net: Net, body: bytes, identity: object) -> None:
    answer = send(net, body)
    assert answer["error"]["code"] == -32600
    assert answer["id"] == identity
    assert isinstance(answer["error"]["message"], str)


def test_an_unknown_method(net: Net) -> None:
    answer = send(net, message(method="getNothing"))
    assert answer["error"] == {"code": -32601, "message": "method not found", "data": "getNothing"}


def test_method_names_are_case_sensitive_and_no_attribute_lookup(net: Net) -> None:
    for name in ("gethealth", "__class__", "handle"):
        assert send(net, message(method=name))["error"]["code"] == -32601


def test_an_error_without_data_has_no_such_member(net: Net) -> None:
    error = send(net, message(method="getTransaction"))["error"]
    assert error == {"code": -32602, "message": "hash is missing"}


@pytest.mark.parametrize(
    "body",
    [
        b'{"jsonrpc": "2.0", "method": "getHealth"}',
        b'{"jsonrpc": "2.0", "id": null, "method": "getHealth"}',
        b'{"jsonrpc": "2.0", "method": "getNothing"}',
        b'{"jsonrpc": "2.0", "method": "getTransaction", "params": {}}',
        b"[]",
        b'[{"jsonrpc": "2.0", "method": "getHealth"}, {"jsonrpc": "2.0", "method": "getNothing"}]',
    ],
)
def test_notifications_and_empty_batches_get_no_answer(net: Net, body: bytes) -> None:
    assert net.dispatcher.handle(body) is None


def test_a_notification_is_carried_out(net: Net) -> None:
    assert net.dispatcher.handle(b'{"jsonrpc": "2.0", "method": "sendTransaction", "params": {}}') is None


def test_a_batch_is_a_list_of_answers_without_those_of_notifications(net: Net) -> None:
    batch = [
        {"jsonrpc": "2.0", "id": "a", "method": "getHealth"},
        {"jsonrpc": "2.0", "method": "getHealth"},
        {"jsonrpc": "2.0", "id": 2, "method": "getNothing"},
        7,
        {"jsonrpc": "2.0", "id": 3, "method": "getNetwork", "params": None},
    ]
    answers = send(net, json.dumps(batch).encode())
    assert [answer["id"] for answer in answers] == ["a", 2, None, 3]
    assert [answer.get("error", {}).get("code") for answer in answers] == [None, -32601, -32600, None]


def test_a_batch_of_one_is_still_a_list(net: Net) -> None:
    assert isinstance(send(net, b"[" + message() + b"]"), list)


def test_a_batch_has_an_end(net: Net) -> None:
    answers = send(net, b"[" + b",".join([message()] * 100) + b"]")
    assert [answer["result"]["status"] for answer in answers] == ["healthy"] * 100
    before = send(net, message())["result"]
    answer = send(net, b"[" + b",".join([message(method="localnet_closeLedger")] * 101) + b"]")
    assert (answer["error"]["code"], answer["id"]) == (-32600, None)
    assert "at most 100 calls, not 101" in answer["error"]["message"]
    assert send(net, message())["result"] == before


def test_the_chains_own_trouble_is_an_internal_error(net: Net, monkeypatch: pytest.MonkeyPatch) -> None:
    def busy() -> None:
        raise ChainBusyError("another process holds the chain", hint="try again")

    monkeypatch.setattr(net.chain, "read", busy)
    error = send(net, message())["error"]
    assert error == {"code": -32603, "message": "another process holds the chain", "data": "try again"}


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("getEvents", {"startLedger": 2}),
        ("getFeeStats", {}),
        ("getHealth", {}),
        ("getLatestLedger", {}),
        ("getLedgerEntries", {"keys": []}),
        ("getLedgers", {"startLedger": 2}),
        ("getTransaction", {"hash": "ab" * 32}),
        ("getTransactions", {"startLedger": 2}),
        ("simulateTransaction", {"transaction": "AAAA"}),
    ],
)
def test_an_answer_comes_from_one_state(
    net: Net, monkeypatch: pytest.MonkeyPatch, method: str, params: dict[str, object]
) -> None:
    net.chain.skip_ledgers(3)
    read, views = net.chain.read, []

    def counted() -> Any:
        views.append(method)
        return read()

    monkeypatch.setattr(net.chain, "read", counted)
    net.result(method, params)
    assert len(views) == 1


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4),
    max_leaves=12,
)
NAMES = st.sampled_from(
    [
        "transaction",
        "hash",
        "keys",
        "startLedger",
        "endLedger",
        "filters",
        "pagination",
        "cursor",
        "limit",
        "xdrFormat",
        "authMode",
        "useUpgradedAuth",
        "resourceConfig",
        "instructionLeeway",
        "topics",
        "type",
        "contractIds",
    ]
)
PARAMS = st.dictionaries(
    NAMES,
    JSON
    | st.dictionaries(NAMES, JSON, max_size=3)
    | st.lists(st.dictionaries(NAMES, JSON, max_size=3), max_size=2),
)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(method=st.sampled_from(sorted(DOCUMENTED)), params=PARAMS)
def test_any_parameters_get_a_result_or_a_documented_error(net: Net, method: str, params: object) -> None:
    answer = net.call(method, params)
    if "error" in answer:
        assert answer["error"]["code"] in (-32600, -32602)
        assert set(answer["error"]) <= {"code", "message", "data"}


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(body=st.binary(max_size=60) | JSON.map(lambda value: json.dumps(value).encode()))
def test_any_body_gets_a_well_formed_answer_or_none(net: Net, body: bytes) -> None:
    answers = send(net, body)
    for answer in answers if isinstance(answers, list) else [answers] if answers else []:
        assert answer["jsonrpc"] == "2.0"
        assert ("error" in answer) != ("result" in answer)
