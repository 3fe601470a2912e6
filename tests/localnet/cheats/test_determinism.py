"""The same calls on two chains of one seed with a frozen clock: equal ledger hashes, cheats included."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mycelium_localnet import Chain
from mycelium_localnet.clock import FROZEN_START
from tests.localnet.cheats.conftest import live
from tests.localnet.ledger.lab import Lab, create, keypair

if TYPE_CHECKING:
    from mycelium_localnet.ledger import LedgerRow


def story(chain: Chain, wasm: bytes) -> list[LedgerRow]:
    """Every cheat that moves ledgers, and what clients do in between."""
    lab = Lab(chain, wasm)
    lab.deploy(lab.account("alice"))
    chain.accounts()
    outer = chain.snapshot()
    live(lab, 1)
    inner = chain.snapshot()
    chain.set_time(FROZEN_START + 1_000)
    live(lab, 2)
    chain.revert(inner)
    chain.set_time(FROZEN_START + 77)
    live(lab, 3)
    whole = chain.dump()
    chain.revert(outer)
    live(lab, 4)
    chain.load(whole)
    chain.set_interval(closing="manual")
    for name in ("one", "two"):
        lab.submit(lab.build(keypair("alice"), create(name)))
        chain.close_ledger()
    chain.set_interval()
    chain.set_balance(keypair("alice").public_key, 10**12)
    live(lab, 5)
    return lab.ledgers()


def test_equal_hashes_with_every_cheat(wasm: bytes) -> None:
    runs, dumps = [], []
    for _ in range(2):
        with Chain.open(":memory:", profile="short-ttl", seed=b"seed", clock="frozen") as chain:
            runs.append(story(chain, wasm))
            dumps.append(chain.dump())
    assert runs[0] == runs[1]
    assert dumps[0] == dumps[1]


def test_another_seed_gives_other_hashes(wasm: bytes) -> None:
    last = []
    for seed in (b"one", b"two"):
        with Chain.open(":memory:", profile="short-ttl", seed=seed, clock="frozen") as chain:
            last.append(story(chain, wasm)[-1])
    assert last[0].sequence == last[1].sequence
    assert last[0].hash != last[1].hash
