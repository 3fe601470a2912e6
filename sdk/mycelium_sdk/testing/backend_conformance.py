"""What every backend must do, as one pytest class.

Who writes a backend derives from `BaseBackend`, implements the methods of `Backend` (add, snapshot, replace,
remove, candidates, records, stats, close), and runs this. `tests/backends/minimal.py` in the source is one in
a hundred lines.

    class TestMine(BackendConformance):
        @pytest.fixture
        def open_backend(self, tmp_path):
            return lambda name: MyBackend(OWNER, tmp_path / name)

`open_backend(name)` opens the store of that name, empty at first; the same name again is the same store, also
from another process, unless `persistent` is False: then a store ends when it is closed. All stores belong to
one owner. The suite closes what it opens. It needs `os.fork` where `persistent` is True.

What is not tested here, since it differs: where text is kept and who may read it, whether an edit behind the
store's back shows (`check` says `UNPROTECTED` where it cannot), and how quick anything is.
"""

# ruff: noqa: S101 - a test suite

from __future__ import annotations

import itertools
import os
import signal
import threading
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

from mycelium_sdk import canonical
from mycelium_sdk.errors import (
    BackendError,
    InputError,
)
from mycelium_sdk.records import Record
from mycelium_sdk.testing.blob_conformance import ODD, BlobConformance

if TYPE_CHECKING:
    from collections.abc import Callable

    from mycelium_sdk.backends.base import BaseBackend


