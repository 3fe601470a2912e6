"""Each verdict, reached for real."""

from __future__ import annotations

import shutil
import sqlite3
import threading
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from mycelium_sdk.errors import ChainReset, ChainUnavailable, Rollback, Tampered, UnanchoredWrites
from mycelium_sdk.verdicts import Verdict
from tests.memory.files import keep, put_back

if TYPE_CHECKING:
    from mycelium_sdk.memory import AgentMemory
    from tests.memory.conftest import World


def anchored(world: World, name: str = "a") -> AgentMemory:
    memory = world.machine(name)
    memory.remember("pays in euro")
    memory.remember("lives in Porto")
    memory.anchor()
    return memory


def test_not_anchored(world: World) -> None:
    memory = world.machine("a")
    memory.remember("one")
    result = memory.verify()
    assert result.verdict is Verdict.NOT_ANCHORED
    assert not result
    assert result.records == 1


def test_in_sync(world: World) -> None:
    result = anchored(world).verify()
    assert result
    assert result.verdict is Verdict.IN_SYNC
    assert result.as_dict()["anchored_root"] == result.as_dict()["local_root"]


def test_ahead(world: World) -> None:
    memory = anchored(world)
    memory.remember("three")
    assert memory.verify().verdict is Verdict.AHEAD


def test_rows_changed_behind_its_back(world: World) -> None:
    memory = anchored(world)
    path = memory.context.home.memory_file(memory.owner)
    memory.close()
    connection = sqlite3.connect(path)
    changed = connection.execute(
        "UPDATE memories SET fragment = replace(fragment, 'euro', 'gold') WHERE fragment LIKE '%euro%'"
    )
    assert changed.rowcount == 1
    connection.commit()
    connection.close()
    result = world.machine("a").verify()
    assert result.verdict is Verdict.TAMPERED
    assert not result


def test_another_machine_anchored(world: World) -> None:
    memory = anchored(world)
    other = world.machine("b")
    other.rehydrate()
    other.remember("from elsewhere")
    other.anchor()
    assert memory.verify().verdict is Verdict.DIVERGED
    memory.rehydrate()
    assert memory.verify()


def test_the_same_memory_anchored_elsewhere_is_in_sync(world: World) -> None:
    memory = anchored(world)
    other = world.machine("b")
    other.rehydrate()
    other.anchor()
    assert memory.verify()
    memory.remember("more")
    assert memory.anchor() == 3


def test_a_chain_that_goes_back_is_a_rollback(world: World) -> None:
    memory = anchored(world)
    world.close()
    for suffix in ("", "-wal", "-shm"):
        source = world.chain_file.with_name(world.chain_file.name + suffix)
        if source.exists():
            shutil.copy(source, world.folder / f"kept{suffix}")
    memory = world.machine("a")
    memory.remember("three")
    memory.anchor()
    world.close()
    for suffix in ("", "-wal", "-shm"):
        target = world.chain_file.with_name(world.chain_file.name + suffix)
        target.unlink(missing_ok=True)
        kept = world.folder / f"kept{suffix}"
        if kept.exists():
            shutil.move(kept, target)
    memory = world.machine("a")
    assert memory.verify().verdict in (Verdict.ROLLBACK, Verdict.CHAIN_RESET)
    with pytest.raises((Rollback, ChainReset)):
        memory.anchor()
    with pytest.raises((Rollback, ChainReset)):
        memory.rehydrate()
    assert memory.trust_chain_anew()
    assert memory.verify().verdict is Verdict.AHEAD, "the chain is in this memory's own past"
    assert not memory.trust_chain_anew()
    with pytest.raises(UnanchoredWrites):
        memory.rehydrate()
    assert memory.anchor() == 2
    assert memory.verify()


def test_a_chain_that_started_anew_is_said_plainly(world: World) -> None:
    anchored(world)
    world.close()
    for path in world.folder.glob("chain.db*"):
        path.unlink()
    memory = world.machine("a")
    assert memory.verify().verdict is Verdict.CHAIN_RESET
    with pytest.raises(ChainReset):
        memory.anchor()
    memory.trust_chain_anew()
    assert memory.verify().verdict is Verdict.NOT_ANCHORED
    assert memory.anchor() == 1
    assert memory.verify()


