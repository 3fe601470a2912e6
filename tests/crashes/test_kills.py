"""kill -9 at every labelled step and at random moments: nothing is lost, and the next run goes on."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from mycelium_sdk.steps import Step

FORGE = Path(__file__).with_name("forge.py")
ROUNDS = int(os.environ.get("CRASH_ROUNDS", "200"))
SEED = int(os.environ.get("CRASH_SEED", "20260302"))


def test_a_killed_process_loses_and_doubles_nothing(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(FORGE), str(tmp_path), str(ROUNDS), str(SEED)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    report = json.loads(done.stdout)
    deaths = report["deaths"]
    assert sum(deaths.values()) == ROUNDS
    assert set(deaths) == {*map(str, Step), "random"}, "some step was never died at"
    assert report["version"] > 0
    assert report["remembered"] > ROUNDS / 2
