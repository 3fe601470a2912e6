"""The package's face: what it exports, and what importing it costs."""

from __future__ import annotations

import subprocess
import sys

import mycelium_localnet


def test_importing_the_package_loads_neither_the_sdk_nor_the_host() -> None:
    code = (
        "import sys, mycelium_localnet\n"
        "heavy = ('stellar_sdk', 'mycelium_localnet._native')\n"
        "sys.exit(' '.join(name for name in sys.modules if name.startswith(heavy)) or 0)"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr


def test_every_exported_name_is_there() -> None:
    for name in mycelium_localnet.__all__:
        assert getattr(mycelium_localnet, name) is not None
    assert not hasattr(mycelium_localnet, "Blockchain")
