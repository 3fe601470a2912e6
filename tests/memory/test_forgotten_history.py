"""An anchoring that was cut short long ago: the chain's history does not reach it, and the anchor tells."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from mycelium_sdk.chain.embedded import EmbeddedChain
from mycelium_sdk.errors import Unsettled, VersionConflict
from mycelium_sdk.steps import Step
from tests.crashing import killed_at

if TYPE_CHECKING:
    from mycelium_sdk.chain.base import SignedTransaction
    from mycelium_sdk.memory import AgentMemory
    from tests.memory.conftest import World

RETENTION = 120_960  # ledgers, and the eight days below are longer than a transaction is valid


def sign_and_die(memory: AgentMemory) -> None:
    with killed_at(Step.SIGNED):
        memory.anchor()


def let_history_be_forgotten(memory: AgentMemory) -> None:
    chain = memory.context.chain
    assert isinstance(chain, EmbeddedChain)
    chain.localnet.skip_ledgers(RETENTION + 10)
    chain.localnet.set_time(int(time.time()) + 8 * 86_400)
    chain.localnet.close_ledger()


def watch_resumptions(monkeypatch: pytest.MonkeyPatch) -> list[type[BaseException] | None]:
    """How each attempt to bring an earlier transaction to its end comes out."""
    outcomes: list[type[BaseException] | None] = []
    resume = EmbeddedChain.resume

    def watched(self: EmbeddedChain, signed: SignedTransaction) -> object:
        try:
            receipt = resume(self, signed)
        except Exception as error:
            outcomes.append(type(error))
            raise
        outcomes.append(None)
        return receipt

    monkeypatch.setattr(EmbeddedChain, "resume", watched)
    return outcomes


def test_one_that_was_never_sent_is_made_anew(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    memory = world.machine("a")
    memory.remember("one")
    sign_and_die(memory)
    let_history_be_forgotten(memory)
    outcomes = watch_resumptions(monkeypatch)
    assert world.machine("a").anchor() == 1
    assert outcomes == [Unsettled]
    assert world.machine("a").verify()


def test_one_that_others_came_after_is_a_conflict(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    memory = world.machine("a")
    memory.remember("one")
    memory.anchor()
    other = world.machine("b")
    other.rehydrate()
    memory.remember("two")
    sign_and_die(memory)
    other.remember("three")
    assert other.anchor() == 2
    let_history_be_forgotten(memory)
    outcomes = watch_resumptions(monkeypatch)
    with pytest.raises(VersionConflict):
        world.machine("a").anchor()
    assert outcomes == [], "version 2 is another's, so it never was made: nobody need be asked for it"


def test_one_that_may_still_be_applied_is_not_given_up(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    memory = world.machine("a")
    memory.remember("one")
    sign_and_die(memory)

    def unknown(_self: EmbeddedChain, signed: SignedTransaction) -> None:
        raise Unsettled("not known yet", hash=signed.hash)

    with monkeypatch.context() as patch:
        patch.setattr(EmbeddedChain, "resume", unknown)
        with pytest.raises(Unsettled):
            world.machine("a").anchor()
    assert world.machine("a").anchor() == 2, "the first is finished, and this is another"
