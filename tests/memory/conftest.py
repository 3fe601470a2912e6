"""Machines for these tests: homes with one wallet, one chain file and nothing else in common."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from mycelium_sdk.config import load_configuration
from mycelium_sdk.context import AgentContext
from mycelium_sdk.memory import AgentMemory
from mycelium_sdk.wallet import Wallet

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PASSPHRASE = "correct horse"


@dataclass
class World:
    """One chain and one wallet, on which any number of machines live."""

    folder: Path
    wallet: Wallet
    opened: list[Any] = field(default_factory=list)

    @property
    def chain_file(self) -> Path:
        return self.folder / "chain.db"

    def context(self, name: str) -> AgentContext:
        """The machine `name`'s context; the same name is the same home folder."""
        configuration = load_configuration(
            start=self.folder,
            env={"MYCELIUM_HOME": str(self.folder / name)},
            overrides={"onchain.chain_file": str(self.chain_file), "wallet.path": str(self.wallet.path)},
        )
        context = AgentContext(configuration=configuration, passphrase=PASSPHRASE)
        self.opened.append(context)
        return context

    def machine(self, name: str, **arguments: Any) -> AgentMemory:
        """The memory on the machine `name`, as a newly started process would open it."""
        memory = AgentMemory(self.context(name), **arguments)
        self.opened.append(memory)
        return memory

    def close(self) -> None:
        for each in reversed(self.opened):
            each.close()
        self.opened.clear()


@pytest.fixture(scope="session")
def wallet(tmp_path_factory: pytest.TempPathFactory) -> Wallet:
    return Wallet.create(tmp_path_factory.mktemp("wallet") / "private" / "wallet.json", PASSPHRASE)


@pytest.fixture
def world(tmp_path: Path, wallet: Wallet) -> Iterator[World]:
    made = World(tmp_path, wallet)
    yield made
    made.close()
