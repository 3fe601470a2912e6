"""Which network a server serves is asked again and again: an address may be given to another one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from stellar_sdk import StrKey

from mycelium_sdk.chain import operations
from mycelium_sdk.errors import WrongDomain

if TYPE_CHECKING:
    from stellar_sdk import Keypair

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
