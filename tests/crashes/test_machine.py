"""Two machines with one wallet on a chain in trouble: whatever happens, in any order, the invariants hold."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from mycelium_sdk import canonical
from mycelium_sdk.blobs.files import FileBlobStore
from mycelium_sdk.config import load_configuration
from mycelium_sdk.context import AgentContext
from mycelium_sdk.errors import (
    ChainError,
    Fork,
    NotAnchored,
    Rollback,
    Tampered,
    UnanchoredWrites,
    Unsettled,
    VersionConflict,
)
from mycelium_sdk.memory import AgentMemory
from mycelium_sdk.networks import STANDALONE_PASSPHRASE
from mycelium_sdk.records import Record
from mycelium_sdk.steps import Step, observed
from mycelium_sdk.verdicts import Verdict
from mycelium_sdk.wallet import Wallet
from tests.crashes.dangers import conflicts, steps, troubles
from tests.crashing import Killed, die_at
from tests.faults.ground import Traffic, Truth, with_traffic, without_waiting

if TYPE_CHECKING:
    from collections.abc import Iterator

EXAMPLES = int(os.environ.get("MACHINE_EXAMPLES", "60"))
PASSPHRASE = "machine"
NAMES = ("a", "b")
CONTENTS = [f"memory {number}" for number in range(6)]
PLAIN = {Verdict.IN_SYNC, Verdict.AHEAD, Verdict.DIVERGED, Verdict.NOT_ANCHORED}
CONTRADICTED = {Verdict.ROLLBACK, Verdict.FORK, Verdict.CHAIN_RESET}

machines = st.sampled_from(NAMES)
contents = st.sampled_from(CONTENTS)


@dataclass
class Attempt:
    """One call of `anchor`: what it was to anchor, the transactions that it signed, what is known of them.

    `made` is the version it gave, None where it gave none; `failed` where the caller was told that nothing
    was anchored. Neither where the process died, or the outcome was unknown.
    """

    name: str
    root: bytes
    hashes: set[str] = field(default_factory=set)
    made: int | None = None
    failed: bool = False


class TwoMachines(RuleBasedStateMachine):
    """The model keeps what each machine must hold, and every set that a root on the chain may stand for."""

    wallet: Wallet
    traffic: Traffic
    keypair: object = None

    @initialize(anchored=st.sampled_from([True, True, True, False]))
    def begin(self, anchored: bool) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="mycelium-machine-"))
        self.truth = Truth(self.folder / "chain.db", self.wallet.address)
        self.open: dict[str, AgentMemory] = {}
        self.held: dict[str, set[str]] = {name: set() for name in NAMES}
        self.lied_to: set[str] = set()
        self.misled: set[str] = set()
        self.holding = False
        self.version = 0
        self.exported: dict[bytes, frozenset[str]] = {}
        self.attempts: list[Attempt] = []
        for name in NAMES:
            self.start(name)
        if anchored:
            self.write("a", CONTENTS[0], kept=True)
            self.anchor("a")
            self.load("b", "refuse")

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

    @property
    def in_trouble(self) -> bool:
        return self.holding or bool(self.truth.chain.faults())

    def about_to_ask(self, name: str) -> bool:
        """Whether what the machine is told may be wrong; remembers who was shown a fork, or something else
        that is not so."""
        now = {fault.kind for fault in self.truth.chain.faults()}
        if "fork" in now:
            self.lied_to.add(name)
        if now & {"fork", "stale", "not_found", "retention"}:
            self.misled.add(name)
        return self.in_trouble or name in self.lied_to

    def root_of(self, held: set[str]) -> bytes:
        root = canonical.root(canonical.encode(self.wallet.address, [Record(text) for text in held]))
        self.exported[root] = frozenset(held)
        return root

    def kept(self, name: str) -> set[str]:
        return {stored.record.content for stored in self.open[name].backend.all_records()}

    # -- what is done

    @rule(name=machines, content=contents, kept=st.booleans())
    def write(self, name: str, content: str, *, kept: bool) -> None:
        memory = self.open[name]
        if kept:
            memory.remember(content)
            self.held[name].add(content)
            return
        ids = [stored.id for stored in memory.backend.all_records() if stored.record.content == content]
        assert len(ids) == (content in self.held[name])
        for each in ids:
            memory.forget(each)
        self.held[name].discard(content)

    @rule(name=machines, what=st.sampled_from(["restart", "wait", "close", "hold", "calm", "believe"]))
    def between(self, name: str, what: str) -> None:
        """`hold`: no ledger closes by itself any more, so that what was sent stays pending until `close`."""
        if what == "restart":
            self.kill(name)
        elif what == "wait":
            self.truth.let_pass()
        elif what == "close":
            self.truth.chain.close_ledger()
        elif what == "hold":
            if self.truth.anchor() is not None:  # the friendbot would wait for ever
                self.truth.chain.set_interval(closing="manual")
                self.holding = True
        else:
            self.calm()
            if what == "believe":
                self.believe()

    def calm(self) -> None:
        self.truth.chain.clear_faults()
        if self.holding:
            self.truth.chain.set_interval(closing="instant")
            self.truth.chain.close_ledger()
            self.holding = False

    def believe(self) -> None:
        """What a person does who knows by now that the earlier server lied."""
        for name in self.lied_to:
            self.open[name].trust_chain_anew()
        self.lied_to.clear()

    @contextmanager
    def trouble(self, wanted: list[dict[str, Any]], *, leave: bool) -> Iterator[None]:
        for fault in wanted:
            self.truth.chain.fault(**fault)
        yield
        if not leave:
            self.calm()

    @rule(name=machines)
    def anchor(self, name: str) -> None:
        self.try_to_anchor(name, None)

    @rule(name=machines, crash=steps, faults=troubles, leave=st.booleans())
    def anchor_and_die(self, name: str, crash: Step, faults: list[dict[str, Any]], *, leave: bool) -> None:
        with self.trouble(faults, leave=leave):
            self.try_to_anchor(name, crash)

    @rule(name=machines, faults=troubles, leave=st.booleans())
    def anchor_in_trouble(self, name: str, faults: list[dict[str, Any]], *, leave: bool) -> None:
        with self.trouble(faults, leave=leave):
            self.try_to_anchor(name, None)

    def try_to_anchor(self, name: str, crash: Step | None) -> None:
        excused, first = self.about_to_ask(name), len(self.traffic.signed)
        attempt = Attempt(name, self.root_of(self.held[name]))
        self.attempts.append(attempt)
        try:
            with observed(die_at(crash)):
                attempt.made = self.open[name].anchor()
        except Killed:
            self.kill(name)
        except Unsettled:
            assert excused
        except (VersionConflict, UnanchoredWrites) as error:
            attempt.failed = True
            assert excused or not self.open[name].verify()
            if isinstance(error, VersionConflict) and name not in self.misled:
                last = self.truth.anchorings()[-1][0]
                (maker,) = [each.name for each in self.attempts if last in each.hashes]
                assert maker != name, "what it made itself is no conflict"
        except (ChainError, Rollback, Fork):
            attempt.failed = True
            assert excused
        finally:
            signed = self.traffic.signed[first:]
            attempt.hashes = {each for account, each in signed if account == self.wallet.address}
        if attempt.made is not None:
            assert attempt.made > self.version
            assert self.truth.version() == attempt.made
            assert self.in_trouble or self.open[name].verify()

    @rule(name=machines, conflict=conflicts)
    def load(self, name: str, conflict: str) -> None:
        self.try_to_load(name, conflict, None)

    @rule(name=machines, conflict=conflicts, crash=steps, faults=troubles, leave=st.booleans())
    def load_and_die(
        self, name: str, conflict: str, crash: Step, faults: list[dict[str, Any]], *, leave: bool
    ) -> None:
        with self.trouble(faults, leave=leave):
            self.try_to_load(name, conflict, crash)

    @rule(name=machines, conflict=conflicts, faults=troubles, leave=st.booleans())
    def load_in_trouble(self, name: str, conflict: str, faults: list[dict[str, Any]], *, leave: bool) -> None:
        with self.trouble(faults, leave=leave):
            self.try_to_load(name, conflict, None)

    def try_to_load(self, name: str, conflict: str, crash: Step | None) -> None:
        memory, before = self.open[name], set(self.held[name])
        excused, anchor = self.about_to_ask(name), self.truth.anchor()
        earlier = [set(self.exported[each.root]) for _, each in self.truth.anchorings()]
        loadable = earlier if excused else earlier[-1:]
        loaded = died = False
        try:
            with observed(die_at(crash)):
                memory.rehydrate(on_conflict=conflict)
        except Killed:
            died = True
            self.kill(name)
        except UnanchoredWrites:
            assert conflict == "refuse"
        except NotAnchored:
            assert anchor is None or excused
        except (ChainError, Rollback, Fork, Tampered):  # a forged root is that of no blob
            assert excused
        else:
            loaded = True
        if not (loaded or died):
            assert self.kept(name) == before, "half of a memory"
            return
        after = self.kept(name)
        if after != before:
            merged = [each | before for each in loadable] if conflict == "merge" else []
            assert after in (*loadable, *merged), "half of a memory"
            assert conflict != "refuse" or not before or before in earlier, "writes were dropped unasked"
        if crash is None and conflict == "replace":
            assert after in loadable
        self.held[name] = after

    @rule(name=machines, faults=troubles, leave=st.booleans())
    def verify_in_trouble(self, name: str, faults: list[dict[str, Any]], *, leave: bool) -> None:
        with self.trouble(faults, leave=leave):
            self.try_to_verify(name)

    def try_to_verify(self, name: str) -> None:
        excused = self.about_to_ask(name)
        try:
            result = self.open[name].verify()
        except ChainError:
            assert excused
            return
        allowed = PLAIN | {Verdict.ARCHIVED} | (CONTRADICTED if excused else set())
        assert result.verdict in allowed
        if result:
            assert self.root_of(self.held[name]) in [each.root for _, each in self.truth.anchorings()]

    # -- what must be true

    @invariant()
    def nothing_is_lost(self) -> None:
        for name in NAMES:
            assert self.kept(name) == self.held[name]

    @invariant()
    def every_version_is_one_that_was_asked_for(self) -> None:
        anchorings = self.truth.anchorings()
        version = self.truth.version()
        assert self.version <= version
        self.version = version
        asked = {each: attempt for attempt in self.attempts for each in attempt.hashes}
        done = {id(asked[each]): anchor for each, anchor in anchorings}
        assert len(done) == len(anchorings), "two transactions for one anchor"
        for attempt in self.attempts:
            anchor = done.get(id(attempt))
            if anchor is None:
                assert attempt.made is None, "an acknowledged anchor is not there"
            else:
                assert anchor.root == attempt.root
                assert attempt.made in (None, anchor.version)
                assert not attempt.failed, "it was said that nothing was anchored"

    @invariant()
    def the_chain_points_at_a_stored_blob(self) -> None:
        anchor = self.truth.anchor()
        if anchor is not None:
            stores = [FileBlobStore(self.folder / name / "blobs") for name in NAMES]
            assert any(store.find(anchor.root) for store in stores)

    @invariant()
    def a_verdict_is_true_iff_both_agree(self) -> None:
        if self.in_trouble:
            return
        anchor, archived = self.truth.anchor(), self.truth.is_archived()
        for name in NAMES:
            result = self.open[name].verify()
            if name in self.lied_to and result.verdict in CONTRADICTED:
                continue
            agree = anchor is not None and anchor.root == self.root_of(self.held[name])
            assert bool(result) == (agree and not archived)
            assert result.verdict in PLAIN or (archived and result.verdict is Verdict.ARCHIVED)

    def finish(self) -> None:
        """Once the trouble is over both machines go on, and come to agree."""
        self.calm()
        self.believe()
        everything = set().union(*self.held.values())
        for name in (*NAMES, *NAMES):
            if self.truth.anchor() is not None:
                self.open[name].rehydrate(on_conflict="merge")
                self.held[name] = self.kept(name)
            self.try_to_anchor(name, None)
            assert self.attempts[-1].made is not None
            self.every_version_is_one_that_was_asked_for()
        for name in NAMES:
            memory = self.open[name]
            memory.rehydrate()
            assert memory.verify()
            assert memory._state.intent(memory._commitment.look().key) is None
            assert self.kept(name) >= everything
        assert self.kept("a") == self.kept("b")

    def teardown(self) -> None:
        try:
            if sys.exc_info()[0] is None:
                self.finish()
        finally:
            for memory in self.open.values():
                memory.close()
                memory.context.close()
            self.truth.close()
            shutil.rmtree(self.folder)


@pytest.fixture(autouse=True)
def _one_wallet_and_no_waiting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    TwoMachines.wallet = Wallet.create(tmp_path_factory.mktemp("machine") / "private" / "w.json", PASSPHRASE)
    TwoMachines.keypair = None
    with pytest.MonkeyPatch.context() as patch:
        without_waiting(patch)
        TwoMachines.traffic = with_traffic(patch, STANDALONE_PASSPHRASE)
        yield


class TestTwoMachines(TwoMachines.TestCase):  # type: ignore[misc,valid-type]
    """Runs the machine."""

    settings = settings(
        max_examples=EXAMPLES, stateful_step_count=20, deadline=None, suppress_health_check=list(HealthCheck)
    )
