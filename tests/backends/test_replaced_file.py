"""A memory file that is moved away, removed or replaced while it is open: said, and nothing is lost in it."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import textwrap
import threading
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from mycelium_sdk.backends.local import LocalVectorBackend, rootcache, writing
from mycelium_sdk.errors import BackendError, ForeignFile

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


MISSING = "moved away or removed while it was open"
REPLACED = "replaced by another file while it was open"


def _move(path: Path, name: str = "away.db") -> Path:
    """Move the file away, with its log."""
    away = path.with_name(name)
    for suffix in ("-wal", "-shm", ""):
        part = path.with_name(path.name + suffix)
        if part.exists():
            part.rename(away.with_name(away.name + suffix))
    return away


def _texts(owner: str, path: Path) -> list[str]:
    with LocalVectorBackend(owner, path) as backend:
        return _held(backend)


def _held(backend: LocalVectorBackend) -> list[str]:
    return [stored.record.content for stored in backend.iter_records()]


def _in_another_process(owner: str, path: Path, script: str) -> None:
    program = f"""
        import sys
        from mycelium_sdk.backends.local import LocalVectorBackend
        with LocalVectorBackend(sys.argv[1], sys.argv[2]) as store:
            {script}
    """
    command = [sys.executable, "-c", textwrap.dedent(program), owner, str(path)]
    subprocess.run(command, check=True, capture_output=True)


def test_what_is_remembered_after_another_file_took_the_place_is_in_that_file(
    owner: str, path: Path, store: LocalVectorBackend
) -> None:
    store.remember("before")
    away = _move(path)
    _in_another_process(owner, path, "store.remember('of another process')")
    with pytest.raises(BackendError, match=REPLACED) as caught:
        store.remember("refused")
    assert "try again" in str(caught.value.hint)
    assert store.remember("afterwards") == "2"
    assert store.count() == 2
    assert _texts(owner, path) == ["afterwards", "of another process"]
    assert _texts(owner, away) == ["before"]


def test_without_a_file_nothing_is_read_written_or_made(
    owner: str, path: Path, store: LocalVectorBackend
) -> None:
    store.remember("before")
    away = _move(path)
    for act in (store.count, store.root, store.export_blob, lambda: store.recall("before")):
        with pytest.raises(BackendError, match=MISSING) as caught:
            act()
        assert "put it back" in str(caught.value.hint)
    for write in (
        lambda: store.remember("refused"),
        lambda: store.forget("1"),
        lambda: store.forget("1", secure=True),
        lambda: store.import_blob(b"{}"),
    ):
        with pytest.raises(BackendError, match=MISSING):
            write()
    assert not path.exists()
    assert _texts(owner, away) == ["before"]
    away.rename(path)
    store.remember("put back")
    assert _held(store) == ["before", "put back"]


def test_an_empty_file_in_its_place_is_none(path: Path, store: LocalVectorBackend) -> None:
    store.remember("before")
    _move(path)
    path.touch(mode=0o600)
    with pytest.raises(BackendError, match=MISSING):
        store.remember("refused")
    assert path.stat().st_size == 0


def test_a_file_that_was_moved_without_its_log_is_made_whole(
    owner: str, path: Path, store: LocalVectorBackend
) -> None:
    store.remember("only in the log")
    away = path.rename(path.with_name("away.db"))
    with pytest.raises(BackendError, match=MISSING):
        store.count()
    _in_another_process(owner, path, "store.remember('new')")
    assert _held(store) == ["new"]
    assert _texts(owner, away) == ["only in the log"]


def test_no_file_is_made_beside_a_log_that_holds_what_was_written_last(
    owner: str, path: Path, store: LocalVectorBackend
) -> None:
    store.remember("only in the log")
    away = path.rename(path.with_name("away.db"))
    with pytest.raises(BackendError, match="moved away without it") as caught:
        LocalVectorBackend(owner, path)
    assert "move the log too" in str(caught.value.hint)
    assert not path.exists()
    path.with_name("memory.db-wal").rename(away.with_name("away.db-wal"))
    store.close()
    assert _texts(owner, away) == ["only in the log"]


def test_closing_what_was_open_leaves_the_log_of_the_new_file(
    owner: str, path: Path, store: LocalVectorBackend
) -> None:
    store.remember("before")
    _move(path)
    with LocalVectorBackend(owner, path) as other:
        other.remember("in the log")
        log = path.with_name("memory.db-wal")
        held = log.stat().st_ino, log.stat().st_size
        with pytest.raises(BackendError, match=REPLACED):
            store.count()
        store.close()
        assert (log.stat().st_ino, log.stat().st_size) == held
    assert _texts(owner, path) == ["in the log"]


def test_nothing_kept_in_memory_of_one_file_is_used_for_the_other(owner: str, path: Path) -> None:
    def embed(text: str) -> list[float]:
        return [float("sun" in text), float("rain" in text), 0.1]

    for name, words in (("one.db", ("sun", "rain")), ("two.db", ("rain", "sun"))):
        with LocalVectorBackend(owner, path.with_name(name), embed) as backend:
            backend.remember_many(f"{words[number % 2]} {number}" for number in range(300))
            backend.recall("sun")
    _move(path.with_name("one.db"), path.name)
    with LocalVectorBackend(owner, path, embed) as backend:
        root = backend.root()
        assert [item["content"] for item in backend.recall("rain 7", k=1)] == ["rain 7"]
        _move(path)
        _move(path.with_name("two.db"), path.name)
        with pytest.raises(BackendError, match=REPLACED):
            backend.root()
        with LocalVectorBackend(owner, path, embed) as fresh:
            assert fresh.change_counter() == backend.change_counter()
            assert backend.root() == fresh.root() != root
            for query in ("rain 7", "sun 7", "rain"):
                assert backend.recall(query, k=20) == fresh.recall(query, k=20)


def test_a_root_of_one_file_is_never_kept_in_the_other(
    owner: str, path: Path, store: LocalVectorBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rootcache, "WORTH_KEEPING", 1)
    store.remember("before")
    _move(path)
    with LocalVectorBackend(owner, path) as other:
        other.remember("after")
        with pytest.raises(BackendError, match=REPLACED):
            store.keep_root(1, bytes(32))
        assert other.known_root() is None
        assert store.known_root() is None


def test_every_thread_is_told_once(owner: str, path: Path, store: LocalVectorBackend) -> None:
    """One that has ids, counters and roots of the old file must not use them on the new one."""
    store.remember("before")
    answers: list[str] = []
    turn, done = threading.Semaphore(0), threading.Semaphore(0)

    def work() -> None:
        for _ in range(3):
            turn.acquire()
            try:
                answers.append(str(store.count()))
            except BackendError as error:
                answers.append("told" if REPLACED in error.message else error.message)
            done.release()

    def step() -> None:
        turn.release()
        done.acquire()

    thread = threading.Thread(target=work)
    thread.start()
    step()
    _move(path)
    LocalVectorBackend(owner, path).close()
    with pytest.raises(BackendError, match=REPLACED):
        store.count()
    assert store.count() == 0
    step()
    step()
    thread.join()
    assert answers == ["1", "told", "0"]


def test_a_file_that_is_replaced_during_a_load_is_not_loaded_into(
    owner: str, path: Path, store: LocalVectorBackend
) -> None:
    with LocalVectorBackend(owner, path.with_name("other.db")) as source:
        source.remember_many(f"memory {number}" for number in range(50))
        blob = source.export_blob()
    store.remember("before")

    def chunks() -> Iterator[bytes]:
        yield blob[:500]
        _move(path)
        _in_another_process(owner, path, "store.remember('not anchored')")
        yield blob[500:]

    with pytest.raises(BackendError, match=REPLACED):
        store.load(chunks(), expected_changes=1)
    assert _texts(owner, path) == ["not anchored"]
    assert _texts(owner, path.with_name("away.db")) == ["before"]


def test_a_file_that_is_moved_while_it_is_written_to_is_left_as_it_was(
    owner: str, path: Path, store: LocalVectorBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.remember("before")
    real = writing.add

    def late(*arguments: Any) -> list[str]:
        ids = real(*arguments)
        _move(path)
        return ids

    monkeypatch.setattr(writing, "add", late)
    with pytest.raises(BackendError, match=MISSING):
        store.remember("refused")
    assert _texts(owner, path.with_name("away.db")) == ["before"]


def test_what_is_no_memory_of_this_owner_is_not_touched(
    owner: str, other_owner: str, path: Path, store: LocalVectorBackend
) -> None:
    store.remember("before")
    away = _move(path)
    with LocalVectorBackend(other_owner, path) as theirs:
        theirs.remember("theirs")
    before = path.read_bytes()
    for _ in range(2):
        with pytest.raises(ForeignFile, match="another owner"):
            store.remember("refused")
    assert path.read_bytes() == before
    path.unlink()
    with pytest.raises(BackendError, match=MISSING):
        store.remember("refused")
    _move(away, path.name)
    store.remember("after")
    assert _held(store) == ["after", "before"]


def test_what_another_process_rewrites_stays_the_file(
    owner: str, path: Path, store: LocalVectorBackend
) -> None:
    store.remember_many(["first", "second"])
    _in_another_process(owner, path, "store.forget('1', secure=True)")
    store.remember("third")
    assert _held(store) == ["second", "third"]


def test_a_relative_path_stays_where_it_was(
    owner: str, path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(path.parent)
    with LocalVectorBackend(owner, path.name) as store:
        store.remember("one")
        monkeypatch.chdir(tmp_path)
        store.remember("two")
        assert _held(store) == ["one", "two"]
    assert not (tmp_path / path.name).exists()


def test_a_closed_memory_says_that_it_is_closed(path: Path, store: LocalVectorBackend) -> None:
    store.close()
    path.unlink()
    with pytest.raises(BackendError, match="the memory is closed"):
        store.count()


def test_a_forked_child_notices_as_well(owner: str, path: Path, store: LocalVectorBackend) -> None:
    store.remember("before")
    _move(path)
    LocalVectorBackend(owner, path).close()
    child = os.fork()
    if child == 0:
        try:
            store.remember("refused")
        except BackendError as error:
            os._exit(0 if REPLACED in error.message and store.remember("child") == "1" else 2)
        os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    assert _texts(owner, path) == ["child"]


@pytest.mark.parametrize("emptied", [False, True])
def test_the_log_of_the_file_that_was_there_is_not_read_into_a_backup(
    owner: str, path: Path, store: LocalVectorBackend, *, emptied: bool
) -> None:
    for number in range(20):
        store.remember(f"old {number}")
    backup = path.with_name("backup.db")
    with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(backup)) as copy:
        source.backup(copy)
    backup.chmod(0o600)
    for number in range(200):
        store.remember(f"after {number} " + "x" * 200)
        if emptied and number == 100:
            with closing(sqlite3.connect(path)) as other:
                other.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    assert path.with_name("memory.db-wal").stat().st_size > 0
    backup.replace(path)
    for _ in range(2):
        with pytest.raises(BackendError, match="belongs to the file that was at") as caught:
            store.count()
    assert "move the log away" in str(caught.value.hint)
    store.close()
    for suffix in ("-wal", "-shm"):
        path.with_name(path.name + suffix).rename(path.with_name(f"old{suffix}"))
    with LocalVectorBackend(owner, path) as restored:
        assert restored.count() == 20
        assert restored.check()


def test_a_log_that_others_use_by_now_is_left_alone(
    owner: str, path: Path, store: LocalVectorBackend
) -> None:
    """Another process has opened the file that took the place, beside the log that was there."""
    store.remember("before")
    copy = path.with_name("copy.db")
    with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(copy)) as target:
        source.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        source.backup(target)
    copy.chmod(0o600)
    copy.replace(path)
    _in_another_process(owner, path, "store.remember_many(f'new {n}' for n in range(5))")
    with pytest.raises(BackendError):
        store.count()
    store.close()
    assert len(_texts(owner, path)) == 6
