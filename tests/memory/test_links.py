"""An old copy of a memory's file, or a new one in the place of a lost one, is never taken for the memory."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from mycelium_sdk.errors import ChainUnavailable, Rollback, UnanchoredWrites
from mycelium_sdk.memory import AnchoringPolicy
from mycelium_sdk.memory.commitment import Commitment
from mycelium_sdk.state import LastAnchor, StateStore
from mycelium_sdk.steps import Step, observed
from mycelium_sdk.verdicts import Verdict
from tests.crashing import killed_at
from tests.memory.files import keep, put_back

if TYPE_CHECKING:
    from mycelium_sdk.memory import AgentMemory
    from tests.memory.conftest import World


def remember(memory: AgentMemory, name: str, count: int) -> None:
    for number in range(count):
        memory.remember(f"{name} {number}")


def dirty(memory: AgentMemory) -> bool:
    """The property, asked anew: a checker would take a second look at it for the first one's answer."""
    return memory.is_dirty


def expect_earlier(world: World, name: str = "a") -> AgentMemory:
    """The machine's memory, which must be known to be older than its anchor and is not anchored."""
    memory = world.machine(name, policy=AnchoringPolicy(heartbeat_seconds=0, min_writes=1))
    anchor = memory.get_anchor()
    assert memory.verify().verdict is Verdict.ROLLBACK
    assert dirty(memory)
    for attempt in (memory.anchor, memory.on_job_complete, memory.heartbeat):
        with pytest.raises(Rollback, match="older than version"):
            attempt()
    assert memory.verify().verdict is Verdict.ROLLBACK, "a refusal left something behind"
    assert memory.get_anchor() == anchor
    return memory


@pytest.mark.parametrize("later", [1, 2, 9])
def test_an_old_copy_stays_old_however_much_is_written_to_it(world: World, later: int) -> None:
    """Two writes were lost: with as many later ones the change counters agree, with more the copy leads."""
    memory = world.machine("a")
    memory.remember("first")
    memory.anchor()
    old = keep(world, "a")
    memory = world.machine("a")
    remember(memory, "lost", 2)
    memory.anchor()
    put_back(world, "a", old)
    memory = world.machine("a")
    remember(memory, "later", later)
    memory = expect_earlier(world)
    with pytest.raises(UnanchoredWrites):
        memory.rehydrate()
    memory.rehydrate(on_conflict="merge")
    assert memory.count() == 3 + later
    assert memory.verify().verdict is Verdict.AHEAD
    assert memory.anchor() == 3
    assert memory.verify()


@pytest.mark.parametrize("later", [3, 9])
def test_a_lost_file_stays_lost_however_much_is_written_to_a_new_one(world: World, later: int) -> None:
    memory = world.machine("a")
    remember(memory, "lost", 3)
    memory.anchor()
    put_back(world, "a", {})
    remember(world.machine("a"), "later", later)
    memory = expect_earlier(world)
    memory.rehydrate(on_conflict="replace")
    assert memory.verify()
    assert memory.count() == 3


def test_a_new_file_with_the_very_same_memories_is_in_sync_and_goes_on(world: World) -> None:
    memory = world.machine("a")
    remember(memory, "same", 3)
    memory.anchor()
    put_back(world, "a", {})
    memory = world.machine("a")
    remember(memory, "same", 3)
    assert not dirty(memory)
    assert memory.verify()
    memory.remember("more")
    assert memory.verify().verdict is Verdict.AHEAD
    assert memory.anchor() == 2


def test_a_copy_from_before_it_was_loaded_is_old_as_well(world: World) -> None:
    first = world.machine("a")
    first.remember("anchored")
    first.anchor()
    world.machine("b").remember("before")
    old = keep(world, "b")
    memory = world.machine("b")
    memory.rehydrate(on_conflict="replace")
    put_back(world, "b", old)
    remember(world.machine("b"), "later", 5)
    expect_earlier(world, "b")


def test_a_copy_made_since_the_anchor_is_the_memory(world: World) -> None:
    memory = world.machine("a")
    memory.remember("first")
    memory.anchor()
    memory.remember("second")
    copy = keep(world, "a")
    world.machine("a").remember("lost, but never anchored")
    put_back(world, "a", copy)
    memory = world.machine("a")
    memory.remember("third")
    assert memory.verify().verdict is Verdict.AHEAD
    assert memory.anchor() == 2


def test_overwriting_with_an_old_copy_is_an_explicit_word_and_makes_it_the_memory(world: World) -> None:
    memory = world.machine("a")
    old = keep(world, "a")
    memory = world.machine("a")
    remember(memory, "lost", 2)
    memory.anchor()
    put_back(world, "a", old)
    remember(world.machine("a"), "later", 5)
    memory = expect_earlier(world)
    assert memory.anchor(overwrite=True) == 2
    memory.remember("more")
    assert memory.verify().verdict is Verdict.AHEAD
    assert memory.anchor() == 3


