"""Anchoring on the embedded chain: versions, publishing, compare-and-set, crashes."""

from __future__ import annotations

import hashlib
import os
import signal
import sqlite3
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from mycelium_sdk.errors import (
    InputError,
    PublishFailed,
    StoreLocked,
    Tampered,
    UnanchoredWrites,
    VersionConflict,
)
from mycelium_sdk.memory import commitment
from mycelium_sdk.memory.publishing import PublishingWarning
from mycelium_sdk.steps import Step, observed
from mycelium_sdk.verdicts import Verdict
from tests.crashing import killed_at

if TYPE_CHECKING:
    from mycelium_sdk.memory import AgentMemory
    from tests.memory.conftest import World


def test_versions_count_from_one_also_when_nothing_changed(world: World) -> None:
    memory = world.machine("a")
    memory.remember("one")
    assert [memory.anchor(), memory.anchor(), memory.anchor()] == [1, 2, 3]


def test_the_chain_holds_what_was_exported(world: World) -> None:
    memory = world.machine("a")
    assert memory.get_anchor() is None
    memory.remember("user prefers dark mode", tags=["pref"])
    memory.anchor(acl=b"acl")
    anchor = memory.get_anchor()
    assert anchor is not None
    blob = Path(anchor["uri"].removeprefix("file://")).read_bytes()
    assert hashlib.sha256(blob).digest() == anchor["root"] == memory.memory_root()
    assert blob == memory.backend.export_blob()
    assert (anchor["version"], anchor["acl"]) == (1, b"acl")
    assert len(anchor["previous"]) == 32
    assert anchor["timestamp"] > 1_600_000_000


def dirty(memory: AgentMemory) -> bool:
    """The property, asked anew: a checker would take a second look at it for the first one's answer."""
    return memory.is_dirty


def test_dirty_is_about_the_root_and_survives_a_restart(world: World) -> None:
    memory = world.machine("a")
    assert not dirty(memory)
    memory.remember("one")
    assert dirty(memory)
    memory.anchor()
    assert not dirty(memory)
    assert not dirty(world.machine("a"))
    extra = memory.remember("two")
    assert dirty(world.machine("a"))
    memory.forget(extra)
    assert not dirty(memory)
    memory.remember("one")
    assert not dirty(memory)


def test_an_empty_memory_can_be_anchored(world: World) -> None:
    memory = world.machine("a")
    assert memory.anchor() == 1
    assert memory.verify()


def test_publish_by_function_and_by_uri(world: World) -> None:
    memory = world.machine("a")
    memory.remember("one")
    blobs: list[bytes] = []

    def upload(blob: bytes) -> str:
        blobs.append(blob)
        return "https://example.org/m.json"

    memory.anchor(publish=upload)
    anchor = memory.get_anchor()
    assert anchor is not None
    assert anchor["uri"] == "https://example.org/m.json"
    assert hashlib.sha256(blobs[0]).digest() == anchor["root"]
    memory.anchor(uri="ipfs://bafy")
    again = memory.get_anchor()
    assert again is not None
    assert again["uri"] == "ipfs://bafy"


def test_a_file_follows_the_latest_anchor(world: World, tmp_path: Path) -> None:
    memory = world.machine("a")
    memory.remember("one")
    memory.anchor(publish=str(tmp_path / "mem.json"))
    first = (tmp_path / "mem.json").read_bytes()
    memory.remember("two")
    memory.anchor(publish=str(tmp_path / "mem.json"))
    assert (tmp_path / "mem.json").read_bytes() == memory.backend.export_blob() != first
    blobs = [path for path in tmp_path.glob("mem.*.json") if not path.name.endswith(".context.json")]
    assert len(blobs) == 2


def test_a_failed_publish_anchors_nothing(world: World) -> None:
    memory = world.machine("a")
    memory.remember("one")
    memory.anchor()

    def broken(blob: bytes) -> str:
        raise OSError("no space")

    with pytest.raises(PublishFailed):
        memory.anchor(publish=broken)
    anchor = memory.get_anchor()
    assert anchor is not None
    assert anchor["version"] == 1


