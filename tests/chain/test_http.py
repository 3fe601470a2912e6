"""The client over real sockets: what `stellar_sdk`'s HTTP client does must not undo the one policy."""

from __future__ import annotations

import contextlib
import http.server
import json
import os
import socket
import threading
from typing import TYPE_CHECKING

import pytest
from stellar_sdk import StrKey

from mycelium_sdk.chain import operations
from mycelium_sdk.chain.http_client import REQUEST_SECONDS, HttpClient
from mycelium_sdk.chain.rpc import RpcChain
from mycelium_sdk.errors import ChainError, ChainUnavailable, Unsettled
from mycelium_sdk.retry import RetryPolicy
from mycelium_sdk.verdicts import Verdict
from tests.chain.sockets import make_certificate

if TYPE_CHECKING:
    import ssl
    from collections.abc import Iterator
    from pathlib import Path
    from typing import Any

    from stellar_sdk import Keypair
    from stellar_sdk.client.response import Response

    from tests.chain.conftest import FakeClock, FakeServer, Replies

WORK = operations.invoke(StrKey.encode_contract(bytes(range(32))), "set_anchor", [])


class HastyFor(HttpClient):
    """Does not wait long for the answers to one method."""

    def __init__(self, method: str) -> None:
        super().__init__()
        self._method = method

    def post(
        self, url: str, data: dict[str, str] | None = None, json_data: dict[str, Any] | None = None
    ) -> Response:
        assert json_data is not None
        self.post_timeout = 0.2 if json_data["method"] == self._method else REQUEST_SECONDS
        return super().post(url, data=data, json_data=json_data)


PAST_ENCRYPTION = 599
"""A scripted status that is sent as it is through a secure connection, past its encryption."""


@contextlib.contextmanager
def serving(server: FakeServer, tls: ssl.SSLContext | None = None) -> Iterator[str]:
    """The scripted server behind HTTP; its address."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            answer = server.post("", json_data=json.loads(body))
            text = answer.text.encode()
            if answer.status_code == PAST_ENCRYPTION:
                with socket.socket(fileno=os.dup(self.connection.fileno())) as beneath:
                    beneath.sendall(b"HTTP/1.1 502 Bad Gateway\r\n\r\n")
                return
            self.send_response(answer.status_code)
            self.send_header("Content-Length", str(len(text)))
            self.send_header("Retry-After", "0")
            self.end_headers()
            with contextlib.suppress(ConnectionError):  # a client that gave up
                self.wfile.write(text)

        def log_message(self, *_args: object) -> None:
            """Say nothing."""

    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as listening:
        if tls is not None:
            listening.socket = tls.wrap_socket(listening.socket, server_side=True)
        thread = threading.Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        scheme = "http" if tls is None else "https"
        yield f"{scheme}://localhost:{listening.server_port}/rpc"
        listening.shutdown()
        thread.join()


@pytest.fixture
def url(server: FakeServer) -> Iterator[str]:
    with serving(server) as address:
        yield address


@pytest.fixture
def over_http(server: FakeServer, clock: FakeClock, url: str) -> Iterator[RpcChain]:
    chain = RpcChain(url, server.passphrase, policy=RetryPolicy(pace=clock.pace()))
    yield chain
    chain.close()


@pytest.mark.parametrize("status", [413, 429, 503, 504])
def test_a_transaction_is_posted_once_for_each_decision_to_send(
    over_http: RpcChain, server: FakeServer, reply: type[Replies], signer: Keypair, status: int
) -> None:
    """`stellar_sdk`'s client posts again by itself on these, unless it is told not to."""
    server.script["sendTransaction"] = [reply.taken_but(reply.http(status))]

    announced: list[str] = []
    receipt_hash = over_http.submit(WORK, signer, before_send=lambda tx: announced.append(tx.hash)).hash
    assert server.sent == announced == [receipt_hash]


def test_reads_are_repeated_by_the_policy_alone(
    over_http: RpcChain, server: FakeServer, clock: FakeClock, reply: type[Replies]
) -> None:
    server.script["getLatestLedger"] = [reply.http(503, "<html>")] * 2
    assert over_http.identity().latest_ledger == 100
    assert server.calls.count("getLatestLedger") == 3
    assert clock.slept == [0.25, 0.5]


def test_nobody_listens(clock: FakeClock) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    chain = RpcChain(f"http://127.0.0.1:{port}/rpc", "any", policy=RetryPolicy(pace=clock.pace()))
    with pytest.raises(ChainUnavailable, match=f"127.0.0.1:{port} cannot be reached"):
        chain.identity()
    chain.close()
    assert len(clock.slept) == 4


def test_a_server_without_tls(url: str, clock: FakeClock) -> None:
    chain = RpcChain(url.replace("http://", "https://"), "any", policy=RetryPolicy(pace=clock.pace()))
    with pytest.raises(ChainError, match="no secure connection") as caught:
        chain.identity()
    chain.close()
    assert caught.value.verdict is Verdict.UNAVAILABLE
    assert clock.slept == []


def test_a_secure_connection_that_breaks_after_sending_is_no_failure(
    server: FakeServer,
    clock: FakeClock,
    reply: type[Replies],
    *,
    signer: Keypair,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The transaction was taken; the server's history shows it a little later."""
    tls, certificate = make_certificate(tmp_path)
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(certificate))
    server.script["sendTransaction"] = [reply.taken_but(reply.http(PAST_ENCRYPTION))]
    server.script["getTransaction"] = [reply.not_found]
    with serving(server, tls) as address:
        chain = RpcChain(address, server.passphrase, policy=RetryPolicy(pace=clock.pace()))
        receipt = chain.submit(WORK, signer)
        chain.close()
    assert set(server.sent) == {receipt.hash} == set(server.taken)


def test_a_poll_that_never_answers_ends_as_unsettled(
    server: FakeServer, clock: FakeClock, url: str, signer: Keypair
) -> None:
    over = threading.Event()

    def silent(answering: FakeServer, params: dict[str, Any]) -> Response:
        over.wait()
        return answering.honest("getTransaction", params)

    server.script["getTransaction"] = [silent] * 100
    policy = RetryPolicy(attempts=1, poll_seconds=2.0, pace=clock.pace())
    chain = RpcChain(url, server.passphrase, client=HastyFor("getTransaction"), policy=policy)
    try:
        with pytest.raises(Unsettled) as caught:
            chain.submit(WORK, signer)
    finally:
        over.set()
        chain.close()
    assert server.sent == [caught.value.hash] == list(server.taken)
    assert sum(clock.slept) <= 2.0


@pytest.mark.parametrize(
    "method", ["getNetwork", "getLatestLedger", "getLedgerEntries", "simulateTransaction"]
)
def test_nothing_is_sent_while_a_question_before_it_is_not_answered(
    server: FakeServer, clock: FakeClock, url: str, signer: Keypair, method: str
) -> None:
    over = threading.Event()

    def silent(answering: FakeServer, params: dict[str, Any]) -> Response:
        over.wait()
        return answering.honest(method, params)

    server.script[method] = [silent]
    policy = RetryPolicy(attempts=1, pace=clock.pace())
    chain = RpcChain(url, server.passphrase, client=HastyFor(method), policy=policy)
    try:
        with pytest.raises(ChainUnavailable, match="did not answer in time"):
            chain.submit(WORK, signer)
    finally:
        over.set()
        chain.close()
    assert server.sent == []
