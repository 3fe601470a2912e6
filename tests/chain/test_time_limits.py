"""The documented time limits, on a clock that only waiting moves: every request takes all the time it may."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import requests.exceptions
from stellar_sdk import StrKey

from mycelium_sdk.chain import operations
from mycelium_sdk.chain.http_client import REQUEST_SECONDS
from mycelium_sdk.errors import ChainUnavailable, Unsettled

if TYPE_CHECKING:
    from collections.abc import Callable

    from stellar_sdk import Keypair
    from stellar_sdk.client.response import Response

    from mycelium_sdk.chain.rpc import RpcChain
    from tests.chain.conftest import FakeClock, FakeServer, Replies

CONTRACT = StrKey.encode_contract(bytes(range(32)))
WORK = operations.invoke(CONTRACT, "set_anchor", [])

QUESTIONS: dict[str, Callable[[RpcChain], object]] = {
    "getNetwork": lambda chain: chain.friendbot_url(),
    "getLatestLedger": lambda chain: chain.identity(),
    "getLedgerEntries": lambda chain: chain.entries([operations.instance_key(CONTRACT)]),
    "simulateTransaction": lambda chain: chain.simulate(WORK),
    "getTransaction": lambda chain: chain.transaction("00" * 32),
    "getEvents": lambda chain: chain.events(CONTRACT, start_ledger=1),
}


@pytest.fixture
def mute(server: FakeServer, clock: FakeClock, reply: type[Replies]) -> Callable[[str], None]:
    """Have a method take its whole time and then answer nothing, from now on."""

    def silence(method: str) -> None:
        def silent(answering: FakeServer, params: dict[str, Any]) -> Response:
            clock.seconds += REQUEST_SECONDS
            return reply.no_answer(requests.exceptions.ReadTimeout())(answering, params)

        server.script[method] = [silent] * 1_000

    return silence


@pytest.mark.parametrize("method", QUESTIONS)
def test_a_question_ends_within_fifty_seconds(
    chain: RpcChain, clock: FakeClock, mute: Callable[[str], None], method: str
) -> None:
    mute(method)
    started = clock.seconds
    with pytest.raises(ChainUnavailable, match="did not answer in time"):
        QUESTIONS[method](chain)
    assert REQUEST_SECONDS < clock.seconds - started <= 50


def test_sending_ends_within_a_hundred_seconds(
    chain: RpcChain, server: FakeServer, clock: FakeClock, mute: Callable[[str], None], *, signer: Keypair
) -> None:
    for method in ("sendTransaction", "getTransaction"):
        mute(method)
    started = clock.seconds
    with pytest.raises(Unsettled) as caught:
        chain.submit(WORK, signer)
    assert set(server.sent) == {caught.value.hash}
    assert clock.seconds - started <= 100


def test_waiting_ends_within_a_hundred_and_forty_seconds(
    chain: RpcChain, server: FakeServer, clock: FakeClock, mute: Callable[[str], None], *, signer: Keypair
) -> None:
    mute("getTransaction")
    started = clock.seconds
    with pytest.raises(Unsettled) as caught:
        chain.submit(WORK, signer)
    assert server.sent == [caught.value.hash]
    assert 90 < clock.seconds - started <= 140
