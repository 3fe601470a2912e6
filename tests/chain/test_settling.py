"""When a transaction's fate is known and when it is not: what NOT_FOUND proves, and what a refusal does."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
import requests.exceptions
from stellar_sdk import StrKey, xdr

from mycelium_sdk.chain import operations
from mycelium_sdk.chain.base import VALIDITY_SECONDS, SignedTransaction
from mycelium_sdk.errors import ChainUnavailable, TransactionFailed, Unsettled

if TYPE_CHECKING:
    from stellar_sdk import Keypair
    from stellar_sdk.client.response import Response

    from mycelium_sdk.chain.rpc import RpcChain
    from tests.chain.conftest import FakeClock, FakeServer, Replies, Reply

WORK = operations.invoke(StrKey.encode_contract(bytes(range(32))), "set_anchor", [])
SIGNED_AT = 100  # the scripted server's latest ledger before anything is sent
BAD_SEQUENCE = xdr.TransactionResultCode.txBAD_SEQ
ARCHIVED = xdr.InvokeHostFunctionResultCode.INVOKE_HOST_FUNCTION_ENTRY_ARCHIVED


def signed_but_not_sent(chain: RpcChain, signer: Keypair) -> SignedTransaction:
    """What a run leaves that dies between signing and sending."""
    announced: list[SignedTransaction] = []

    def die(signed: SignedTransaction) -> None:
        announced.append(signed)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        chain.submit(WORK, signer, before_send=die)
    return announced[0]


def taken_long_ago(server: FakeServer, reply: type[Replies], *, oldest: int) -> Reply:
    """The transaction is taken, and when anybody asks for it, the server's history begins at `oldest`."""

    def answer(answering: FakeServer, params: dict[str, Any]) -> Response:
        answering.take(params)
        answering.clock.seconds += VALIDITY_SECONDS + 1_000
        answering.ledger, answering.oldest_ledger = oldest + 10, oldest
        return reply.sends("PENDING")(answering, params)

    server.script["getTransaction"] = [reply.not_found] * 1_000
    return answer


def test_what_a_servers_history_does_not_reach_may_have_been_applied(
    chain: RpcChain, server: FakeServer, clock: FakeClock, reply: type[Replies], signer: Keypair
) -> None:
    server.script["sendTransaction"] = [taken_long_ago(server, reply, oldest=SIGNED_AT + 2)]
    with pytest.raises(Unsettled) as caught:
        chain.submit(WORK, signer)
    assert server.sent == [caught.value.hash] == list(server.taken)
    assert "history" in str(caught.value.hint)
    assert clock.slept == [], "asking again cannot help: history only gets shorter"


def test_what_is_not_in_a_history_that_reaches_its_signing_never_was_applied(
    chain: RpcChain, server: FakeServer, reply: type[Replies], signer: Keypair
) -> None:
    server.script["sendTransaction"] = [taken_long_ago(server, reply, oldest=SIGNED_AT + 1)]
    with pytest.raises(TransactionFailed) as caught:
        chain.submit(WORK, signer)
    assert caught.value.result_code == "txTOO_LATE"


def test_a_transaction_of_an_earlier_run_is_sent_again_as_it_was(
    chain: RpcChain, server: FakeServer, signer: Keypair
) -> None:
    signed = signed_but_not_sent(chain, signer)
    assert server.sent == []
    assert chain.resume(signed).hash == signed.hash
    assert chain.resume(signed).hash == signed.hash
    assert server.sent == [signed.hash] == list(server.taken)


def test_a_transaction_of_an_earlier_run_whose_number_is_used_up_is_over(
    chain: RpcChain, server: FakeServer, reply: type[Replies], signer: Keypair
) -> None:
    signed = signed_but_not_sent(chain, signer)
    server.script["sendTransaction"] = [reply.sends("ERROR", BAD_SEQUENCE)]
    with pytest.raises(TransactionFailed) as caught:
        chain.resume(signed)
    assert (caught.value.result_code, caught.value.hash) == ("txBAD_SEQ", signed.hash)


def test_a_transaction_of_an_earlier_run_is_over_after_its_validity(
    chain: RpcChain, server: FakeServer, clock: FakeClock, signer: Keypair
) -> None:
    signed = signed_but_not_sent(chain, signer)
    clock.seconds += VALIDITY_SECONDS + 10
    with pytest.raises(TransactionFailed) as caught:
        chain.resume(signed)
    assert caught.value.result_code == "txTOO_LATE"
    assert server.sent == []


@pytest.mark.parametrize(("oldest", "known"), [(SIGNED_AT + 1, True), (SIGNED_AT + 2, False)])
def test_an_earlier_runs_transaction_is_over_only_for_a_server_that_remembers(
    chain: RpcChain, server: FakeServer, clock: FakeClock, signer: Keypair, *, oldest: int, known: bool
) -> None:
    signed = signed_but_not_sent(chain, signer)
    assert signed.signed_ledger == SIGNED_AT
    clock.seconds += 8 * 86_400
    server.ledger, server.oldest_ledger = SIGNED_AT + 130_000, oldest
    with pytest.raises(TransactionFailed if known else Unsettled):
        chain.resume(signed)
    assert server.sent == [], "it can no longer be applied, so there is nothing to send"


