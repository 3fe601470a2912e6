"""An ingester that is killed again and again leaves what one leaves that is not."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
KILLS = 50
EVENTS = 10_000


def test_fifty_kills_during_ten_thousand_events(tmp_path: Path) -> None:
    done = subprocess.run(
        [
            sys.executable, "-m", "tests.indexer.ingest.killing", str(tmp_path), "--kills", str(KILLS),
            "--events", str(EVENTS),
        ],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=240,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["kills"] == KILLS, "all of them before the end"
    assert 0.3 < found["done_by_then"] < 1, "spread over the whole"
    assert found["same"]
    assert found["events"] >= EVENTS
    assert found["gaps"] > 0
