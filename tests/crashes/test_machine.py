"""Two machines with one wallet: whatever happens, in whatever order, the invariants hold."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from mycelium_sdk import canonical
from mycelium_sdk.blobs.files import FileBlobStore
from mycelium_sdk.config import load_configuration
from mycelium_sdk.context import AgentContext
from mycelium_sdk.errors import NotAnchored, UnanchoredWrites, VersionConflict
from mycelium_sdk.memory import AgentMemory
from mycelium_sdk.records import Record
from mycelium_sdk.steps import Step, observed
from mycelium_sdk.verdicts import Verdict
from mycelium_sdk.wallet import Wallet

PASSPHRASE = "machine"
NAMES = ("a", "b")
CONTENTS = [f"memory {number}" for number in range(6)]

machines = st.sampled_from(NAMES)
contents = st.sampled_from(CONTENTS)
crashes = st.sampled_from([None, None, None, *Step])


class Killed(BaseException):
    """The process dies here."""


def die_at(label: Step | None) -> object:
    def observe(step: Step) -> None:
        if step is label:
            raise Killed

    return observe


class TwoMachines(RuleBasedStateMachine):
    """The model keeps what each machine must hold, and every set that a root on the chain may stand for."""

    wallet: Wallet
    keypair: object = None

    @initialize()
    def begin(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="mycelium-machine-"))
        self.open: dict[str, AgentMemory] = {}
        self.held: dict[str, set[str]] = {name: set() for name in NAMES}
        self.version = 0
        self.exported: dict[bytes, frozenset[str]] = {}
        for name in NAMES:
            self.start(name)

    def start(self, name: str) -> AgentMemory:
        configuration = load_configuration(
            start=self.folder,
            env={"MYCELIUM_HOME": str(self.folder / name)},
            overrides={
                "onchain.chain_file": str(self.folder / "chain.db"),
                "wallet.path": str(self.wallet.path),
            },
        )
        context = AgentContext(configuration=configuration, passphrase=PASSPHRASE)
        kind = type(self)
        context._keypair = kind.keypair  # type: ignore[assignment]  # unlocked once for all examples
        kind.keypair = context.keypair()
        memory = self.open[name] = AgentMemory(context)
        return memory

    def kill(self, name: str) -> None:
        """What the kernel does with a dead process: its files are closed and its locks let go."""
        self.open[name].close()
        self.open[name].context.close()
        self.start(name)

    def root_of(self, held: set[str]) -> bytes:
        root = canonical.root(canonical.encode(self.wallet.address, [Record(text) for text in held]))
        self.exported[root] = frozenset(held)
        return root

    @rule(name=machines, content=contents)
    def remember(self, name: str, content: str) -> None:
        self.open[name].remember(content)
        self.held[name].add(content)

    @rule(name=machines, content=contents)
    def forget(self, name: str, content: str) -> None:
        memory = self.open[name]
        ids = [stored.id for stored in memory.backend.all_records() if stored.record.content == content]
        assert len(ids) == (content in self.held[name])
        for each in ids:
            memory.forget(each)
        self.held[name].discard(content)

    @rule(name=machines)
    def restart(self, name: str) -> None:
        self.kill(name)

    @rule(name=machines, crash=crashes)
    def anchor(self, name: str, crash: Step | None) -> None:
        self.root_of(self.held[name])
        try:
            with observed(die_at(crash)):  # type: ignore[arg-type]
                version = self.open[name].anchor()
        except Killed:
            self.kill(name)
        except (VersionConflict, UnanchoredWrites):
            assert not self.open[name].verify()
        else:
            assert version > self.version
            assert self.open[name].verify()

    @rule(name=machines, conflict=st.sampled_from(["refuse", "merge", "replace"]), crash=crashes)
    def rehydrate(self, name: str, conflict: str, crash: Step | None) -> None:
        memory, before = self.open[name], set(self.held[name])
        anchor = memory.get_anchor()
        try:
            with observed(die_at(crash)):  # type: ignore[arg-type]
                memory.rehydrate(on_conflict=conflict)
        except Killed:
            self.kill(name)
        except NotAnchored:
            assert anchor is None
            return
        except UnanchoredWrites:
            assert conflict == "refuse"
            assert self.contents(name) == before
            return
        assert anchor is not None
        anchored = set(self.exported[anchor["root"]])
        after = self.contents(name)
        if after != before:
            assert after in (anchored, anchored | before)
            assert after == anchored or conflict == "merge"
        if crash is None and conflict == "replace":
            assert after == anchored
        self.held[name] = after

    def contents(self, name: str) -> set[str]:
        return {stored.record.content for stored in self.open[name].backend.all_records()}

    @invariant()
    def nothing_is_lost(self) -> None:
        for name in NAMES:
            assert self.contents(name) == self.held[name]

    @invariant()
    def the_chain_points_at_a_stored_blob_and_never_goes_back(self) -> None:
        memory = self.open["a"]
        anchor = memory.get_anchor()
        version = 0 if anchor is None else int(anchor["version"])
        assert self.version <= version <= self.version + 2
        self.version = version
        if anchor is not None:
            assert anchor["root"] in self.exported
            stores = [FileBlobStore(self.folder / name / "blobs") for name in NAMES]
            assert any(store.find(anchor["root"]) for store in stores)

    @invariant()
    def a_verdict_is_true_iff_both_agree(self) -> None:
        for name in NAMES:
            memory = self.open[name]
            result = memory.verify()
            anchor = memory.get_anchor()
            agree = anchor is not None and anchor["root"] == self.root_of(self.held[name])
            assert bool(result) == agree
            assert result.verdict in (
                Verdict.IN_SYNC, Verdict.AHEAD, Verdict.DIVERGED, Verdict.NOT_ANCHORED
            )  # fmt: skip

    def teardown(self) -> None:
        for memory in self.open.values():
            memory.close()
            memory.context.close()
        shutil.rmtree(self.folder)


@pytest.fixture(autouse=True)
def _one_wallet(tmp_path_factory: pytest.TempPathFactory) -> None:
    TwoMachines.wallet = Wallet.create(tmp_path_factory.mktemp("machine") / "private" / "w.json", PASSPHRASE)
    TwoMachines.keypair = None


class TestTwoMachines(TwoMachines.TestCase):  # type: ignore[misc,valid-type]
    """Runs the machine."""

    settings = settings(
        max_examples=25, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
    )
