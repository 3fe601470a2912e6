"""The same calls on two chains: equal results always, equal ledger hashes with a seed and a frozen clock."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stellar_sdk import scval

from mycelium_localnet import Chain
from tests.localnet.ledger.lab import Lab, create

if TYPE_CHECKING:
    from mycelium_localnet.ledger import LedgerRow, TransactionRow


def story(chain: Chain, wasm: bytes) -> tuple[list[LedgerRow], list[TransactionRow]]:
    """Some of everything that can happen on a chain."""
    lab = Lab(chain, wasm)
    alice, bob = lab.account("alice"), lab.account("bob", 50 * 10**7)
    lab.deploy(alice)
    lab.put(alice, 1, 2)
    chain.skip_ledgers(300)
    lab.put(bob, 1, 3)
    lab.invoke(alice, "roll")
    lab.apply(lab.build(alice, create("one"), create("one"), fee=300))
    lab.succeed(lab.prepare_ttl(alice, [lab.data_key(1)], extend_to=38))
    lab.invoke(alice, "drop", scval.to_uint32(1))
    with chain.read() as view:
        return lab.ledgers(), view.transactions((0, 0), 1_000)


def test_equal_hashes_with_a_seed_and_a_frozen_clock(wasm: bytes) -> None:
    runs = []
    for _ in range(2):
        with Chain.open(":memory:", profile="short-ttl", seed=b"seed", clock="frozen") as chain:
            runs.append(story(chain, wasm))
    assert runs[0] == runs[1]


def test_equal_results_on_any_two_chains(wasm: bytes) -> None:
    """Without seed and with a running clock ledger hashes differ; results, fees, ids and events do not."""
    runs = []
    for _ in range(2):
        with Chain.open(":memory:", profile="short-ttl") as chain:
            ledgers, rows = story(chain, wasm)
            runs.append(([(row.hash, row.result, row.contract_events) for row in rows], ledgers))
    assert runs[0][0] == runs[1][0]
    assert [ledger.sequence for ledger in runs[0][1]] == [ledger.sequence for ledger in runs[1][1]]
    assert runs[0][1][-1].hash != runs[1][1][-1].hash