@pytest.mark.parametrize(
    "arguments",
    [
        {"uri": "https://h/x", "publish": "folder/"},
        {"uri": ""},
        {"uri": "https://u:p@h/x"},
        {"uri": "https://h/" + "x" * 1100},
        {"acl": b"x" * 2049},
        {"acl": "text"},
        {"publish": "https://h/put"},
    ],
)
def test_bad_arguments_are_refused_before_anything_is_sent(
    world: World, arguments: dict[str, object]
) -> None:
    memory = world.machine("a")
    memory.remember("one")
    with pytest.raises(InputError):
        memory.anchor(**arguments)  # type: ignore[arg-type]
    assert memory.get_anchor() is None


def test_writes_made_while_anchoring_stay_dirty(world: World) -> None:
    memory = world.machine("a")
    memory.remember("before")

    def upload(blob: bytes) -> str:
        memory.remember("meanwhile")
        return "https://example.org/m.json"

    memory.anchor(publish=upload)
    assert memory.is_dirty
    assert memory.verify().verdict is Verdict.AHEAD


def test_a_fresh_store_never_buries_an_anchor(world: World) -> None:
    world.machine("a").remember("one")
    world.machine("a").anchor()
    fresh = world.machine("b")
    with pytest.raises(UnanchoredWrites, match="bury"):
        fresh.anchor()
    fresh.remember("other")
    with pytest.raises(UnanchoredWrites, match="bury"):
        fresh.anchor()
    assert fresh.anchor(overwrite=True) == 2


def test_a_stale_machine_is_told_both_versions(world: World) -> None:
    first = world.machine("a")
    first.remember("one")
    first.anchor()
    second = world.machine("b")
    second.rehydrate()
    first.remember("two")
    first.anchor()
    second.remember("three")
    with pytest.raises(VersionConflict) as caught:
        second.anchor()
    assert (caught.value.expected, caught.value.actual) == (1, 2)
    assert caught.value.verdict is Verdict.VERSION_CONFLICT


def test_a_machine_that_slips_in_between_wins_the_version(world: World) -> None:
    """The contract itself compares: the look before publishing is not what protects."""
    first = world.machine("a")
    first.remember("one")
    first.anchor()
    second = world.machine("b")
    second.rehydrate()

    def upload(blob: bytes) -> str:
        first.anchor(uri="https://example.org/first.json")
        return "https://example.org/second.json"

    with pytest.raises(VersionConflict):
        second.anchor(publish=upload)
    anchor = second.get_anchor()
    assert anchor is not None
    assert (anchor["version"], anchor["uri"]) == (2, "https://example.org/first.json")


def test_a_crash_after_the_anchor_is_recognised_by_the_next_run(world: World) -> None:
    memory = world.machine("a")
    memory.remember("one")
    with killed_at(Step.SENT):
        memory.anchor()
    restarted = world.machine("a")
    assert dirty(restarted)
    result = restarted.verify()
    assert result
    assert result.settled == 1
    assert restarted.verify().settled is None
    assert not dirty(restarted)
    restarted.remember("two")
    assert restarted.anchor() == 2


def test_a_crash_before_sending_leaves_nothing_behind(world: World) -> None:
    memory = world.machine("a")
    memory.remember("one")
    with killed_at(Step.INTENDED):
        memory.anchor()
    restarted = world.machine("a")
    assert restarted.get_anchor() is None
    assert restarted.anchor() == 1


