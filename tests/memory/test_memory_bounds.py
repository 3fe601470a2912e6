"""How much memory the procedures take, by what Python allocates: at most the blob, once for each that is at
hand, and never a list of all memories. (SQLite's caches have bounds of their own.)"""

from __future__ import annotations

import io
import tracemalloc
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from mycelium_sdk.memory import AgentMemory
    from tests.memory.conftest import World

RECORDS = 10_000
APART = 2 << 20
"""Allowed besides, whatever the number of memories: modules, caches, a few chunks."""


def peak(action: Callable[[], object]) -> int:
    """The most bytes that Python had allocated during the call, over those before it."""
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        action()
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


def fill(memory: AgentMemory, of: str) -> None:
    memory.backend.remember_many([f"{of} {number}: {'what it says, ' * 50}" for number in range(RECORDS)])


@pytest.fixture
def anchored(world: World) -> AgentMemory:
    """A memory that is anchored, so that everything the procedures need is loaded."""
    memory = world.machine("a")
    fill(memory, "memory")
    memory.anchor()
    return memory


def test_anchoring_takes_one_blob(anchored: AgentMemory) -> None:
    size = len(anchored.backend.export_blob())
    assert size > 3 * APART
    anchored.remember("one more")
    assert peak(anchored.anchor) < 1.25 * size + APART


def test_verifying_takes_no_blob(anchored: AgentMemory) -> None:
    assert peak(anchored.verify) < APART


def test_importing_from_a_file_takes_no_blob(anchored: AgentMemory) -> None:
    blob = anchored.backend.export_blob()
    assert len(blob) > 3 * APART
    anchored.backend.clear()
    assert peak(lambda: anchored.backend.import_blob(io.BytesIO(blob))) < 2 * APART
    assert anchored.backend.count() == RECORDS


def test_loading_takes_one_blob(anchored: AgentMemory, world: World) -> None:
    size = len(anchored.backend.export_blob())
    elsewhere = world.machine("b")
    elsewhere.verify()
    assert peak(elsewhere.rehydrate) < 1.25 * size + APART
    assert elsewhere.backend.count() == RECORDS


def test_merging_takes_the_blobs_that_it_is_about(anchored: AgentMemory, world: World) -> None:
    size = len(anchored.backend.export_blob())
    elsewhere = world.machine("b")
    fill(elsewhere, "other")
    # The anchored blob, and the merged one that is twice as large.
    assert peak(lambda: elsewhere.rehydrate(on_conflict="merge")) < 3.5 * size + APART
    assert elsewhere.backend.count() == 2 * RECORDS
