"""What remembering and recalling load: starting must stay quick."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

_HEAVY = {"stellar_sdk", "numpy", "cryptography", "requests", "mycelium_localnet", "asyncio", "sqlite_utils"}


@pytest.mark.parametrize(
    ("act", "absent"),
    [
        (
            "b.remember('a text', ['tag'], session='s')",
            _HEAVY | {"snowballstemmer", "mycelium_sdk.backends.text"},
        ),
        ("b.export_blob()", _HEAVY | {"snowballstemmer", "mycelium_sdk.backends.text"}),
        ("b.recall('some text')", _HEAVY | {"mycelium_sdk.backends.local.vectors"}),
    ],
)
def test_nothing_heavy_is_loaded(owner: str, path: Path, act: str, absent: set[str]) -> None:
    code = (
        "import sys; from mycelium_sdk.backends.local import LocalVectorBackend;"
        f" b = LocalVectorBackend(sys.argv[1], sys.argv[2]); {act}; b.close(); print(*sys.modules)"
    )
    shown = subprocess.run(
        [sys.executable, "-c", code, owner, str(path)], check=True, capture_output=True, text=True
    ).stdout
    loaded = set(shown.split())
    assert "mycelium_sdk.backends.local.store" in loaded
    assert loaded & absent == set()
