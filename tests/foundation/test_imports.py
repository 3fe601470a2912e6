"""What importing the foundation costs: nothing heavy comes along."""

from __future__ import annotations

import subprocess
import sys

import pytest

MODULES = (
    "errors",
    "verdicts",
    "strkey",
    "records",
    "canonical",
    "files",
    "home",
    "config",
    "networks",
    "wallet",
)
HEAVY = (
    "stellar_sdk",
    "cryptography",
    "mycelium_localnet",
    "numpy",
    "requests",
    "sqlite3",
    "tomllib",
    "difflib",
)


@pytest.mark.parametrize("module", MODULES)
def test_a_module_of_the_foundation_is_light(module: str) -> None:
    program = f"import sys, mycelium_sdk.{module}; print([name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_loading_a_wallet_and_a_configuration_needs_no_stellar_library() -> None:
    program = (
        "import sys, pathlib, tempfile\n"
        "from mycelium_sdk.config import load_configuration\n"
        "from mycelium_sdk.wallet import Wallet\n"
        "with tempfile.TemporaryDirectory() as folder:\n"
        "    configuration = load_configuration(pathlib.Path(folder), {})\n"
        "    Wallet.create(configuration.wallet.path, 'x').unlock('x')\n"
        "print('stellar_sdk' in sys.modules, 'cryptography' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "False True\n"
