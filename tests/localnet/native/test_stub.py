"""The native module's typed face says what the compiled module is."""

from __future__ import annotations

import subprocess
import sys


def test_the_stub_matches_the_module() -> None:
    checked = subprocess.run(
        [sys.executable, "-m", "mypy.stubtest", "mycelium_localnet._native"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr
