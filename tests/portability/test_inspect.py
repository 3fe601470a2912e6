"""`mycelium memory inspect`: somebody else's memory, shown only if it is what was anchored."""

from __future__ import annotations

import contextlib
import io
import json
from typing import TYPE_CHECKING

import pytest

from mycelium_cli.main import run
from mycelium_cli.reference import RESULTS

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable
    from pathlib import Path

    from tests.memory.conftest import World
    from tests.portability.conftest import Web

    Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def inspect(
    world: World,
    web: Web,
    certificate: tuple[ssl.SSLContext, Path],
    monkeypatch: pytest.MonkeyPatch,
) -> Command:
    """Runs the command on another machine, which trusts the test's server."""
    work = world.folder / "reader"
    work.mkdir()
    port = web.server.url.split(":")[2].split("/")[0]
    (work / "mycelium.toml").write_text(
        f'[onchain]\nchain_file = "{world.chain_file}"\n'
        f'[fetch]\nallow_networks = ["127.0.0.0/8"]\nports = [{port}]\nca_file = "{certificate[1]}"\n'
    )
    monkeypatch.chdir(work)
    monkeypatch.setenv("MYCELIUM_HOME", str(work / "home"))

    def command(*arguments: str) -> tuple[int, str, str]:
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = run(["memory", "inspect", *arguments])
        return code, out.getvalue(), err.getvalue()

    return command


def test_it_is_shown_with_where_it_comes_from(world: World, web: Web, inspect: Command) -> None:
    author = world.machine("author")
    author.remember("likes tea", ["drinks"])
    author.remember("two\nlines\x1b[2J")
    author.anchor(publish=web.publish)
    code, out, _ = inspect(author.owner)
    assert code == 0
    assert f"owner     {author.owner}" in out
    assert "anchored  version 1, " in out
    assert "verified  2 memories, all of them committed to by this anchor" in out
    assert "- likes tea  [drinks]\n- two\n  lines\\x1b[2J\n" in out
    code, out, _ = inspect(author.owner, "--limit", "1")
    assert out.endswith("- likes tea  [drinks]\n... and 1 more; --all shows them\n")
    code, out, _ = inspect(author.owner, "--all", "--json")
    found = json.loads(out)
    assert " ".join(found) == RESULTS["memory inspect"]
    assert found["root"] == author.memory_root().hex()
    assert found["memories"][0] == {"content": "likes tea", "tags": ["drinks"]}


def test_what_is_not_what_was_anchored_is_not_shown(world: World, web: Web, inspect: Command) -> None:
    author = world.machine("author")
    author.remember("likes tea")
    author.anchor(publish=web.publish)
    web.files["/0.json"] = web.files["/0.json"].replace(b"tea", b"tee")
    code, out, err = inspect(author.owner)
    assert code == 7
    assert out == ""
    assert "does not hash to the root of version 1" in err
    web.files.clear()
    code, out, err = inspect(author.owner)
    assert code == 8
    assert "not where the anchor says" in err


def test_a_path_on_this_machine_is_not_read(world: World, inspect: Command) -> None:
    author = world.machine("author")
    author.anchor()
    code, _, err = inspect(author.owner)
    assert code == 7
    assert "file on this machine" in err
    code, _, err = inspect("G123")
    assert code == 2
