"""The command that installs what is missing fits where this package came from."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from mycelium_sdk.installing import install_command

if TYPE_CHECKING:
    from pathlib import Path


def recorded(folder: Path, document: object) -> None:
    """What an installer leaves of a package, in a folder that is looked into first."""
    kept = folder / "mycelium_memory-0.1.0.dist-info"
    kept.mkdir(parents=True)
    (kept / "METADATA").write_text("Metadata-Version: 2.1\nName: mycelium-memory\nVersion: 0.1.0\n")
    if document is not None:
        (kept / "direct_url.json").write_text(document if isinstance(document, str) else json.dumps(document))


@pytest.mark.parametrize(
    ("editable", "extra", "command"),
    [
        (False, "postgres", "pip install '{}[postgres]'"),
        (True, "postgres", "pip install --editable '{}[postgres]'"),
        (False, "local", "pip install '{}/localnet'"),
    ],
)
def test_the_clone_that_it_was_installed_from_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, editable: bool, extra: str, command: str
) -> None:
    clone = tmp_path / "my clone"
    clone.mkdir()
    (clone / "pyproject.toml").touch()
    recorded(tmp_path / "site", {"url": clone.as_uri(), "dir_info": {"editable": editable}})
    monkeypatch.syspath_prepend(tmp_path / "site")
    assert install_command(extra) == command.format(clone)


@pytest.mark.parametrize(
    "document",
    [
        None,
        "{",
        "[]",
        {},
        {"url": "https://host.example/mycelium.whl", "archive_info": {}},
        {"url": "file:///nowhere/at/all", "dir_info": {}},
    ],
)
def test_where_the_clone_is_not_known_any_path_stands_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, document: object
) -> None:
    recorded(tmp_path, document)
    monkeypatch.syspath_prepend(tmp_path)
    assert install_command("dense") == "pip install '/path/to/mycelium[dense]'"
    assert install_command("local") == "pip install /path/to/mycelium/localnet"


def test_the_public_names_can_be_looked_at_without_any_extra() -> None:
    program = (
        "import sys, inspect, pydoc\n"
        "for name in ('psycopg', 'supermemory', 'httpx', 'numpy', 'tokenizers', 'mycelium_localnet'):\n"
        "    sys.modules[name] = None\n"
        "import mycelium, mycelium_sdk, mycelium_sdk.embedders, mycelium_sdk.memory\n"
        "for module in (mycelium, mycelium_sdk, mycelium_sdk.embedders, mycelium_sdk.memory):\n"
        "    inspect.getmembers(module)\n"
        "    pydoc.render_doc(module)\n"
        "from mycelium_sdk.memory import *\n"
        "from mycelium_sdk.errors import ConfigError\n"
        "from mycelium_sdk.strkey import encode_account\n"
        "try:\n"
        "    PostgresBackend(encode_account(bytes(32)), 'postgresql:///x')\n"
        "except ConfigError as error:\n"
        "    print(error, error.hint)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert done.stdout.startswith("PostgreSQL's client library is not installed install it: pip install ")
    assert done.stdout.endswith("[postgres]'\n")
