"""`mycelium localnet`: the same server from the command line of the product."""

from __future__ import annotations

import json
import signal
import sqlite3
import sys
from contextlib import closing
from typing import TYPE_CHECKING

import click
import pytest

from mycelium_cli.commands import localnet as command
from mycelium_cli.main import run
from mycelium_localnet import Chain
from mycelium_localnet.clock import ClockMode
from mycelium_localnet.profiles import PROFILES
from mycelium_localnet.server.options import DEFAULT_HOST, DEFAULT_PORT
from tests.localnet.server.process import serving

if TYPE_CHECKING:
    from pathlib import Path

    from tests.localnet.server.process import ServerProcess

MYCELIUM = [sys.executable, "-m", "mycelium_cli", "localnet", "--port", "0"]


def option(name: str) -> click.Option:
    (found,) = [one for one in command.localnet.params if name in one.opts]
    assert isinstance(found, click.Option)
    return found


def choices(name: str) -> tuple[str, ...]:
    kind = option(name).type
    assert isinstance(kind, click.Choice)
    return tuple(kind.choices)


def notes(server: ServerProcess) -> list[str]:
    """What it said on stderr, but for how long the start took if that was long."""
    return [line for line in server.complaints().splitlines() if not line.startswith("starting ...")]


def test_the_options_are_those_of_the_server() -> None:
    assert choices("--profile") == tuple(PROFILES)
    assert choices("--clock") == ClockMode.__args__  # type: ignore[attr-defined]
    assert (option("--host").default, option("--port").default) == (DEFAULT_HOST, DEFAULT_PORT)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_serves_until_it_is_told_to_end(number: int) -> None:
    with serving(arguments=MYCELIUM) as server:
        assert server.call("getHealth")["status"] == "healthy"
        assert server.end(number) == 0
        said = notes(server)
        assert [line.partition(":")[0] for line in said] == ["note"] * 3
        assert f"{server.origin}/friendbot?addr=G..." in said[1]
        assert "--state FILE" in said[2]


def test_json(tmp_path: Path) -> None:
    path = tmp_path / "chain.db"
    options = ["--state", str(path), "--profile", "short-ttl", "--clock", "frozen", "--seed", "c0ffee"]
    with serving(arguments=[*MYCELIUM, *options, "--interval", "3600", "--json"]) as server:
        assert server.url == "{"
        assert server.process.stdout is not None
        lines: list[str] = []
        while not lines or lines[-1] != "}\n":
            lines.append(server.process.stdout.readline())
        found = json.loads("{" + "".join(lines))
        assert server.end() == 0
        assert (server.process.stdout.read(), notes(server)) == ("", [])
    origin = found["url"].removesuffix("/rpc")
    assert origin.startswith("http://127.0.0.1:")
    with Chain.open(path, profile="short-ttl", clock="frozen", seed=b"\xc0\xff\xee", interval=3600) as chain:
        assert found == {
            "url": f"{origin}/rpc",
            "friendbot": f"{origin}/friendbot",
            "passphrase": chain.passphrase,
            "chain_id": chain.chain_id,
            "state": str(path),
        }


@pytest.mark.parametrize(
    ("options", "expected", "part"),
    [
        (["--port", "{port}"], (3, "ConfigError"), "in use by another program"),
        (["--host", "nowhere.invalid"], (3, "ConfigError"), "nowhere.invalid"),
        (["--state", "{folder}/nowhere/chain.db"], (3, "ConfigError"), "does not exist"),
        (["--state", "{folder}/letter.txt"], (3, "ConfigError"), "not a chain file"),
        (
            ["--state", "{folder}/chain.db", "--profile", "mainnet"],
            (2, "UsageError"),
            "'testnet' as its profile",
        ),
        (["--state", "{folder}/chain.db", "--interval", "5"], (2, "UsageError"), "'instant' as its closing"),
        (["--interval", "0"], (2, "UsageError"), "every 0 seconds"),
        (["--seed", "abc"], (2, "UsageError"), "not hexadecimal"),
        (["--port", "70000"], (2, "UsageError"), "not a port"),
        (["--profile", "moon"], (2, "UsageError"), "moon"),
    ],
)
def test_what_cannot_be_served(
    *,
    shared: ServerProcess,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    options: list[str],
    expected: tuple[int, str],
    part: str,
) -> None:
    with Chain.open(tmp_path / "chain.db"):
        pass
    (tmp_path / "letter.txt").write_text("Dear Sir or Madam" * 1_000)
    (tmp_path / "letter.txt").chmod(0o600)
    given = [one.format(port=shared.port, folder=tmp_path) for one in options]
    port = [] if "--port" in given else ["--port", "0"]
    code = run(["localnet", *port, *given, "--json"])
    out, err = capsys.readouterr()
    error = json.loads(out)["error"]
    assert (code, error["type"]) == expected
    assert error["exit_code"] == code
    assert part in error["message"]
    assert error["hint"]
    assert err.startswith("error: ")


def test_a_busy_chain_is_a_fault_of_the_chain(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "chain.db"
    with Chain.open(path):
        pass
    monkeypatch.setattr("mycelium_localnet.storage.BUSY_SECONDS", 0.0)
    with closing(sqlite3.connect(path, isolation_level=None)) as holder:
        holder.execute("PRAGMA locking_mode = EXCLUSIVE")
        holder.execute("BEGIN EXCLUSIVE")
        assert run(["localnet", "--port", "0", "--state", str(path)]) == 6
    assert "error: " in capsys.readouterr().err