class BackendConformance(BlobConformance):
    """The behaviour of every backend. Subclasses give the fixture `open_backend`."""

    ids_of_content: ClassVar[bool] = False
    """Whether an id is made of what it names, so that a memory which is remembered anew has its old one."""

    # -- remembering

    def test_an_equal_memory_keeps_its_id_and_changes_nothing(self, backend: BaseBackend) -> None:
        first = backend.remember("tea, no sugar", ["drinks", "habits"])
        assert isinstance(first, str)
        before = backend.change_counter(), backend.export_blob()
        for tags in (["habits", "drinks"], ("drinks", "habits", "drinks"), {"drinks", "habits"}):
            assert backend.remember("tea, no sugar", tags) == first
        assert (backend.change_counter(), backend.export_blob()) == before

    def test_other_tags_or_other_text_is_another_memory(self, backend: BaseBackend) -> None:
        texts = [
            ("tea", None),
            ("tea", ["a"]),
            ("tea", ["a", "b"]),
            ("Tea", None),
            ("tea ", None),
            ("té", None),
        ]
        ids = [backend.remember(*text) for text in (*texts, ("te\u0301", None))]
        assert len(set(ids)) == len(ids) == backend.count()

    def test_many_give_their_ids_in_order(self, backend: BaseBackend) -> None:
        known = backend.remember("b")
        ids = backend.remember_many(
            ["a", ("b", None), {"content": "c", "tags": ["t"], "session": "s"}, "a"], session="d"
        )
        assert ids[1] == known
        assert ids[0] == ids[3]
        assert len(set(ids)) == 3
        assert [(stored.record, stored.session) for stored in backend.iter_records()] == [
            (Record("a"), "d"),
            (Record("b"), None),
            (Record("c", ("t",)), "s"),
        ]
        assert backend.remember_many([]) == []

    def test_a_memory_may_say_when_it_was_first_known(self, backend: BaseBackend) -> None:
        ids = backend.remember_many(
            [
                {"content": "alpha", "time": 12.5},
                {"content": "beta", "time": None},
                {"content": "gamma", "time": 3},
                {"content": "delta"},
            ]
        )
        *told, now = [stored.time for stored in backend.records(ids)]
        assert told == [12.5, None, 3.0]
        assert now is not None
        assert now > 1.7e9
        assert backend.remember_many([{"content": "alpha", "time": 99.0}]) == ids[:1]
        assert backend.recall("alpha")[0]["time"] == 12.5

    @pytest.mark.parametrize(
        "item",
        ["", "\ud800", b"a", 7, None, ("a", "tag"), ("a", [""]), ("a", ["\udfff"]), ("a", [1]), ("a",),
         {"tags": []}, {"content": "a", "score": 1.0}, {"content": "a", "session": ""},
         {"content": "a", "time": "1"}, {"content": "a", "time": True}, {"content": "a", "time": 1e300},
         {"content": "a", "time": float("nan")}],
    )  # fmt: skip
    def test_one_bad_memory_among_many_writes_none(self, backend: BaseBackend, item: Any) -> None:
        with pytest.raises(InputError):
            backend.remember_many(["good", item])
        assert backend.count() == backend.change_counter() == 0

    def test_a_record_beyond_the_limit_is_refused(self, backend: BaseBackend) -> None:
        backend.max_record_bytes = 100
        with pytest.raises(InputError):
            backend.remember("é" * 49, ["tag"])
        assert backend.remember("é" * 48, ["tag"])
        assert backend.count() == 1

    def test_a_megabyte_is_kept_and_found(self, backend: BaseBackend) -> None:
        text = "word " * 209_000 + "needle"
        backend.remember(text)
        assert backend.recall("needle")[0]["content"] == text

    def test_sequence_grows_and_session_and_time_are_kept(self, backend: BaseBackend) -> None:
        for text in ("z", "y", "x"):
            backend.remember(text, session=f"of {text}")
        stored = sorted(backend.all_records(), key=lambda record: record.sequence)
        assert [record.record.content for record in stored] == ["z", "y", "x"]
        assert [record.session for record in stored] == ["of z", "of y", "of x"]
        assert all(record.time is not None and record.time > 1.7e9 for record in stored)

    # -- forgetting

    @pytest.mark.parametrize("secure", [False, True])
    def test_forgetting_by_id_and_by_tag(self, backend: BaseBackend, *, secure: bool) -> None:
        first = backend.remember("first one", ["a", "b"])
        backend.remember_many([("second one", ["b"]), ("third one", ["c"]), ("fourth one", ["b", "d"])])
        assert len(backend.recall("one")) == 4
        counter = backend.change_counter()
        assert (
            backend.forget("no such id", secure=secure) == backend.forget(tag="no such", secure=secure) == 0
        )
        assert backend.change_counter() == counter
        assert backend.forget(first, secure=secure) == 1
        assert backend.forget(first, secure=secure) == 0
        assert backend.forget(tag="b", secure=secure) == 2
        assert backend.change_counter() > counter
        assert [hit["content"] for hit in backend.recall("first second third fourth one")] == ["third one"]
        assert backend.recall("one", tags=["b"]) == []
        assert backend.export_blob() == canonical.encode(backend.owner, [Record("third one", ("c",))])

    def test_forgetting_forgets_every_copy(self, backend: BaseBackend) -> None:
        backend.import_blob(canonical.encode(backend.owner, ODD))
        copied = next(stored.id for stored in backend.iter_records() if stored.copies == 2)
        assert backend.forget(copied) == 2
        assert backend.count() == len(ODD) - 2

    @pytest.mark.parametrize(
        "arguments", [{}, {"id": "1", "tag": "t"}, {"id": 1}, {"tag": ["t"]}, {"id": "\ud800"}]
    )
    def test_forget_needs_one_id_or_one_tag(self, backend: BaseBackend, arguments: dict[str, Any]) -> None:
        with pytest.raises(InputError):
            backend.forget(**arguments)

    def test_clearing_and_starting_again(self, backend: BaseBackend) -> None:
        old = backend.remember_many(["one", "two"])
        assert backend.recall("one")
        assert backend.clear() == 2
        assert backend.clear() == backend.count() == 0
        assert backend.recall("one") == []
        assert self.ids_of_content or backend.remember("one") not in old
        backend.remember("one")
        assert len(backend.recall("one")) == 1

    # -- reading

    def test_records_come_by_their_ids(self, backend: BaseBackend) -> None:
        ids = backend.remember_many([("one", ["t"]), "two", "three"])
        stored = {one.id: one for one in backend.iter_records()}
        assert backend.records([ids[2], ids[0]]) == [stored[ids[2]], stored[ids[0]]]
        backend.forget(ids[0])
        assert backend.records([ids[0], "no such id", "", ids[1]]) == [stored[ids[1]]]
        assert backend.records([]) == []

    def test_what_only_the_store_touched_is_in_order(self, backend: BaseBackend) -> None:
        backend.import_blob(canonical.encode(backend.owner, ODD))
        backend.remember("more", ["t"])
        backend.forget(tag="long")
        assert backend.check(progress=lambda *_: None)
        backend.adopt(backend.root())
        assert backend.check()
        assert backend.count() == len(ODD)

    # -- life

    def test_many_threads(self, backend: BaseBackend) -> None:
        errors: list[BaseException] = []

        def work(name: int) -> None:
            try:
                for number in range(25):
                    wanted = backend.remember(f"thread{name} item{number}")
                    backend.remember("the same for all")
                    assert wanted in {hit["id"] for hit in backend.recall(f"thread{name} item{number}", k=1)}
                    assert len(backend.all_records()) > number
            except BaseException as error:  # noqa: BLE001 - shown by the test's own thread
                errors.append(error)

        threads = [threading.Thread(target=work, args=(name,)) for name in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert errors == []
        assert backend.count() == backend.change_counter() == 8 * 25 + 1

    @pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")  # the runner itself may have threads
    def test_processes_at_once(
        self, open_backend: Callable[[str], BaseBackend], opened: Callable[[str], BaseBackend]
    ) -> None:
        if not self.persistent:
            pytest.skip("such a store belongs to one process")

        def write(name: int) -> None:
            with open_backend("shared") as store:
                for number in range(20):
                    text = f"process{name} item{number}"
                    wanted = store.remember(text)
                    store.remember("the same for all")
                    assert [hit["id"] for hit in store.recall(text, k=1)] == [wanted]

        children = [_forked(lambda name=name: write(name)) for name in range(3)]  # type: ignore[misc]
        assert [_status(child) for child in children] == [0, 0, 0]
        assert opened("shared").count() == opened("shared").change_counter() == 3 * 20 + 1

    @pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")  # the runner itself may have threads
    @pytest.mark.parametrize("acknowledged", [1, 20, 77])
    def test_a_killed_process_loses_nothing_acknowledged(
        self,
        open_backend: Callable[[str], BaseBackend],
        opened: Callable[[str], BaseBackend],
        acknowledged: int,
    ) -> None:
        if not self.persistent:
            pytest.skip("such a store ends with its process")
        heard, said = os.pipe()

        def write() -> None:
            store = open_backend("crash")
            for number in itertools.count():
                os.write(said, f"{store.remember(f'note {number}', ['tag'])}\n".encode())
                store.recall(f"note {number}", k=1)

        child = _forked(write)
        os.close(said)
        with os.fdopen(heard) as lines:
            ids = [next(lines).strip() for _ in range(acknowledged)]
            os.kill(child, signal.SIGKILL)
            ids += [line.strip() for line in lines if line.endswith("\n")]
        assert _status(child) == -signal.SIGKILL
        store = opened("crash")
        there = {stored.id: stored.record.content for stored in store.iter_records()}
        assert [there.get(number) for number in ids] == [f"note {number}" for number in range(len(ids))]
        assert len(there) - len(ids) in {0, 1}
        assert len(store.recall("note", k=10**6)) == len(there) == store.count() == store.change_counter()
        assert store.check()

    def test_opening_again(self, opened: Callable[[str], BaseBackend]) -> None:
        store = opened("kept")
        kept = store.remember("kept for good", ["t"], session="s")
        before = store.change_counter(), store.all_records()
        store.close()
        again = opened("kept")
        if self.persistent:
            assert (again.change_counter(), again.all_records()) == before
            assert [hit["id"] for hit in again.recall("kept")] == [kept]
        else:
            assert again.count() == again.change_counter() == 0
        assert opened("another").count() == 0

    def test_closing(self, opened: Callable[[str], BaseBackend]) -> None:
        with opened("one") as store:
            store.remember("a")
            blob = store.export_blob()
        store.close()
        calls: list[Callable[[], object]] = [
            lambda: store.remember("b"), lambda: store.recall("a"), lambda: store.import_blob(blob),
            store.count, store.export_blob, store.clear,
        ]  # fmt: skip
        for call in calls:
            with pytest.raises(BackendError):
                call()


def _forked(act: Callable[[], None]) -> int:
    """The id of a process that does this and ends."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            act()
            status = 0
        finally:
            os._exit(status)
    return child


def _status(child: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
