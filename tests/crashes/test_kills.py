"""kill -9 at every labelled step and at random moments: nothing is lost, and the next run goes on.

A world is a wallet, a chain and two machines with everything they ever remembered; many rounds are dealt out
to several of them, since each check reads a whole world.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from mycelium_sdk.steps import Step

FORGE = Path(__file__).with_name("forge.py")
ROUNDS = int(os.environ.get("CRASH_ROUNDS", "200"))
SEED = int(os.environ.get("CRASH_SEED", "20260302"))
LARGEST = 500
"""Rounds that one world goes through at most."""
WORLDS = -(-ROUNDS // LARGEST)


@pytest.mark.parametrize("world", range(WORLDS))
def test_a_killed_process_loses_and_doubles_nothing(tmp_path: Path, world: int) -> None:
    rounds = len(range(world, ROUNDS, WORLDS))
    done = subprocess.run(
        [sys.executable, str(FORGE), str(tmp_path), str(rounds), str(SEED + world)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    report = json.loads(done.stdout)
    deaths = report["deaths"]
    assert sum(deaths.values()) == rounds
    assert set(deaths) == {*map(str, Step), "random"}, "some step was never died at"
    assert report["version"] > 0
    assert report["remembered"] > rounds / 2
    if WORLDS > 1:
        shutil.rmtree(tmp_path)  # many worlds would fill the disk: what failed is worth keeping