def test_an_archived_anchor_is_no_absent_one_and_comes_back(world: World) -> None:
    from mycelium_localnet import Chain

    with Chain.open(world.chain_file, profile="short-ttl") as chain:
        memory = anchored(world)
        chain.skip_ledgers(60)
        result = memory.verify()
        assert result.verdict is Verdict.ARCHIVED
        assert result.anchor is not None
        assert result.anchor.version == 1
        memory.remember("three")
        assert memory.anchor() == 2
        assert memory.verify()
        chain.skip_ledgers(60)
        other = world.machine("b")
        assert other.rehydrate() == {"version": 2, "records": 3}


def test_an_unreachable_chain_is_no_answer(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    memory = anchored(world)

    def unreachable(*_: object) -> None:
        raise ChainUnavailable("no route")

    monkeypatch.setattr(type(memory.context.chain), "identity", unreachable)
    with pytest.raises(ChainUnavailable) as caught:
        memory.verify()
    assert caught.value.verdict is Verdict.UNAVAILABLE
    assert caught.value.retryable


def test_an_old_copy_of_the_memory_is_told_from_writes(world: World) -> None:
    anchored(world)
    kept = keep(world, "a")
    memory = world.machine("a")
    memory.remember("three")
    memory.anchor()
    put_back(world, "a", kept)
    memory = world.machine("a")
    result = memory.verify()
    assert result.verdict is Verdict.ROLLBACK
    assert "rehydrate" in result.next_step
    with pytest.raises(Rollback, match="older than version 2"):
        memory.anchor()
    with pytest.raises(Rollback):
        memory.on_job_complete()
    assert memory.rehydrate() == {"version": 2, "records": 3}
    assert memory.verify()


def test_an_old_copy_with_writes_on_top_is_loaded_as_told(world: World) -> None:
    memory = world.machine("a")
    memory.remember("one")
    kept = keep(world, "a")
    memory = world.machine("a")
    for number in range(9):
        memory.remember(f"more {number}")
    memory.anchor()
    put_back(world, "a", kept)
    memory = world.machine("a")
    memory.remember("after the old copy")
    with pytest.raises(UnanchoredWrites):
        memory.rehydrate()
    memory.rehydrate(on_conflict="merge")
    assert memory.count() == 11


def test_a_lost_memory_file_does_not_bury_the_anchor(world: World) -> None:
    anchored(world)
    put_back(world, "a", {})
    memory = world.machine("a")
    assert memory.verify().verdict is Verdict.ROLLBACK
    with pytest.raises(Rollback):
        memory.anchor()
    assert memory.rehydrate() == {"version": 1, "records": 2}
    assert memory.verify()


def test_a_changed_memory_is_not_anchored_and_loading_mends_it(world: World) -> None:
    memory = anchored(world)
    path = memory.context.home.memory_file(memory.owner)
    memory.close()
    connection = sqlite3.connect(path)
    connection.execute("DELETE FROM memories WHERE fragment LIKE '%euro%'")
    connection.commit()
    connection.close()
    memory = world.machine("a")
    assert memory.verify().verdict is Verdict.TAMPERED
    with pytest.raises(Tampered, match="behind its back"):
        memory.anchor()
    with pytest.raises(Tampered, match="nothing was loaded"):
        memory.rehydrate()
    memory.rehydrate(on_conflict="replace")
    assert memory.verify()
    assert memory.count() == 2


def test_a_chain_that_was_seen_further_is_not_believed_when_it_goes_back(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An anchor counts from the moment it was seen, not only once its memory was loaded."""
    memory = anchored(world)
    other = world.machine("b")
    other.rehydrate()
    older = memory.get_anchor()
    other.remember("three")
    other.anchor()
    assert memory.verify().verdict is Verdict.DIVERGED
    desk = type(memory._commitment._desk)
    stale = memory._commitment._desk._opened().get_anchor(memory.owner)
    assert stale is not None
    assert older is not None
    old = replace(stale, version=1, root=older["root"])
    monkeypatch.setattr(desk, "get_anchor", lambda *_: old)
    assert memory.verify().verdict is Verdict.ROLLBACK


def test_looking_while_another_thread_anchors_sees_no_contradiction(world: World) -> None:
    memory = anchored(world)
    problems: list[BaseException] = []
    done = threading.Event()

    def look() -> None:
        try:
            while not done.is_set():
                memory.get_anchor()
                assert memory.verify().verdict in (Verdict.IN_SYNC, Verdict.AHEAD)
        except BaseException as problem:  # noqa: BLE001 - shown by the main thread
            problems.append(problem)

    threads = [threading.Thread(target=look) for _ in range(2)]
    for thread in threads:
        thread.start()
    for number in range(25):
        memory.remember(f"more {number}")
        memory.anchor()
    done.set()
    for thread in threads:
        thread.join()
    assert problems == []
