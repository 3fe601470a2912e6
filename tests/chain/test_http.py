"""The client over real sockets: what `stellar_sdk`'s HTTP client does must not undo the one policy."""

from __future__ import annotations

import http.server
import json
import socket
import threading
from typing import TYPE_CHECKING

import pytest
from stellar_sdk import StrKey

from mycelium_sdk.chain import operations
from mycelium_sdk.chain.retry import RetryPolicy
from mycelium_sdk.chain.rpc import RpcChain
from mycelium_sdk.errors import ChainError, ChainUnavailable
from mycelium_sdk.verdicts import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stellar_sdk import Keypair
    from tests.chain.conftest import FakeClock, FakeServer, Replies

WORK = operations.invoke(StrKey.encode_contract(bytes(range(32))), "set_anchor", [])


@pytest.fixture
def url(server: FakeServer) -> Iterator[str]:
    """The scripted server behind HTTP."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            answer = server.post("", json_data=json.loads(body))
            text = answer.text.encode()
            self.send_response(answer.status_code)
            self.send_header("Content-Length", str(len(text)))
            self.send_header("Retry-After", "0")
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_args: object) -> None:
            """Say nothing."""

    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as listening:
        thread = threading.Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{listening.server_port}/rpc"
        listening.shutdown()
        thread.join()


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
