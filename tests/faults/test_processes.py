"""Several processes with one memory, several machines with one wallet: nothing is lost, one wins a version,
and the other is told which."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from mycelium_sdk.errors import VersionConflict
from mycelium_sdk.steps import Step, observed
from tests.faults.scenes import PASSPHRASE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.faults.scenes import Scene

WORKER = Path(__file__).with_name("worker.py")
BEFORE_SENDING = [Step.LOOKED, Step.EXPORTED, Step.PUBLISHED, Step.INTENDED, Step.SIGNED]


class Worker:
    """Another process."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(WORKER)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def tell(self, **order: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()

    def hear(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        return answer

    def ask(self, **order: object) -> Any:
        """The value of what it is told to do."""
        self.tell(**order)
        answer = self.hear()
        assert "value" in answer, answer
        return answer["value"]

    def open(self, scene: Scene, name: str) -> None:
        self.ask(
            open={
                "home": str(scene.folder / name),
                "chain": str(scene.folder / scene.chain),
                "wallet": str(scene.wallet.path),
                "passphrase": PASSPHRASE,
            }
        )

    def up_to(self, step: Step, call: str) -> None:
        """Let it begin, and have it wait once it has passed the step."""
        self.tell(call=call, pause=step)
        assert self.hear() == {"reached": step}

    def go_on(self) -> None:
        self.tell()

    def kill(self) -> None:
        self._process.kill()
        self.close()

    def close(self) -> None:
        for stream in (self._process.stdin, self._process.stdout):
            assert stream is not None
            stream.close()
        self._process.wait()


@pytest.fixture(scope="module")
def pool() -> Iterator[list[Worker]]:
    """Two processes, started once; one that was killed is replaced."""
    workers = [Worker(), Worker()]
    yield workers
    for worker in workers:
        worker.close()


@pytest.fixture
def scene(stage: Callable[..., Scene]) -> Scene:
    return stage()


def test_two_processes_remembering_at_once_lose_nothing(scene: Scene, pool: list[Worker]) -> None:
    for worker in pool:  # a home that neither has been in
        worker.open(scene, "fresh")
    own = [[f"memory {number} of {name}" for number in range(40)] for name in ("one", "other")]
    both = [f"memory {number} of both" for number in range(10)]
    for worker, texts in zip(pool, own, strict=True):
        worker.tell(call="remember", **{"with": [*texts, *both]})
    assert [worker.hear() for worker in pool] == [{"value": 50}, {"value": 50}]
    assert scene.held("fresh") == {*own[0], *own[1], *both}
    assert [worker.ask(call="count") for worker in pool] == [90, 90]


def test_a_write_while_another_process_anchors_stays_a_write_on_top(scene: Scene, pool: list[Worker]) -> None:
    anchoring, writing = pool
    for worker in pool:
        worker.open(scene, "a")
    anchoring.up_to(Step.EXPORTED, "anchor")
    assert writing.ask(call="remember", **{"with": ["meanwhile"]}) == 1
    anchoring.go_on()
    assert anchoring.hear() == {"value": 3}
    assert [worker.ask(call="verify") for worker in pool] == ["AHEAD", "AHEAD"]
    assert scene.held("a") == {"one", "two", "three", "meanwhile"}
    assert writing.ask(call="anchor") == 4
    assert [worker.ask(call="verify") for worker in pool] == ["IN_SYNC", "IN_SYNC"]


@pytest.mark.parametrize("step", BEFORE_SENDING)
def test_two_processes_of_one_machine_anchor_one_after_the_other(
    scene: Scene, pool: list[Worker], step: Step
) -> None:
    for worker in pool:
        worker.open(scene, "a")
    pool[0].up_to(step, "anchor")
    pool[1].tell(call="anchor")
    pool[0].go_on()
    assert [worker.hear() for worker in pool] == [{"value": 3}, {"value": 4}]
    assert scene.truth.version() == len(scene.truth.applied()) == 4
    assert scene.recorded("a") is None
    assert scene.machine("a").verify()


def test_of_two_jobs_that_end_at_once_one_anchors(scene: Scene, pool: list[Worker]) -> None:
    for worker in pool:
        worker.open(scene, "a")
    pool[0].up_to(Step.SIGNED, "on_job_complete")
    pool[1].tell(call="on_job_complete")
    pool[0].go_on()
    assert [worker.hear() for worker in pool] == [{"value": 3}, {"value": None}]
    assert scene.truth.version() == 3


@pytest.mark.parametrize("step", BEFORE_SENDING)
def test_a_process_that_dies_while_another_waits_leaves_no_lock_and_nothing_twice(
    scene: Scene, pool: list[Worker], step: Step
) -> None:
    for worker in pool:
        worker.open(scene, "a")
    pool[0].up_to(step, "anchor")
    pool[1].tell(call="anchor")
    pool[0].kill()
    pool[0] = Worker()
    # What was signed is sent by the next one, before it makes an anchor of its own.
    made = 4 if step is Step.SIGNED else 3
    assert pool[1].hear() == {"value": made}
    assert scene.truth.version() == len(scene.truth.applied()) == made
    assert scene.recorded("a") is None
    assert scene.held("a") == {"one", "two", "three"}


@pytest.mark.parametrize("step", BEFORE_SENDING)
@pytest.mark.parametrize("at_once", [True, False], ids=["at once", "one first"])
def test_of_two_machines_one_wins_the_version_and_the_other_is_told(
    scene: Scene, pool: list[Worker], step: Step, at_once: bool
) -> None:
    scene.machine("b").rehydrate()
    for worker, name in zip(pool, ("a", "b"), strict=True):
        worker.open(scene, name)
    pool[1].ask(call="remember", **{"with": ["of b"]})
    pool[0].up_to(step, "anchor")
    if at_once:
        pool[1].up_to(step, "anchor")
        for worker in pool:
            worker.go_on()
        answers = [worker.hear() for worker in pool]
    else:
        won = {"value": pool[1].ask(call="anchor")}
        pool[0].go_on()
        answers = [pool[0].hear(), won]
    (lost,) = [place for place, answer in enumerate(answers) if "error" in answer]
    winner, loser = ("a", "b")[1 - lost], ("a", "b")[lost]
    assert answers[1 - lost] == {"value": 3}
    told = answers[lost]
    assert (told["error"], told["expected"], told["actual"]) == ("VersionConflict", 2, 3)
    assert "3" in told["message"]
    assert "2" in told["message"]
    assert "`mycelium memory sync`" in told["hint"]
    assert scene.truth.version() == len(scene.truth.applied()) == 3
    assert scene.recorded(winner) is scene.recorded(loser) is None
    # The loser's writes are still there, and it goes on as it was told.
    assert scene.held("a") == {"one", "two", "three"}
    assert scene.held("b") == {"one", "two", "of b"}
    assert pool[lost].ask(call="sync") == 4
    assert scene.held(loser) == {"one", "two", "three", "of b"}
    assert scene.machine(winner).rehydrate()["version"] == 4
    assert [worker.ask(call="verify") for worker in pool] == ["IN_SYNC", "IN_SYNC"]


def test_two_machines_on_a_chain_that_is_not_there_yet(
    stage: Callable[..., Scene], pool: list[Worker]
) -> None:
    scene = stage("new.db")
    for worker, name in zip(pool, ("left", "right"), strict=True):
        worker.open(scene, name)
        worker.ask(call="remember", **{"with": [name]})
    for worker in pool:
        worker.tell(call="anchor")
    answers = [worker.hear() for worker in pool]
    assert {"value": 1} in answers
    (told,) = [answer for answer in answers if "error" in answer]
    # Whether it looked before or after the winner had anchored: never silently over it.
    assert told["error"] in ("VersionConflict", "UnanchoredWrites")
    assert scene.truth.version() == len(scene.truth.applied()) == 1


def test_a_command_that_loses_a_version_says_which_and_how_to_go_on(scene: Scene, pool: list[Worker]) -> None:
    scene.machine("b").rehydrate()
    other = pool[0]
    other.open(scene, "b")
    other.ask(call="remember", **{"with": ["of b"]})

    def overtake(step: Step) -> None:
        if step is Step.SIGNED and scene.truth.version() == 2:
            assert other.ask(call="anchor") == 3

    with observed(overtake):
        code, document = scene.command("a", "memory", "anchor")
    error = document["error"]
    assert (code, error["type"], error["verdict"]) == (6, "VersionConflict", "VERSION_CONFLICT")
    assert error["message"] == "the anchor on the chain is version 3, not 2"
    assert "`mycelium memory sync`" in error["hint"]
    code, document = scene.command("a", "memory", "anchor")
    assert (code, document["error"]["type"]) == (6, "VersionConflict")
    assert "version 2" in document["error"]["message"]
    assert "version 3" in document["error"]["message"]
    code, document = scene.command("a", "memory", "sync")
    assert (code, document["version"]) == (0, 4)
    assert scene.held("a") == {"one", "two", "three", "of b"}


def test_a_conflict_is_the_same_for_a_program(scene: Scene) -> None:
    a, b = scene.machine("a"), scene.machine("b")
    assert a.anchor() == 3
    b.remember("of b")
    with pytest.raises(VersionConflict) as caught:
        b.anchor()
    assert (caught.value.expected, caught.value.actual) == (1, 3)
    assert caught.value.hint is not None
    assert "mycelium memory sync" in caught.value.hint
