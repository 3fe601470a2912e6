"""The state folder is lost, and the key that vouches for the memory with it: what is said leads out."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from mycelium_sdk.errors import Tampered
from mycelium_sdk.memory.verification import TamperedWarning
from mycelium_sdk.verdicts import Verdict

if TYPE_CHECKING:
    from mycelium_sdk.memory import AgentMemory
    from tests.memory.conftest import World


def lose_state(world: World, name: str = "a") -> AgentMemory:
    world.close()
    shutil.rmtree(world.folder / name / "state")
    return world.machine(name)


def texts(memory: AgentMemory) -> set[str]:
    return {one.record.content for one in memory.backend.iter_records()}


def test_what_is_anchored_is_vouched_for_anew(world: World) -> None:
    memory = world.machine("a")
    memory.remember("one")
    memory.anchor()
    memory = lose_state(world)
    assert memory.verify()
    memory.remember("two")
    assert memory.anchor() == 2


def test_what_was_anchored_once_is_vouched_for_though_another_machine_went_on(world: World) -> None:
    memory, other = world.machine("a"), world.machine("b")
    memory.remember("one")
    memory.anchor()
    other.rehydrate()
    for text in ("two", "three"):
        other.remember(text)
        other.anchor()
    memory = lose_state(world)
    assert memory.verify().verdict is Verdict.DIVERGED
    assert memory.rehydrate() == {"version": 3, "records": 3}
    assert memory.verify()


def test_writes_that_were_not_anchored_are_taken_along_by_hand(world: World) -> None:
    memory = world.machine("a")
    memory.remember("one")
    memory.anchor()
    memory.remember("precious")
    memory = lose_state(world)
    answer = memory.verify()
    assert answer.verdict is Verdict.DIVERGED
    assert "vouches" in answer.message
    for act in (memory.sync, memory.rehydrate, memory.anchor):
        with pytest.raises(Tampered, match="nothing on this machine vouches") as caught:
            act()
        assert caught.value.hint == answer.next_step
    assert "export rescued.jsonl`" in answer.next_step
    kept = texts(memory)
    memory.rehydrate(on_conflict="replace")
    for text in sorted(kept - texts(memory)):
        memory.remember(text)
    assert memory.anchor() == 2
    assert texts(memory) == {"one", "precious"}


def test_where_nothing_was_ever_anchored_a_person_vouches(world: World) -> None:
    memory = world.machine("a")
    memory.remember("precious")
    memory = lose_state(world)
    answer = memory.verify()
    assert answer.verdict is Verdict.NOT_ANCHORED
    with pytest.raises(Tampered) as caught:
        memory.anchor()
    assert caught.value.hint == answer.next_step
    assert "--overwrite" in answer.next_step
    with pytest.warns(TamperedWarning, match="counts as genuine from now on"):
        assert memory.anchor(overwrite=True) == 1
    memory.remember("later")
    assert [hit["content"] for hit in memory.recall("precious")] == ["precious"]
    assert memory.anchor() == 2
    assert memory.verify()
    assert texts(memory) == {"precious", "later"}
