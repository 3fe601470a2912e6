"""The backend `tiered` by name: from the configuration, and on the command line."""

from __future__ import annotations

import contextlib
import io
import json
from typing import TYPE_CHECKING

import pytest

from mycelium_cli.main import run
from mycelium_cli.reference import RESULTS
from mycelium_sdk import backend_choice
from mycelium_sdk.backends.local import LocalVectorBackend
from mycelium_sdk.backends.tiered import TieredBackend
from mycelium_sdk.config import load_configuration
from mycelium_sdk.context import AgentContext
from mycelium_sdk.errors import ConfigError, InputError
from mycelium_sdk.memory import AgentMemory
from mycelium_sdk.wallet import Wallet
from tests.canaries import PASSPHRASE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path
    from typing import Any

    from mycelium_sdk.backends.base import BaseBackend


@pytest.fixture
def follower(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A local file in the place of the cloud: what is opened for the name `supermemory`."""
    file = tmp_path / "follower.db"

    def opened(ctx: AgentContext, _: Mapping[str, Any]) -> BaseBackend:
        return LocalVectorBackend(ctx.address, file, integrity=ctx.home.integrity)

    monkeypatch.setitem(backend_choice._OPENERS, "supermemory", opened)
    return file


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("MYCELIUM_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("MYCELIUM_DECRYPT_KEY", PASSPHRASE)
    Wallet.create(folder / ".mycelium" / "wallet.json", PASSPHRASE)
    (folder / "mycelium.toml").write_text(
        '[memory]\nbackend = "tiered"\n[memory.tiered]\nsecondary = "supermemory"\n'
    )
    return folder


@pytest.fixture
def cli() -> Callable[..., tuple[int, str, str]]:
    def command(*arguments: str) -> tuple[int, str, str]:
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = run(["memory", *arguments])
        return code, out.getvalue(), err.getvalue()

    return command


@pytest.fixture
def context(work: Path) -> Iterator[AgentContext]:
    with AgentContext(configuration=load_configuration()) as made:
        yield made


def test_the_configuration_names_both(follower: Path, context: AgentContext) -> None:
    with AgentMemory(context) as memory:
        memory.remember("one")
        backend = memory.backend
        assert isinstance(backend, TieredBackend)
        assert backend.primary.place == str(context.home.memory_file(context.address))
        assert backend.secondary.count() == 1
        assert memory.anchor() == 1
        assert memory.verify()
    with AgentMemory(
        context, backend_kwargs={"patience": 0.5, "primary": {"durability": "process"}}
    ) as memory:
        assert memory.count() == 1
    with pytest.raises(InputError, match="local does not take nonsense"):
        AgentMemory(context, backend_kwargs={"primary": {"nonsense": 1}})
    with pytest.raises(InputError, match="tiered does not take nonsense"):
        AgentMemory(context, backend_kwargs={"nonsense": 1})


@pytest.mark.parametrize(
    ("tiered", "words"),
    [("", "needs a secondary"), ('secondary = "local"\n', "both parts of the backend tiered are local")],
)
def test_what_makes_no_sense_names_the_key(work: Path, tiered: str, words: str) -> None:
    (work / "mycelium.toml").write_text(f'[memory]\nbackend = "tiered"\n[memory.tiered]\n{tiered}')
    with (
        AgentContext(configuration=load_configuration()) as context,
        pytest.raises(ConfigError, match=words) as caught,
    ):
        AgentMemory(context)
    assert "[memory.tiered]" in (caught.value.hint or "")


def test_the_command_line_repairs(
    follower: Path, work: Path, cli: Callable[..., tuple[int, str, str]]
) -> None:
    assert cli("remember", "one")[0] == cli("remember", "two")[0] == 0
    for file in follower.parent.glob("follower.db*"):
        file.unlink()
    code, out, _ = cli("repair", "--json")
    assert code == 0
    document = json.loads(out)
    assert " ".join(document) == RESULTS["memory repair"]
    assert (document["added"], document["equal"]) == (2, True)
    code, out, err = cli("status", "--local", "--json")
    assert json.loads(out)["lag"] == {
        "waiting": 0, "everything": False, "refused": 0, "compared": True, "error": None, "retry_at": None,
    }  # fmt: skip
    assert "followed by" in json.loads(out)["backend"]
    assert err == ""
    code, out, _ = cli("repair")
    assert out.startswith("both stores hold the same\n")
    assert cli("repair", "--backend", "local")[0] == 2


def test_the_command_line_says_what_is_lacking(
    work: Path, cli: Callable[..., tuple[int, str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.tiered.conftest import Shaky

    def opened(ctx: AgentContext, _: Mapping[str, Any]) -> BaseBackend:
        made = Shaky(ctx.address)
        made.down = True
        return made

    monkeypatch.setitem(backend_choice._OPENERS, "supermemory", opened)
    assert cli("remember", "one")[0] == 0
    code, _, err = cli("status", "--local")
    assert code == 0
    assert "warning: the secondary lacks 1 change, which is queued" in err
    assert "warning: the secondary could not be reached lately: the cloud is down" in err
