"""Chains to experiment on, and a small contract to put on them."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

import pytest

from mycelium_localnet import Chain
from tests.localnet.ledger.lab import Lab

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stellar_sdk import Keypair

# The compiler's dialect, so it is text here and not a module.
PROBE = """
from pysoroban import (
    Address, Bytes, Topic, contract, error, event, events, fail, i32, prng, public, storage, u32, u64,
)


@error
class ProbeError:
    BOOM = 7


@event
class Stored:
    key: Topic[u32]
    value: u64


@event
class Loud:
    key: Topic[u32]
    value: Bytes


@contract
class Probe:
    @public
    def put(self, key: u32, value: u64) -> u64:
        storage.persistent.set(key, value)
        events.publish(Stored(key, value))
        return value

    @public
    def get(self, key: u32) -> u64:
        return storage.persistent.get(key, u64)

    @public
    def drop(self, key: u32) -> None:
        storage.persistent.remove(key)

    @public
    def put_temporary(self, key: u32, value: u64) -> None:
        storage.temporary.set(key, value)

    @public
    def put_bytes(self, key: u32, value: Bytes) -> None:
        storage.persistent.set(key, value)

    @public
    def shout(self, value: Bytes) -> None:
        events.publish(Loud(u32(1), value))

    @public
    def echo(self, value: Bytes) -> Bytes:
        return value

    @public
    def guarded(self, owner: Address) -> None:
        owner.require_auth()

    @public
    def boom(self) -> None:
        fail(ProbeError.BOOM)

    @public
    def roll(self) -> u64:
        return prng.u64(u64(0), u64(1000000000))

    @public
    def spin(self, rounds: i32) -> i32:
        total: i32 = 0
        for step in range(rounds):
            total = total + step
        return total
"""


@pytest.fixture(scope="session")
def wasm() -> bytes:
    # Imported by name: the compiler has no types.
    compiled: bytes = import_module("pysoroban").compile_source(PROBE).wasm
    return compiled


@pytest.fixture
def lab(wasm: bytes) -> Iterator[Lab]:
    """A testnet-like chain with nothing on it."""
    with Chain.open(":memory:", seed=b"ledger", clock="frozen") as chain:
        yield Lab(chain, wasm)


@pytest.fixture
def manual(wasm: bytes) -> Iterator[Lab]:
    """A chain that closes ledgers only when it is told to."""
    with Chain.open(":memory:", seed=b"ledger", clock="frozen", closing="manual") as chain:
        yield Lab(chain, wasm)


@pytest.fixture
def short(wasm: bytes) -> Iterator[Lab]:
    """A chain whose entries expire soon."""
    with Chain.open(":memory:", seed=b"ledger", clock="frozen", profile="short-ttl") as chain:
        yield Lab(chain, wasm)


@pytest.fixture
def bob(lab: Lab) -> Keypair:
    """A funded account of `lab`."""
    return lab.account("bob")


@pytest.fixture
def alice(lab: Lab) -> Keypair:
    """A funded account of `lab`, with the contract deployed."""
    found = lab.account("alice")
    lab.deploy(found)
    return found
