"""The demonstration: it runs for real, and it fails when a step does not behave as it must."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from mycelium_cli.demo import story as demo_story
from mycelium_cli.demo.conversation import questions, turns
from mycelium_cli.demo.machine import Shared, configuration_of
from mycelium_cli.demo.story import Step, StepFailed, Story, refused, tell
from mycelium_sdk.context import AgentContext
from mycelium_sdk.errors import BlobNotFound, Tampered

from .conftest import TIMEOUT

if TYPE_CHECKING:
    from .conftest import Cli

DEMOS = Path(__file__).parents[2] / "demos"


def test_the_conversation_is_what_the_demonstration_needs() -> None:
    items = [turn.as_item() for turn in turns()]
    assert len(items) >= 200
    assert len({item["content"] for item in items}) == len(items)
    assert all(re.match(r"\[2026-\d\d-\d\d\] (Mara|Fern): ", str(item["content"])) for item in items)
    texts = {turn.text for turn in turns()}
    for question in questions():
        assert question.expected
        assert texts.issuperset(question.expected)


def test_every_step_behaves_as_it_must(tmp_path: Path) -> None:
    steps = list(tell(tmp_path))
    assert [step.problem for step in steps] == [None] * 9
    by_number = {step.number: step.data for step in steps}
    assert by_number[1]["records"] == len(turns())
    assert [by_number[number]["version"] for number in (2, 5)] == [1, 2]
    assert by_number[3]["verdict"] == "IN_SYNC"
    assert by_number[3]["records"] == len(turns())
    assert all(asked["place"] <= 5 for asked in by_number[4]["questions"])
    assert [by_number[number]["verdict"] for number in (6, 7, 8, 9)] == [
        "TAMPERED",
        "ROLLBACK",
        "VERSION_CONFLICT",
        "IN_SYNC",
    ]
    assert by_number[8]["contract"] == {"expected": 1, "actual": 2}
    assert not (tmp_path / "machine-a").exists()

    # What it says it did is on the chain.
    configuration = configuration_of(tmp_path / "machine-b", Shared(tmp_path / "shared"))
    with AgentContext.read_only(configuration=configuration) as reader:
        for number in (2, 5, 9):
            found = reader.chain.transaction(by_number[number]["transaction"])
            assert found.status == "SUCCESS"
            assert found.fee_charged == by_number[number]["fee_stroops"]
        anchor = reader.anchor_client().get_anchor(by_number[1]["owner"])
    assert anchor is not None
    assert anchor.version == 3
    assert anchor.root.hex() == by_number[9]["root"]


@pytest.mark.parametrize(
    ("broken", "number", "part"),
    [
        ("accepted", 6, "accepted, though it must be refused as Tampered"),
        ("other", 6, "refused, but as BlobNotFound"),
    ],
)
def test_a_forgery_that_is_not_refused_fails_the_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: str, number: int, part: str
) -> None:
    genuine = Story.tamper

    def tamper(story: Story, step: Step) -> None:
        if broken == "accepted":
            monkeypatch.setattr(Path, "write_bytes", lambda *_: 0)
        else:
            monkeypatch.setattr(Path, "write_bytes", lambda path, _: path.unlink())
        genuine(story, step)

    monkeypatch.setattr(Story, "tamper", tamper)
    *earlier, last = tell(tmp_path)
    assert [step.problem for step in earlier] == [None] * (number - 1)
    assert last.number == number
    assert last.problem is not None
    assert part in last.problem


def test_refused_wants_the_error_it_names() -> None:
    def fail() -> None:
        raise Tampered("changed")

    assert refused(Tampered, fail).message == "changed"
    with pytest.raises(StepFailed, match="refused, but as Tampered"):
        refused(BlobNotFound, fail)
    with pytest.raises(StepFailed, match="accepted"):
        refused(Tampered, lambda: None)


def failing(_: Path) -> list[Step]:
    """A demonstration whose second step fails."""
    return [Step(1, "Good", ["a fact"]), Step(2, "Bad", problem="it was accepted")]


def test_a_failed_step_is_named_and_the_exit_code_is_1(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo_story, "tell", failing)
    outcome = cli("demo")
    assert outcome.code == 1
    assert outcome.out == "1. Good\n   a fact\n   ok, 0 ms\n2. Bad\n   FAILED: it was accepted\n"
    assert outcome.err == "error: step 2 did not behave as it must: it was accepted\n"
    data = cli("demo", "--json")
    assert data.code == 1
    assert data.json["ok"] is False
    assert [step["problem"] for step in data.json["steps"]] == [None, "it was accepted"]


def test_the_command_shows_hashes_fees_and_times_and_keeps_the_folder(cli: Cli, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    outcome = cli("demo", "--keep", str(kept), "--json")
    assert outcome.code == 0, outcome.err
    assert outcome.json["ok"] is True
    assert outcome.json["folder"] == str(kept)
    for number in (2, 5, 9):
        step = outcome.json["steps"][number - 1]
        facts = "\n".join(step["facts"])
        assert step["data"]["transaction"] in facts
        assert re.search(r"fee 0\.\d{7} XLM \([\d,]+ stroops\), \d", facts)
    assert (kept / "machine-b" / "wallet.json").is_file()
    assert (kept / "shared" / "chain.db").is_file()
    refused_folder = cli("demo", "--keep", str(kept))
    assert refused_folder.code == 2
    assert "is not empty" in refused_folder.err


def test_the_program_in_demos_is_the_same_door(tmp_path: Path, own_home: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(DEMOS / "lost_machine.py")],
        capture_output=True,
        timeout=TIMEOUT,
        check=False,
        cwd=tmp_path,
    )
    out = done.stdout.decode()
    assert done.returncode == 0, done.stderr
    assert [line[:3] for line in out.splitlines() if re.match(r"\d\. ", line)] == [
        f"{number}. " for number in range(1, 10)
    ]
    assert "Success: all 9 steps behaved as they must" in out
    assert done.stderr == b""
    assert not own_home.exists()
