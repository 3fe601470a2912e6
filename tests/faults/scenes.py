"""A memory on two machines with an embedded chain in trouble, and every call of its that asks the chain."""

from __future__ import annotations

import contextlib
import io
import json
import shutil
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mycelium_cli.main import run
from mycelium_localnet import IN_PROCESS_URL, InProcessClient
from mycelium_sdk.chain.rpc import RpcChain
from mycelium_sdk.config import load_configuration
from mycelium_sdk.context import AgentContext
from mycelium_sdk.errors import MyceliumError
from mycelium_sdk.facts import ChainKey
from mycelium_sdk.memory import AgentMemory, AnchoringPolicy
from mycelium_sdk.testing.faults import FaultyClient
from mycelium_sdk.wallet import Wallet
from tests.faults.ground import Clock, Traffic, Truth

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    import pytest

    from mycelium_sdk.facts import Intent
    from mycelium_sdk.testing.faults import FaultKind

PASSPHRASE = "two machines"


@dataclass
class Scene:
    """The machine `a` made versions 1 and 2 and remembered something since; `b` has loaded version 1; `new`
    has remembered something and never seen a chain.

    `chain`: the chain file's name; `new.db` is one that nobody has used yet.
    """

    folder: Path
    patch: pytest.MonkeyPatch
    clock: Clock
    traffic: Traffic
    chain: str = "chain.db"
    opened: list[Any] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.wallet = Wallet.load(self.folder / "wallet" / "wallet.json")
        self.truth = Truth(self.folder / self.chain, self.wallet.address)
        self.witness = FaultyClient(InProcessClient(self.truth.chain), sleep=self.clock.wait)

    def machine(
        self,
        name: str,
        *,
        cross_check: Sequence[str] | None = None,
        settings: Mapping[str, str] | None = None,
    ) -> AgentMemory:
        """The memory on a machine, as a newly started process opens it; it anchors whenever it is asked."""
        memory = machine_in(self.folder, name, self.chain, cross_check=cross_check, settings=settings)
        self.opened += [memory.context, memory]
        return memory

    def behind(self, url: str, name: str) -> AgentMemory:
        """The memory on a machine that reaches the same chain by HTTP."""
        return self.machine(
            name,
            settings={
                "onchain.network": "standalone",
                "onchain.rpc_url": url,
                "memory.anchor_address": self.truth.contract_id,
            },
        )

    def options_for(self, url: str) -> list[str]:
        """The same for a command."""
        return ["--network", "standalone", "--rpc-url", url]

    def witnessed(self, name: str) -> AgentMemory:
        """The same, with a second server that must agree: only that one's door is in trouble."""
        memory = self.machine(name)
        second = RpcChain(IN_PROCESS_URL, self.truth.chain.passphrase, client=self.witness)
        memory.context._witnesses = (second,)
        return memory

    def hurt_witness(self, kind: FaultKind, **options: Any) -> None:
        self.witness.fault(kind, **options)

    def command(self, name: str, *arguments: str) -> tuple[int, Any]:
        """A command line on a machine: exit code and JSON document."""
        for variable, value in {
            "MYCELIUM_HOME": self.folder / name,
            "MYCELIUM_WALLET": self.wallet.path,
            "MYCELIUM_CHAIN_FILE": self.folder / self.chain,
            "MYCELIUM_DECRYPT_KEY": PASSPHRASE,
            **({"MYCELIUM_ANCHOR_ADDRESS": self.truth.contract_id} if "standalone" in arguments else {}),
        }.items():
            self.patch.setenv(variable, str(value))
        self.patch.chdir(self.folder)
        self.patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO()))
        with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()):
            code = run([*arguments, "--json"])
        return code, json.loads(out.getvalue())

    def held(self, name: str) -> set[str]:
        with self.machine(name) as memory:
            return {stored.record.content for stored in memory.backend.all_records()}

    def recorded(self, name: str) -> Intent | None:
        """What the machine has on record as being anchored, on this chain; None for nothing."""
        memory = self.machine(name)
        chain = self.truth.chain_id
        key = ChainKey(self.truth.chain.passphrase, self.truth.contract_id, memory.owner, chain)
        return memory._state.intent(key)

    def own_sent(self) -> list[str]:
        """The owner's transactions that were sent, each once, in the order in which they were signed."""
        return [
            name
            for account, name in self.traffic.signed
            if account == self.wallet.address and name in self.traffic.sent
        ]

    def close(self) -> None:
        for each in reversed(self.opened):
            each.close()
        self.truth.close()


