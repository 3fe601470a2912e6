"""Machines with one wallet: whatever they do in whatever order, they come to hold the same, and nothing that
was remembered is lost."""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING, Any

import pytest

from mycelium_sdk.errors import BlobNotFound, MyceliumError, Tampered, VersionConflict
from mycelium_sdk.steps import Step, observed
from mycelium_sdk.verdicts import Verdict
from tests.crashing import killed_at

if TYPE_CHECKING:
    from collections.abc import Callable

    from mycelium_sdk.memory import AgentMemory
    from mycelium_sdk.memory.anchoring import Anchoring
    from mycelium_sdk.memory.sources import Fetch
    from tests.memory.conftest import World


def texts(memory: AgentMemory) -> set[str]:
    return {one.record.content for one in memory.backend.iter_records()}


@pytest.fixture
def machine(world: World) -> Callable[[str], AgentMemory]:
    """A machine of its own, which shares chain, wallet and blob folder with the others."""
    return lambda name: shared_machine(world, name)


def shared_machine(world: World, name: str) -> AgentMemory:
    (world.folder / name).mkdir(mode=0o700, exist_ok=True)
    shared = world.folder / "blobs"
    shared.mkdir(mode=0o700, exist_ok=True)
    if not (world.folder / name / "blobs").exists():
        (world.folder / name / "blobs").symlink_to(shared)
    return world.machine(name)


def test_the_first_sync_anchors_and_the_second_loads(machine: Callable[[str], AgentMemory]) -> None:
    a, b = machine("a"), machine("b")
    assert a.sync().version == 0
    a.remember("one")
    done = a.sync()
    assert (done.version, done.records, done.merged, done.anchored) == (1, 1, False, True)
    done = b.sync()
    assert (done.version, done.records, done.merged, done.anchored) == (1, 1, True, False)
    assert texts(b) == {"one"}
    assert a.verify()
    assert b.verify()
    done = b.sync()
    assert (done.version, done.merged, done.anchored) == (1, False, False)


def test_both_sides_keep_and_forget(machine: Callable[[str], AgentMemory]) -> None:
    a, b = machine("a"), machine("b")
    for text in ("common", "a forgets", "b forgets"):
        a.remember(text, [text.replace(" ", "-")])
    a.sync()
    b.sync()
    a.forget(tag="a-forgets")
    a.remember("new on a")
    b.forget(tag="b-forgets")
    b.remember("new on b", session="s")
    assert a.sync().version == 2
    done = b.sync()
    assert (done.version, done.merged, done.anchored) == (3, True, True)
    assert texts(b) == {"common", "new on a", "new on b"}
    assert a.sync().version == 3
    assert texts(a) == texts(b)
    assert a.memory_root() == b.memory_root()
    assert {one.record.content: one.session for one in a.backend.iter_records()}["new on b"] == "s"


def test_nothing_is_forgotten_by_a_machine_that_never_had_it(machine: Callable[[str], AgentMemory]) -> None:
    a, b = machine("a"), machine("b")
    b.remember("only on b")
    a.remember("only on a")
    a.sync()
    b.sync()
    a.sync()
    assert texts(a) == texts(b) == {"only on a", "only on b"}


@pytest.mark.parametrize("first", ["forgetful", "insistent"])
def test_a_remember_wins_over_a_forget(machine: Callable[[str], AgentMemory], first: str) -> None:
    """One machine forgets it, the other forgets it and remembers it again; in whichever order they sync."""
    forgetful, insistent = machine("a"), machine("b")
    number = forgetful.remember("tea")
    forgetful.sync()
    insistent.sync()
    forgetful.forget(number)
    insistent.forget(insistent.recall("tea")[0]["id"])
    _wait_for_the_clock(forgetful)
    insistent.remember("tea")
    order = [forgetful, insistent] if first == "forgetful" else [insistent, forgetful]
    for memory in order * 2:
        memory.sync()
    assert texts(forgetful) == texts(insistent) == {"tea"}


