"""The Python of localnet's README runs as it stands."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

README = Path(__file__).parents[3] / "localnet" / "README.md"
BLOCKS = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
COUNTER = """
from pysoroban import contract, public, storage, u32

@contract
class Counter:
    @public
    def count(self, number: u32) -> u32:
        storage.persistent.set(u32(0), number)
        return number
"""


@pytest.mark.parametrize(("block", "expected"), list(zip(BLOCKS, ["SUCCESS", "8"], strict=True)))
def test_a_block_runs(block: str, expected: str, tmp_path: Path) -> None:
    wasm = import_module("pysoroban").compile_source(COUNTER).wasm
    (tmp_path / "contract.wasm").write_bytes(wasm)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", block],
        capture_output=True,
        check=False,
        text=True,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert expected in done.stdout
