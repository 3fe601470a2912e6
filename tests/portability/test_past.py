"""A memory's versions: shown, compared, loaded again on purpose, and removed from where they lie."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import pytest

from mycelium_sdk.blobs.files import context_path
from mycelium_sdk.chain.artifact import memory_anchor_wasm
from mycelium_sdk.errors import (
    BlobNotFound,
    InputError,
    NotAnchored,
    Rollback,
    Tampered,
    UnanchoredWrites,
    VersionConflict,
)
from mycelium_sdk.memory import past
from mycelium_sdk.steps import Step, observed
from mycelium_sdk.verdicts import Verdict
from tests.crashing import Killed, killed_at
from tests.portability.test_sync import shared_machine, texts

if TYPE_CHECKING:
    from pathlib import Path

    from mycelium_sdk.memory import AgentMemory
    from tests.memory.conftest import World


@pytest.fixture
def memory(world: World) -> AgentMemory:
    """One with three versions: one; one, two; two, three."""
    made = shared_machine(world, "a")
    first = made.remember("one", session="s")
    made.anchor()
    made.remember("two")
    made.anchor()
    made.forget(first)
    made.remember("three")
    made.anchor()
    return made


def test_history(memory: AgentMemory, world: World) -> None:
    history = memory.history()
    assert [one.anchor.version for one in history.anchors] == [3, 2, 1]
    assert history.verified
    assert history.complete
    assert history.anchors[0].anchor.root == memory.memory_root()
    assert all(one.transaction for one in history.anchors)
    assert [one.anchor.version for one in shared_machine(world, "b").history().anchors] == [3, 2, 1]


def test_nothing_has_no_history(world: World) -> None:
    fresh = world.machine("fresh")
    for act in (fresh.history, fresh.purge, lambda: fresh.diff(1), fresh.keep_alive):
        with pytest.raises(NotAnchored):
            act()


def test_an_older_version_is_loaded_on_purpose(memory: AgentMemory) -> None:
    done = memory.rehydrate_with_report(version=1)
    assert (done.version, done.records) == (1, 1)
    assert "on purpose" in (done.note or "")
    assert texts(memory) == {"one"}
    assert memory.backend.all_records()[0].session == "s"
    assert memory.verify().verdict is Verdict.DIVERGED
    assert not memory.is_dirty
    assert memory.on_job_complete() is None
    with pytest.raises(VersionConflict):
        memory.anchor()
    memory.remember("on top of the old one")
    with pytest.raises(VersionConflict):
        memory.on_job_complete()
    with pytest.raises(UnanchoredWrites):
        memory.rehydrate()
    assert memory.anchor(overwrite=True) == 4
    assert memory.verify()


def test_the_latest_is_loaded_again(memory: AgentMemory) -> None:
    memory.rehydrate(version=2)
    assert texts(memory) == {"one", "two"}
    assert memory.rehydrate() == {"version": 3, "records": 2}
    assert texts(memory) == {"two", "three"}
    assert memory.verify()
    assert memory.rehydrate(version=3) == {"version": 3, "records": 2}


def test_an_older_version_synced_is_the_latest_again(memory: AgentMemory) -> None:
    """An older version that was loaded takes nothing away from the newer ones."""
    memory.rehydrate(version=1)
    memory.remember("found in the past")
    assert memory.sync().anchored
    assert {"two", "three", "found in the past"} <= texts(memory)


def test_what_is_not_anchored_is_not_lost_by_loading(memory: AgentMemory) -> None:
    memory.remember("not anchored")
    with pytest.raises(UnanchoredWrites):
        memory.rehydrate(version=1)
    with pytest.raises(InputError, match="merged"):
        memory.rehydrate(version=1, on_conflict="merge")
    assert memory.rehydrate(version=1, on_conflict="replace") == {"version": 1, "records": 1}


@pytest.mark.parametrize("version", [0, -1, 4, True, "1", 1.0])
def test_versions_that_are_none(memory: AgentMemory, version: int) -> None:
    with pytest.raises(InputError):
        memory.rehydrate(version=version)
    with pytest.raises(InputError):
        memory.diff(version)
    with pytest.raises(InputError):
        memory.purge([version])


def test_a_version_that_is_not_anchored_yet_is_not_called_forgotten(memory: AgentMemory) -> None:
    with pytest.raises(InputError, match="version 9 is not anchored: the latest is 3") as refused:
        memory.diff(1, 9)
    assert "history" in (refused.value.hint or "")


def test_what_changed(memory: AgentMemory) -> None:
    difference = memory.diff(1, 3)
    assert [one.content for one in difference.added] == ["three", "two"]
    assert [one.content for one in difference.removed] == ["one"]
    memory.remember("four")
    assert [one.content for one in memory.diff(3).added] == ["four"]
    assert memory.diff(3).removed == ()
    back = memory.diff(3, 1)
    assert [one.content for one in back.added] == ["one"]


def test_purging_keeps_the_latest(memory: AgentMemory, world: World) -> None:
    blobs = world.folder / "blobs"
    assert len(list(blobs.glob("*.json"))) == 6  # three blobs, three context files
    purged = memory.purge()
    assert sorted(one.version or 0 for one in purged) == [1, 2]
    assert sorted(path.name for path in blobs.glob("*.json")) == [
        f"{memory.memory_root().hex()}.json",
        f"{memory.memory_root().hex()}.json.context.json",
    ]
    assert memory.purge() == []
    assert world.machine("new").rehydrate(
        fetch=lambda _: (blobs / f"{memory.memory_root().hex()}.json").read_bytes()
    )
    with pytest.raises(BlobNotFound):
        memory.rehydrate(version=1)
    with pytest.raises(BlobNotFound):
        memory.diff(1, 3)
    assert texts(memory) == {"two", "three"}


def test_purging_one_version(memory: AgentMemory, world: World) -> None:
    assert [one.version for one in memory.purge([2])] == [2]
    assert memory.rehydrate(version=1) == {"version": 1, "records": 1}
    for versions in ([3], [9], [0]):
        with pytest.raises(InputError):
            memory.purge(versions)


def test_a_memory_that_was_anchored_twice_keeps_its_blob(world: World) -> None:
    memory = world.machine("a")
    memory.remember("one")
    memory.anchor()
    memory.anchor()
    assert memory.purge() == []
    assert memory.diff(1, 2).added == ()


def test_purging_removes_what_lies_at_a_file_address(world: World) -> None:
    memory = world.machine("a")
    target = world.folder / "published"
    target.mkdir()
    for text in ("one", "two"):
        memory.remember(text)
        memory.anchor(publish=f"{target}/")
    other = target / "notes.txt"
    other.write_text("not ours")
    purged = memory.purge()
    assert purged
    assert not any(
        path.name.startswith(memory.history().anchors[1].anchor.root.hex()) for path in target.iterdir()
    )
    assert other.exists()


def test_purging_removes_nothing_that_is_not_what_it_should_be(memory: AgentMemory, world: World) -> None:
    root = memory.history().anchors[2].anchor.root.hex()
    changed = world.folder / "blobs" / f"{root}.json"
    changed.write_bytes(b"something else")
    assert [one.version for one in memory.purge([1])] == []
    assert changed.read_bytes() == b"something else"


def test_an_old_blob_in_place_of_the_new_one_is_known_from_the_history(
    memory: AgentMemory, world: World
) -> None:
    blobs = {
        one.anchor.version: (world.folder / "blobs" / f"{one.anchor.root.hex()}.json").read_bytes()
        for one in memory.history().anchors
    }
    other = world.machine("b")
    with pytest.raises(Tampered):
        other.rehydrate(fetch=lambda _: blobs[1])
    other.history()
    with pytest.raises(Rollback, match="version 1"):
        other.rehydrate(fetch=lambda _: blobs[1])


def test_the_anchor_is_kept_alive(memory: AgentMemory) -> None:
    kept = memory.keep_alive()
    assert [(str(one.part), one.before == one.remaining) for one in kept] == [("anchor", True)]
    kept = memory.keep_alive(include_contract=True, accept=lambda _: False)
    assert [str(one.part) for one in kept] == ["anchor", "contract", "code"]


@pytest.mark.parametrize("step", [Step.FETCHED, Step.LOADED, Step.RECORDED])
def test_a_crash_while_an_older_version_is_loaded_buries_nothing(
    memory: AgentMemory, world: World, step: Step
) -> None:
    with killed_at(step):
        memory.rehydrate(version=1)
    again = shared_machine(world, "a")
    with contextlib.suppress(UnanchoredWrites, VersionConflict):
        assert again.on_job_complete() is None
    assert (again.get_anchor() or {})["version"] == 3
    again.sync()
    assert {"two", "three"} <= texts(again)


def test_a_crash_before_an_older_version_is_loaded_is_recognised(memory: AgentMemory, world: World) -> None:
    newest = memory._basis.newest(memory.context.network.passphrase, memory.contract_id)
    assert newest is not None
    letting_go = memory._basis.let_go(newest[0])
    letting_go.__enter__()  # and there it ends
    again = shared_machine(world, "a")
    assert again._basis.newest(memory.context.network.passphrase, memory.contract_id) is None
    assert again.verify()
    assert (again.last_anchor or newest[1]).version == 3
    assert not again.is_dirty


def test_an_older_version_that_is_not_loaded_changes_nothing(memory: AgentMemory) -> None:
    """Somebody writes at the same moment."""

    def write(reached: Step) -> None:
        if reached is Step.FETCHED:
            memory.remember("meanwhile")

    before = memory.last_anchor
    with observed(write), pytest.raises(UnanchoredWrites):
        memory.rehydrate(version=1)
    assert memory.last_anchor == before
    assert memory.verify().verdict is Verdict.AHEAD
    assert memory.anchor() == 4


def test_purging_keeps_what_is_the_latest_of_another_contract(world: World) -> None:
    here = shared_machine(world, "a")
    here.remember("one")
    here.anchor()
    contract = here.context.deploy_contract(memory_anchor_wasm())
    there = world.machine("a", anchor_address=contract)
    assert there.anchor() == 1
    here.forget(here.recall("one")[0]["id"])
    here.remember("two")
    here.anchor()
    assert here.purge() == []
    assert there.rehydrate(on_conflict="replace") == {"version": 1, "records": 1}
    assert texts(there) == {"one"}


def test_purging_keeps_what_is_just_being_anchored(memory: AgentMemory) -> None:
    """What is in flight may be an older memory once more."""
    memory.rehydrate(version=1)
    with killed_at(Step.SIGNED):
        memory.anchor(overwrite=True)
    assert {one.version for one in memory.purge()} == {2}
    assert memory.anchor_with_receipt(overwrite=True).settled == 4
    assert memory.rehydrate(version=4) == {"version": 4, "records": 1}


def test_purging_removes_no_other_file_beside_a_blob(world: World) -> None:
    memory = world.machine("a")
    memory.remember("one")
    published = world.folder / "data.json"
    published.write_bytes(memory.backend.export_blob())
    memory.anchor(uri=published.as_uri())
    memory.remember("two")
    memory.anchor()
    notes = context_path(published)
    notes.write_text("a person's own")
    assert {one.version for one in memory.purge()} == {1}
    assert not published.exists()
    assert notes.read_text() == "a person's own"


def test_a_purge_that_broke_off_leaves_no_context_file(
    memory: AgentMemory, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    remove = past._remove

    def once(path: Path) -> None:
        remove(path)
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(past, "_remove", once)
        with pytest.raises(Killed):
            memory.purge([1])
    memory.purge([1])
    left = [file.name for file in (world.folder / "blobs").iterdir()]
    assert len(left) == 4, "two versions, each with its context file"


def test_what_was_anchored_on_a_chain_that_was_set_back_is_not_dropped(world: World) -> None:
    """The chain's file is put back to an earlier copy: what was anchored since is anchored nowhere now."""
    memory = world.machine("a")
    memory.remember("one")
    memory.anchor()
    memory.close()
    memory.context.close()
    old = {path.name: path.read_bytes() for path in world.folder.glob("chain.db*")}
    memory = world.machine("a")
    memory.remember("precious")
    memory.anchor()
    memory.close()
    memory.context.close()
    for path in world.folder.glob("chain.db*"):
        path.unlink()
    for name, data in old.items():
        (world.folder / name).write_bytes(data)
        (world.folder / name).chmod(0o600)
    memory = world.machine("a")
    assert memory.verify().verdict is Verdict.CHAIN_RESET
    assert memory.trust_chain_anew()
    with pytest.raises(UnanchoredWrites):
        memory.rehydrate()
    assert texts(memory) == {"one", "precious"}
    assert memory.sync().anchored
    assert texts(memory) == {"one", "precious"}
    assert (memory.last_anchor and memory.last_anchor.version) == 2
    assert memory.verify()