def test_remembering_again_what_is_held_is_no_write(machine: Callable[[str], AgentMemory]) -> None:
    """So that nothing of it can win over a forget elsewhere."""
    a, b = machine("a"), machine("b")
    number = a.remember("tea")
    a.sync()
    b.sync()
    a.forget(number)
    b.remember("tea")
    assert not b.is_dirty
    for memory in (a, b, a):
        memory.sync()
    assert texts(a) == texts(b) == set()


def _wait_for_the_clock(memory: AgentMemory) -> None:
    """Until a memory's time is later than the anchor's, which is in whole seconds."""
    import time

    anchored = (memory.get_anchor() or {})["timestamp"]
    while time.time() <= anchored:
        time.sleep(0.01)


def test_a_lost_base_loses_no_memory(machine: Callable[[str], AgentMemory], world: World) -> None:
    a, b = machine("a"), machine("b")
    number = a.remember("forgotten on a")
    a.remember("common")
    a.sync()
    b.sync()
    a.forget(number)
    b.remember("new on b")
    b.sync()
    for file in (world.folder / "a" / "state" / "bases").glob("*.base"):
        file.unlink()
    a.sync()
    assert texts(a) == {"common", "new on b"}  # from the blob of the version, which is still there

    number = a.remember("forgotten on a again")
    a.sync()
    b.sync()
    a.forget(number)
    b.remember("newer on b")
    b.sync()
    for file in (world.folder / "a" / "state" / "bases").glob("*.base"):
        file.unlink()
    last = a.last_anchor
    assert last is not None
    (world.folder / "blobs" / f"{last.root.hex()}.json").unlink()
    a.sync()
    assert "forgotten on a again" in texts(a)


def test_an_old_copy_of_a_memory_file_forgets_nothing(
    machine: Callable[[str], AgentMemory], world: World
) -> None:
    a = machine("a")
    a.remember("one")
    a.sync()
    a.close()
    file = world.folder / "a" / "memory" / f"{a.owner}.db"
    old = {path.name: path.read_bytes() for path in file.parent.iterdir()}
    a = machine("a")
    a.remember("two")
    a.sync()
    a.close()
    for path in file.parent.iterdir():
        path.unlink()
    for name, data in old.items():
        (file.parent / name).write_bytes(data)
        (file.parent / name).chmod(0o600)
    a = machine("a")
    for number in range(5):
        a.remember(f"written to the old copy {number}")
    assert a.verify().verdict is Verdict.ROLLBACK
    a.sync()
    assert {"one", "two", "written to the old copy 0"} <= texts(a)
    assert a.verify()


def test_a_memory_that_was_tampered_with_is_not_merged(
    machine: Callable[[str], AgentMemory], world: World
) -> None:
    import sqlite3

    a, b = machine("a"), machine("b")
    a.remember("one")
    a.sync()
    b.sync()
    b.remember("two")
    b.sync()
    with sqlite3.connect(world.folder / "a" / "memory" / f"{a.owner}.db") as connection:
        connection.execute("UPDATE memories SET fragment = replace(fragment, 'one', 'eno')")
    connection.close()
    with pytest.raises(Tampered):
        a.sync()
    assert b.verify()


def test_nothing_happens_without_the_blob(world: World) -> None:
    a, b = world.machine("a"), world.machine("b")
    a.remember("one")
    a.anchor(uri="s3://bucket/x")
    b.remember("two")
    with pytest.raises(BlobNotFound):
        b.sync()
    assert texts(b) == {"two"}


def test_a_machine_that_was_overtaken_tries_again(
    machine: Callable[[str], AgentMemory],
) -> None:
    """The other machine anchors between this one's look and its own anchor, several times."""
    a, b = machine("a"), machine("b")
    a.remember("a")
    rounds = iter(range(3))

    def interfere(step: Step) -> None:
        if step is Step.PUBLISHED and threading.current_thread() is threading.main_thread():
            number = next(rounds, None)
            if number is not None:
                thread = threading.Thread(target=_remember_and_sync, args=(b, f"b{number}"))
                thread.start()
                thread.join()

    with observed(interfere):
        done = a.sync()
    assert texts(a) == {"a", "b0", "b1", "b2"}
    assert done.anchored
    b.sync()
    assert texts(b) == texts(a)


def _remember_and_sync(memory: AgentMemory, text: str) -> None:
    memory.remember(text)
    memory.sync()


