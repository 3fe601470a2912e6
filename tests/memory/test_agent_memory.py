"""The rest of AgentMemory: policy, threads, the async twin, what is imported when."""

from __future__ import annotations

import asyncio
import inspect
import subprocess
import sys
import threading
from typing import TYPE_CHECKING

import pytest

import mycelium
import mycelium_sdk.memory
from mycelium_sdk.errors import ConfigError, InputError, PublishFailed
from mycelium_sdk.memory import AgentMemory, AnchoringPolicy, AsyncAgentMemory, LocalVectorBackend

if TYPE_CHECKING:
    from pathlib import Path

    from tests.memory.conftest import World


def test_on_job_complete_anchors_iff_dirty(world: World) -> None:
    memory = world.machine("a")
    assert memory.on_job_complete() is None
    memory.remember("one")
    assert memory.on_job_complete() == 1
    assert memory.on_job_complete() is None


def test_heartbeat_keeps_its_pace_across_processes(world: World) -> None:
    policy = AnchoringPolicy(heartbeat_seconds=3600, min_writes=2)
    memory = world.machine("a", policy=policy)
    memory.remember("one")
    assert memory.heartbeat() is None
    memory.remember("two")
    assert memory.heartbeat() == 1
    memory.remember("three")
    memory.remember("four")
    assert memory.heartbeat() is None
    assert world.machine("a", policy=policy).heartbeat() is None
    quick = world.machine("a", policy=AnchoringPolicy(heartbeat_seconds=0, min_writes=2))
    assert quick.heartbeat() == 2
    assert quick.heartbeat() is None


def test_a_repeated_remember_is_no_write_and_a_forget_is_one(world: World) -> None:
    memory = world.machine("a", policy=AnchoringPolicy(heartbeat_seconds=0, min_writes=1))
    first = memory.remember("one")
    memory.remember("two")
    memory.anchor()
    memory.remember("one")
    assert memory.heartbeat() is None
    memory.forget(first)
    assert memory.heartbeat() == 2


def test_many_threads_lose_nothing(world: World) -> None:
    memory = world.machine("a")

    def work(number: int) -> None:
        for step in range(10):
            memory.remember(f"memory {number} {step}")
            memory.recall("memory")

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert memory.count() == 80
    assert memory.anchor() == 1
    assert memory.verify()


def test_backends_by_name_and_by_instance(world: World, tmp_path: Path) -> None:
    with LocalVectorBackend(world.wallet.address, path=tmp_path / "own.db") as backend:
        memory = world.machine("a", backend=backend)
        memory.remember("one")
        memory.close()
        assert backend.count() == 1
    assert world.machine("a", backend="local", backend_kwargs={"path": tmp_path / "own.db"}).count() == 1
    with pytest.raises(ConfigError):
        world.machine("a", backend="redis")
    with pytest.raises(InputError):
        world.machine("a", backend="local", backend_kwargs={"speed": 11})


def test_a_backend_of_another_owner_is_refused(world: World) -> None:
    other = "GAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAWHF"
    with LocalVectorBackend(other, path=":memory:") as backend, pytest.raises(InputError):
        world.machine("a", backend=backend)


def test_closing_twice_is_harmless(world: World) -> None:
    memory = world.machine("a")
    memory.remember("one")
    memory.close()
    memory.close()


async def test_the_async_twin_does_the_same(world: World) -> None:
    async with AsyncAgentMemory(world.context("a")) as memory:
        await memory.remember("likes tea", tags=["pref"])
        assert await memory.is_dirty()
        assert await memory.anchor() == 1
        assert [hit["content"] for hit in await memory.recall("tea")] == ["likes tea"]
        assert await memory.verify()
        assert await memory.on_job_complete() is None
    async with AsyncAgentMemory(world.context("b")) as other:
        assert await other.rehydrate() == {"version": 1, "records": 1}
        assert await other.count() == 1


async def test_the_async_twin_awaits_what_it_is_given(world: World) -> None:
    blobs: dict[str, bytes] = {}

    async def publish(blob: bytes) -> str:
        await asyncio.sleep(0)
        blobs["https://example.org/m"] = blob
        return "https://example.org/m"

    async def fetch(uri: str) -> bytes:
        await asyncio.sleep(0)
        return blobs[uri]

    async with AsyncAgentMemory(world.context("a")) as memory:
        await memory.remember("one")
        assert await memory.anchor(publish=publish) == 1
    async with AsyncAgentMemory(world.context("b")) as other:
        assert await other.rehydrate(fetch=fetch) == {"version": 1, "records": 1}


def test_the_plain_one_says_that_it_does_not_await(world: World) -> None:
    async def publish(blob: bytes) -> str:
        return "https://example.org/m"

    async def fetch(uri: str) -> bytes:
        return b""

    memory = world.machine("a")
    memory.remember("one")
    with pytest.raises(PublishFailed, match="asynchronous"):
        memory.anchor(publish=publish)  # type: ignore[arg-type]
    memory.anchor(uri="https://example.org/m")
    with pytest.raises(InputError, match="asynchronous"):
        world.machine("b").rehydrate(fetch=fetch)  # type: ignore[arg-type]


def test_no_method_is_missing_in_the_async_twin() -> None:
    def public(kind: type) -> dict[str, object]:
        return {name: inspect.getattr_static(kind, name) for name in dir(kind) if not name.startswith("_")}

    sync, twin = public(AgentMemory), public(AsyncAgentMemory)
    assert set(sync) == set(twin)
    for name, member in sync.items():
        if inspect.isfunction(member):
            other = twin[name]
            assert inspect.iscoroutinefunction(other), name
            assert (
                inspect.signature(member).parameters.keys() == inspect.signature(other).parameters.keys()
            ), name


@pytest.mark.parametrize("module", [mycelium, mycelium_sdk.memory])
def test_every_export_is_there(module: object) -> None:
    names = module.__all__  # type: ignore[attr-defined]
    assert sorted(names) == dir(module)
    for name in names:
        assert getattr(module, name) is not None


def test_importing_loads_nothing_heavy() -> None:
    script = (
        "import sys, mycelium, mycelium_sdk.memory; from mycelium_sdk.memory import AgentMemory;"
        "heavy = {'stellar_sdk', 'mycelium_localnet', 'numpy', 'requests', 'cryptography', 'click'} | "
        "{'mycelium_sdk.backends.local', 'mycelium_sdk.chain.rpc'};"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_packages_are_this_project_s() -> None:
    from pathlib import Path

    root = Path(__file__).resolve().parents[2]
    for module in (mycelium, mycelium_sdk.memory):
        assert Path(str(module.__file__)).is_relative_to(root / "sdk")
