"""A program that kills children of its own while they use a memory, and checks after each what they left.

Run as `python forge.py FOLDER ROUNDS SEED`; prints one JSON document. Each child remembers, anchors and loads
on two machines in turn until it is killed: at a labelled step (by itself), or at a random moment (by the
parent). Children are forked, since starting an interpreter would take most of the time; the parent has no
file of the memory or the chain open when it forks.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import signal
import sys
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from mycelium_sdk.blobs.files import FileBlobStore
from mycelium_sdk.config import load_configuration
from mycelium_sdk.context import AgentContext
from mycelium_sdk.errors import MyceliumError
from mycelium_sdk.memory import AgentMemory
from mycelium_sdk.steps import Step, observed
from mycelium_sdk.verdicts import Verdict
from mycelium_sdk.wallet import Wallet

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stellar_sdk import Keypair

PASSPHRASE = "crash"
MACHINES = ("a", "b")
LONGEST = 0.12
"""Seconds after which a child that is to die at a random moment is dead."""
LONGEST_WORK = 60.0
"""Seconds in which a child comes to each step many times over, also on a busy machine."""


class Workshop:
    """The world of one run: a wallet, a chain file, two homes, and what was acknowledged in them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.wallet = Wallet.create(folder / "wallet" / "wallet.json", PASSPHRASE)
        self.keypair: Keypair | None = None
        self.acknowledged = folder / "acknowledged"
        self.acknowledged.touch()

    def machine(self, name: str) -> AgentMemory:
        configuration = load_configuration(
            start=self.folder,
            env={"MYCELIUM_HOME": str(self.folder / name)},
            overrides={
                "onchain.chain_file": str(self.folder / "chain.db"),
                "wallet.path": str(self.wallet.path),
            },
        )
        context = AgentContext(configuration=configuration, passphrase=PASSPHRASE)
        context._keypair = self.keypair  # deriving the key anew takes longer than a child lives
        self.keypair = context.keypair()
        return AgentMemory(context)

    def acknowledge(self, *words: object) -> None:
        """Note what a call has promised, so that it survives the caller's death."""
        line = json.dumps(words) + "\n"
        descriptor = os.open(self.acknowledged, os.O_WRONLY | os.O_APPEND)
        os.write(descriptor, line.encode())
        os.close(descriptor)

    def promises(self) -> Iterator[list[str]]:
        for line in self.acknowledged.read_text().splitlines():
            yield json.loads(line)


def work(shop: Workshop, number: int) -> None:
    """What a child does until it is killed."""
    machines = {name: shop.machine(name) for name in MACHINES}
    for step in range(10_000):
        name = MACHINES[(number + step) % 2]
        memory = machines[name]
        content = f"memory {number} {step} of {name}"
        memory.remember(content)
        shop.acknowledge("remembered", name, content)
        try:
            version = memory.anchor()
        except MyceliumError as error:
            if error.verdict not in (Verdict.VERSION_CONFLICT, Verdict.AHEAD):
                raise
            memory.rehydrate(on_conflict="merge")
            version = memory.anchor()
        shop.acknowledge("anchored", name, version)


def kill_one(shop: Workshop, number: int, chance: random.Random) -> str:
    """Fork a child, have it killed, and say how: first at each step in turn, then as chance will have it."""
    labels = [*Step, None]
    label = labels[number] if number < len(labels) else chance.choice(labels)
    passes = chance.randrange(2)
    child = os.fork()
    if child == 0:
        try:
            seen: Counter[Step] = Counter()

            def die(step: Step) -> None:
                seen[step] += 1
                if step is label and seen[step] > passes:
                    os.kill(os.getpid(), signal.SIGKILL)

            with observed(die):
                work(shop, number)
        except BaseException as error:  # noqa: BLE001 - a child must not return into the parent's loop
            os.write(2, f"{type(error).__name__}: {error}\n".encode())
        os._exit(1)
    if label is None:
        time.sleep(chance.uniform(0.0, LONGEST))
        os.kill(child, signal.SIGKILL)
    else:
        give_up = time.monotonic() + LONGEST_WORK
        while os.waitpid(child, os.WNOHANG) == (0, 0):
            if time.monotonic() > give_up:
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
                raise AssertionError(f"no child comes to {label}: `work` must lead there")
            time.sleep(0.002)
        return str(label)
    _, status = os.waitpid(child, 0)
    if not os.WIFSIGNALED(status):
        raise AssertionError("a child ended by itself: see stderr")
    return "random"


def check(shop: Workshop) -> None:
    """The invariants that must hold whenever everybody is dead."""
    stores = [FileBlobStore(shop.folder / name / "blobs") for name in MACHINES]
    promised = list(shop.promises())
    versions = [words[2] for words in promised if words[0] == "anchored"]
    assert len(set(versions)) == len(versions), "one version was given twice"
    for name in MACHINES:
        with shop.machine(name) as memory:
            held = {stored.record.content for stored in memory.backend.iter_records()}
            missing = {w[2] for w in promised if w[0] == "remembered" and w[1] == name} - held
            assert not missing, f"{len(missing)} acknowledged memories are lost on {name}"
            blob = memory.backend.export_blob()
            assert hashlib.sha256(blob).digest() == memory.memory_root()
            anchor = memory.get_anchor()
            if anchor is not None:
                assert any(store.find(anchor["root"]) for store in stores), "the chain is ahead of the blobs"
                assert anchor["version"] >= max(versions, default=0), "an acknowledged anchor is gone"
            verdict = memory.verify().verdict
            assert verdict in (Verdict.IN_SYNC, Verdict.AHEAD, Verdict.DIVERGED, Verdict.NOT_ANCHORED), (
                verdict
            )


def finish(shop: Workshop) -> int:
    """Have both machines go on after all crashes, and agree; the version they agree on."""
    for name in (*MACHINES, *MACHINES):
        with shop.machine(name) as memory:
            if memory.get_anchor() is not None:
                memory.rehydrate(on_conflict="merge")
            memory.anchor()
    roots = set()
    for name in MACHINES:
        with shop.machine(name) as memory:
            memory.rehydrate()
            assert memory.verify()
            roots.add(memory.memory_root())
            last = memory.last_anchor
    assert len(roots) == 1
    check(shop)
    return 0 if last is None else last.version


def main() -> None:
    folder, rounds, seed = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    chance = random.Random(seed)  # noqa: S311 - reproducible, not secret
    shop = Workshop(folder)
    shop.machine("a").close()
    deaths: Counter[str] = Counter()
    for number in range(rounds):
        deaths[kill_one(shop, number, chance)] += 1
        check(shop)
    version = finish(shop)
    remembered = sum(words[0] == "remembered" for words in shop.promises())
    print(json.dumps({"deaths": deaths, "version": version, "remembered": remembered}))


if __name__ == "__main__":
    main()
