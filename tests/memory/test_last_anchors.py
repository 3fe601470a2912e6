"""A backend that several machines share keeps the last anchors itself, so that a machine which keeps nothing
has them all the same."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from mycelium_sdk.backends.local import LocalVectorBackend
from mycelium_sdk.errors import BackendError, VersionConflict
from mycelium_sdk.memory import AnchoringPolicy
from mycelium_sdk.state import ChainKey, LastAnchor, StateStore
from mycelium_sdk.steps import Step, observed
from mycelium_sdk.verdicts import Verdict
from tests.crashing import Killed

if TYPE_CHECKING:
    from pathlib import Path

    from mycelium_sdk.facts import LastAnchors
    from mycelium_sdk.memory import AgentMemory
    from tests.memory.conftest import World


class SharedBackend(LocalVectorBackend):
    """Memories and their last anchors at one place, which all machines use."""

    def __init__(self, owner: str, folder: Path) -> None:
        super().__init__(owner, folder / "shared.db", integrity=folder / "keys")
        self.kept = StateStore(folder / "last-anchors.db")

    @property
    def keeps_links(self) -> bool:
        return False

    def last_anchors(self) -> LastAnchors | None:
        return self.kept

    def close(self) -> None:
        super().close()
        self.kept.close()


def machine(world: World, name: str, **arguments: Any) -> AgentMemory:
    folder = world.folder / "service"
    folder.mkdir(exist_ok=True, mode=0o700)
    backend = SharedBackend(world.wallet.address, folder)
    world.opened.append(backend)
    return world.machine(name, backend=backend, **arguments)


def key_of(memory: AgentMemory) -> ChainKey:
    newest = memory._basis.newest(memory.context.network.passphrase, memory.contract_id)
    assert newest is not None
    return newest[0]


def test_a_machine_that_keeps_nothing_goes_on_where_another_stopped(world: World) -> None:
    first = machine(world, "a")
    first.remember("one")
    assert first.anchor() == 1
    fresh = machine(world, "b")
    assert not fresh.is_dirty
    last = fresh.last_anchor
    assert last is not None
    assert (last.version, last.link) == (1, None)
    fresh.remember("two")
    assert fresh.verify().verdict is Verdict.AHEAD
    assert machine(world, "c").anchor() == 2
    assert first.verify()


def test_the_home_state_keeps_the_rest_and_no_last_anchor(world: World) -> None:
    memory = machine(world, "a")
    memory.remember("one")
    memory.anchor()
    key = key_of(memory)
    assert memory._state.last_anchor(key) is None
    assert memory._state.mark(key) is not None
    assert memory._state.known_anchor(key, memory.memory_root()) is not None
    kept = memory.backend.last_anchors()
    assert isinstance(kept, StateStore)
    assert kept.mark(key) is None


def test_a_local_memory_of_the_same_home_is_another_one(world: World) -> None:
    shared = machine(world, "a")
    shared.remember("one")
    shared.anchor()
    local = world.machine("a")
    assert local.last_anchor is None
    local.remember("other")
    assert local.verify().verdict is Verdict.DIVERGED


def test_the_heartbeat_of_stateless_machines_is_one_heartbeat(world: World) -> None:
    policy = AnchoringPolicy(heartbeat_seconds=3600, min_writes=2)
    machine(world, "a", policy=policy).remember("one")
    assert machine(world, "b", policy=policy).heartbeat() is None
    machine(world, "c", policy=policy).remember("two")
    assert machine(world, "d", policy=policy).heartbeat() == 1
    memory = machine(world, "e", policy=policy)
    for number in range(5):
        memory.remember(f"more {number}")
    assert machine(world, "f", policy=policy).heartbeat() is None
    due = AnchoringPolicy(heartbeat_seconds=0, min_writes=5)
    assert machine(world, "g", policy=due).heartbeat() == 2


def last_version(memory: AgentMemory) -> int | None:
    last = memory.last_anchor
    return None if last is None else last.version


def test_a_crash_between_the_two_records_is_mended_by_the_next_run(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = machine(world, "a")
    memory.remember("one")

    def die(*_: object, **__: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(StateStore, "settle", die)
        with pytest.raises(Killed):
            memory.anchor()
    memory = machine(world, "a")
    key = key_of(memory)
    assert memory._state.intent(key) is not None, "the intent must outlive the shared record"
    assert not memory.is_dirty
    result = memory.verify()
    assert result
    assert result.settled == 1
    assert memory._state.intent(key) is None
    assert memory.anchor() == 2


def test_a_service_that_fails_after_sending_loses_no_anchor(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = machine(world, "a")
    memory.remember("one")

    def fail(self: StateStore, key: ChainKey, anchor: LastAnchor) -> None:
        raise BackendError("the service does not answer")

    with monkeypatch.context() as patch:
        patch.setattr(StateStore, "record_last", fail)
        with pytest.raises(BackendError, match="does not answer"):
            memory.anchor()
    memory = machine(world, "a")
    assert last_version(memory) is None
    memory.remember("two")
    result = memory.verify()
    assert (result.verdict, result.settled) == (Verdict.AHEAD, 1)
    assert last_version(memory) == 1
    assert memory.anchor() == 2


def test_a_machine_whose_record_is_late_takes_nothing_back(world: World) -> None:
    first = machine(world, "a")
    first.remember("one")
    versions: list[int] = []

    def overtake(step: Step) -> None:
        if step is Step.SENT and not versions:
            versions.append(0)  # only once
            second = machine(world, "b")
            assert second.verify()
            second.remember("two")
            versions.append(second.anchor())

    with observed(overtake):
        assert first.anchor() == 1
    assert versions == [0, 2]
    last = first.last_anchor
    assert last is not None
    assert last.version == 2
    assert first.verify()


def test_two_machines_that_anchor_at_once_are_told(world: World) -> None:
    first = machine(world, "a")
    first.remember("one")
    first.anchor()

    def upload(blob: bytes) -> str:
        machine(world, "b").anchor(uri="https://example.org/b")
        return "https://example.org/a"

    with pytest.raises(VersionConflict):
        first.anchor(publish=upload)
    assert first.verify()
    assert first.anchor() == 3


def test_trusting_the_chain_anew_forgets_what_was_shared(world: World) -> None:
    memory = machine(world, "a")
    memory.remember("one")
    memory.anchor()
    world.close()
    for path in world.folder.glob("chain.db*"):
        path.unlink()
    memory = machine(world, "a")
    assert memory.verify().verdict is Verdict.CHAIN_RESET
    assert memory.trust_chain_anew()
    assert memory.last_anchor is None
    assert memory.anchor() == 1
    assert machine(world, "b").verify()
