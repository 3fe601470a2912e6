"""Which answers to sending prove that a transaction was not taken: a short list, and everything else is
looked into."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING

import pytest
import requests.exceptions
import urllib3.exceptions
from stellar_sdk import StrKey

from mycelium_sdk.chain import operations
from mycelium_sdk.errors import ChainError, ChainUnavailable

if TYPE_CHECKING:
    from stellar_sdk import Keypair

    from mycelium_sdk.chain.rpc import RpcChain
    from tests.chain.conftest import FakeServer, Replies, Reply

WORK = operations.invoke(StrKey.encode_contract(bytes(range(32))), "set_anchor", [])
REFUSING_STATUSES = (400, 401, 403, 404, 405, 413, 415)
OTHER_STATUSES = (
    204,
    301,
    302,
    307,
    308,
    402,
    406,
    408,
    409,
    410,
    425,
    429,
    451,
    499,
    500,
    502,
    503,
    504,
    520,
)
REFUSING_CODES = (-32600, -32601, -32602)
OTHER_CODES: tuple[object, ...] = (
    -32700,
    -32603,
    -32000,
    -32001,
    -32003,
    -32097,
    0,
    429,
    None,
    "-32602",
    [-32602],
    {},
    1.5,
)


def rpc_error(reply: type[Replies], code: object) -> Reply:
    return reply.json_text({"jsonrpc": "2.0", "id": 1, "error": {"code": code, "message": "no"}})


def refused_certificate() -> requests.exceptions.SSLError:
    """As `requests` raises it: each library wraps what the one beneath raised."""
    beneath = ssl.SSLCertVerificationError("certificate verify failed: self-signed certificate")
    reason = urllib3.exceptions.SSLError(beneath)
    return requests.exceptions.SSLError(urllib3.exceptions.MaxRetryError(None, "/rpc", reason))  # type: ignore[arg-type]


def broken_tls() -> requests.exceptions.SSLError:
    reason = urllib3.exceptions.SSLError(ssl.SSLError(1, "wrong version number"))
    return requests.exceptions.SSLError(urllib3.exceptions.MaxRetryError(None, "/rpc", reason))  # type: ignore[arg-type]


def test_a_refusal_is_final(
    chain: RpcChain, server: FakeServer, reply: type[Replies], signer: Keypair
) -> None:
    refusals = [
        *(reply.http(status) for status in REFUSING_STATUSES),
        *(rpc_error(reply, code) for code in REFUSING_CODES),
        reply.no_answer(refused_certificate()),
    ]
    for refusal in refusals:
        server.sent.clear()
        server.script["sendTransaction"] = [refusal]
        with pytest.raises(ChainError) as caught:
            chain.submit(WORK, signer)
        assert type(caught.value) is ChainError
        assert len(server.sent) == 1
    assert server.taken == {}


def everything_else(reply: type[Replies]) -> list[Reply]:
    return [
        *(reply.http(status, "<html>") for status in OTHER_STATUSES),
        *(rpc_error(reply, code) for code in OTHER_CODES),
        reply.no_answer(broken_tls()),
        reply.no_answer(requests.exceptions.SSLError()),
        reply.no_answer(requests.exceptions.ConnectTimeout()),
        reply.no_answer(requests.exceptions.ProxyError()),
        reply.no_answer(requests.exceptions.ChunkedEncodingError()),
        reply.too_large(10),
    ]


def test_whatever_else_comes_the_transaction_may_have_been_taken(
    chain: RpcChain, server: FakeServer, reply: type[Replies], signer: Keypair
) -> None:
    """It was, and the server's history lags behind, so that only waiting shows it."""
    for answer in everything_else(reply):
        server.sent.clear()
        server.taken.clear()
        server.script["sendTransaction"] = [reply.taken_but(answer)]
        server.script["getTransaction"] = [reply.not_found] * 2
        receipt = chain.submit(WORK, signer)
        assert set(server.sent) == {receipt.hash} == set(server.taken)


def test_whatever_else_comes_the_same_transaction_is_sent_again(
    chain: RpcChain, server: FakeServer, reply: type[Replies], signer: Keypair
) -> None:
    """It was not taken, and nothing says so."""
    for answer in everything_else(reply):
        server.sent.clear()
        server.taken.clear()
        server.script["sendTransaction"] = [answer]
        receipt = chain.submit(WORK, signer)
        assert server.sent == [receipt.hash] * 2
        assert list(server.taken) == [receipt.hash]


@pytest.mark.parametrize(("code", "attempts"), [(-32003, 5), ([], 1), (-32099, 1)])
def test_reads_are_repeated_where_the_server_is_only_busy(
    chain: RpcChain, server: FakeServer, reply: type[Replies], *, code: object, attempts: int
) -> None:
    server.script["getLatestLedger"] = [rpc_error(reply, code)] * 10
    with pytest.raises(ChainError) as caught:
        chain.identity()
    assert isinstance(caught.value, ChainUnavailable) == (attempts > 1)
    assert server.calls.count("getLatestLedger") == attempts


@pytest.mark.parametrize(("status", "attempts"), [(408, 5), (425, 5), (409, 1), (308, 1)])
def test_reads_are_repeated_where_the_status_says_that_it_may_help(
    chain: RpcChain, server: FakeServer, reply: type[Replies], *, status: int, attempts: int
) -> None:
    server.script["getLatestLedger"] = [reply.http(status)] * 10
    with pytest.raises(ChainError):
        chain.identity()
    assert server.calls.count("getLatestLedger") == attempts


def test_an_answer_without_end_is_not_asked_for_again(
    chain: RpcChain, server: FakeServer, reply: type[Replies]
) -> None:
    server.script["getLatestLedger"] = [reply.too_large(1234)] * 10
    with pytest.raises(ChainError, match="more than 1,234 bytes") as caught:
        chain.identity()
    assert not caught.value.retryable
    assert server.calls.count("getLatestLedger") == 1
