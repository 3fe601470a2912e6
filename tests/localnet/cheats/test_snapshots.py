"""Going back: to everything, in any order, once, and after whatever happened to the process."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from mycelium_localnet import Chain, errors
from mycelium_localnet.headers import RETENTION
from mycelium_localnet.schema import SCHEMA_VERSION
from tests.localnet.cheats.conftest import live, seen
from tests.localnet.ledger.lab import Lab, create, keypair
from tests.localnet.ledger.test_headers import check_chained

if TYPE_CHECKING:
    from pathlib import Path


def test_everything_is_as_it_was(lab: Lab) -> None:
    live(lab, 1)
    before, whole = seen(lab.chain), lab.chain.dump()
    snapshot = lab.chain.snapshot()
    live(lab, 2)
    lab.chain.set_time(1_800_000_000)
    lab.chain.freeze_time(frozen=False)
    lab.chain.set_interval(closing="manual")
    lab.submit(lab.build(keypair("alice"), create("late")))
    assert seen(lab.chain) != before
    last = lab.chain.revert(snapshot)
    assert last == lab.latest().sequence
    assert seen(lab.chain) == before
    assert lab.chain.dump() == whole


def test_what_follows_is_what_would_have_followed(lab: Lab, wasm: bytes) -> None:
    """The ledger hashes after a detour are those of a chain that never made it."""
    with Chain.open(":memory:", seed=b"cheats", clock="frozen", profile="short-ttl") as straight:
        other = Lab(straight, wasm)
        other.deploy(other.account("alice"))
        live(other, 1)
        live(other, 2)
        snapshot = lab.chain.snapshot()
        live(lab, 5)
        lab.chain.revert(snapshot)
        live(lab, 1)
        snapshot = lab.chain.snapshot()
        live(lab, 6)
        lab.chain.revert(snapshot)
        live(lab, 2)
        assert lab.latest().hash == other.latest().hash
        assert lab.chain.dump() == straight.dump()
    check_chained(lab.ledgers())


def test_nested_snapshots(lab: Lab) -> None:
    chain, dumps, numbers = lab.chain, [], []
    for number in range(1, 5):
        dumps.append(chain.dump())
        numbers.append(chain.snapshot())
        live(lab, number)
    chain.revert(numbers[2])
    assert chain.dump() == dumps[2]
    with pytest.raises(errors.InvalidRequestError):  # it was made after the one that was gone back to
        chain.revert(numbers[3])
    chain.revert(numbers[1])
    assert chain.dump() == dumps[1]
    live(lab, 9)
    chain.revert(numbers[0])
    assert chain.dump() == dumps[0]


def test_a_snapshot_serves_once(lab: Lab) -> None:
    first = lab.chain.snapshot()
    lab.chain.revert(first)
    before = lab.chain.dump()
    with pytest.raises(errors.InvalidRequestError, match=f"no snapshot {first}") as caught:
        lab.chain.revert(first)
    assert caught.value.hint
    assert lab.chain.dump() == before
    assert lab.chain.snapshot() > first  # its number is never given to another one


def test_a_snapshot_without_a_change_is_fine(lab: Lab) -> None:
    before = lab.chain.dump()
    first, second = lab.chain.snapshot(), lab.chain.snapshot()
    lab.chain.revert(second)
    lab.chain.revert(first)
    assert lab.chain.dump() == before


def test_what_was_pending_is_pending_again_in_its_order(wasm: bytes) -> None:
    with Chain.open(":memory:", seed=b"s", clock="frozen", closing="manual") as chain:
        lab = Lab(chain, wasm)
        for name in ("zoe", "adam", "mia"):
            chain.fund(keypair(name).public_key)
        chain.close_ledger()
        waiting = [lab.build(keypair(name), create(f"of {name}")) for name in ("zoe", "adam", "mia")]
        for envelope in waiting:
            assert lab.submit(envelope).status == "PENDING"
        before = chain.dump()
        snapshot = chain.snapshot()
        chain.close_ledger()
        chain.revert(snapshot)
        assert chain.dump() == before
        with chain.read() as view:
            assert all(view.is_pending(envelope.hash()) for envelope in waiting)
        assert lab.submit(waiting[0]).status == "DUPLICATE"
        chain.close_ledger()
        assert [lab.transaction(envelope.hash()).application_order for envelope in waiting] == [1, 2, 3]


def test_a_transaction_that_was_undone_can_come_again(lab: Lab) -> None:
    envelope = lab.build(keypair("alice"), create("new"))
    snapshot = lab.chain.snapshot()
    first = lab.succeed(envelope)
    assert lab.submit(envelope).status == "TRY_AGAIN_LATER"
    lab.chain.revert(snapshot)
    with lab.chain.read() as view:
        assert view.transaction(envelope.hash()) is None
    assert lab.succeed(envelope) == first


def test_history_that_was_too_old_comes_back(lab: Lab) -> None:
    live(lab, 1)
    before, whole = seen(lab.chain), lab.chain.dump()
    with lab.chain.read() as view:
        (old,) = view.transactions((0, 0), 1)
    snapshot = lab.chain.snapshot()
    live(lab, 2)  # will be forgotten, and what it changed must come back all the same
    lab.chain.skip_ledgers(2 * RETENTION)
    lab.chain.fund(keypair("later").public_key)
    with lab.chain.read() as view:  # it is kept, and not shown
        assert view.oldest().sequence == view.latest().sequence - RETENTION + 1
        assert view.transaction(old.hash) is None
        assert view.ledger(2) is None
    lab.chain.revert(snapshot)
    assert seen(lab.chain) == before
    assert lab.chain.dump() == whole


def test_history_is_forgotten_again_without_snapshots(lab: Lab) -> None:
    live(lab, 1)
    lab.chain.snapshot()
    snapshot = lab.chain.snapshot()
    lab.chain.skip_ledgers(2 * RETENTION)
    lab.chain.revert(snapshot)
    lab.chain.revert(snapshot - 1)
    lab.chain.skip_ledgers(2 * RETENTION)
    lab.chain.close_ledger()
    with lab.chain._storage.read() as connection:
        for table in ("transactions", "events", "former"):
            query = f"SELECT count(*) FROM {table}"  # noqa: S608
            assert connection.execute(query).fetchone() == (0,), table
        (first,) = connection.execute("SELECT min(sequence) FROM ledgers").fetchone()
    assert first > 100_000


def test_a_snapshot_survives_a_restart(tmp_path: Path, wasm: bytes) -> None:
    path = tmp_path / "chain.db"
    with Chain.open(path, seed=b"s", clock="frozen", profile="short-ttl") as chain:
        lab = Lab(chain, wasm)
        lab.deploy(lab.account("alice"))
        whole = chain.dump()
        outer = chain.snapshot()
        live(lab, 1)
        inner_whole = chain.dump()
        inner = chain.snapshot()
    with Chain.open(path) as chain:
        lab = Lab(chain, wasm, lab.contract_id)
        live(lab, 2)
    with Chain.open(path) as chain:
        chain.revert(inner)
        assert chain.dump() == inner_whole
    with Chain.open(path) as chain:
        chain.revert(outer)
        assert chain.dump() == whole


_KILLED = """
import os, signal, sys
from mycelium_localnet import Chain

