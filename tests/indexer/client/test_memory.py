"""A memory whose indexer has what its RPC server has dropped; and one whose indexer has less."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from mycelium_sdk.errors import InputError
from mycelium_sdk.memory import AsyncAgentMemory
from tests.canaries import TEXT
from tests.indexer.api.ground import Api

if TYPE_CHECKING:
    from mycelium_sdk.chain.history import AnchorHistory

    from .conftest import Ground


def versions(history: AnchorHistory) -> list[int]:
    return [one.anchor.version for one in history.anchors]


def test_what_the_server_dropped_comes_from_the_indexer(ground: Ground) -> None:
    memory = ground.memory()
    ground.anchor(memory, *(f"{TEXT} {number}" for number in range(1, 6)))
    ground.follow()
    url = ground.serve()
    ground.fault("retention", methods=["getEvents"], ledgers=2)
    # The chain alone has lost the older part, and with it the older versions.
    alone = memory.history()
    assert not alone.complete
    assert alone.anchors[-1].anchor.version > 2
    with pytest.raises(InputError, match="version 2 is not in the history that is known here"):
        memory.rehydrate(version=2)
    ground.url = url
    there = ground.memory()
    history = there.history()
    assert versions(history) == [5, 4, 3, 2, 1]
    assert (history.verified, history.complete, history.notes) == (True, True, ())
    assert there.rehydrate(version=2) == {"version": 2, "records": 2}
    assert {one.record.content for one in there.backend.iter_records()} == {f"{TEXT} 1", f"{TEXT} 2"}
    assert len(there.diff(2, 5).added) == 3


def test_the_newest_come_from_the_chain_and_the_oldest_from_an_indexer_that_is_behind(ground: Ground) -> None:
    memory = ground.memory()
    ground.anchor(memory, "one", "two", "three")
    ground.follow()
    ground.url = ground.serve()
    ground.anchor(memory, "four", "five", "six")
    ground.fault("retention", methods=["getEvents"], ledgers=4)
    there = ground.memory("there")
    history = there.history()
    assert versions(history) == [6, 5, 4, 3, 2, 1]
    assert history.complete
    # If what lies between is lost as well, the history ends there, and nobody is accused.
    ground.fault("retention", methods=["getEvents"], ledgers=4)
    ground.skip(3)
    shorter = there.history()
    assert versions(shorter)[0] == 6
    assert not shorter.complete
    assert shorter.notes == ()


def test_an_anchor_that_is_made_between_looking_at_the_chain_and_at_the_indexer(ground: Ground) -> None:
    """The indexer is then ahead of what was read, and the chain, asked again, agrees with it."""
    first = ground.memory()
    ground.anchor(first, "one", "two")
    ground.follow()
    honest = ground.serve()
    made: list[int] = []

    def change(path: str, document: object) -> object:
        if made:
            return document
        first.remember("three")
        made.append(first.anchor())
        ground.follow()
        return Api(int(honest.rpartition(":")[2])).get(path).json

    ground.url = ground.mirror(honest, change)
    there = ground.memory("there")
    assert versions(there.history()) == [2, 1]
    assert made == [3]
    assert versions(there.history()) == [3, 2, 1]


def test_a_process_that_never_saw_the_memory_and_asyncio(ground: Ground) -> None:
    ground.anchor(ground.memory(), "one", "two")
    ground.follow()
    ground.url = ground.serve()

    async def ask() -> AnchorHistory:
        async with AsyncAgentMemory(ground.context("there")) as memory:
            return await memory.history()

    assert versions(asyncio.run(ask())) == [2, 1]