def test_two_threads_anchoring_make_two_versions(world: World) -> None:
    memory = world.machine("a")
    memory.remember("one")
    memory.anchor()
    versions: list[int] = []
    threads = [threading.Thread(target=lambda: versions.append(memory.anchor())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(versions) == [2, 3, 4, 5]


def test_a_crash_between_signing_and_sending_is_finished_by_the_next_run(world: World) -> None:
    memory = world.machine("a")
    memory.remember("one")
    with killed_at(Step.SIGNED):
        memory.anchor(uri="https://example.org/interrupted")
    restarted = world.machine("a")
    assert restarted.get_anchor() is None
    done = restarted.anchor_with_receipt(uri="https://example.org/next")
    assert (done.version, done.settled) == (2, 1)
    assert restarted.verify()


def test_one_write_and_many_jobs_make_one_anchor(world: World) -> None:
    memory = world.machine("a")
    memory.remember("one")
    versions: list[int | None] = []
    threads = [threading.Thread(target=lambda: versions.append(memory.on_job_complete())) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(version for version in versions if version) == [1]


def test_a_publish_function_may_look_but_not_anchor(world: World) -> None:
    memory = world.machine("a")
    memory.remember("one")
    verdicts: list[str] = []

    def look(blob: bytes) -> str:
        thread = threading.Thread(target=lambda: verdicts.append(memory.verify().verdict))
        thread.start()
        thread.join()
        return "https://example.org/m"

    assert memory.anchor(publish=look) == 1
    assert verdicts == ["NOT_ANCHORED"]

    def recurse(blob: bytes) -> str:
        memory.anchor()
        return "https://example.org/m"

    with pytest.raises(PublishFailed) as caught:
        memory.anchor(publish=recurse)
    assert isinstance(caught.value.__cause__, InputError)
    assert memory.anchor() == 2


@pytest.mark.parametrize("content", [b"notes", b"", b'{"owner":"GOTHER","records":[]}'])
def test_a_file_of_another_kind_is_never_replaced(world: World, tmp_path: Path, content: bytes) -> None:
    memory = world.machine("a")
    memory.remember("one")
    (tmp_path / "mine.txt").write_bytes(content)
    (tmp_path / "link.json").symlink_to(tmp_path / "mine.txt")
    for name in ("mine.txt", "link.json"):
        with pytest.raises(PublishFailed, match="not touched"):
            memory.anchor(publish=str(tmp_path / name))
    assert (tmp_path / "mine.txt").read_bytes() == content
    assert memory.get_anchor() is None


def test_a_copy_that_cannot_be_renewed_does_not_hide_the_anchor(world: World, tmp_path: Path) -> None:
    memory = world.machine("a")
    memory.remember("one")

    def spoil(step: Step) -> None:
        if step is Step.SENT:
            (tmp_path / "mem.json").mkdir()

    with observed(spoil), pytest.warns(PublishingWarning, match="is anchored"):
        assert memory.anchor(publish=str(tmp_path / "mem.json")) == 1
    assert memory.verify()


def test_rows_that_make_no_canonical_blob_are_not_anchored(world: World) -> None:
    memory = world.machine("a")
    memory.remember("aaa")
    memory.remember("bbb")
    path = memory.context.home.memory_file(memory.owner)
    memory.close()
    connection = sqlite3.connect(path)
    connection.execute("UPDATE memories SET fragment = replace(fragment, 'aaa', 'zzz')")
    connection.commit()
    connection.close()
    memory = world.machine("a")
    memory.remember("ccc")
    with pytest.raises(Tampered):
        memory.anchor()
    assert memory.get_anchor() is None


def test_who_waits_for_another_thread_is_told_after_a_while(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = world.machine("a")
    memory.remember("one")
    holds, done = threading.Event(), threading.Event()

    def publish(_: bytes) -> str:
        holds.set()
        done.wait()
        return "https://example.org/one.json"

    thread = threading.Thread(target=memory.anchor, kwargs={"publish": publish})
    thread.start()
    holds.wait()
    monkeypatch.setattr(commitment, "_PATIENCE_SECONDS", 0.0)
    try:
        with pytest.raises(StoreLocked, match="another thread"):
            memory.anchor()
    finally:
        done.set()
        thread.join()
    assert memory.verify()


@pytest.mark.parametrize("step", [Step.EXPORTED, Step.SIGNED])
def test_a_child_that_was_forked_while_a_thread_anchored_can_anchor(world: World, step: Step) -> None:
    memory = world.machine("a")
    memory.remember("one")
    assert memory.anchor() == 1
    holds, done = threading.Event(), threading.Event()

    def wait(reached: Step) -> None:
        if reached is step and threading.current_thread() is thread:
            holds.set()
            done.wait()

    thread = threading.Thread(target=memory.anchor)
    with observed(wait):
        thread.start()
        holds.wait()
        told, telling = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(telling)
            os.read(told, 1)
            signal.alarm(30)  # instead of hanging
            os._exit(memory.anchor())
        done.set()
        thread.join()
    os.close(told)
    os.close(telling)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 3
