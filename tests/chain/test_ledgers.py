"""A ledger's hash and time, where a server still has it; and events of which some cannot be read."""

from __future__ import annotations

import pytest
from stellar_sdk import scval
from stellar_sdk.client.response import Response

from mycelium_localnet import Chain
from mycelium_sdk.chain.cursors import ledger_of, place_of
from mycelium_sdk.chain.embedded import EmbeddedChain
from mycelium_sdk.chain.rpc import RpcChain
from mycelium_sdk.chain.translate import UNREADABLE
from mycelium_sdk.errors import ChainError, ChainUnavailable, WrongDomain
from mycelium_sdk.networks import STANDALONE_PASSPHRASE
from mycelium_sdk.retry import RetryPolicy
from mycelium_sdk.testing.event_server import EventServer, forged_history


def test_ledgers_of_a_chain() -> None:
    chain = EmbeddedChain(Chain.open(":memory:"), STANDALONE_PASSPHRASE)
    chain.localnet.skip_ledgers(5)
    heads = [chain.ledger(sequence) for sequence in range(1, 7)]
    assert [head.sequence for head in heads if head is not None] == [1, 2, 3, 4, 5, 6]
    assert len({head.hash for head in heads if head is not None}) == 6
    latest = heads[-1]
    assert latest is not None
    assert latest.close_time == chain.identity().close_time
    assert chain.ledger(7) is None
    assert chain.ledger(0) is None
    chain.localnet.fault("retention", count=9, ledgers=2)
    assert chain.ledger(3) is None
    assert chain.ledger(6) == latest
    chain.close()


def test_a_server_that_fails_is_not_one_that_has_not_the_ledger() -> None:
    server = EventServer()
    chain = RpcChain(server.URL, server.PASSPHRASE, client=server, policy=RetryPolicy(attempts=1))
    assert chain.ledger(1) is not None

    def refuse(method: str, _params: object) -> Response | None:
        if method != "getLedgers":
            return None
        return Response(
            200, '{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"no"}}', {}, server.URL
        )

    server.intercept = refuse
    with pytest.raises(ChainError, match="refused getLedgers"):
        chain.ledger(1)
    server.intercept = lambda _method, _params: Response(503, "", {}, server.URL)
    with pytest.raises(ChainUnavailable):
        chain.ledger(1)


def test_one_event_that_cannot_be_read_does_not_hide_the_others() -> None:
    server = EventServer()
    (anchor,) = forged_history("GA7QYNF7SOWQ3GLR2BGMZEHXAVIRZA4KVWLTJJFC7MGXUA74P7UJVSGZ", 1)
    server.add(anchor)
    server.add_event([scval.to_symbol("x").to_xdr()], "AAAA")
    chain = RpcChain(server.URL, server.PASSPHRASE, client=server)
    page = chain.events(server.CONTRACT, start_ledger=1)
    good, bad = page.events
    assert scval.from_address(good.topics[1]).address == anchor.owner
    assert good.value.map is not None
    assert len(bad.topics) == 1
    with pytest.raises(UNREADABLE):
        _ = bad.value
    assert page.latest_close_time == server.close_time(server.latest)
    server.add_event([], "no base64")
    with pytest.raises(ChainUnavailable, match="cannot be understood"):
        chain.events(server.CONTRACT, start_ledger=1)


def test_places() -> None:
    assert place_of("0000012884905984-0000000001") == (12884905984, 1)
    assert ledger_of("0000012884905984-0000000001") == 3
    for text in ("", "1", "-1-1", "1-1-1", "a-1", "1-", "٣-1", "1" * 20 + "-1"):
        with pytest.raises(WrongDomain):
            place_of(text)
