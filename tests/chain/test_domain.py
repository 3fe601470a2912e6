"""Which network a server serves is asked again and again: an address may be given to another one."""

from __future__ import annotations

import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest
from stellar_sdk import StrKey

from mycelium_sdk.chain import operations
from mycelium_sdk.errors import WrongDomain

if TYPE_CHECKING:
    from typing import Any

    from stellar_sdk import Keypair
    from stellar_sdk.client.response import Response

    from mycelium_sdk.chain.rpc import RpcChain
    from tests.chain.conftest import FakeClock, FakeServer

KEY = operations.instance_key(StrKey.encode_contract(bytes(range(32))))
WORK = operations.invoke(StrKey.encode_contract(bytes(range(32))), "set_anchor", [])


def test_the_network_is_asked_for_once_a_minute(
    chain: RpcChain, server: FakeServer, clock: FakeClock
) -> None:
    for _ in range(3):
        chain.entries([KEY])
    assert server.calls.count("getNetwork") == 1
    clock.seconds += 60
    for _ in range(3):
        chain.entries([KEY])
    assert server.calls.count("getNetwork") == 2


def test_another_network_at_the_same_address_is_noticed(
    chain: RpcChain, server: FakeServer, clock: FakeClock, signer: Keypair
) -> None:
    chain.submit(WORK, signer)
    server.passphrase = "Another Network"
    clock.seconds += 61
    with pytest.raises(WrongDomain):
        chain.submit(WORK, signer)
    assert len(server.sent) == 1
    with pytest.raises(WrongDomain):
        chain.entries([KEY])


def test_identity_asks_at_once_and_what_it_finds_counts(chain: RpcChain, server: FakeServer) -> None:
    chain.identity()
    chain.entries([KEY])
    assert server.calls.count("getNetwork") == 1
    passphrase, server.passphrase = server.passphrase, "Another Network"
    with pytest.raises(WrongDomain):
        chain.identity()
    with pytest.raises(WrongDomain):
        chain.entries([KEY])
    server.passphrase = passphrase
    chain.entries([KEY])


@pytest.mark.timeout(60)
def test_threads_ask_for_the_network_side_by_side(chain: RpcChain, server: FakeServer) -> None:
    """What one waits for, for as long as a request may take, the others do not wait for first."""
    together = threading.Barrier(4)

    def answer(server: FakeServer, params: dict[str, Any]) -> Response:
        together.wait()
        return server.honest("getNetwork", params)

    server.script["getNetwork"] = [answer] * 4
    with ThreadPoolExecutor(4) as pool:
        assert len(list(pool.map(lambda _: chain.entries([KEY]), range(4)))) == 4
    chain.entries([KEY])
    assert server.calls.count("getNetwork") == 4


@pytest.mark.timeout(60)
def test_a_forked_child_asks_though_another_thread_was_waiting_for_an_answer(
    chain: RpcChain, server: FakeServer
) -> None:
    waiting, over = threading.Event(), threading.Event()

    def answer(server: FakeServer, params: dict[str, Any]) -> Response:
        waiting.set()
        over.wait()
        return server.honest("getNetwork", params)

    server.script["getNetwork"] = [answer]
    thread = threading.Thread(target=chain.entries, args=([KEY],))
    thread.start()
    waiting.wait()
    child = os.fork()
    if child == 0:
        signal.alarm(30)
        os._exit(0 if len(chain.entries([KEY])) == 1 else 1)
    try:
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    finally:
        over.set()
        thread.join()
