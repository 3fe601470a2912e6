"""Edits of the memory file behind the store's back, and a file whose key is on another machine."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

import pytest

from mycelium_sdk.errors import Tampered
from mycelium_sdk.verdicts import Verdict

if TYPE_CHECKING:
    from mycelium_sdk.memory import AgentMemory
    from tests.memory.conftest import World


def anchored(world: World) -> AgentMemory:
    memory = world.machine("a")
    memory.remember("pays in euro", session="monday")
    memory.remember("lives in Porto", session="monday")
    memory.anchor()
    return memory


def edit(world: World, statement: str) -> AgentMemory:
    """The memory of machine "a" after `statement` was run on its file."""
    memory = anchored(world)
    path = memory.context.home.memory_file(memory.owner)
    memory.close()
    connection = sqlite3.connect(path)
    assert connection.execute(statement).rowcount > 0
    connection.commit()
    connection.close()
    return world.machine("a")


EDITS = {
    "content": "UPDATE memories SET fragment = replace(fragment, 'euro', 'gold')",
    "no record": "UPDATE memories SET fragment = 'nonsense'",
    "no text": "UPDATE memories SET fragment = cast(x'ff' AS TEXT)",
    "session": "UPDATE memories SET session = 'friday'",
    "time": "UPDATE memories SET time = 1.0",
    "deletion": "DELETE FROM memories WHERE fragment LIKE '%euro%'",
    "counter": "UPDATE store SET changes = changes + 1",
}


@pytest.mark.parametrize("name", EDITS)
def test_an_edit_is_noticed_never_anchored_and_mended_by_loading(world: World, name: str) -> None:
    memory = edit(world, EDITS[name])
    result = memory.verify()
    assert result.verdict is Verdict.TAMPERED
    assert not result
    assert all("euro" not in text and "gold" not in text for text in (str(result), *result.warnings))
    with pytest.raises(Tampered):
        memory.anchor()
    with pytest.raises(Tampered):
        memory.rehydrate()
    assert memory.rehydrate(on_conflict="replace") == {"version": 1, "records": 2}
    assert memory.verify()
    assert {hit["content"] for hit in memory.recall("euro Porto")} == {"pays in euro", "lives in Porto"}


def test_an_edit_cannot_hide_behind_a_later_write(world: World) -> None:
    memory = edit(world, EDITS["content"])
    with pytest.raises(Tampered):
        memory.recall("gold")
    memory.remember("something new")
    assert memory.verify().verdict is Verdict.TAMPERED
    with pytest.raises(Tampered):
        memory.on_job_complete()


def lose_key(memory: AgentMemory) -> None:
    keys = memory.context.home.integrity
    memory.close()
    for key in keys.iterdir():
        key.unlink()


def test_a_memory_without_its_key_is_adopted_iff_it_is_what_is_anchored(world: World) -> None:
    lose_key(anchored(world))
    memory = world.machine("a")
    assert memory.verify()
    memory.remember("three")
    assert memory.anchor() == 2


def test_a_memory_without_its_key_that_is_something_else_is_not_anchored(world: World) -> None:
    memory = anchored(world)
    memory.remember("three")
    lose_key(memory)
    memory = world.machine("a")
    assert memory.verify().verdict is Verdict.DIVERGED
    with pytest.raises(Tampered, match="vouches"):
        memory.anchor()
    with pytest.raises(Tampered):
        memory.rehydrate()
    memory.rehydrate(on_conflict="replace")
    assert memory.verify()
    assert memory.count() == 2
