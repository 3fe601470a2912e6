"""The submit loop under every fault it must survive: one effect, one answer, transactions counted by hash."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING, Any

import pytest
import requests.exceptions
from stellar_sdk import StrKey, TransactionEnvelope, scval, xdr

from mycelium_sdk.chain import operations
from mycelium_sdk.chain.base import VALIDITY_SECONDS
from mycelium_sdk.errors import (
    AnchorArchived,
    ChainError,
    ChainUnavailable,
    ContractFailed,
    TransactionFailed,
    Unsettled,
)
from mycelium_sdk.verdicts import Verdict

if TYPE_CHECKING:
    from stellar_sdk import Keypair
    from stellar_sdk.client.response import Response

    from mycelium_sdk.chain.base import SignedTransaction
    from mycelium_sdk.chain.rpc import RpcChain
    from tests.chain.conftest import FakeClock, FakeServer, Replies, Reply

CONTRACT = StrKey.encode_contract(bytes(range(32)))
WORK = operations.invoke(CONTRACT, "set_anchor", [])
HTML = "<html><body>502 Bad Gateway</body></html>"


def test_a_transaction_is_announced_sent_once_and_reported(
    chain: RpcChain, server: FakeServer, signer: Keypair
) -> None:
    announced: list[tuple[str, int]] = []
    receipt = chain.submit(WORK, signer, before_send=lambda tx: announced.append((tx.hash, len(server.sent))))
    assert announced == [(receipt.hash, 0)]
    assert server.sent == [receipt.hash] == list(server.taken)
    assert (receipt.ledger, receipt.fee_charged, receipt.close_time) == (101, 1100, server.close_time)
    assert receipt.value == scval.to_uint64(1)


def test_nothing_is_sent_when_the_announcement_fails(
    chain: RpcChain, server: FakeServer, signer: Keypair
) -> None:
    def refuse(_: SignedTransaction) -> None:
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        chain.submit(WORK, signer, before_send=refuse)
    assert server.sent == []


def test_try_again_later_is_looked_up_then_the_same_envelope_is_sent_again(
    chain: RpcChain, server: FakeServer, reply: type[Replies], signer: Keypair
) -> None:
    server.script["sendTransaction"] = [reply.sends("TRY_AGAIN_LATER")] * 2
    receipt = chain.submit(WORK, signer)
    assert server.sent == [receipt.hash] * 3
    after = server.calls[server.calls.index("sendTransaction") :]
    assert after == ["sendTransaction", "getTransaction"] * 3


def test_try_again_later_for_a_transaction_that_was_applied(
    chain: RpcChain, server: FakeServer, reply: type[Replies], signer: Keypair
) -> None:
    server.script["sendTransaction"] = [
        reply.taken_but(reply.http(503)),
        reply.sends("TRY_AGAIN_LATER"),
    ]
    server.script["getTransaction"] = [reply.not_found]
    receipt = chain.submit(WORK, signer)
    assert set(server.sent) == {receipt.hash} == set(server.taken)


def test_try_again_later_for_ever_was_never_sent(
    chain: RpcChain, server: FakeServer, clock: FakeClock, reply: type[Replies], signer: Keypair
) -> None:
    server.script["sendTransaction"] = [reply.sends("TRY_AGAIN_LATER")] * 100
    started = clock.seconds
    with pytest.raises(ChainUnavailable, match="busy") as caught:
        chain.submit(WORK, signer)
    assert caught.value.retryable
    assert clock.seconds - started <= 30
    assert len(set(server.sent)) == 1
    assert server.taken == {}


@pytest.mark.parametrize(
    "lost",
    [
        pytest.param("timeout", id="no answer in time"),
        pytest.param("reset", id="connection reset"),
        pytest.param("http_503", id="503"),
        pytest.param("html_502", id="HTML with status 502"),
        pytest.param("html_200", id="HTML with status 200"),
        pytest.param("strange", id="JSON of another shape"),
        pytest.param("internal", id="internal error"),
    ],
)
@pytest.mark.parametrize("taken", [True, False])
def test_a_lost_answer_to_sending_is_not_a_failure(
    chain: RpcChain, server: FakeServer, reply: type[Replies], signer: Keypair, *, lost: str, taken: bool
) -> None:
    answers: dict[str, Reply] = {
        "timeout": reply.no_answer(requests.exceptions.ReadTimeout()),
        "reset": reply.no_answer(requests.exceptions.ConnectionError()),
        "http_503": reply.http(503),
        "html_502": reply.http(502, HTML),
        "html_200": reply.http(200, HTML),
        "strange": reply.json_text({"jsonrpc": "2.0", "id": 1, "result": {"status": "MAYBE"}}),
        "internal": reply.json_text({"jsonrpc": "2.0", "id": 1, "error": {"code": -32603, "message": "x"}}),
    }
    answer = answers[lost]
    server.script["sendTransaction"] = [reply.taken_but(answer) if taken else answer]
    receipt = chain.submit(WORK, signer)
    assert list(server.taken) == [receipt.hash]
    assert set(server.sent) == {receipt.hash}
    assert len(server.sent) == (1 if taken else 2)


def test_not_found_then_found(
    chain: RpcChain, server: FakeServer, reply: type[Replies], signer: Keypair
) -> None:
    server.script["getTransaction"] = [reply.not_found] * 4
    receipt = chain.submit(WORK, signer)
    assert server.sent == [receipt.hash]


def test_polling_goes_on_through_errors(
    chain: RpcChain, server: FakeServer, reply: type[Replies], signer: Keypair
) -> None:
    server.script["getTransaction"] = [
        *[reply.http(503)] * 6,
        reply.http(200, HTML),
        reply.json_text({"jsonrpc": "2.0", "id": 1, "error": {"code": -32601, "message": "no such method"}}),
        reply.not_found,
    ]
    receipt = chain.submit(WORK, signer)
    assert server.sent == [receipt.hash]


@pytest.mark.parametrize("silent", [True, False], ids=["never answers", "never finds it"])
def test_a_poll_without_an_outcome_is_unsettled_with_the_hash(
    chain: RpcChain,
    server: FakeServer,
    clock: FakeClock,
    reply: type[Replies],
    signer: Keypair,
    *,
    silent: bool,
) -> None:
    server.script["getTransaction"] = [
        reply.no_answer(requests.exceptions.ReadTimeout()) if silent else reply.not_found
    ] * 1000
    server.ledger_lag = 3600  # the ledger stands still, so the validity never ends by its clock
    started = clock.seconds
    announced: list[str] = []
    with pytest.raises(Unsettled) as caught:
        chain.submit(WORK, signer, before_send=lambda tx: announced.append(tx.hash))
    assert announced == [caught.value.hash] == server.sent
    assert caught.value.verdict is Verdict.UNSETTLED
    assert clock.seconds - started <= 90 + 30


def test_a_send_that_is_never_answered_is_unsettled(
    chain: RpcChain, server: FakeServer, reply: type[Replies], signer: Keypair
) -> None:
    server.script["sendTransaction"] = [reply.no_answer(requests.exceptions.ReadTimeout())] * 1000
    with pytest.raises(Unsettled) as caught:
        chain.submit(WORK, signer)
    assert set(server.sent) == {caught.value.hash}


def test_a_transaction_that_is_not_found_after_its_validity_failed(
    chain: RpcChain, server: FakeServer, clock: FakeClock, reply: type[Replies], signer: Keypair
) -> None:
    server.script["getTransaction"] = [reply.not_found] * 1000
    started = clock.seconds
    with pytest.raises(TransactionFailed) as caught:
        chain.submit(WORK, signer)
    assert caught.value.result_code == "txTOO_LATE"
    assert caught.value.hash == server.sent[0]
    assert VALIDITY_SECONDS < clock.seconds - started < VALIDITY_SECONDS + 10


def test_a_used_sequence_number_is_loaded_again_and_the_transaction_rebuilt(
    chain: RpcChain, server: FakeServer, reply: type[Replies], signer: Keypair
) -> None:
    announced: list[str] = []

    def overtaken(answering: FakeServer, params: dict[str, Any]) -> Response:
        answering.sequence += 1  # another program of this account was faster
        return reply.sends("ERROR", xdr.TransactionResultCode.txBAD_SEQ)(answering, params)

    server.script["sendTransaction"] = [overtaken, overtaken]
    receipt = chain.submit(WORK, signer, before_send=lambda tx: announced.append(tx.hash))
    assert announced == server.sent
    assert len(set(announced)) == 3
    assert list(server.taken) == [announced[-1]] == [receipt.hash]


def test_a_sequence_number_that_is_always_used_up_fails_in_the_end(
    chain: RpcChain, server: FakeServer, reply: type[Replies], signer: Keypair
) -> None:
    server.script["sendTransaction"] = [reply.sends("ERROR", xdr.TransactionResultCode.txBAD_SEQ)] * 100
    with pytest.raises(TransactionFailed) as caught:
        chain.submit(WORK, signer)
    assert caught.value.result_code == "txBAD_SEQ"
    assert server.taken == {}


def test_bad_sequence_after_a_lost_answer_is_never_rebuilt(
    chain: RpcChain, server: FakeServer, reply: type[Replies], signer: Keypair
) -> None:
    """The first attempt was taken and used the number up, and the server does not know it yet."""
    server.script["sendTransaction"] = [
        reply.taken_but(reply.no_answer(requests.exceptions.ReadTimeout())),
        reply.sends("ERROR", xdr.TransactionResultCode.txBAD_SEQ),
    ]
    server.script["getTransaction"] = [reply.not_found] * 5
    receipt = chain.submit(WORK, signer)
    assert set(server.sent) == {receipt.hash} == set(server.taken)


def test_a_refusal_after_a_lost_answer_and_no_trace_is_unsettled(
    chain: RpcChain, server: FakeServer, reply: type[Replies], signer: Keypair
) -> None:
    server.ledger_lag = 3600
    server.script["sendTransaction"] = [
        reply.no_answer(requests.exceptions.ReadTimeout()),
        reply.http(413),
    ]
    with pytest.raises(Unsettled):
        chain.submit(WORK, signer)
    assert len(set(server.sent)) == 1


def test_duplicate_is_waited_for(
    chain: RpcChain, server: FakeServer, reply: type[Replies], signer: Keypair
) -> None:
    def duplicate(answering: FakeServer, params: dict[str, Any]) -> Response:
        answering.take(params)
        return reply.sends("DUPLICATE")(answering, params)

    server.script["sendTransaction"] = [duplicate]
    assert chain.submit(WORK, signer).hash == server.sent[0]


@pytest.mark.parametrize("code", ["txINSUFFICIENT_BALANCE", "txBAD_AUTH", "txSOROBAN_INVALID", "txTOO_LATE"])
def test_other_refusals_are_final_and_named(
    chain: RpcChain, server: FakeServer, reply: type[Replies], signer: Keypair, code: str
) -> None:
    server.script["sendTransaction"] = [reply.sends("ERROR", xdr.TransactionResultCode[code])]
    with pytest.raises(TransactionFailed) as caught:
        chain.submit(WORK, signer)
    assert (caught.value.result_code, caught.value.hash) == (code, server.sent[0])
    assert len(server.sent) == 1


def test_a_refusal_by_the_server_itself_is_final(
    chain: RpcChain, server: FakeServer, reply: type[Replies], signer: Keypair
) -> None:
    server.script["sendTransaction"] = [
        reply.json_text({"jsonrpc": "2.0", "id": 1, "error": {"code": -32602, "message": "bad XDR"}})
    ]
    with pytest.raises(ChainError, match="refused sendTransaction: bad XDR"):
        chain.submit(WORK, signer)
    assert len(server.sent) == 1


def test_failing_in_the_ledger_carries_the_operations_code(
    chain: RpcChain, server: FakeServer, reply: type[Replies], signer: Keypair
) -> None:
    server.outcome = "FAILED"
    server.result = reply.txn_result(
        xdr.TransactionResultCode.txFAILED,
        xdr.InvokeHostFunctionResultCode.INVOKE_HOST_FUNCTION_RESOURCE_LIMIT_EXCEEDED,
    )
    with pytest.raises(TransactionFailed) as caught:
        chain.submit(WORK, signer)
    assert caught.value.result_code == "INVOKE_HOST_FUNCTION_RESOURCE_LIMIT_EXCEEDED"
    assert caught.value.hash == server.sent[0]


def test_a_contracts_own_error_in_simulation_is_its_number_and_nothing_is_sent(
    chain: RpcChain, server: FakeServer, reply: type[Replies], signer: Keypair
) -> None:
    def refused(answering: FakeServer, _params: dict[str, Any]) -> Response:
        return reply.result(
            {
                "latestLedger": answering.ledger,
                "error": "HostError: Error(Contract, #9)",
                "events": [reply.error_event(reply.contract_error(2))],
            }
        )

    server.script["simulateTransaction"] = [refused]
    with pytest.raises(ContractFailed) as caught:
        chain.submit(WORK, signer)
    assert caught.value.code == 2, "the event decides, not the words"
    assert server.sent == []


def test_a_server_that_cannot_restore_within_the_call_is_said_so(
    chain: RpcChain, server: FakeServer, reply: type[Replies], signer: Keypair
) -> None:
    """Before protocol 23 archived entries were restored by a transaction of their own."""

    def archived(answering: FakeServer, params: dict[str, Any]) -> Response:
        answer = json.loads(answering.honest("simulateTransaction", params).text)
        data = answer["result"]["transactionData"]
        restore = {"transactionData": data, "minResourceFee": "5"}
        return reply.result(answer["result"] | {"restorePreamble": restore})

    server.script["simulateTransaction"] = [archived]
    with pytest.raises(AnchorArchived) as caught:
        chain.submit(WORK, signer)
    assert caught.value.verdict is Verdict.ARCHIVED
    assert server.sent == []


def test_an_account_that_does_not_exist_says_so(
    chain: RpcChain, server: FakeServer, reply: type[Replies], signer: Keypair
) -> None:
    server.script["getLedgerEntries"] = [
        reply.json_text({"jsonrpc": "2.0", "id": 1, "result": {"entries": [], "latestLedger": 5}})
    ]
    with pytest.raises(TransactionFailed) as caught:
        chain.submit(WORK, signer)
    assert caught.value.result_code == "txNO_ACCOUNT"
    assert caught.value.hash is None
    assert "fund" in str(caught.value.hint)


@pytest.mark.parametrize("lag", [600.0, -600.0], ids=["ledger behind", "ledger ahead"])
def test_time_bounds_start_from_the_later_clock(
    chain: RpcChain, server: FakeServer, clock: FakeClock, signer: Keypair, lag: float
) -> None:
    server.ledger_lag = lag
    chain.submit(WORK, signer)
    (envelope,) = server.taken.values()
    bounds = TransactionEnvelope.from_xdr(envelope, chain.passphrase).transaction.preconditions
    assert bounds is not None
    assert bounds.time_bounds is not None
    assert 0 < bounds.time_bounds.min_time < 2**31
    assert bounds.time_bounds.max_time == int(clock.seconds + max(0.0, -lag)) + VALIDITY_SECONDS


def test_the_same_work_within_a_second_is_another_transaction(
    chain: RpcChain, server: FakeServer, signer: Keypair
) -> None:
    """As two processes of one account would: same sequence number, same time, same call."""
    first = chain.submit(WORK, signer)
    server.sequence -= 1
    second = chain.submit(WORK, signer)
    assert first.hash != second.hash


def test_one_transaction_in_flight_per_account(chain: RpcChain, server: FakeServer, signer: Keypair) -> None:
    """Threads that submit at once all succeed, and none ever meets a used sequence number."""
    problems: list[BaseException] = []

    def run() -> None:
        try:
            chain.submit(WORK, signer)
        except BaseException as error:  # noqa: BLE001 - reported below
            problems.append(error)

    threads = [threading.Thread(target=run) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    assert len(server.sent) == len(set(server.sent)) == len(server.taken) == 8
