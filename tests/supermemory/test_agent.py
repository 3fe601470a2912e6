"""An agent whose memory is in the service: anchored, verified, moved, edited; and the command line."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from mycelium_cli.main import run
from mycelium_sdk.config import load_configuration
from mycelium_sdk.context import AgentContext
from mycelium_sdk.memory import AgentMemory, SupermemoryBackend
from mycelium_sdk.verdicts import Verdict
from mycelium_sdk.wallet import Wallet
from tests.supermemory.conftest import KEY

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from mycelium_sdk.testing.supermemory_server import SupermemoryServer

PASSPHRASE = "correct horse"


@pytest.fixture
def wallet(tmp_path: Path) -> Wallet:
    return Wallet.create(tmp_path / "private" / "wallet.json", PASSPHRASE)


@pytest.fixture(autouse=True)
def _variables(monkeypatch: pytest.MonkeyPatch, server: SupermemoryServer) -> None:
    monkeypatch.setenv("SUPERMEMORY_API_KEY", KEY)
    monkeypatch.setenv("SUPERMEMORY_BASE_URL", server.url)


class Machines:
    """Homes that share a wallet and a chain."""

    def __init__(self, folder: Path, wallet: Wallet) -> None:
        self._folder = folder
        self._wallet = wallet
        self._opened: list[Any] = []

    def __call__(self, name: str, backend: str = "supermemory", **arguments: Any) -> AgentMemory:
        configuration = load_configuration(
            start=self._folder,
            env={"MYCELIUM_HOME": str(self._folder / name)},
            overrides={
                "onchain.chain_file": str(self._folder / "chain.db"),
                "wallet.path": str(self._wallet.path),
                "memory.backend": backend,
            },
        )
        context = AgentContext(configuration=configuration, passphrase=PASSPHRASE)
        memory = AgentMemory(context, **arguments)
        self._opened += [context, memory]
        return memory

    def close(self) -> None:
        for each in reversed(self._opened):
            each.close()


@pytest.fixture
def machines(tmp_path: Path, wallet: Wallet) -> Iterator[Machines]:
    made = Machines(tmp_path, wallet)
    yield made
    made.close()


def test_a_memory_in_the_service_is_anchored_and_verified_from_any_machine(
    machines: Machines, server: SupermemoryServer
) -> None:
    memory = machines("one")
    assert isinstance(memory.backend, SupermemoryBackend)
    memory.remember("the user prefers tea", tags=["a, b"])
    memory.remember("https://example.org/", session="s")
    assert memory.anchor() == 1
    assert memory.verify()
    other = machines("two")
    assert other.verify()
    assert other.recall("tea")[0]["tags"] == ["a, b"]
    other.remember("one more")
    assert other.verify().verdict is Verdict.AHEAD
    assert memory.is_dirty
    assert memory.verify().verdict is Verdict.AHEAD
    assert memory.anchor() == 2
    # A machine with a store of its own loads the same memory.
    local = machines("one", backend="local")
    assert local.rehydrate(on_conflict="replace") == {"version": 2, "records": 3}
    assert local.memory_root() == memory.memory_root()


def test_an_edit_in_the_service_is_tampering_and_the_anchor_brings_it_back(
    machines: Machines, server: SupermemoryServer
) -> None:
    memory = machines("one")
    memory.backend.remember_many(["one", "two", "three"])
    memory.anchor()
    shelf = server.shelf(KEY)
    shelf.update(next(iter(shelf.docs.values())), None, {"myc_content": '"edited"'})
    assert memory.verify().verdict is Verdict.TAMPERED
    fresh = machines("one")
    assert fresh.verify().verdict is Verdict.TAMPERED
    assert fresh.rehydrate(on_conflict="replace")["records"] == 3
    assert fresh.verify()
    shelf.delete(next(doc for doc in shelf.docs.values() if "myc_digest" in doc.metadata))
    assert not machines("one").verify()


def test_the_command_line(
    tmp_path: Path, wallet: Wallet, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MYCELIUM_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("MYCELIUM_WALLET", str(wallet.path))
    monkeypatch.setenv("MYCELIUM_CHAIN_FILE", str(tmp_path / "chain.db"))
    monkeypatch.setenv("MYCELIUM_DECRYPT_KEY", PASSPHRASE)
    monkeypatch.chdir(tmp_path)

    def mycelium(*arguments: str) -> tuple[int, str, str]:
        code = run(["memory", *arguments])
        said = capfd.readouterr()
        return code, said.out, said.err

    assert mycelium("remember", "tea, no sugar", "--tag", "pref", "--backend", "supermemory")[0] == 0
    code, out, _ = mycelium("recall", "sugar", "--backend", "supermemory", "--json")
    assert (code, [hit["content"] for hit in json.loads(out)]) == (0, ["tea, no sugar"])
    assert mycelium("anchor", "--backend", "supermemory")[0] == 0
    assert mycelium("verify", "--backend", "supermemory")[0] == 0
    monkeypatch.delenv("SUPERMEMORY_API_KEY")
    code, out, err = mycelium("remember", "more", "--backend", "supermemory")
    assert (code, out) == (3, "")
    assert "SUPERMEMORY_API_KEY" in err
