"""Where transcripts are played: two machines with one wallet, and what can befall them, by real means."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shlex
import shutil
import sqlite3
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stellar_sdk import Keypair

from mycelium_localnet import Chain
from mycelium_sdk import canonical
from mycelium_sdk.blobs.base import DEFAULT_MAX_BYTES
from mycelium_sdk.chain.addresses import local_contract_id
from mycelium_sdk.context import AgentContext
from mycelium_sdk.networks import STANDALONE_PASSPHRASE
from mycelium_sdk.records import Record

from .conftest import PASSPHRASE, TIMEOUT, Outcome
from .transcripts import Placeholders, Step

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pytest

    from mycelium_sdk.wallet import Wallet

    from .conftest import Cli

__all__ = ["Stage"]

_STRANGER = Keypair.from_raw_ed25519_seed(b"somebody else in the transcripts")
_SOON = 100  # ledgers

BLOBS = "*[0-9a-f].json"
"""Published blobs by their names, and not the context files beside them."""


@dataclass
class Stage:
    """This machine and another one ("there"), which share a wallet, a chain file and a folder of blobs."""

    cli: Cli
    folder: Path
    wallet: Wallet
    monkeypatch: pytest.MonkeyPatch

    def __post_init__(self) -> None:
        self.chain_file = self.folder / "chain.db"
        self.published = self.folder / "published"
        self.published.mkdir(mode=0o700)
        self.put_aside = self.folder / "aside"
        self.snapshot = 0
        self.monkeypatch.setenv("MYCELIUM_CHAIN_FILE", str(self.chain_file))
        self.monkeypatch.setenv("MYCELIUM_PUBLISH", f"{self.published}/")
        self.command = self.folder / "bin" / "mycelium"
        self.command.parent.mkdir()
        self.command.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m mycelium_cli "$@"\n')
        self.command.chmod(0o700)
        self.placeholders = Placeholders(
            {
                str(self.folder / "work"): "work",
                str(self.home("")): "home",
                str(self.home("there")): "home there",
                str(self.published): "published",
                str(self.chain_file): "chain file",
                self.wallet.address: "owner",
                local_contract_id(STANDALONE_PASSPHRASE): "contract",
            }
        )

    def home(self, machine: str) -> Path:
        """A machine's home folder."""
        return self.folder / (f"home-{machine}" if machine else "home")

    def run(self, step: Step) -> Outcome:
        """Run a command line, in this process or in a shell."""
        with self.monkeypatch.context() as patch:
            patch.setenv("MYCELIUM_HOME", str(self.home(step.machine)))
            arguments = step.arguments
            if arguments is not None:
                return self.cli(*arguments)
            done = subprocess.run(
                ["sh", "-c", step.command or ""],
                env={**os.environ, "PATH": f"{self.command.parent}:{os.environ['PATH']}"},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=TIMEOUT,
                check=False,
            )
            return Outcome(done.returncode, done.stdout.decode(), done.stderr.decode())

    def act(self, line: str) -> None:
        """Have something happen: one of `ACTIONS`, with its arguments."""
        name, *arguments = shlex.split(line)
        ACTIONS[name](self, *arguments)

    @property
    def memory_file(self) -> Path:
        return self.home("") / "memory" / f"{self.wallet.address}.db"

    def chain(self) -> contextlib.closing[Chain]:
        return contextlib.closing(Chain.open(self.chain_file))

    def edit_memory(self) -> None:
        """Somebody edits a row of the memory file."""
        with contextlib.closing(sqlite3.connect(self.memory_file, isolation_level=None)) as editor:
            edited = editor.execute("UPDATE memories SET fragment = replace(fragment, 'tea', 'gin')").rowcount
        assert edited > 0

    def copy_memory(self) -> None:
        """A copy of the memory file is made."""
        shutil.copy2(self.memory_file, self.put_aside)

    def restore_memory(self) -> None:
        """That copy is put back."""
        self.memory_file.unlink()
        shutil.copy2(self.put_aside, self.memory_file)

    def spoil_blobs(self) -> None:
        """A byte of every published blob changes."""
        for blob in self.published.glob(BLOBS):
            data = bytearray(blob.read_bytes())
            data[-5] ^= 1
            blob.write_bytes(data)

    def swap_blobs(self) -> None:
        """Whoever keeps the blobs serves the one before the newest in its place."""
        *_, before, newest = sorted(self.published.glob(BLOBS), key=lambda blob: blob.stat().st_mtime_ns)
        newest.write_bytes(before.read_bytes())

    def lose_blobs(self) -> None:
        """The published blobs are lost."""
        for blob in self.published.iterdir():
            blob.unlink()

    def grow_blobs(self) -> None:
        """The published blobs grow beyond the limit for one's own memory."""
        for blob in self.published.glob(BLOBS):
            os.truncate(blob, DEFAULT_MAX_BYTES + 1)

    def remove_chain(self) -> None:
        """The local chain is thrown away."""
        for file in self.chain_file.parent.glob("chain.db*"):
            file.unlink()

    def foreign_chain(self) -> None:
        """The chain file is that of another network."""
        self.remove_chain()
        Chain.open(self.chain_file, passphrase="Another Network ; November 2026").close()

    def short_lives(self) -> None:
        """The chain is one where entries are archived after a few ledgers."""
        Chain.open(self.chain_file, profile="short-ttl").close()

    def near_the_end(self) -> None:
        """Time passes until the anchor has few ledgers left."""
        with self.chain() as chain:
            chain.skip_ledgers(self._remaining() - _SOON)

    def past_the_end(self) -> None:
        """Time passes until the anchor is archived."""
        with self.chain() as chain:
            chain.skip_ledgers(self._remaining() + 1)

    def _remaining(self) -> int:
        with AgentContext() as context:
            remaining = context.anchor_client().entry_state(self.wallet.address).remaining
        assert remaining is not None
        return remaining

    def lose_copies(self) -> None:
        """The copies of the blobs that the machines keep are lost."""
        for blob in self.folder.glob("home*/blobs/*.json"):
            blob.unlink()

    def damage_memory(self) -> None:
        """The disk damages the memory file."""
        data = self.memory_file.read_bytes()
        self.memory_file.write_bytes(bytes(len(data)))

    def open_memory(self) -> None:
        """Somebody lets everybody read the memory file."""
        self.memory_file.chmod(0o644)

    def close_memory(self) -> None:
        """The fix for that."""
        self.memory_file.chmod(0o600)

    def no_wallet(self) -> None:
        """There is no wallet yet."""
        self.wallet.path.unlink()
        self.wallet.path.parent.rmdir()

    def open_wallet(self) -> None:
        """Somebody lets everybody read the wallet."""
        self.wallet.path.chmod(0o644)

    def close_wallet(self) -> None:
        """The fix for that."""
        self.wallet.path.chmod(0o600)

    def take_snapshot(self) -> None:
        """The chain is as it is now."""
        with self.chain() as chain:
            self.snapshot = chain.snapshot()

    def go_back(self) -> None:
        """The chain is again as it was then, though ledgers went on closing."""
        with self.chain() as chain:
            chain.revert(self.snapshot)
            chain.skip_ledgers(_SOON)

    def fault(self, kind: str, *methods: str) -> None:
        """The chain's servers misbehave from now on: see `Chain.fault`."""
        with self.chain() as chain:
            chain.fault(kind, count=10_000, methods=methods or None)  # type: ignore[arg-type]

    def no_faults(self) -> None:
        """They behave again."""
        with self.chain() as chain:
            chain.clear_faults()

    def anchor_stranger(self) -> None:
        """This owner's wallet anchors a memory that is another account's."""
        self._anchor(canonical.encode(_STRANGER.public_key, [Record("not yours", ())]))

    def anchor_loose(self) -> None:
        """This owner's wallet anchors JSON that is no canonical blob."""
        self._anchor(canonical.encode(self.wallet.address, [Record("tea", ())]) + b"\n")

    def _anchor(self, blob: bytes) -> None:
        root = hashlib.sha256(blob).digest()
        path = self.published / f"{root.hex()}.json"
        path.write_bytes(blob)
        path.chmod(0o600)
        with AgentContext(passphrase=PASSPHRASE) as context:
            context.anchor_client().set_anchor(context.keypair(), root, path.as_uri().encode())


ACTIONS: dict[str, Callable[..., None]] = {
    name.replace("_", "-"): action
    for name, action in vars(Stage).items()
    if callable(action) and not name.startswith("_") and action.__doc__ and name not in ("home", "run", "act")
}
"""What can happen, by name."""
