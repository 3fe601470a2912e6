"""Every transcript is what really happens, and every verdict that can be reached has one.

`REWRITE_TRANSCRIPTS=1` writes them as they really are; read the difference before it is committed.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from mycelium_sdk.chain import rpc
from mycelium_sdk.retry import Pace, RetryPolicy
from mycelium_sdk.verdicts import Verdict

from .stage import Stage
from .transcripts import parse, replay

if TYPE_CHECKING:
    from mycelium_sdk.wallet import Wallet

    from .conftest import Cli

FOLDER = Path(__file__).parent / "transcripts"
SOURCES = Path(__file__).parents[2] / "sdk" / "mycelium_sdk"
NAMES = sorted(str(path.relative_to(FOLDER).with_suffix("")) for path in FOLDER.rglob("*.txt"))

NOT_REACHED = {
    Verdict.NOT_A_READER: "blobs are not sealed",
}
"""Verdicts that no command can give in this version, and why."""

EVERYWHERE = ("status", "status --local", "verify", "verify --json", "rehydrate", "anchor")
"""What is tried in the state that each verdict is about."""


@pytest.fixture
def stage(cli: Cli, tmp_path: Path, wallet: Wallet, monkeypatch: pytest.MonkeyPatch, own_home: Path) -> Stage:
    """A stage where waiting for a server takes no time."""
    waited = 0.0

    def sleep(seconds: float) -> None:
        nonlocal waited
        waited += seconds

    def patient() -> RetryPolicy:
        return RetryPolicy(pace=Pace(sleep=sleep, monotonic=lambda: waited))

    monkeypatch.setattr(rpc, "RetryPolicy", patient)
    monkeypatch.setenv("COLUMNS", "80")
    return Stage(cli, tmp_path, wallet, monkeypatch)


@pytest.mark.parametrize("name", NAMES)
def test_transcript(stage: Stage, name: str) -> None:
    path = FOLDER / f"{name}.txt"
    text = path.read_text(encoding="utf-8")
    played = replay(text, stage.run, stage.act, stage.placeholders)
    if os.environ.get("REWRITE_TRANSCRIPTS"):
        path.write_text(played, encoding="utf-8")
    assert played == text


def texts() -> dict[str, str]:
    """The transcripts by name."""
    return {name: (FOLDER / f"{name}.txt").read_text(encoding="utf-8") for name in NAMES}


@pytest.mark.parametrize("verdict", Verdict)
def test_every_verdict_has_a_transcript(verdict: Verdict) -> None:
    for_people = re.compile(rf"(?m)^({verdict}: |! error: .*\({verdict}\)$)")
    for_programs = f'"verdict": "{verdict}"'
    everything = "\n".join(texts().values())
    if verdict in NOT_REACHED:
        raised = re.compile(rf"\bVerdict\.{verdict}\b")
        places = [path for path in SOURCES.rglob("*.py") if path.name != "verdicts.py"]
        assert not [path for path in places if raised.search(path.read_text(encoding="utf-8"))]
        assert for_programs not in everything
        return
    own = texts()[f"verdicts/{verdict}"]
    assert for_people.search(own)
    assert for_programs in own


@pytest.mark.parametrize("verdict", sorted(set(Verdict) - set(NOT_REACHED)))
def test_every_command_is_tried_in_every_state(verdict: Verdict) -> None:
    tried = {step.command for step in parse(texts()[f"verdicts/{verdict}"]) if step.command}
    for command in EVERYWHERE:
        assert any(line.startswith(f"mycelium memory {command}") for line in tried), command


def test_every_exit_code_is_shown() -> None:
    shown = {int(code) for text in texts().values() for code in re.findall(r"(?m)^=> (\d+)$", text)}
    assert shown >= {1, 2, 3, 4, 5, 6, 7, 8}


def test_no_transcript_shows_what_is_for_nobody(stage: Stage) -> None:
    """Placeholders that were missed would fail elsewhere and at other times."""
    for name, text in texts().items():
        assert "Traceback" not in text, name
        assert "/tmp/" not in text, name  # noqa: S108 - where it would come from
        assert not re.search(r"\b[0-9a-f]{64}\b(?<!0{64})", text), name
        assert stage.wallet.address not in text, name
