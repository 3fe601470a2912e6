"""Chains to prove things on, with two contracts: one that does something, and one that calls it."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

import pytest

from mycelium_localnet import Chain
from tests.localnet.ledger.conftest import PROBE
from tests.localnet.ledger.lab import Lab

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stellar_sdk import Keypair

# The compiler's dialect, so it is text here and not a module.
RELAY = """
from pysoroban import (
    Address, Result, String, Symbol, contract, error, event, events, fail, log, public, Topic, u32, u64,
)


@error
class RelayError:
    TIRED = 7


@event
class Passed:
    key: Topic[u32]
    value: u64


@contract
class Relay:
    @public
    def put(self, target: Address, key: u32, value: u64) -> u64:
        return target.call_u64(Symbol("put"), key, value)

    @public
    def boom(self, target: Address) -> None:
        target.call_void(Symbol("boom"))

    @public
    def tire(self, target: Address, key: u32) -> None:
        events.publish(Passed(key, target.call_u64(Symbol("put"), key, u64(1))))
        log(String("that is enough"))
        fail(RelayError.TIRED)

    @public
    def try_boom(self, target: Address) -> u64:
        found = target.try_u64(Symbol("boom"))
        if found.is_ok():
            return u64(0)
        return u64(1)

    @public
    def missing(self, target: Address) -> None:
        target.call_void(Symbol("nothing"))

    @public
    def again(self, target: Address, other: Address) -> None:
        target.call_void(Symbol("boom"), other)
"""


def compile_contract(source: str) -> bytes:
    """The Wasm of a contract. The compiler has no types, hence imported by name."""
    wasm: bytes = import_module("pysoroban").compile_source(source).wasm
    return wasm


@pytest.fixture(scope="session")
def wasm() -> bytes:
    return compile_contract(PROBE)


@pytest.fixture(scope="session")
def relay_wasm() -> bytes:
    return compile_contract(RELAY)


@pytest.fixture
def lab(wasm: bytes) -> Iterator[Lab]:
    """A testnet-like chain with nothing on it."""
    with Chain.open(":memory:", seed=b"proofs", clock="frozen") as chain:
        yield Lab(chain, wasm)


@pytest.fixture
def short(wasm: bytes) -> Iterator[Lab]:
    """A chain whose entries expire soon."""
    with Chain.open(":memory:", seed=b"proofs", clock="frozen", profile="short-ttl") as chain:
        yield Lab(chain, wasm)


@pytest.fixture
def alice(lab: Lab) -> Keypair:
    """A funded account of `lab`, with the contract deployed."""
    found = lab.account("alice")
    lab.deploy(found)
    return found


@pytest.fixture
def relay(lab: Lab, alice: Keypair, relay_wasm: bytes) -> Lab:
    """The same chain with the calling contract deployed as well."""
    return Lab(lab.chain, relay_wasm).deploy(lab.account("carol"))
