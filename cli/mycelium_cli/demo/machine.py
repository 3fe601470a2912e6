"""A machine of the demonstration: a home folder and a wallet of its own, beside what all machines share."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mycelium_sdk.config import (
    Configuration,
    Fetch,
    Indexer,
    MemorySettings,
    Onchain,
    Project,
    WalletSettings,
)
from mycelium_sdk.context import AgentContext
from mycelium_sdk.files import ensure_private_folder
from mycelium_sdk.home import Home
from mycelium_sdk.memory.agent_memory import AgentMemory

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

__all__ = ["Machine", "Shared", "configuration_of", "wallet_of"]


@dataclass(frozen=True, slots=True)
class Shared:
    """What machines have in common: a chain, and the place where blobs are published."""

    folder: Path

    @property
    def chain_file(self) -> Path:
        """The embedded chain."""
        return ensure_private_folder(self.folder) / "chain.db"

    @property
    def blobs(self) -> Path:
        """The folder of published blobs."""
        return ensure_private_folder(self.folder / "blobs")


class Machine:
    """One machine, running: `memory` is the agent's there. Close it before its folder is deleted."""

    def __init__(
        self, folder: Path, shared: Shared, *, passphrase: str, notify: Callable[[str], None] | None = None
    ) -> None:
        self.folder = folder
        configuration = configuration_of(folder, shared)
        with contextlib.ExitStack() as stack:
            self.context = stack.enter_context(
                AgentContext(configuration=configuration, passphrase=passphrase, notify=notify)
            )
            self.memory = stack.enter_context(AgentMemory(self.context))
            self._stack = stack.pop_all()

    def close(self) -> None:
        """Stop the machine."""
        self._stack.close()


def configuration_of(folder: Path, shared: Shared) -> Configuration:
    """The configuration of the machine in `folder`; no file and no environment variable has a say in it."""
    return Configuration(
        project=Project(),
        onchain=Onchain(network="local", chain_file=shared.chain_file),
        wallet=WalletSettings(path=wallet_of(folder)),
        memory=MemorySettings(publish=f"{shared.blobs}/"),
        indexer=Indexer(),
        fetch=Fetch(),
        folder=folder,
        file=None,
        home=Home(folder / "home"),
    )


def wallet_of(folder: Path) -> Path:
    """The wallet file of the machine in `folder`."""
    return folder / "wallet.json"