def test_an_anchoring_that_failed_leaves_the_memory_what_it_was(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = world.machine("a")
    memory.remember("first")
    memory.anchor()
    memory.remember("second")
    link = memory.backend.link(_chain(memory))
    copy = keep(world, "a")
    memory = world.machine("a")

    def unreachable(*_: object, **__: object) -> None:
        raise ChainUnavailable("no route")

    with monkeypatch.context() as patch:
        patch.setattr(type(memory._commitment._desk), "set_anchor_if", unreachable)
        with pytest.raises(ChainUnavailable):
            memory.anchor()
        assert memory.backend.link(_chain(memory)) == link
        with pytest.raises(ChainUnavailable):
            memory.anchor(overwrite=True)
    assert memory.verify().verdict is Verdict.AHEAD
    put_back(world, "a", copy)
    assert world.machine("a").verify().verdict is Verdict.AHEAD


def test_overwriting_that_failed_does_not_make_an_old_copy_the_memory(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = keep(world, "a")
    memory = world.machine("a")
    remember(memory, "lost", 2)
    memory.anchor()
    put_back(world, "a", old)
    memory = world.machine("a")
    remember(memory, "later", 5)
    for step in (Step.INTENDED, Step.LINKED):
        with killed_at(step):
            memory.anchor(overwrite=True)
        memory = world.machine("a")
        assert memory.verify().verdict is Verdict.ROLLBACK
    expect_earlier(world)


ANCHORING = [Step.LOOKED, Step.PUBLISHED, Step.INTENDED, Step.LINKED, Step.SIGNED, Step.SENT, Step.RECORDED]
TOOK_EFFECT = [Step.SENT, Step.RECORDED]


def test_a_crash_at_any_step_of_anchoring_is_no_rollback(world: World) -> None:
    memory = world.machine("a")
    version = memory.anchor()
    for step in ANCHORING:
        memory.remember(f"until {step}")
        with killed_at(step):
            memory.anchor()
        memory = world.machine("a")
        version += step in TOOK_EFFECT
        assert memory.verify().verdict is (Verdict.IN_SYNC if step in TOOK_EFFECT else Verdict.AHEAD), step
        memory.remember(f"after {step}")
        assert memory.verify().verdict is Verdict.AHEAD, step
        version += step is Step.SIGNED  # which is finished before the next is made
        assert memory.anchor() == version + 1
        version += 1
        assert memory.verify()
        expect_known(memory)


@pytest.mark.parametrize("step", [Step.INTENDED, Step.LINKED, Step.SIGNED, Step.SENT])
def test_a_crash_while_anchoring_for_the_first_time_is_none_either(world: World, step: Step) -> None:
    memory = world.machine("a")
    memory.remember("first")
    with killed_at(step):
        memory.anchor()
    memory = world.machine("a")
    memory.remember("second")
    sent = step in TOOK_EFFECT
    assert memory.verify().verdict is (Verdict.AHEAD if sent else Verdict.NOT_ANCHORED)
    assert memory.anchor() == (2 if sent or step is Step.SIGNED else 1)
    expect_known(memory)


@pytest.mark.parametrize("step", [Step.PUBLISHED, Step.LINKED, Step.SIGNED, *TOOK_EFFECT])
def test_a_copy_from_before_a_crash_is_told_from_what_was_anchored(world: World, step: Step) -> None:
    memory = world.machine("a")
    memory.remember("first")
    memory.anchor()
    old = keep(world, "a")
    memory = world.machine("a")
    memory.remember("lost")
    with killed_at(step):
        memory.anchor()
    put_back(world, "a", old)
    memory = world.machine("a")
    remember(memory, "later", 5)
    if step in (Step.SENT, Step.RECORDED):
        expect_earlier(world)
    elif step is Step.SIGNED:  # the next run sends it first
        with pytest.raises(Rollback):
            memory.anchor()
        expect_earlier(world)
    else:  # nothing was anchored, so nothing can be buried
        assert memory.anchor() == 2


def test_a_crash_at_any_step_of_loading_is_no_rollback(world: World) -> None:
    first = world.machine("first")
    first.remember("anchored")
    version = first.anchor()
    for step in (Step.FETCHED, Step.LOADED, Step.RECORDED, Step.LINKED, Step.CONFIRMED):
        memory = world.machine("a")
        memory.rehydrate(on_conflict="replace")
        first.rehydrate()
        first.remember(f"until {step}")
        assert first.anchor() == version + 1
        with killed_at(step):
            memory.rehydrate()
        memory = world.machine("a")
        loaded = step is not Step.FETCHED
        assert memory.verify().verdict is (Verdict.IN_SYNC if loaded else Verdict.DIVERGED), step
        if not loaded:
            memory.rehydrate()
        expect_known(memory)
        memory.remember(f"after {step}")
        assert memory.verify().verdict is Verdict.AHEAD, step
        assert memory.anchor() == version + 2
        expect_known(memory)
        version += 2


def test_writes_after_a_crash_while_loading_stay_ahead(world: World) -> None:
    first = world.machine("a")
    first.remember("anchored")
    first.anchor()
    for number, step in enumerate((Step.RECORDED, Step.LINKED, Step.CONFIRMED)):
        memory = world.machine(f"machine {number}")
        with killed_at(step):
            memory.rehydrate()
        memory = world.machine(f"machine {number}")
        memory.remember("more")
        assert memory.verify().verdict is Verdict.AHEAD
    assert memory.anchor() == 2


def expect_known(memory: AgentMemory) -> None:
    """The store has exactly the link that the last anchor names."""
    last = memory.last_anchor
    assert last is not None
    assert last.link is not None
    assert last.link_before is None
    assert memory.backend.link(_chain(memory)) == last.link


def _chain(memory: AgentMemory) -> str:
    newest = memory._basis.newest(memory.context.network.passphrase, memory.contract_id)
    assert newest is not None
    return newest[0].chain


@pytest.mark.parametrize("label", [Step.LINKED, Step.SENT])
def test_a_look_while_somebody_anchors_leaves_the_link_alone(world: World, label: Step) -> None:
    memory = world.machine("a")
    memory.remember("one")
    memory.anchor()
    memory.backend.set_link(_chain(memory), None)  # so that a look would have something to record
    verdicts: list[Verdict] = []

    def look(step: Step) -> None:
        if step is label and not verdicts:
            other = world.machine("a")
            thread = threading.Thread(target=lambda: verdicts.append(other.verify().verdict))
            thread.start()
            thread.join()

    with observed(look):
        assert memory.anchor() == 2
    assert verdicts == [Verdict.IN_SYNC]
    expect_known(memory)
    memory.remember("two")
    assert memory.verify().verdict is Verdict.AHEAD


def test_a_look_that_comes_late_leaves_the_link_alone(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody anchored between what was seen and the moment when it could be recorded."""
    memory = world.machine("a")
    memory.remember("one")
    memory.anchor()
    memory.backend.set_link(_chain(memory), None)  # so that a look would have something to record
    record_seen = Commitment._record_seen
    versions: list[int] = []

    def late(self: Commitment, *arguments: Any) -> int | None:
        if not versions:
            versions.append(0)
            versions.append(world.machine("a").anchor())
        return record_seen(self, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(Commitment, "_record_seen", late)
        assert memory.verify()
    assert versions == [0, 2]
    expect_known(memory)


def test_verifying_again_and_again_records_nothing(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    memory = world.machine("a")
    memory.remember("one")
    memory.anchor()

    def written(*_: object, **__: object) -> None:
        raise AssertionError("something was written")

    with monkeypatch.context() as patch:
        for name in ("record", "record_last", "settle", "raise_mark", "put_intent", "drop_intent"):
            patch.setattr(StateStore, name, written)
        patch.setattr(type(memory.backend), "set_link", written)
        assert memory.verify()
        assert memory.rehydrate()["version"] == 1
        assert world.machine("a").verify()


def test_what_an_older_release_recorded_is_tied_to_the_store_at_the_next_look(world: World) -> None:
    """Without a link the change counter decides, as it did then."""
    memory = world.machine("a")
    memory.remember("one")
    memory.anchor()
    newest = memory._basis.newest(memory.context.network.passphrase, memory.contract_id)
    assert newest is not None
    key, last = newest
    old = LastAnchor(last.version, last.root, last.uri, last.change_counter, last.anchored_at)
    memory._state.record_last(key, old)
    memory.backend.set_link(key.chain, None)
    extra = memory.remember("two")
    assert memory.verify().verdict is Verdict.AHEAD
    memory.forget(extra)
    assert memory.verify()
    expect_known(memory)


def test_a_look_does_not_make_an_anchor_younger(world: World) -> None:
    """An older contract does not say when it was made, so each look would date it anew."""
    memory = world.machine("a")
    memory.remember("one")
    memory.anchor()
    newest = memory._basis.newest(memory.context.network.passphrase, memory.contract_id)
    assert newest is not None
    key, last = newest
    seen = LastAnchor(last.version, last.root, last.uri, last.change_counter + 2, last.anchored_at + 500)
    memory._basis.adopt(key, seen)
    assert memory.last_anchor == replace(last, change_counter=last.change_counter + 2)