def test_machines_at_once_converge(world: World) -> None:
    errors: list[BaseException] = []
    machines = [shared_machine(world, f"m{number}") for number in range(3)]

    def work(number: int) -> None:
        try:
            for step in range(4):
                machines[number].remember(f"machine {number} note {step}")
                machines[number].sync()
        except MyceliumError as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [error for error in errors if not isinstance(error, VersionConflict)] == []
    for memory in machines * 2:
        memory.sync()
    assert len({memory.memory_root() for memory in machines}) == 1
    assert len(texts(machines[0])) == 12


@pytest.mark.parametrize(
    "step", [Step.LOADED, Step.RECORDED, Step.LINKED, Step.CONFIRMED, Step.EXPORTED, Step.SIGNED, Step.SENT]
)
def test_what_is_remembered_after_a_sync_that_broke_off_is_kept(
    machine: Callable[[str], AgentMemory], step: Step
) -> None:
    """It took over that the other side has what was forgotten here, and that is remembered again here."""
    a, b = machine("a"), machine("b")
    number = a.remember("tea")
    a.remember("common")
    a.sync()
    b.sync()
    a.forget(number)
    b.remember("new on b")
    b.sync()
    a.remember("new on a")
    with killed_at(step):
        a.sync()
    a.close()
    a = machine("a")
    assert texts(a) == {"common", "new on a", "new on b"}
    a.remember("tea")
    with contextlib.suppress(IndexError):  # it may know of the forgetting already
        b.forget(b.recall("tea")[0]["id"])
    b.sync()
    a.sync()
    assert "tea" in texts(a)


def test_two_that_anchor_for_the_first_time_at_once_are_merged(
    machine: Callable[[str], AgentMemory],
) -> None:
    a, b = machine("a"), machine("b")
    a.remember("from a")
    b.remember("from b")
    quicker = iter([b])
    pull = a._commitment.portability._pull

    def pulled(fetch: Fetch | None) -> tuple[bool, str | None]:
        done = pull(fetch)
        for other in quicker:
            other.sync()
        return done

    a._commitment.portability._pull = pulled  # type: ignore[method-assign]
    assert a.sync().merged
    assert texts(a) == {"from a", "from b"}
    assert a.verify()


@pytest.mark.parametrize("spoilt", ["base", "key"])
def test_a_base_that_cannot_be_kept_fails_no_anchoring(
    machine: Callable[[str], AgentMemory], world: World, spoilt: str
) -> None:
    a = machine("a")
    a.remember("one")
    assert a.anchor() == 1
    for file in (world.folder / "a" / "state" / "bases").iterdir():
        if file.name.endswith(spoilt):
            file.unlink()
            file.mkdir()
            (file / "in the way").touch()
    a.remember("two")
    assert a.anchor() == 2
    b = machine("b")
    b.sync()
    b.remember("three")
    b.sync()
    assert a.sync().merged
    assert texts(a) == {"one", "two", "three"}


def test_the_version_is_that_of_what_is_here(
    machine: Callable[[str], AgentMemory], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another machine anchors when all is done but for the answer."""
    a, b = machine("a"), machine("b")
    a.remember("one")
    a.sync()
    b.sync()
    anchor = a._commitment.anchor

    def and_then(*given: Any, **named: Any) -> Anchoring | None:
        done = anchor(*given, **named)
        _remember_and_sync(b, "two")
        return done

    monkeypatch.setattr(a._commitment, "anchor", and_then)
    done = a.sync()
    assert (done.version, done.records) == (1, 1)


def test_writes_during_the_merge_are_merged_too(machine: Callable[[str], AgentMemory]) -> None:
    from mycelium_sdk.steps import Step, observed

    a, b = machine("a"), machine("b")
    a.remember("one")
    a.sync()
    b.remember("two")
    rounds = iter(range(2))

    def write(step: Step) -> None:
        if step is Step.FETCHED and (number := next(rounds, None)) is not None:
            b.remember(f"meanwhile {number}")

    with observed(write):
        b.sync()
    assert texts(b) == {"one", "two", "meanwhile 0", "meanwhile 1"}
    assert b.verify()