def test_a_signing_at_an_unknown_ledger_is_never_taken_for_over(
    chain: RpcChain, server: FakeServer, clock: FakeClock, signer: Keypair
) -> None:
    signed = signed_but_not_sent(chain, signer)
    clock.seconds += 8 * 86_400
    server.oldest_ledger = 2
    with pytest.raises(Unsettled):
        chain.resume(SignedTransaction(signed.hash, signed.envelope, signed.valid_until, 0))


def test_a_used_sequence_number_is_no_proof_for_what_an_earlier_run_may_have_sent(
    chain: RpcChain, server: FakeServer, reply: type[Replies], signer: Keypair
) -> None:
    """It was sent and applied, which used the number up, and the server's history lags behind."""
    signed = signed_but_not_sent(chain, signer)
    server.take({"transaction": signed.envelope})
    server.script["sendTransaction"] = [reply.sends("ERROR", BAD_SEQUENCE)]
    server.script["getTransaction"] = [reply.not_found] * 4
    assert chain.resume(signed).hash == signed.hash
    assert server.sent == [signed.hash]


@pytest.mark.parametrize("remembered", [True, False])
def test_a_number_that_another_transaction_used_is_proof_in_the_end(
    chain: RpcChain, server: FakeServer, clock: FakeClock, signer: Keypair, *, remembered: bool
) -> None:
    """No ledger closes that would make it too late, and whoever waits for one might wait for ever."""
    signed = signed_but_not_sent(chain, signer)
    server.sequence += 1
    server.ledger_lag = 3600
    server.oldest_ledger = signed.signed_ledger + (1 if remembered else 2)
    before = clock.seconds
    with pytest.raises(TransactionFailed if remembered else Unsettled):
        chain.resume(signed)
    assert server.sent == [signed.hash]
    assert server.taken == {}
    assert (clock.seconds - before < 20) == remembered


def test_an_earlier_runs_transaction_that_stays_unknown_is_unsettled(
    chain: RpcChain, server: FakeServer, reply: type[Replies], signer: Keypair
) -> None:
    signed = signed_but_not_sent(chain, signer)
    server.script["sendTransaction"] = [reply.sends("TRY_AGAIN_LATER")] * 100
    with pytest.raises(Unsettled):
        chain.resume(signed)
    assert set(server.sent) == {signed.hash}


@pytest.mark.parametrize("refusal", ["-32602", "413", "address"])
def test_no_refusal_is_proof_for_what_an_earlier_run_may_have_sent(
    chain: RpcChain, server: FakeServer, reply: type[Replies], signer: Keypair, refusal: str
) -> None:
    signed = signed_but_not_sent(chain, signer)
    server.take({"transaction": signed.envelope})
    error = {"code": -32602, "message": "bad"}
    answers: dict[str, Reply] = {
        "-32602": reply.json_text({"jsonrpc": "2.0", "id": 1, "error": error}),
        "413": reply.http(413),
        "address": reply.no_answer(requests.exceptions.InvalidURL()),
    }
    server.script["sendTransaction"] = [answers[refusal]]
    server.script["getTransaction"] = [reply.not_found] * 3
    assert chain.resume(signed).hash == signed.hash


@pytest.mark.parametrize("result", [None, "AAAA", "!"])
def test_a_refusal_that_cannot_be_read_proves_nothing(
    chain: RpcChain, server: FakeServer, reply: type[Replies], signer: Keypair, result: str | None
) -> None:
    """The transaction was taken all the same, and turns up later."""

    def unreadable(answering: FakeServer, params: dict[str, Any]) -> Response:
        answering.take(params)
        answer = json.loads(reply.sends("ERROR")(answering, params).text)["result"]
        return reply.result(answer | {"errorResultXdr": result})

    server.script["sendTransaction"] = [unreadable]
    server.script["getTransaction"] = [reply.not_found] * 2
    receipt = chain.submit(WORK, signer)
    assert set(server.sent) == {receipt.hash} == set(server.taken)


def test_an_entry_that_expired_on_the_way_is_worth_one_more_transaction(
    chain: RpcChain, server: FakeServer, reply: type[Replies], signer: Keypair
) -> None:
    server.outcome = "FAILED"
    server.result = reply.txn_result(xdr.TransactionResultCode.txFAILED, ARCHIVED)
    announced: list[str] = []
    with pytest.raises(TransactionFailed) as caught:
        chain.submit(WORK, signer, before_send=lambda signed: announced.append(signed.hash))
    assert caught.value.result_code == ARCHIVED.name
    assert "again" in str(caught.value.hint)
    assert len(set(announced)) == 2
    assert server.sent == announced == list(server.taken)


def test_a_success_without_what_it_returned_is_a_success(
    chain: RpcChain, server: FakeServer, reply: type[Replies], signer: Keypair
) -> None:
    def without_meta(answering: FakeServer, params: dict[str, Any]) -> Response:
        answer = json.loads(answering.honest("getTransaction", params).text)["result"]
        del answer["resultMetaXdr"]
        return reply.result(answer)

    server.script["getTransaction"] = [without_meta]
    receipt = chain.submit(WORK, signer)
    assert (receipt.hash, receipt.value) == (server.sent[0], None)


def test_a_resumed_transaction_is_not_judged_while_the_server_cannot_be_asked(
    chain: RpcChain, server: FakeServer, reply: type[Replies], signer: Keypair
) -> None:
    signed = signed_but_not_sent(chain, signer)
    server.script["getTransaction"] = [reply.http(503)] * 5
    with pytest.raises(ChainUnavailable):
        chain.resume(signed)
    assert server.sent == []
