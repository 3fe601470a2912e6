"""Servers that must agree: what two of them may say differently, and what is a contradiction."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from mycelium_sdk.chain.anchor_client import MemoryAnchorClient
from mycelium_sdk.chain.anchors import Anchor
from mycelium_sdk.chain.embedded import open_embedded
from mycelium_sdk.context import AgentContext
from mycelium_sdk.errors import ChainUnavailable, Fork, WrongDomain
from mycelium_sdk.memory.cross_check import MAX_LAG_SECONDS, Statement, require_agreement

if TYPE_CHECKING:
    from mycelium_sdk.chain.rpc import RpcChain
    from tests.memory.conftest import World


def anchor(version: int, root: int | None = None) -> Anchor:
    value = version if root is None else root
    return Anchor("GOWNER", version, value.to_bytes(32, "big"), b"", b"", bytes(32), 1_000)


def says(ledger: int, held: Anchor | None, written: int | None) -> Statement:
    return Statement("a server", "chain", held, written, ledger, 10_000 + 5 * ledger)


AGREEING = [
    (says(100, None, None), says(100, None, None)),
    (says(100, anchor(3), 90), says(100, anchor(3), 90)),
    (says(100, anchor(3), 90), says(140, anchor(3), 90)),
    (says(100, anchor(3), 90), says(101, anchor(4), 101)),
    (says(100, None, None), says(101, anchor(1), 101)),
    (says(100, anchor(4), 101), says(100, anchor(3), 90)),  # written after the ledger was read
]
CONTRADICTING = [
    (says(100, anchor(3), 90), says(100, anchor(2), 80)),
    (says(100, anchor(3), 90), says(140, anchor(3, root=9), 90)),
    (says(100, anchor(3), 90), says(140, anchor(3, root=9), 120)),
    (says(100, anchor(3), 90), says(140, None, None)),
    (says(100, anchor(3), 90), says(140, anchor(2), 120)),
    (says(100, None, None), says(140, anchor(1), 95)),
]


@pytest.mark.parametrize(("first", "other"), [*AGREEING, *[(other, first) for first, other in AGREEING]])
def test_what_may_differ(first: Statement, other: Statement) -> None:
    require_agreement(first, other)


@pytest.mark.parametrize(
    ("first", "other"), [*CONTRADICTING, *[(other, first) for first, other in CONTRADICTING]]
)
def test_what_cannot_both_be_true(first: Statement, other: Statement) -> None:
    with pytest.raises(Fork):
        require_agreement(first, other)


def test_a_server_that_lags_too_far_is_no_witness() -> None:
    first = says(100, anchor(3), 90)
    late = replace(first, close_time=first.close_time - MAX_LAG_SECONDS - 1)
    with pytest.raises(ChainUnavailable, match="lags"):
        require_agreement(first, late)
    require_agreement(first, replace(first, close_time=first.close_time - MAX_LAG_SECONDS))


def test_another_chain_is_no_witness() -> None:
    first = says(100, None, None)
    with pytest.raises(WrongDomain):
        require_agreement(first, replace(first, chain_id="other"))


def test_a_memory_asks_its_witnesses(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    memory = world.machine("a")
    memory.remember("one")
    memory.anchor()
    address = memory.contract_id
    witness = open_embedded(world.chain_file, memory.context.network.passphrase)
    world.opened.append(witness)
    _testify(monkeypatch, witness, address)
    assert memory.verify()
    truth = MemoryAnchorClient(witness, address).get_anchor(memory.owner)
    assert truth is not None
    monkeypatch.setattr(MemoryAnchorClient, "get_anchor", _lie(witness, replace(truth, root=b"\x07" * 32)))
    with pytest.raises(Fork):
        memory.anchor()
    assert memory.verify().verdict == "FORK"
    monkeypatch.undo()
    assert memory.get_anchor() == truth.as_dict()


def _testify(monkeypatch: pytest.MonkeyPatch, witness: RpcChain, address: str) -> None:
    """A second server of the embedded chain, in place of the one that a URL would name."""

    def clients(_: AgentContext, contract_id: str | None = None) -> tuple[MemoryAnchorClient, ...]:
        return (MemoryAnchorClient(witness, contract_id or address),)

    monkeypatch.setattr(AgentContext, "witness_clients", clients)


def _lie(witness: RpcChain, forged: Anchor) -> object:
    honest = MemoryAnchorClient.get_anchor

    def get_anchor(self: MemoryAnchorClient, owner: str) -> Anchor | None:
        return forged if self.chain is witness else honest(self, owner)

    return get_anchor
