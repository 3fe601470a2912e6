"""The network `standalone`: the SDK and the command line against a server, over HTTP, as users run them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from mycelium_localnet.server.options import DEFAULT_PORT
from mycelium_sdk.chain.artifact import memory_anchor_wasm
from mycelium_sdk.config import load_configuration
from mycelium_sdk.context import AgentContext
from mycelium_sdk.memory import AgentMemory
from mycelium_sdk.networks import resolve_network
from mycelium_sdk.verdicts import Verdict
from mycelium_sdk.wallet import Wallet
from tests.localnet.server.process import SECONDS, ServerProcess, serving

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PASSPHRASE = "correct horse"


@pytest.fixture(scope="module")
def wallet(tmp_path_factory: pytest.TempPathFactory) -> Wallet:
    return Wallet.create(tmp_path_factory.mktemp("wallet") / "private" / "wallet.json", PASSPHRASE)


@pytest.fixture(scope="module", params=[(), ("--interval", "0.1")], ids=["instant", "interval"])
def server(request: pytest.FixtureRequest, wallet: Wallet) -> Iterator[ServerProcess]:
    """A server on which the wallet's account has money."""
    with serving(*request.param) as started:
        assert started.fund(wallet.address).status == 200
        yield started
        assert started.complaints() == ""


def context(server: ServerProcess, wallet: Wallet, home: Path, **onchain: str) -> AgentContext:
    """A machine with a home of its own."""
    overrides = {
        "onchain.network": "standalone",
        "onchain.rpc_url": server.url,
        "wallet.path": str(wallet.path),
        **onchain,
    }
    configuration = load_configuration(
        start=home.parent, env={"MYCELIUM_HOME": str(home)}, overrides=overrides
    )
    return AgentContext(configuration=configuration, passphrase=PASSPHRASE)


def test_the_name_alone_finds_a_server_with_the_defaults(shared: ServerProcess, tmp_path: Path) -> None:
    configuration = load_configuration(start=tmp_path, env={})
    network = resolve_network("standalone", configuration)
    assert network.rpc_url == f"http://localhost:{DEFAULT_PORT}/rpc"
    assert network.passphrase == shared.call("getNetwork")["passphrase"]


def test_a_memory_outlives_its_machine(server: ServerProcess, wallet: Wallet, tmp_path: Path) -> None:
    with context(server, wallet, tmp_path / "a") as here:
        contract = here.deploy_contract(memory_anchor_wasm())
    chosen = {"memory.anchor_address": contract}
    with context(server, wallet, tmp_path / "a", **chosen) as here, AgentMemory(here) as memory:
        memory.remember("prefers concise answers", tags=["style"])
        assert memory.verify().verdict is Verdict.NOT_ANCHORED
        assert memory.anchor(publish=str(tmp_path / "blobs")) == 1
        memory.remember("has a dog")
        assert memory.anchor(publish=str(tmp_path / "blobs")) == 2
        assert memory.verify().verdict is Verdict.IN_SYNC
    with context(server, wallet, tmp_path / "b", **chosen) as there, AgentMemory(there) as memory:
        assert memory.rehydrate() == {"version": 2, "records": 2}
        assert memory.verify().verdict is Verdict.IN_SYNC
        assert [hit["content"] for hit in memory.recall("dog", k=1)] == ["has a dog"]


def test_an_agent_with_no_wallet_reads(server: ServerProcess, wallet: Wallet, tmp_path: Path) -> None:
    with context(server, wallet, tmp_path / "a") as here:
        contract = here.deploy_contract(memory_anchor_wasm())
        client = here.anchor_client(contract)
        client.set_anchor(here.keypair(), bytes([7]) * 32, b"file:///x")
        configuration = here.configuration
    with AgentContext.read_only(configuration=configuration) as stranger:
        found = stranger.anchor_client(contract).get_anchor(wallet.address)
        assert found is not None
        assert (found.version, found.root) == (1, bytes([7]) * 32)


class CommandLine:
    """`mycelium` as a process, in a working folder and a home of its own, with this configuration."""

    def __init__(self, folder: Path, configuration: str) -> None:
        folder.mkdir()
        (folder / "mycelium.toml").write_text(configuration)
        self.folder = folder

    def __call__(self, *arguments: str) -> Any:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("MYCELIUM_")}
        done = subprocess.run(
            [sys.executable, "-m", "mycelium_cli", *arguments, "--json"],
            cwd=self.folder,
            env={**kept, "MYCELIUM_HOME": str(self.folder / "home"), "MYCELIUM_DECRYPT_KEY": PASSPHRASE},
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)


def test_the_command_line(server: ServerProcess, wallet: Wallet, tmp_path: Path) -> None:
    settings = f"""
[onchain]
network = "standalone"
rpc_url = "{server.url}"
[wallet]
path = "{wallet.path}"
"""
    made = CommandLine(tmp_path / "deployer", settings)("contract", "deploy")
    assert made["network"] == "standalone"
    settings += f'[memory]\nanchor_address = "{made["contract"]}"\n'
    a, b = (CommandLine(tmp_path / name, settings) for name in ("a", "b"))
    a("memory", "remember", "prefers concise answers")
    assert a("memory", "anchor", "--publish", str(tmp_path / "memory.json"))["version"] == 1
    assert a("memory", "verify")["verdict"] == "IN_SYNC"
    assert b("memory", "rehydrate") == {"version": 1, "records": 1}
    assert b("memory", "status")["verdict"] == "IN_SYNC"


def test_deploying_funds_the_account_of_a_new_wallet(tmp_path: Path) -> None:
    with serving() as server:
        new = Wallet.create(tmp_path / "private" / "wallet.json", PASSPHRASE)
        with context(server, new, tmp_path / "home") as made:
            environment = os.environ | {
                "MYCELIUM_HOME": str(made.home.root),
                "MYCELIUM_WALLET": str(new.path),
                "MYCELIUM_DECRYPT_KEY": PASSPHRASE,
            }
        command = [sys.executable, "-m", "mycelium_cli", "contract", "deploy", "--json"]
        done = subprocess.run(
            [*command, "--network", "standalone", "--rpc-url", server.url],
            env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=SECONDS, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert f"funded the account {new.address}" in done.stderr
        assert json.loads(done.stdout)["network"] == "standalone"
