"""Chains to bend: with a contract that stores and publishes, and all of a chain's content to compare."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

import pytest
from stellar_sdk import scval

from mycelium_localnet import Chain
from tests.localnet.ledger.conftest import PROBE
from tests.localnet.ledger.lab import Lab, create, keypair

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def wasm() -> bytes:
    # Imported by name: the compiler has no types.
    compiled: bytes = import_module("pysoroban").compile_source(PROBE).wasm
    return compiled


@pytest.fixture
def lab(wasm: bytes) -> Iterator[Lab]:
    """A chain whose entries expire soon, with a frozen clock and the contract deployed by alice."""
    with Chain.open(":memory:", seed=b"cheats", clock="frozen", profile="short-ttl") as chain:
        found = Lab(chain, wasm)
        found.deploy(found.account("alice"))
        yield found


def live(lab: Lab, number: int = 1) -> None:
    """Some of everything that can happen on a chain: entries are made, changed, extended, archived, restored
    and removed; transactions fail; ledgers are skipped; accounts appear."""
    alice = keypair("alice")
    lab.chain.skip_ledgers(45)  # what there was is archived, and nothing ends in the middle of a call
    lab.put(alice, 1, number)
    lab.put(alice, number + 10, number)
    lab.invoke(alice, "put_temporary", scval.to_uint32(number), scval.to_uint64(number))
    lab.chain.skip_ledgers(45)  # longer than anything lives
    lab.put(alice, 1, number + 1)
    lab.succeed(lab.prepare_ttl(alice, [lab.data_key(number + 10)]))
    lab.succeed(lab.prepare_ttl(alice, [lab.data_key(number + 10)], extend_to=35))
    lab.invoke(alice, "drop", scval.to_uint32(number + 10))
    lab.apply(lab.build(alice, create(f"poor {number}", "0.1")))  # below the reserve
    lab.chain.fund(keypair(f"somebody {number}").public_key)
    lab.chain.set_balance(keypair("alice").public_key, 7_000 * 10**7 + number)


def seen(chain: Chain) -> dict[str, object]:
    """Everything that reading shows."""
    with chain.read() as view:
        latest, oldest = view.latest(), view.oldest()
        ledgers = view.ledgers(max(oldest.sequence, latest.sequence - 500), 1_000)
        transactions = view.transactions((0, 0), 100_000)
        return {
            "oldest": oldest,
            "ledgers": ledgers,
            "transactions": transactions,
            "by hash": [view.transaction(row.hash) for row in transactions],
            "events": list(view.events(after=(1, -1, 0, 0), end_ledger=latest.sequence + 1)),
        }
