"""Numbers and names that no chain can have, in every answer: an error of the tree, whose hint is another
server."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from stellar_sdk import StrKey

from mycelium_sdk.chain import operations
from mycelium_sdk.errors import ChainError, ChainUnavailable, WrongDomain

if TYPE_CHECKING:
    from collections.abc import Callable

    from stellar_sdk import Keypair

    from mycelium_sdk.chain.rpc import RpcChain
    from tests.chain.conftest import FakeServer, Replies

CONTRACT = StrKey.encode_contract(bytes(range(32)))
WORK = operations.invoke(CONTRACT, "set_anchor", [])
HASH = "ab" * 32
EVENT: dict[str, Any] = {
    "type": "contract", "ledger": 5, "ledgerClosedAt": "2026-01-01T00:00:00Z", "contractId": CONTRACT,
    "id": f"{5 << 32:019d}-0000000000", "operationIndex": 0, "transactionIndex": 1, "txHash": HASH,
    "topic": [], "value": "AAAAAQ==",
}  # fmt: skip
EVENTS: dict[str, Any] = {
    "events": [EVENT], "cursor": f"{5 << 32:019d}-0000000000", "latestLedger": 9, "oldestLedger": 1,
    "latestLedgerCloseTime": "1800000000", "oldestLedgerCloseTime": "1",
}  # fmt: skip
LEDGER: dict[str, Any] = {
    "hash": HASH, "sequence": 5, "ledgerCloseTime": "1800000000", "headerXdr": "", "metadataXdr": "",
}  # fmt: skip
LEDGERS: dict[str, Any] = {
    "ledgers": [LEDGER], "latestLedger": 9, "latestLedgerCloseTime": 1, "oldestLedger": 1,
    "oldestLedgerCloseTime": 1, "cursor": "5",
}  # fmt: skip
TOO_LATE = 253_370_764_800  # 9999-01-01

LEDGER_NUMBERS = (-1, 2**32, 10**20, 10**30)
TIMES = ("-5", str(TOO_LATE), str(10**20), str(10**30))


def changed(server: FakeServer, reply: type[Replies], method: str, **fields: Any) -> None:
    """Every answer of a method is the honest one with other fields."""

    def answer(server: FakeServer, params: dict[str, Any]) -> Any:
        return reply.result(json.loads(server.honest(method, params).text)["result"] | fields)

    server.script[method] = [answer] * 50


def given(server: FakeServer, reply: type[Replies], method: str, value: dict[str, Any]) -> None:
    server.script[method] = [lambda _server, _params: reply.result(value)] * 50


def nonsense(ask: Callable[[], object]) -> None:
    with pytest.raises(ChainUnavailable, match="cannot be understood") as caught:
        ask()
    assert caught.value.hint is not None
    assert "another RPC server" in caught.value.hint


@pytest.mark.parametrize(
    ("method", "field", "value"),
    [
        *(("getLatestLedger", "sequence", number) for number in (0, *LEDGER_NUMBERS)),
        *(("getLatestLedger", "closeTime", time) for time in TIMES),
        *(("getLatestLedger", "protocolVersion", number) for number in (-1, 2**32)),
        *(
            ("getNetwork", "chainId", name)
            for name in ("\ud800", "a\0b", "", "a b", "é", "x" * 129, 7, ["x"])
        ),
    ],
)
def test_which_chain_and_how_far(
    chain: RpcChain, server: FakeServer, reply: type[Replies], *, method: str, field: str, value: object
) -> None:
    changed(server, reply, method, **{field: value})
    nonsense(chain.identity)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("oldestLedger", number) for number in LEDGER_NUMBERS),
        *(("latestLedger", number) for number in LEDGER_NUMBERS),
        *(("latestLedgerCloseTime", time) for time in TIMES),
    ],
)
@pytest.mark.parametrize("found", [False, True])
def test_what_became_of_a_transaction(
    chain: RpcChain, server: FakeServer, reply: type[Replies], field: str, value: object, *, found: bool
) -> None:
    if found:
        server.taken[HASH] = "AAAA"
    assert chain.transaction(HASH).hash == HASH
    changed(server, reply, "getTransaction", **{field: value})
    nonsense(lambda: chain.transaction(HASH))


@pytest.mark.parametrize(
    ("field", "value"),
    [*(("ledger", number) for number in (0, *LEDGER_NUMBERS)), *(("createdAt", time) for time in TIMES)],
)
def test_where_and_when_a_transaction_was_applied(
    chain: RpcChain, server: FakeServer, reply: type[Replies], field: str, value: object
) -> None:
    server.taken[HASH] = "AAAA"
    changed(server, reply, "getTransaction", **{field: value})
    nonsense(lambda: chain.transaction(HASH))


@pytest.mark.parametrize("value", LEDGER_NUMBERS)
def test_the_ledger_of_a_simulation(
    chain: RpcChain, server: FakeServer, reply: type[Replies], value: int
) -> None:
    changed(server, reply, "simulateTransaction", latestLedger=value)
    nonsense(lambda: chain.simulate(WORK))


@pytest.mark.parametrize("field", ["latestLedger", "lastModifiedLedgerSeq", "liveUntilLedgerSeq"])
@pytest.mark.parametrize("value", LEDGER_NUMBERS)
def test_ledgers_of_an_entry(
    chain: RpcChain, server: FakeServer, reply: type[Replies], *, field: str, value: int, signer: Keypair
) -> None:
    key = operations.account_key(signer.public_key)
    honest = json.loads(server.honest("getLedgerEntries", {"keys": [key.to_xdr()]}).text)["result"]
    target = honest if field == "latestLedger" else honest["entries"][0]
    target[field] = value
    given(server, reply, "getLedgerEntries", honest)
    nonsense(lambda: chain.entries([key]))


def test_an_honest_page_of_events(chain: RpcChain, server: FakeServer, reply: type[Replies]) -> None:
    given(server, reply, "getEvents", EVENTS)
    page = chain.events(CONTRACT, start_ledger=1)
    assert [(event.ledger, event.transaction) for event in page.events] == [(5, HASH)]
    given(server, reply, "getLedgers", LEDGERS)
    head = chain.ledger(5)
    assert head is not None
    assert (head.sequence, head.hash, head.close_time) == (5, HASH, 1_800_000_000)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("latestLedger", number) for number in LEDGER_NUMBERS),
        *(("oldestLedger", number) for number in LEDGER_NUMBERS),
        *(("latestLedgerCloseTime", time) for time in TIMES),
    ],
)
def test_a_page_of_events(
    chain: RpcChain, server: FakeServer, reply: type[Replies], field: str, value: object
) -> None:
    given(server, reply, "getEvents", EVENTS | {field: value})
    nonsense(lambda: chain.events(CONTRACT, start_ledger=1))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("ledger", number) for number in (6, *LEDGER_NUMBERS)),
        *(
            ("ledgerClosedAt", time)
            for time in ("1969-12-31T23:59:59Z", "0001-01-01T00:00:00", "9999-12-31T23:59:59", "9" * 40, -5)
        ),
    ],
)
def test_an_event(
    chain: RpcChain, server: FakeServer, reply: type[Replies], field: str, value: object
) -> None:
    given(server, reply, "getEvents", EVENTS | {"events": [EVENT | {field: value}]})
    nonsense(lambda: chain.events(CONTRACT, start_ledger=1))


@pytest.mark.parametrize(
    "place", ["", "x", "1", "-1-0", f"{2**63}-0", "1-4294967296", "1-\u0661", "9" * 30 + "-0", "1-0\n"]
)
def test_places(chain: RpcChain, server: FakeServer, reply: type[Replies], place: str) -> None:
    for answer in (EVENTS | {"cursor": place}, EVENTS | {"events": [EVENT | {"id": place}]}):
        given(server, reply, "getEvents", answer)
        with pytest.raises(WrongDomain, match="not one of Stellar RPC") as caught:
            chain.events(CONTRACT, start_ledger=1)
        assert caught.value.hint == "ask another RPC server"


@pytest.mark.parametrize(
    ("field", "value"),
    [*(("ledgerCloseTime", time) for time in TIMES), ("hash", "\ud800"), ("hash", ""), ("hash", HASH + "0")],
)
def test_the_head_of_a_ledger(
    chain: RpcChain, server: FakeServer, reply: type[Replies], field: str, value: object
) -> None:
    given(server, reply, "getLedgers", LEDGERS | {"ledgers": [LEDGER | {field: value}]})
    nonsense(lambda: chain.ledger(5))


@pytest.mark.parametrize("code", ["x" * 10**6, "\ud800", {"a": ["\x1b[31m"]}, 10**3000, None, 1.5])
def test_the_code_of_a_refusal(
    chain: RpcChain, server: FakeServer, reply: type[Replies], code: object
) -> None:
    problem = {"jsonrpc": "2.0", "id": 1, "error": {"code": code, "message": "no"}}
    server.script["getLatestLedger"] = [reply.json_text(problem)] * 5
    with pytest.raises(ChainError, match=r"refused getLatestLedger: no \(no code\)"):
        chain.identity()
