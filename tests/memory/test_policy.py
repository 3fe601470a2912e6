"""When a heartbeat is due, also where several processes and clocks that were set have a part in it."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import time
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from mycelium_sdk.chain.embedded import EmbeddedChain
from mycelium_sdk.errors import InputError, Rollback
from mycelium_sdk.memory import AnchoringPolicy, commitment
from mycelium_sdk.steps import Step
from tests.crashing import killed_at
from tests.memory.conftest import PASSPHRASE
from tests.memory.files import put_back

if TYPE_CHECKING:
    from mycelium_sdk.memory import AgentMemory
    from tests.memory.conftest import World


@pytest.mark.parametrize(
    ("writes", "last_anchor", "due"),
    [
        (1, None, True),
        (0, None, False),
        (1, 900.0, True),
        (1, 901.0, False),
        (5, 1_000.0, False),
        (0, 0.0, False),
        (1, 5_000.0, True),  # in the future: a clock was set back
    ],
)
def test_due(writes: int, last_anchor: float | None, due: bool) -> None:
    policy = AnchoringPolicy(heartbeat_seconds=100, min_writes=1)
    assert policy.due(writes=writes, last_anchor=last_anchor, now=1_000.0) is due


def test_min_writes() -> None:
    policy = AnchoringPolicy(heartbeat_seconds=0, min_writes=3)
    assert not policy.due(writes=2, last_anchor=None, now=1.0)
    assert policy.due(writes=3, last_anchor=None, now=1.0)


@pytest.mark.parametrize(
    "arguments",
    [
        {"heartbeat_seconds": -1},
        {"heartbeat_seconds": True},
        {"heartbeat_seconds": "60"},
        {"heartbeat_seconds": float("nan")},
        {"heartbeat_seconds": float("inf")},
        {"min_writes": 0},
        {"min_writes": 1.5},
        {"min_writes": True},
    ],
)
def test_bad_thresholds_are_refused(arguments: dict[str, Any]) -> None:
    with pytest.raises(InputError) as caught:
        AnchoringPolicy(**arguments)
    assert caught.value.hint


def started(world: World, name: str, script: str) -> subprocess.Popen[str]:
    """`script` in a process of its own, on the machine `name`; what it prints is read from its stdout."""
    prelude = """
        import pathlib, sys
        from mycelium_sdk.config import load_configuration
        from mycelium_sdk.context import AgentContext
        from mycelium_sdk.memory import AgentMemory, AnchoringPolicy
        folder, name, wallet = sys.argv[1:]
        configuration = load_configuration(
            start=pathlib.Path(folder),
            env={"MYCELIUM_HOME": f"{folder}/{name}"},
            overrides={"onchain.chain_file": f"{folder}/chain.db", "wallet.path": wallet},
        )
        ctx = AgentContext(configuration=configuration)
    """
    program = textwrap.dedent(prelude) + textwrap.dedent(script)
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", program, world.folder, name, world.wallet.path],
        env={**os.environ, "MYCELIUM_DECRYPT_KEY": PASSPHRASE},
        stdout=subprocess.PIPE,
        text=True,
    )


def answer(process: subprocess.Popen[str]) -> str:
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    return out.strip()


def test_the_writes_of_all_processes_count_and_one_of_them_anchors(world: World) -> None:
    memory = world.machine("a", policy=AnchoringPolicy(heartbeat_seconds=0, min_writes=4))
    memory.remember("mine")
    memory.anchor()
    writing = """
        with AgentMemory(ctx) as memory:
            memory.remember("theirs")
            memory.remember("theirs")  # which is no write
            memory.forget(memory.remember("forgotten again"))
    """
    answer(started(world, "a", writing))
    assert memory.heartbeat() is None
    memory.remember("the fourth")
    beating = """
        with AgentMemory(ctx, policy=AnchoringPolicy(heartbeat_seconds=0, min_writes=4)) as memory:
            print(memory.heartbeat())
    """
    processes = [started(world, "a", beating) for _ in range(2)]
    assert sorted(answer(process) for process in processes) == ["2", "None"]
    assert memory.heartbeat() is None
    assert memory.verify()


def test_what_was_forgotten_again_is_nothing_to_anchor_and_no_write_after_a_look(world: World) -> None:
    memory = world.machine("a", policy=AnchoringPolicy(heartbeat_seconds=0, min_writes=3))
    memory.remember("kept")
    memory.anchor()
    for number in range(5):
        memory.forget(memory.remember(f"passing {number}"))
    assert memory.heartbeat() is None
    assert memory.on_job_complete() is None
    assert memory.verify()
    memory.remember("one")
    memory.remember("two")
    assert memory.heartbeat() is None, "the writes that came to nothing were counted"
    memory.forget(tag="none")
    assert memory.heartbeat() is None
    memory.remember("three")
    assert memory.heartbeat() == 2


def beat(memory: AgentMemory, monkeypatch: pytest.MonkeyPatch, *, at: float) -> int | None:
    """The heartbeat of a machine whose clock says `at`."""
    with monkeypatch.context() as patch:
        patch.setattr(commitment, "time", SimpleNamespace(time=lambda: at))
        return memory.heartbeat()


def test_a_clock_that_was_set_back_stops_no_heartbeat(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    memory = world.machine("a", policy=AnchoringPolicy(heartbeat_seconds=3600))
    memory.remember("one")
    memory.anchor()
    last = memory.last_anchor
    assert last is not None
    memory.remember("two")
    assert beat(memory, monkeypatch, at=last.anchored_at + 3599) is None
    assert beat(memory, monkeypatch, at=last.anchored_at - 86_400) == 2
    memory.remember("three")
    assert beat(memory, monkeypatch, at=time.time() + 4000) == 3


def test_an_anchor_dated_in_the_future_stops_no_heartbeat(world: World) -> None:
    memory = world.machine("a", policy=AnchoringPolicy(heartbeat_seconds=3600))
    memory.remember("one")
    memory.get_anchor()
    chain = memory.context.chain
    assert isinstance(chain, EmbeddedChain)
    chain.localnet.set_time(int(time.time()) + 10 * 86_400)
    chain.localnet.close_ledger()
    assert memory.anchor() == 1
    memory.remember("two")
    assert memory.heartbeat() == 2


def test_another_machines_anchor_of_the_same_memory_counts(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = world.machine("a", policy=AnchoringPolicy(heartbeat_seconds=3600))
    first.remember("one")
    first.anchor()
    last = first.last_anchor
    assert last is not None
    second = world.machine("b")
    second.rehydrate()
    chain = second.context.chain
    assert isinstance(chain, EmbeddedChain)
    chain.localnet.set_time(int(last.anchored_at) + 7200)
    chain.localnet.close_ledger()
    assert second.anchor() == 2
    first.remember("two")
    assert beat(first, monkeypatch, at=last.anchored_at + 7300) is None


def test_the_heartbeat_of_a_lost_file_is_heard_to_fail(world: World) -> None:
    """With a counter below the recorded one it would look as if there were nothing to do, for ever."""
    policy = AnchoringPolicy(heartbeat_seconds=0, min_writes=2)
    memory = world.machine("a")
    for number in range(9):
        memory.remember(f"lost {number}")
    memory.anchor()
    put_back(world, "a", {})
    memory = world.machine("a", policy=policy)
    memory.remember("one")
    assert memory.heartbeat() is None
    memory.remember("two")
    with pytest.raises(Rollback):
        memory.heartbeat()


def test_an_anchoring_that_was_interrupted_is_finished_and_not_made_again(world: World) -> None:
    memory = world.machine("a")
    memory.remember("one")
    with killed_at(Step.SENT):
        memory.on_job_complete()
    again = world.machine("a")
    assert (again.is_dirty, again.on_job_complete(), again.is_dirty) == (True, None, False)
    assert (again.get_anchor() or {})["version"] == 1
    again.remember("two")
    assert again.on_job_complete() == 2
