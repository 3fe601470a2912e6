"""Several processes on one memory file: nothing acknowledged is lost, whenever one of them is killed."""

from __future__ import annotations

import os
import signal
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from mycelium_sdk import canonical
from mycelium_sdk.backends.integrity import Integrity
from mycelium_sdk.backends.local import LocalVectorBackend
from mycelium_sdk.errors import StoreLocked
from mycelium_sdk.records import Record
from tests.backends.programs import killed_ever_later, start

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def _check_whole(owner: str, path: Path) -> None:
    with LocalVectorBackend(owner, path) as store:
        assert store.check().state is Integrity.KEPT
        assert store.count() == sum(stored.copies for stored in store.iter_records())
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def test_processes_write_and_read_at_once(owner: str, path: Path) -> None:
    script = """
        name = sys.argv[3]
        with LocalVectorBackend(owner, path) as backend:
            for number in range(60):
                backend.remember(f"process{name} note{number}", [name])
                backend.remember("the same for all")
                assert backend.recall(f"process{name} note{number}", k=1)[0]["tags"] == [name]
                if number % 10 == 9:
                    assert backend.forget(backend.remember(f"passing {name} {number}")) == 1
    """
    processes = [start(owner, path, script, name) for name in range(4)]
    for process in processes:
        process.communicate()
        assert process.returncode == 0
    with LocalVectorBackend(owner, path) as backend:
        assert backend.count() == 4 * 60 + 1
        assert backend.change_counter() == 4 * 60 + 1 + 2 * 4 * 6
        contents = [
            Record(f"process{name} note{number}", (str(name),)) for name in range(4) for number in range(60)
        ]
        assert backend.export_blob() == canonical.encode(owner, [*contents, Record("the same for all")])
    _check_whole(owner, path)


@pytest.mark.parametrize("acknowledged", [1, 7, 150, 333])
def test_a_killed_writer_loses_nothing_acknowledged(owner: str, path: Path, acknowledged: int) -> None:
    script = """
        with LocalVectorBackend(owner, path) as backend:
            for number in range(100000):
                print(backend.remember(f"note {number}", ["tag"]), flush=True)
                backend.recall(f"note {number}", k=1)
    """
    process = start(owner, path, script)
    assert process.stdout is not None
    seen = [process.stdout.readline().strip() for _ in range(acknowledged)]
    os.kill(process.pid, signal.SIGKILL)
    seen += process.communicate()[0].split()
    with LocalVectorBackend(owner, path) as backend:
        stored = {record.id: record.record.content for record in backend.iter_records()}
        assert [stored.get(number) for number in seen] == [f"note {place}" for place in range(len(seen))]
        assert len(stored) - len(seen) in {0, 1}
        assert len(backend.recall("note", k=10**6)) == len(stored) == backend.count()
    _check_whole(owner, path)


def test_a_process_killed_while_it_makes_the_file(owner: str, path: Path) -> None:
    script = """
        with LocalVectorBackend(owner, path) as backend:
            backend.remember_many(f"note {number}" for number in range(100))
    """

    def remove() -> None:
        for leftover in path.parent.glob("memory.db*"):
            leftover.unlink()

    for _ in killed_ever_later(owner, path, script, prepare=remove, more_than=6):
        with LocalVectorBackend(owner, path) as backend:
            assert backend.count() in {0, 100}
            backend.remember("after")
            assert len(backend.recall("after")) == 1
            _check_whole(owner, path)


def test_a_process_killed_while_it_imports(owner: str, path: Path) -> None:
    old = canonical.encode(owner, [Record(f"old {number}", ("tag",)) for number in range(300)])
    new = canonical.encode(owner, [Record(f"new {number}", ("tag",)) for number in range(300)])
    with LocalVectorBackend(owner, path) as backend:
        backend.import_blob(old)
        backend.recall("old")
        kept = backend.all_records()
    (path.parent / "new.json").write_bytes(new)
    script = """
        with LocalVectorBackend(owner, path) as backend:
            backend.import_blob(open(os.path.dirname(path) + "/new.json", "rb").read())
    """
    for lived in killed_ever_later(owner, path, script, more_than=8):
        with LocalVectorBackend(owner, path) as backend:
            if lived:
                assert backend.export_blob() == new
                assert len(backend.recall("new", k=1000)) == 300
                break
            if backend.export_blob() != new:  # the kill may come right after the commit
                assert backend.all_records() == kept
                assert len(backend.recall("old", k=1000)) == 300
        _check_whole(owner, path)


def test_a_store_held_by_another_process(owner: str, path: Path) -> None:
    with LocalVectorBackend(owner, path, busy_timeout=0.05) as backend:
        backend.remember_many(f"note {number}" for number in range(500))
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(StoreLocked) as caught:
                backend.remember("not now")
            assert caught.value.retryable
            assert caught.value.hint
            with pytest.raises(StoreLocked):
                backend.import_blob(canonical.encode(owner, []))
            # Reading waits for nobody, and finds also what could not be indexed.
            assert [hit["content"] for hit in backend.recall("note 321", k=1)] == ["note 321"]
            assert backend.count() == 500
            other.execute("ROLLBACK")
        backend.remember("now")
        assert backend.count() == 501


def test_a_slow_source_stops_nobody(store: LocalVectorBackend, owner: str) -> None:
    blob = canonical.encode(owner, [Record(f"imported {number}") for number in range(2000)])

    def source() -> Iterator[bytes]:
        for first in range(0, len(blob), 10_000):
            with LocalVectorBackend(owner, str(store.path)) as other:
                other.remember(f"meanwhile {first}")
            store.remember(f"also {first}")
            yield blob[first : first + 10_000]

    assert store.import_blob(source()) == 2000
    assert store.export_blob() == blob


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")  # the runner itself has threads
def test_a_forked_child_has_connections_of_its_own(store: LocalVectorBackend) -> None:
    store.remember("an earlier one")
    store.recall("earlier")
    child = os.fork()
    if child == 0:
        status = 1
        try:
            store.remember("by the child")
            status = 0 if len(store.recall("earlier child")) == 2 else 2
            store.close()
        finally:
            os._exit(status)
    store.remember("by the parent")
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert store.count() == 3
