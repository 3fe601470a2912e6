"""What a server may ask for a transaction: a limit that is named, before anything is signed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from stellar_sdk import StrKey, TransactionEnvelope

from mycelium_sdk.chain import operations
from mycelium_sdk.chain.fees import DEFAULT_MAX_FEE, check_fee
from mycelium_sdk.chain.rpc import RpcChain
from mycelium_sdk.errors import ChainError, ChainUnavailable
from mycelium_sdk.retry import RetryPolicy

if TYPE_CHECKING:
    from stellar_sdk import Keypair
    from stellar_sdk.client.response import Response

    from tests.chain.conftest import FakeClock, FakeServer, Replies, Reply

CONTRACT = StrKey.encode_contract(bytes(range(32)))
WORK = operations.invoke(CONTRACT, "set_anchor", [])
XLM = 10**7


def asking(reply: type[Replies], fee: object) -> Reply:
    def answer(server: FakeServer, params: dict[str, Any]) -> Response:
        honest = json.loads(server.honest("simulateTransaction", params).text)["result"]
        return reply.result(honest | {"minResourceFee": fee})

    return answer


@pytest.mark.parametrize(
    ("fee", "named"),
    [
        (20 * XLM - 99, "20.0000001 XLM"),
        (5_000 * XLM, "5,000.00001 XLM"),
        (2**32, "429.4967396 XLM"),
        (2**63, "922,337,203,685.4775908 XLM"),
        (10**30, "XLM"),
    ],
)
def test_a_price_beyond_the_limit_is_named_and_nothing_is_signed(
    chain: RpcChain, server: FakeServer, reply: type[Replies], signer: Keypair, *, fee: int, named: str
) -> None:
    server.script["simulateTransaction"] = [asking(reply, str(fee))]
    announced: list[str] = []
    with pytest.raises(ChainError, match="the limit is 20 XLM") as caught:
        chain.submit(WORK, signer, before_send=lambda signed: announced.append(signed.hash))
    assert type(caught.value) is ChainError
    assert named in str(caught.value)
    assert "`[onchain] max_fee` or MYCELIUM_MAX_FEE" in str(caught.value.hint)
    assert announced == server.sent == []


@pytest.mark.parametrize("fee", [str(20 * XLM - 100), "0"])
def test_a_price_within_the_limit_is_declared(
    chain: RpcChain, server: FakeServer, reply: type[Replies], signer: Keypair, fee: str
) -> None:
    server.script["simulateTransaction"] = [asking(reply, fee)]
    chain.submit(WORK, signer)
    (envelope,) = server.taken.values()
    transaction = TransactionEnvelope.from_xdr(envelope, chain.passphrase).transaction
    assert transaction.fee == int(fee) + 100
    assert transaction.soroban_data is not None
    assert transaction.soroban_data.resource_fee.int64 == int(fee), "what was checked is what is signed"


@pytest.mark.parametrize("fee", ["-1", "-1000000", str(-(2**70)), "1.5", "much", None, [], True])
def test_a_price_that_is_none(
    chain: RpcChain, server: FakeServer, reply: type[Replies], signer: Keypair, fee: object
) -> None:
    server.script["simulateTransaction"] = [asking(reply, fee)] * 2
    for ask in (lambda: chain.submit(WORK, signer), lambda: chain.simulate(WORK)):
        try:
            ask()
        except ChainUnavailable as error:
            assert "cannot be understood" in str(error)  # noqa: PT017
        else:
            assert fee is True, "JSON's true is the number 1 to some readers"
    assert server.sent == [] or fee is True


def test_the_limit_can_be_chosen(
    server: FakeServer, clock: FakeClock, reply: type[Replies], signer: Keypair
) -> None:
    policy = RetryPolicy(pace=clock.pace())
    server.script["simulateTransaction"] = [asking(reply, "50000000")] * 2
    strict = RpcChain("https://rpc.example.org", server.passphrase, client=server, policy=policy, max_fee=XLM)
    with pytest.raises(ChainError, match=r"asks 5\.00001 XLM .* limit is 1 XLM"):
        strict.submit(WORK, signer)
    generous = RpcChain(
        "https://rpc.example.org", server.passphrase, client=server, policy=policy, max_fee=100 * XLM
    )
    generous.submit(WORK, signer)


def test_a_transaction_cannot_hold_more_than_this() -> None:
    check_fee(2**32 - 1, 10**12)
    with pytest.raises(ChainError):
        check_fee(2**32, 10**12)


def test_the_default_is_far_above_what_the_sdk_itself_pays() -> None:
    """The dearest: the MemoryAnchor contract on the public network, 45,611,416 stroops."""
    assert DEFAULT_MAX_FEE > 4 * 45_611_416