chain = Chain.open(sys.argv[1])
print(chain.snapshot(), flush=True)
chain.skip_ledgers(1000)
print("skipped", flush=True)
sys.stdin.readline()
"""


def test_a_snapshot_survives_a_killed_process(tmp_path: Path) -> None:
    path = tmp_path / "chain.db"
    with Chain.open(path, seed=b"s", clock="frozen") as chain:
        chain.accounts()
        before = chain.dump()
    process = subprocess.Popen(
        [sys.executable, "-c", _KILLED, str(path)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    with process:
        assert process.stdout is not None
        snapshot = int(process.stdout.readline())
        assert process.stdout.readline() == "skipped\n"
        os.kill(process.pid, signal.SIGKILL)
    with Chain.open(path) as chain:
        chain.revert(snapshot)
        assert chain.dump() == before


def test_other_openers_of_the_file_go_back_too(tmp_path: Path) -> None:
    path = tmp_path / "chain.db"
    with Chain.open(path, seed=b"s") as one, Chain.open(path) as other:
        snapshot = one.snapshot()
        one.fund(keypair("bob").public_key)
        with other.read() as view:
            assert view.latest().sequence == 2
            one.revert(snapshot)
            assert view.latest().sequence == 2  # what was begun before is finished in its state
        with other.read() as view:
            assert view.latest().sequence == 1
        other.fund(keypair("bob").public_key)


def test_a_revert_that_cannot_be_finished_has_not_begun(lab: Lab) -> None:
    snapshot = lab.chain.snapshot()
    live(lab, 1)
    before = lab.chain.dump()
    with lab.chain._storage.write() as connection:
        connection.execute("UPDATE snapshots SET pending = X'00000001FF'")  # what no list is
    with pytest.raises(ValueError, match="unpack"):
        lab.chain.revert(snapshot)
    assert lab.chain.dump() == before


def test_intervals_begin_anew(tmp_path: Path) -> None:
    with Chain.open(tmp_path / "chain.db", interval=3600) as chain:
        snapshot = chain.snapshot()
        with chain._storage.write() as connection:  # as if the hour had passed
            connection.execute("UPDATE snapshots SET settings = json_set(settings, '$.due', '1')")
        chain.revert(snapshot)
        with chain.read() as view:
            assert view.latest().sequence == 1
        wait = chain.close_due_ledger()
        assert wait is not None
        assert 0 < wait <= 3600


def test_a_file_of_the_first_version_is_given_what_it_lacks(tmp_path: Path) -> None:
    path = tmp_path / "chain.db"
    with Chain.open(path, seed=b"s", clock="frozen") as chain:
        expected = chain.dump()
    connection = sqlite3.connect(path)
    names = connection.execute(
        "SELECT type, name FROM sqlite_master"
        " WHERE type = 'trigger' OR name IN ('former', 'snapshots', 'faults')"
    ).fetchall()
    assert len(names) == 10
    for kind, name in names:
        connection.execute(f"DROP {kind} {name}")
    connection.execute("PRAGMA user_version = 1")
    connection.commit()
    connection.close()
    with Chain.open(path) as chain, Chain.open(path) as other:
        assert other.dump() == expected
        snapshot = chain.snapshot()
        other.accounts()
        chain.revert(snapshot)
        assert chain.dump() == expected
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA user_version").fetchone() == (SCHEMA_VERSION,)
    connection.close()


class Detours(RuleBasedStateMachine):
    """Any order of changes, snapshots and reverts: each revert finds the very chain that was."""

    @initialize()
    def begin(self) -> None:
        self.chain = Chain.open(":memory:", seed=b"d", clock="frozen", closing="manual")
        self.kept: list[tuple[int, bytes]] = []

    @rule(name=st.integers(0, 5))
    def fund(self, name: int) -> None:
        try:
            self.chain.fund(keypair(f"account {name}").public_key)
        except errors.AccountExistsError:
            self.chain.set_balance(keypair(f"account {name}").public_key, name)

    @rule(count=st.integers(1, 600))
    def skip(self, count: int) -> None:
        self.chain.skip_ledgers(count)

    @rule(seconds=st.integers(1, 1000))
    def tick(self, seconds: int) -> None:
        self.chain.set_time(self.chain.freeze_time() + seconds)

    @rule()
    def snapshot(self) -> None:
        whole = self.chain.dump()
        self.kept.append((self.chain.snapshot(), whole))

    @precondition(lambda self: self.kept)
    @rule(data=st.data())
    def revert(self, data: st.DataObject) -> None:
        at = data.draw(st.integers(0, len(self.kept) - 1))
        snapshot, whole = self.kept[at]
        del self.kept[at:]
        self.chain.revert(snapshot)
        assert self.chain.dump() == whole

    def teardown(self) -> None:
        if hasattr(self, "chain"):
            self.chain.close()


TestDetours = Detours.TestCase
TestDetours.settings = settings(
    max_examples=15, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
)


def test_closing_a_ledger_costs_the_same_however_much_a_snapshot_keeps() -> None:
    """History that is too old and kept all the same is not looked at again with each ledger. Counted in steps
    of SQLite, not in time."""
    with Chain.open(":memory:", seed=b"cheats", clock="frozen") as chain:

        def steps() -> int:
            connection, counted = chain._storage._writer, 0

            def count() -> None:
                nonlocal counted
                counted += 1

            connection.set_progress_handler(count, 10)
            chain.close_ledger()
            connection.set_progress_handler(None, 0)
            return counted

        for number in range(100):
            chain.fund(keypair(f"account {number}").public_key)
        snapshot = chain.snapshot()
        young = steps()
        chain.skip_ledgers(RETENTION + 1_000)
        old = steps()
        assert 0 < young <= old < young + 20
        # Nothing keeps it any more.
        chain.revert(snapshot)
        chain.skip_ledgers(RETENTION + 1_000)
        with chain._storage.read() as connection:
            assert connection.execute("SELECT count(*) FROM transactions").fetchone() == (0,)
