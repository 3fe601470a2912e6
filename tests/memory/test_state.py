"""The state folder's file: what it keeps, and what it refuses."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import sqlite3
import stat
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from mycelium_sdk import files, private_database
from mycelium_sdk.errors import BackendError, ForeignFile, NewerFile
from mycelium_sdk.state import ChainKey, Intent, KnownAnchor, LastAnchor, Mark, StateStore

if TYPE_CHECKING:
    from pathlib import Path

KEY = ChainKey("Network ; 1", "CCONTRACT", "GOWNER", "aa")
OTHER_CHAIN = ChainKey("Network ; 1", "CCONTRACT", "GOWNER", "bb")


def root(number: int) -> bytes:
    return number.to_bytes(32, "big")


def anchor(version: int, counter: int = 0) -> LastAnchor:
    return LastAnchor(version, root(version), f"file:///{version}", counter, 1_000.0 + version)


def intent(expected: int, transaction_hash: str | None = None) -> Intent:
    sent = () if transaction_hash is None else (transaction_hash, "AAAA", 99, 40)
    return Intent(root(expected + 1), "", expected, 7, *sent)


def test_facts_survive_closing_and_are_per_chain(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    with StateStore(path) as state:
        state.record(KEY, anchor(3, counter=12))
        assert state.raise_mark(KEY, Mark(3, root(3), 40, b"e" * 32, 2), "file:///3")
        state.put_intent(KEY, intent(3, "cafe"))
    with StateStore(path) as state:
        assert state.last_anchor(KEY) == anchor(3, counter=12)
        assert state.mark(KEY) == Mark(3, root(3), 40, b"e" * 32, 2)
        assert state.known_anchor(KEY, root(3)) == KnownAnchor(3, root(3), "file:///3")
        assert state.intent(KEY) == intent(3, "cafe")
        assert state.last_anchor(OTHER_CHAIN) is None
        assert state.mark(OTHER_CHAIN) is None
        assert state.intent(OTHER_CHAIN) is None
        assert state.known(*KEY.values[:3]) == {"aa": Mark(3, root(3), 40, b"e" * 32, 2)}


def test_the_mark_never_moves_down(tmp_path: Path) -> None:
    with StateStore(tmp_path / "state.db") as state:
        assert state.raise_mark(KEY, Mark(5, root(5), 50))
        assert not state.raise_mark(KEY, Mark(4, root(4), 60), after=state.mark(KEY))
        assert state.mark(KEY) == Mark(5, root(5), 50)
        state.record(KEY, anchor(2))
        assert state.mark(KEY) == Mark(5, root(5), 50)
        assert state.known_anchor(KEY, root(4)) is None
        assert state.known_anchor(KEY, root(3)) is None
        assert state.known_anchor(KEY, root(2)) == KnownAnchor(2, root(2), "file:///2")


def test_the_mark_is_raised_only_from_what_it_was_checked_against(tmp_path: Path) -> None:
    with StateStore(tmp_path / "one.db") as one, StateStore(tmp_path / "one.db") as other:
        assert one.raise_mark(KEY, Mark(1, root(1), 10))
        before = one.mark(KEY)
        assert other.raise_mark(KEY, Mark(2, root(2), 20), after=before)
        assert not one.raise_mark(KEY, Mark(2, root(9), 21), after=before), "checked against version 1"
        assert not one.raise_mark(KEY, Mark(3, root(3), 21)), "checked against nothing"
        assert one.mark(KEY) == Mark(2, root(2), 20)
        assert one.known_roots(KEY) == {1: {root(1)}, 2: {root(2)}}


def test_what_is_proved_of_the_past_of_a_mark_only_grows(tmp_path: Path) -> None:
    with StateStore(tmp_path / "state.db") as state:
        mark = Mark(5, root(5), 50)
        state.raise_mark(KEY, mark)
        state.prove(KEY, mark, proved_from=3)
        state.prove(KEY, mark, proved_from=4)
        assert state.mark(KEY) == replace(mark, proved_from=3)
        state.prove(KEY, Mark(5, root(6), 50), proved_from=1)
        state.prove(KEY, Mark(6, root(5), 50), proved_from=1)
        assert state.mark(KEY) == replace(mark, proved_from=3), "that is not the mark"


def test_a_contradiction_is_kept_once_however_often_it_is_seen(tmp_path: Path) -> None:
    with StateStore(tmp_path / "state.db") as state:
        for ledger in range(5):
            state.keep_evidence(KEY, "ROLLBACK", Mark(1, root(1), ledger), Mark(2, root(2), 1))
            state.keep_evidence(KEY, "CHAIN_RESET", None, None)
        state.keep_evidence(OTHER_CHAIN, "CHAIN_RESET", None, None)
        assert (state.evidence_count(KEY), state.evidence_count(OTHER_CHAIN)) == (2, 1)
        state.keep_evidence(KEY, "ROLLBACK", Mark(1, root(7), 9), Mark(2, root(2), 1))
        assert state.evidence_count(KEY) == 3


def test_what_the_memory_is_based_on_is_needed(tmp_path: Path) -> None:
    with StateStore(tmp_path / "state.db") as state:
        state.record(KEY, anchor(3))
        state.raise_mark(KEY, Mark(4, root(4), 50))
        state.put_intent(OTHER_CHAIN, intent(6))
        assert state.needed_roots(KEY.owner) == {root(3), root(4), root(7)}


def test_what_the_memory_is_based_on_never_moves_down(tmp_path: Path) -> None:
    with StateStore(tmp_path / "state.db") as state:
        state.record(KEY, anchor(5, counter=9))
        state.record(KEY, anchor(4, counter=7))
        assert state.last_anchor(KEY) == anchor(5, counter=9)


def test_recording_settles_only_the_intents_it_overtakes(tmp_path: Path) -> None:
    with StateStore(tmp_path / "state.db") as state:
        state.put_intent(KEY, intent(3))
        state.record(KEY, anchor(3))
        assert state.intent(KEY) == intent(3)
        state.record(KEY, anchor(4))
        assert state.intent(KEY) is None


def test_where_last_anchors_are_kept_elsewhere_the_rest_is_settled_alone(tmp_path: Path) -> None:
    with StateStore(tmp_path / "home.db") as state, StateStore(tmp_path / "shared.db") as shared:
        state.put_intent(KEY, intent(3))
        shared.record_last(KEY, anchor(4))
        shared.record_last(KEY, anchor(3))
        state.settle(KEY, anchor(4))
        assert (state.last_anchor(KEY), shared.last_anchor(KEY)) == (None, anchor(4))
        assert (state.mark(KEY), shared.mark(KEY)) == (None, None)
        assert state.known_anchor(KEY, root(4)) is not None
        assert state.intent(KEY) is None
        shared.record_last(OTHER_CHAIN, anchor(1))
        shared.forget_last(*KEY.values[:3])
        assert shared.newest_chain(*KEY.values[:3]) is None


def test_the_newest_chain_is_the_one_recorded_last(tmp_path: Path) -> None:
    with StateStore(tmp_path / "state.db") as state:
        assert state.newest_chain(KEY.network, KEY.contract, KEY.owner) is None
        state.record(OTHER_CHAIN, anchor(9))
        state.record(KEY, anchor(1))
        assert state.newest_chain(KEY.network, KEY.contract, KEY.owner) == KEY


def test_forgetting_a_chain_keeps_the_evidence(tmp_path: Path) -> None:
    with StateStore(tmp_path / "state.db") as state:
        state.record(KEY, anchor(2))
        state.keep_evidence(KEY, "ROLLBACK", Mark(1, root(1), 9), Mark(2, root(2), 1))
        state.start_anew(KEY, None, None, None)
        assert state.mark(KEY) is None
        assert state.last_anchor(KEY) is None
        assert state.known(*KEY.values[:3]) == {}
        assert state.known_anchor(KEY, root(2)) is None, "what takes its place has anchored nothing"
        assert dict(state.anchors_of(KEY.owner))[KEY.network].root == root(2)
        assert state.evidence_count(KEY) == 1


def test_a_chain_is_begun_again_with_what_it_shows_now(tmp_path: Path) -> None:
    with StateStore(tmp_path / "state.db") as state:
        state.record(KEY, anchor(5))
        state.raise_mark(KEY, Mark(5, root(5), 50))
        state.put_intent(KEY, intent(5))
        state.put_intent(OTHER_CHAIN, intent(5))
        state.start_anew(KEY, Mark(2, root(2), 60), "file:///2", anchor(2, counter=3))
        assert state.mark(KEY) == Mark(2, root(2), 60)
        assert state.last_anchor(KEY) == anchor(2, counter=3)
        assert state.known_roots(KEY) == {2: {root(2)}}
        assert (state.intent(KEY), state.intent(OTHER_CHAIN)) == (intent(5), None)


def test_the_file_and_its_companions_are_private(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        with StateStore(tmp_path / "state.db") as state:
            state.record(KEY, anchor(1))
            modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    finally:
        os.umask(old)
    assert modes == {"state.db": 0o600, "state.db-wal": 0o600, "state.db-shm": 0o600}


def test_another_programs_file_is_refused_and_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE theirs(x)")
    connection.commit()
    connection.close()
    path.chmod(0o600)
    before = path.read_bytes()
    with pytest.raises(ForeignFile):
        StateStore(path)
    assert path.read_bytes() == before


def test_a_newer_release_s_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    StateStore(path).close()
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 99")
    connection.commit()
    connection.close()
    with pytest.raises(NewerFile) as caught:
        StateStore(path)
    assert "upgrade" in (caught.value.hint or "")


def test_bytes_that_are_no_database_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    path.write_bytes(b"not a database, but long enough to be looked at" * 40)
    path.chmod(0o600)
    with pytest.raises(BackendError, match="damaged"):
        StateStore(path)


# The statements of version 1 of the file, as its release ran them.
VERSION_1 = """
CREATE TABLE last_anchors(
    network TEXT NOT NULL, contract TEXT NOT NULL, owner TEXT NOT NULL, chain_id TEXT NOT NULL,
    version INTEGER NOT NULL, root BLOB NOT NULL, uri TEXT, change_counter INTEGER NOT NULL,
    anchored_at REAL NOT NULL, updated_at REAL NOT NULL,
    PRIMARY KEY (network, contract, owner, chain_id)
) WITHOUT ROWID;
CREATE TABLE marks(
    network TEXT NOT NULL, contract TEXT NOT NULL, owner TEXT NOT NULL, chain_id TEXT NOT NULL,
    version INTEGER NOT NULL, root BLOB NOT NULL, ledger INTEGER NOT NULL, updated_at REAL NOT NULL,
    PRIMARY KEY (network, contract, owner, chain_id)
) WITHOUT ROWID;
CREATE TABLE known_anchors(
    network TEXT NOT NULL, contract TEXT NOT NULL, owner TEXT NOT NULL, chain_id TEXT NOT NULL,
    version INTEGER NOT NULL, root BLOB NOT NULL, uri TEXT,
    PRIMARY KEY (network, contract, owner, chain_id, version, root)
) WITHOUT ROWID;
CREATE TABLE conflicts(
    id INTEGER PRIMARY KEY,
    network TEXT NOT NULL, contract TEXT NOT NULL, owner TEXT NOT NULL, chain_id TEXT NOT NULL,
    verdict TEXT NOT NULL, seen_version INTEGER, seen_root BLOB, seen_ledger INTEGER,
    mark_version INTEGER, mark_root BLOB, mark_ledger INTEGER, noticed_at REAL NOT NULL
);
CREATE TABLE intents(
    network TEXT NOT NULL, contract TEXT NOT NULL, owner TEXT NOT NULL, chain_id TEXT NOT NULL,
    root BLOB NOT NULL, uri TEXT NOT NULL, expected_version INTEGER NOT NULL, change_counter INTEGER NOT NULL,
    transaction_hash TEXT, envelope TEXT, valid_until INTEGER, signed_ledger INTEGER,
    PRIMARY KEY (network, contract, owner, chain_id)
) WITHOUT ROWID;
PRAGMA application_id = 1299796852;
PRAGMA user_version = 1;
"""


def version_1(path: Path) -> None:
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.executescript(VERSION_1)
        place = (*KEY.values,)
        connection.execute(
            "INSERT INTO last_anchors VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (*place, 3, root(3), "file:///3", 12, 1_003.0, 5.0),
        )
        connection.execute("INSERT INTO marks VALUES (?, ?, ?, ?, ?, ?, ?, ?)", (*place, 4, root(4), 50, 6.0))
        connection.execute(
            "INSERT INTO known_anchors VALUES (?, ?, ?, ?, ?, ?, ?)", (*place, 3, root(3), "file:///3")
        )
        connection.execute(
            "INSERT INTO conflicts VALUES (1, ?, ?, ?, ?, 'FORK', 1, ?, 2, 3, ?, 4, 7.0)",
            (*place, root(1), root(3)),
        )
        connection.execute(
            "INSERT INTO intents VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (*place, root(4), "", 3, 7, "cafe", "AAAA", 99, 40),
        )
    path.chmod(0o600)


def require_all_of_version_1(path: Path) -> None:
    with StateStore(path) as state:
        assert state.last_anchor(KEY) == anchor(3, counter=12)
        assert state.mark(KEY) == Mark(4, root(4), 50)
        assert state.known_anchor(KEY, root(3)) == KnownAnchor(3, root(3), "file:///3")
        assert state.evidence_count(KEY) == 1
        assert state.intent(KEY) == intent(3, "cafe")


def test_a_file_of_version_1_is_upgraded_with_all_it_knows(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    version_1(path)
    require_all_of_version_1(path)
    linked = replace(anchor(4, counter=13), link=b"l" * 16, link_before=b"")
    with StateStore(path) as state:
        state.record(KEY, linked)
    with StateStore(path) as state:
        assert state.last_anchor(KEY) == linked
        assert state.intent(KEY) is None
        meant = replace(intent(4), link=b"n" * 16, link_before=b"l" * 16)
        state.put_intent(KEY, meant)
        assert state.intent(KEY) == meant


def _upgrade_then_die(path: Path, instructions: int) -> None:
    """Die in the middle of a statement, after so many of SQLite's own instructions."""
    opened = files.open_private_sqlite

    def open_ticking(*arguments: Any, **options: Any) -> sqlite3.Connection:
        connection = opened(*arguments, **options)
        left = [instructions]

        def tick() -> int:
            left[0] -= 1
            if left[0] < 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return 0

        connection.set_progress_handler(tick, 1)
        return connection

    setattr(private_database, "open_private_sqlite", open_ticking)  # noqa: B010 - a name it imported
    StateStore(path).close()
    os._exit(0)


