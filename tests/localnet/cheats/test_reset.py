"""A new chain in the same file, and how ledgers close."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from mycelium_localnet import Chain, Dispatcher, errors
from mycelium_localnet.clock import FROZEN_START
from tests.localnet.cheats.conftest import live
from tests.localnet.ledger.lab import Lab, create, keypair

if TYPE_CHECKING:
    from pathlib import Path


def test_a_new_chain_with_another_id(lab: Lab) -> None:
    chain, before = lab.chain, lab.chain.chain_id
    live(lab)
    chain.set_time(FROZEN_START + 5)
    snapshot = chain.snapshot()
    chain.fault("drop")
    envelope = lab.build(keypair("alice"), create("new"))
    chain_id = chain.reset()
    assert chain.chain_id == chain_id != before
    with chain.read() as view:
        assert (view.latest().sequence, view.latest().close_time) == (1, FROZEN_START)
        assert view.transactions((0, 0), 10) == []
        assert list(view.events(after=(0, 0, 0, 0), end_ledger=1000)) == []
        assert view.entry(bytes(8) + keypair("alice").raw_public_key()) is None
    assert (chain.profile, chain.faults()) == ("short-ttl", ())
    with pytest.raises(errors.InvalidRequestError):
        chain.revert(snapshot)
    assert lab.submit(envelope).status == "ERROR"
    lab.account("alice")
    lab.deploy(keypair("alice"))
    live(lab)


def test_runs_repeat(wasm: bytes) -> None:
    """Also over a reset: the new id follows from the old seed."""
    found = []
    for _ in range(2):
        with Chain.open(":memory:", seed=b"again", clock="frozen") as chain:
            ids = [chain.chain_id, chain.reset(), chain.reset()]
            lab = Lab(chain, wasm)
            lab.account("bob")
            found.append((ids, lab.latest().hash))
    assert found[0] == found[1]
    assert len(set(found[0][0])) == 3


def test_a_seed_makes_the_chain_that_it_always_makes() -> None:
    with Chain.open(":memory:", seed=b"one", clock="frozen") as one:
        with Chain.open(":memory:", seed=b"two", clock="frozen") as two:
            assert two.reset(b"one") == one.chain_id
            assert two.dump() == one.dump()
        for seed in (b"", b"x" * 65):
            with pytest.raises(errors.InvalidRequestError, match="seed"):
                one.reset(seed)
        assert one.dump()


def test_a_running_clock_shows_the_machines_time_again() -> None:
    with Chain.open(":memory:") as chain:
        with chain.read() as view:
            started = view.latest().close_time
        chain.set_time(started + 1_000_000)
        chain.reset()
        with chain.read() as view:
            assert started <= view.latest().close_time < started + 1000


def test_every_opener_of_the_file_notices(tmp_path: Path) -> None:
    path = tmp_path / "chain.db"
    with Chain.open(path) as one, Chain.open(path) as other, Chain.open(":memory:", passphrase="P") as third:
        dispatcher = Dispatcher(other)
        one.accounts()
        chain_id = one.reset()
        body = b'{"jsonrpc": "2.0", "id": 1, "method": "getNetwork"}'
        assert json.loads(dispatcher.handle(body) or b"")["result"]["chainId"] == chain_id
        assert other.chain_id == chain_id
        one.load(third.dump())
        other.fund(other.accounts(fund=False)[0].address)
        assert (other.passphrase, other.chain_id) == ("P", third.chain_id)
        assert one.accounts(fund=False)[0].funded


def test_how_ledgers_close_can_change(lab: Lab) -> None:
    chain, alice, bob = lab.chain, keypair("alice"), lab.account("bob")
    first = chain.set_interval(closing="manual")
    assert lab.submit(lab.build(alice, create("one"))).status == "PENDING"
    assert lab.submit(lab.build(bob, create("two"))).status == "PENDING"
    assert lab.latest().sequence == first
    assert chain.set_interval(3600) == first
    wait = chain.close_due_ledger()
    assert wait is not None
    assert 3590 < wait <= 3600
    with chain.read() as view:
        assert view.transactions((first, 99), 10) == []
    assert chain.set_interval() == first + 1  # nobody else would close what waits
    with chain.read() as view:
        assert len(view.transactions((first, 99), 10)) == 2
    assert chain.close_due_ledger() is None
    lab.succeed(lab.build(alice, create("three")))
    assert chain.set_interval(closing="instant") == first + 2


@pytest.mark.parametrize(
    "arguments", [{"seconds": 0}, {"seconds": -1}, {"seconds": 86_401}, {"closing": "never"},
                  {"seconds": 5, "closing": "manual"}, {"seconds": float("nan")}]
)  # fmt: skip
def test_impossible_ways_of_closing(lab: Lab, arguments: dict[str, object]) -> None:
    with pytest.raises(errors.InvalidRequestError):
        lab.chain.set_interval(**arguments)  # type: ignore[arg-type]
    lab.succeed(lab.build(keypair("alice"), create("new")))
