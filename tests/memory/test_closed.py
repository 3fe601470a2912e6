"""A closed memory says so, whichever part of it is asked, and never that something is damaged."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Any

import pytest

from mycelium_sdk.backends.tiered.queue import Queue
from mycelium_sdk.errors import BackendError
from mycelium_sdk.memory import AgentMemory, AsyncAgentMemory, LocalVectorBackend
from mycelium_sdk.state import ChainKey, StateStore

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.memory.conftest import World

METHODS: dict[str, tuple[Any, ...]] = {
    "remember": ("a text",),
    "recall": ("a text",),
    "forget": ("1",),
    "versions_holding": ("1",),
    "memory_root": (),
    "is_dirty": (),
    "last_anchor": (),
    "anchor": (),
    "anchor_with_receipt": (),
    "get_anchor": (),
    "verify": (),
    "rehydrate": (),
    "rehydrate_with_report": (),
    "sync": (),
    "history": (),
    "diff": (1,),
    "purge": (),
    "keep_alive": (),
    "trust_chain_anew": (),
    "on_job_complete": (),
    "heartbeat": (),
    "count": (),
}
"""Every method that touches a disk or a chain, with arguments."""

ALWAYS = {"backend", "close", "context", "contract_id", "owner"}
"""What a closed memory still answers."""


def is_refused(call: Callable[[], object]) -> None:
    with pytest.raises(BackendError) as raised:
        call()
    assert (raised.value.message, raised.value.hint) == ("the memory is closed", "open it again")


def use(memory: AgentMemory, name: str) -> object:
    found = getattr(memory, name)
    return found(*METHODS[name]) if callable(found) else found


def test_the_methods_are_all_there_are() -> None:
    assert {name for name in dir(AgentMemory) if not name.startswith("_")} == METHODS.keys() | ALWAYS


def test_every_method_of_a_closed_memory_says_that_it_is_closed(world: World) -> None:
    memory = world.machine("a")
    memory.remember("a text")
    memory.anchor()
    assert memory.verify()
    memory.close()
    for name in METHODS:
        is_refused(lambda name=name: use(memory, name))  # type: ignore[misc]
    memory.close()


def test_a_memory_that_was_never_used_opens_nothing_once_it_is_closed(world: World) -> None:
    memory = world.machine("a")
    memory.close()
    for name in METHODS:
        is_refused(lambda name=name: use(memory, name))  # type: ignore[misc]
    assert not memory.context.home.state_file.exists()


def test_a_backend_of_the_callers_stays_open_and_the_memory_is_closed(world: World) -> None:
    context = world.context("a")
    with LocalVectorBackend(context.address) as backend:
        memory = AgentMemory(context, backend)
        memory.close()
        is_refused(memory.count)
        assert backend.count() == 0


def test_the_asynchronous_memory_says_the_same(world: World) -> None:
    async def main() -> None:
        memory = AsyncAgentMemory(world.context("a"))
        await memory.close()
        for name, arguments in METHODS.items():
            with pytest.raises(BackendError, match="the memory is closed"):
                await getattr(memory, name)(*arguments)

    asyncio.run(main())


def test_a_closed_state_and_a_closed_queue_say_so(tmp_path: Path) -> None:
    state, queue = StateStore(tmp_path / "state.db"), Queue(tmp_path / "queue.db")
    for each in (state, queue):
        each.close()
    key = ChainKey("Network ; 1", "CCONTRACT", "GOWNER", "aa")
    is_refused(lambda: state.last_anchor(key))
    is_refused(lambda: state.drop_intent(key))
    is_refused(queue.whole)


def test_a_forked_child_does_not_open_a_closed_file_again(tmp_path: Path) -> None:
    state = StateStore(tmp_path / "state.db")
    state.close()
    (tmp_path / "state.db").unlink()
    child = os.fork()
    if child == 0:
        try:
            state.conflicts("Network ; 1", "CCONTRACT", "GOWNER")
        except BackendError as error:
            os._exit(0 if error.message == "the memory is closed" else 2)
        os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    assert not (tmp_path / "state.db").exists()
