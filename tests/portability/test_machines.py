"""Three machines, one wallet: any interleaving of what they do converges to one memory, and none is lost."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from mycelium_sdk.errors import MyceliumError, UnanchoredWrites, VersionConflict
from mycelium_sdk.steps import Step, observed
from mycelium_sdk.wallet import Wallet
from tests.crashing import Killed, die_at
from tests.memory.conftest import PASSPHRASE, World
from tests.portability.test_sync import shared_machine, texts

EXAMPLES = int(os.environ.get("MACHINE_RUNS", "12"))

MACHINES = st.sampled_from("abc")
TEXTS = st.sampled_from([f"memory {number}" for number in range(6)])
STEPS = st.sampled_from([step for step in Step if step is not Step.CONFIRMED])


class Machines(RuleBasedStateMachine):
    """What must hold: a memory that some machine remembered, and that no machine has forgotten since, is in
    the end on all of them; one that was forgotten everywhere it was is on none."""

    wallet: Wallet

    @initialize()
    def start(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="machines-"))
        self.world = World(self.folder, self.wallet)
        self.memories = {name: shared_machine(self.world, name) for name in "abc"}
        self.remembered: set[str] = set()
        """What was remembered and never forgotten by anybody: it must not be lost."""
        self.ever: set[str] = set()

    @rule(name=MACHINES, text=TEXTS)
    def remember(self, name: str, text: str) -> None:
        held = texts(self.memories[name])
        self.memories[name].remember(text)
        self.ever.add(text)
        if text not in held:  # remembering what is held changes nothing: a forget elsewhere reaches it
            self.remembered.add(text)

    @rule(name=MACHINES, text=TEXTS)
    def forget(self, name: str, text: str) -> None:
        memory = self.memories[name]
        for stored in memory.backend.all_records():
            if stored.record.content == text:
                memory.forget(stored.id)
                self.remembered.discard(text)

    @rule(name=MACHINES)
    def sync(self, name: str) -> None:
        done = self.memories[name].sync()
        assert done.records == self.memories[name].count()

    @rule(name=MACHINES)
    def anchor(self, name: str) -> None:
        with contextlib.suppress(VersionConflict, UnanchoredWrites):
            self.memories[name].anchor()

    @rule(name=MACHINES, step=STEPS, anchoring=st.booleans())
    def crash(self, name: str, step: Step, anchoring: bool) -> None:
        """The process of a machine dies in a sync or in anchoring; another one starts there."""
        memory = self.memories[name]
        with observed(die_at(step)), contextlib.suppress(Killed, MyceliumError):
            if anchoring:
                memory.anchor()
            else:
                memory.sync()
        memory.close()
        self.memories[name] = shared_machine(self.world, name)

    @invariant()
    def nothing_is_invented(self) -> None:
        for memory in getattr(self, "memories", {}).values():
            assert texts(memory) <= self.ever

    def teardown(self) -> None:
        if not hasattr(self, "memories"):
            return
        try:
            for _ in range(2):
                for memory in self.memories.values():
                    memory.sync()
            roots = {memory.memory_root() for memory in self.memories.values()}
            assert len(roots) == 1
            assert self.remembered <= texts(self.memories["a"])
            for memory in self.memories.values():
                if memory.get_anchor() is not None:
                    assert memory.verify()
            self._forgets_travel()
        finally:
            self.world.close()
            shutil.rmtree(self.folder)

    def _forgets_travel(self) -> None:
        """Once all agree, what one machine forgets is forgotten by all, and nothing else is."""
        held = texts(self.memories["a"])
        if held:
            doomed = min(held)
            self.forget("b", doomed)
            self.memories["c"].remember("meanwhile")
            for _ in range(2):
                for memory in self.memories.values():
                    memory.sync()
            assert {name: texts(memory) for name, memory in self.memories.items()} == dict.fromkeys(
                "abc", held - {doomed} | {"meanwhile"}
            )


@pytest.fixture(scope="module")
def shared_wallet(tmp_path_factory: pytest.TempPathFactory) -> Wallet:
    return Wallet.create(tmp_path_factory.mktemp("wallet") / "private" / "wallet.json", PASSPHRASE)


def test_any_interleaving_converges(shared_wallet: Wallet) -> None:
    Machines.wallet = shared_wallet
    run_state_machine_as_test(
        Machines, settings=settings(max_examples=EXAMPLES, stateful_step_count=18, deadline=None)
    )