def machine_in(
    folder: Path,
    name: str,
    chain: str = "chain.db",
    *,
    cross_check: Sequence[str] | None = None,
    settings: Mapping[str, str] | None = None,
) -> AgentMemory:
    """The memory on a machine of the world in `folder`. Whoever closes it closes its context too."""
    configuration = load_configuration(
        start=folder,
        env={"MYCELIUM_HOME": str(folder / name)},
        overrides={
            "onchain.chain_file": str(folder / chain),
            "wallet.path": str(folder / "wallet" / "wallet.json"),
            **(settings or {}),
        },
    )
    context = AgentContext(configuration=configuration, passphrase=PASSPHRASE, cross_check=cross_check)
    return AgentMemory(context, policy=AnchoringPolicy(heartbeat_seconds=0))


def build(folder: Path) -> None:
    """Make what `Scene` describes, to be copied for each test."""
    Wallet.create(folder / "wallet" / "wallet.json", PASSPHRASE)
    a, b = machine_in(folder, "a"), machine_in(folder, "b")
    a.remember("one")
    a.anchor()
    b.rehydrate()
    a.remember("two")
    a.anchor()
    a.remember("three")
    new = machine_in(folder, "new")
    new.remember("first")
    for memory in (a, b, new):
        memory.close()
        memory.context.close()


def copy(template: Path, folder: Path) -> Path:
    return shutil.copytree(template, folder / "world")


def _api(call: Callable[[AgentMemory], object], name: str = "a") -> Callable[[Scene], str]:
    def made(scene: Scene) -> str:
        memory = scene.machine(name)
        return _outcome(lambda: call(memory))

    return made


def _witnessed(call: Callable[[AgentMemory], object]) -> Callable[[Scene], str]:
    def made(scene: Scene) -> str:
        memory = scene.witnessed("a")
        return _outcome(lambda: call(memory))

    return made


def _cli(*arguments: str, name: str = "a") -> Callable[[Scene], str]:
    def made(scene: Scene) -> str:
        code, document = scene.command(name, *(each.format(owner=scene.wallet.address) for each in arguments))
        if "error" in document:
            return f"{code} {document['error']['type']}"
        if "checks" in document:
            faults = [check["name"] for check in document["checks"] if check["state"] == "fault"]
            return " ".join([str(code), *faults])
        return f"{code} {document.get('verdict', document.get('version', 'done'))}"

    return made


def _outcome(call: Callable[[], object]) -> str:
    try:
        return str(call())
    except MyceliumError as error:
        return type(error).__name__ if error.hint else f"{type(error).__name__} without a hint"


def _done(call: Callable[[AgentMemory], object]) -> Callable[[AgentMemory], str]:
    def made(memory: AgentMemory) -> str:
        call(memory)
        return "done"

    return made


def _anchor_version(memory: AgentMemory) -> int | None:
    anchor = memory.get_anchor()
    return None if anchor is None else int(anchor["version"])


CALLS: dict[str, Callable[[Scene], str]] = {
    "anchor": _api(AgentMemory.anchor),
    "first anchor": _api(AgentMemory.anchor, name="new"),
    "on_job_complete": _api(AgentMemory.on_job_complete),
    "heartbeat": _api(AgentMemory.heartbeat),
    "verify": _api(lambda memory: memory.verify().verdict),
    "get_anchor": _api(_anchor_version),
    "rehydrate": _api(lambda memory: memory.rehydrate()["version"], name="b"),
    "trust_chain_anew": _api(AgentMemory.trust_chain_anew),
    "sync": _api(lambda memory: memory.sync().version),
    "history": _api(_done(AgentMemory.history)),
    "diff": _api(_done(lambda memory: memory.diff(1, 2))),
    "keep_alive": _api(_done(AgentMemory.keep_alive)),
    "witnessed anchor": _witnessed(AgentMemory.anchor),
    "witnessed verify": _witnessed(lambda memory: memory.verify().verdict),
    "memory anchor": _cli("memory", "anchor"),
    "memory verify": _cli("memory", "verify"),
    "memory status": _cli("memory", "status"),
    "memory rehydrate": _cli("memory", "rehydrate", name="b"),
    "memory inspect": _cli("memory", "inspect", "{owner}"),
    "contract deploy": _cli("contract", "deploy"),
    "doctor": _cli("doctor"),
}