def test_an_upgrade_killed_at_any_point_is_done_again(tmp_path: Path) -> None:
    killed, instructions = 0, 0
    while True:  # ever later, until it lives to the end
        path = tmp_path / f"{instructions}.db"
        version_1(path)
        child = os.fork()
        if child == 0:
            _upgrade_then_die(path, instructions)
        _, status = os.waitpid(child, 0)
        require_all_of_version_1(path)
        if os.waitstatus_to_exitcode(status) == 0:
            break
        assert os.waitstatus_to_exitcode(status) == -signal.SIGKILL
        killed += 1
        instructions = instructions * 5 // 4 + 1
    assert killed > 10


def _write_many(path: Path, first: int) -> None:
    with StateStore(path) as state:
        for version in range(first, first + 25):
            state.record(KEY, anchor(version))
            while (before := state.mark(KEY)) is None or before.version < version:
                state.raise_mark(KEY, Mark(version, root(version), version), after=before)


def test_several_processes_open_and_write_at_once(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    path = tmp_path / "state.db"
    workers = [context.Process(target=_write_many, args=(path, 1 + 25 * number)) for number in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0, 0, 0, 0]
    with StateStore(path) as state:
        assert state.mark(KEY) == Mark(100, root(100), 100)
        assert all(state.known_anchor(KEY, root(version)) for version in range(1, 101))


def _record_then_die(path: Path) -> None:
    state = StateStore(path)
    state.put_intent(KEY, intent(1, "beef"))
    os.kill(os.getpid(), signal.SIGKILL)


def test_what_was_written_outlives_a_killed_process(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    worker = multiprocessing.get_context("spawn").Process(target=_record_then_die, args=(path,))
    worker.start()
    worker.join()
    assert worker.exitcode == -signal.SIGKILL
    with StateStore(path) as state:
        assert state.intent(KEY) == intent(1, "beef")


def test_a_forked_child_has_a_connection_of_its_own(tmp_path: Path) -> None:
    with StateStore(tmp_path / "state.db") as state:
        state.record(KEY, anchor(1))
        inherited = state._database._connection
        child = os.fork()
        if child == 0:
            state.record(KEY, anchor(2))
            own = state._database._connection is not inherited
            os._exit(0 if own and state.last_anchor(KEY) == anchor(2) else 1)
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == 0
        assert state.last_anchor(KEY) == anchor(2)
        assert state._database._connection is inherited


def test_a_forked_child_leaves_the_file_to_others(tmp_path: Path) -> None:
    """It closes late: its parent is done, and another process was killed with what it wrote in the log."""
    path = tmp_path / "state.db"
    state = StateStore(path)
    state.record(KEY, anchor(1))
    told, telling = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(telling)
        os.read(told, 1)
        state.close()
        os._exit(0)
    os.close(told)
    state.close()
    worker = multiprocessing.get_context("spawn").Process(target=_record_then_die, args=(path,))
    worker.start()
    worker.join()
    os.close(telling)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    with StateStore(path) as again:
        assert again.intent(KEY) == intent(1, "beef")
