"""What the command line says about an anchoring that an earlier run left unfinished."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mycelium_sdk.memory import AgentMemory
from mycelium_sdk.steps import Step
from tests.crashing import killed_at

if TYPE_CHECKING:
    from mycelium_sdk.wallet import Wallet
    from tests.cli.conftest import Cli

NOTE = "note: version 1, interrupted earlier, was finished\n"


def anchor_and_die(at: Step) -> None:
    with AgentMemory() as memory:
        memory.remember("one")
        with killed_at(at):
            memory.anchor()


@pytest.mark.parametrize(("at", "said"), [(Step.SIGNED, True), (Step.SENT, True), (Step.RECORDED, False)])
def test_the_next_anchor_says_that_it_was_finished(cli: Cli, wallet: Wallet, at: Step, *, said: bool) -> None:
    anchor_and_die(at)
    outcome = cli("memory", "anchor", "--json")
    assert outcome.json["version"] == 2
    assert (NOTE in outcome.err) is said
    assert "interrupted" not in cli("memory", "anchor").err


@pytest.mark.parametrize("command", ["verify", "status"])
def test_a_look_says_it_once(cli: Cli, wallet: Wallet, command: str) -> None:
    anchor_and_die(Step.SENT)
    cli("memory", "remember", "two")  # so that the memory is ahead of what was finished
    outcome = cli("memory", command)
    assert "AHEAD" in outcome.out
    assert NOTE in outcome.err
    assert "interrupted" not in cli("memory", command).err
