"""What every backend must do, as one pytest class.

    class TestMine(BackendConformance):
        @pytest.fixture
        def open_backend(self, tmp_path):
            return lambda name: MyBackend(OWNER, tmp_path / name)

`open_backend(name)` opens the store of that name, empty at first; the same name again is the same store,
unless `persistent` is False. All stores belong to one owner. The suite closes what it opens.
"""

# ruff: noqa: S101 - a test suite

from __future__ import annotations

import itertools
import threading
from typing import TYPE_CHECKING, Any

import pytest

from mycelium_sdk import canonical
from mycelium_sdk.errors import (
    BackendError,
    InputError,
    LimitExceeded,
    NonCanonical,
    UnanchoredWrites,
    VerificationError,
    WrongOwner,
)
from mycelium_sdk.records import Record
from mycelium_sdk.testing.recall_conformance import RecallConformance

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mycelium_sdk.backends.base import BaseBackend

_ANOTHER_OWNER = "GA7QYNF7SOWQ3GLR2BGMZEHXAVIRZA4KVWLTJJFC7MGXUA74P7UJVSGZ"

ODD = [
    Record("", ()),
    Record("", ("",)),
    Record("a", ()),
    Record("a", ("",)),
    Record("a", ("", "")),
    Record("a", ("b",)),
    Record("a", ("b",)),
    Record("a", ("b", "b")),
    Record("a\0", ()),
    Record("a\0b", ("c\0",)),
    Record("\uff5e", ()),
    Record("\U0001f602", ()),
    Record("z" * 5000, ("long",)),
]


class BackendConformance(RecallConformance):
    """The behaviour of every backend. Subclasses give the fixture `open_backend`."""

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

    @pytest.mark.parametrize(
        "item",
        ["", "\ud800", b"a", 7, None, ("a", "tag"), ("a", [""]), ("a", ["\udfff"]), ("a", [1]), ("a",),
         {"tags": []}, {"content": "a", "score": 1.0}, {"content": "a", "session": ""}],
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

    # -- the blob

    def test_the_blob_does_not_depend_on_the_order_of_writes(
        self, opened: Callable[[str], BaseBackend]
    ) -> None:
        texts = [
            ("a", ["x"]),
            ("a", ["x", "y"]),
            ("a\0", None),
            ("\uff5e", None),
            ("\U0001f602", ["\U0001f602"]),
        ]
        expected = None
        for number, order in enumerate(itertools.islice(itertools.permutations(texts), 0, None, 17)):
            store = opened(f"order {number}")
            for content, tags in order:
                store.remember(content, tags)
            records = [Record(content, tuple(sorted(tags or ()))) for content, tags in texts]
            expected = expected or canonical.encode(store.owner, records)
            assert store.export_blob() == expected

    def test_an_empty_store_has_a_blob(self, backend: BaseBackend) -> None:
        assert backend.export_blob() == canonical.encode(backend.owner, [])
        assert backend.all_records() == []
        assert backend.count() == backend.change_counter() == 0

    def test_odd_records_come_back_byte_for_byte(self, backend: BaseBackend) -> None:
        blob = canonical.encode(backend.owner, ODD)
        assert backend.import_blob(blob) == len(ODD) == backend.count()
        assert backend.export_blob() == blob
        copies = {stored.fragment: stored.copies for stored in backend.iter_records()}
        assert copies[canonical.fragment(Record("a", ("b",)))] == 2
        assert sum(copies.values()) == len(ODD)

    def test_remembering_what_a_blob_holds_oddly_gives_the_lowest_id(self, backend: BaseBackend) -> None:
        blob = canonical.encode(backend.owner, ODD)
        backend.import_blob(blob)
        ids = [stored.id for stored in backend.iter_records() if stored.record in ODD[5:8]]
        assert backend.remember("a", ["b"]) == ids[0]
        backend.import_blob(canonical.encode(backend.owner, [Record("a", ("b", "b"))]))
        assert backend.remember("a", ["b"]) == backend.all_records()[0].id
        assert backend.count() == 1

    def test_importing_replaces_everything_and_keeps_what_stays(self, backend: BaseBackend) -> None:
        stays = backend.remember("stays", ["t"], session="s")
        gone = backend.remember("gone")
        before = {stored.id: stored for stored in backend.iter_records()}
        counter = backend.change_counter()
        records = [Record("new 1"), Record("new 2"), Record("stays", ("t",)), Record("stays", ("t",))]
        loaded = backend.load(iter([canonical.encode(backend.owner, records)]))
        assert loaded.records == backend.count() == 4
        assert loaded.change_counter == backend.change_counter() > counter
        first, second, kept = backend.all_records()
        assert (kept.id, kept.copies) == (stays, 2)
        assert (kept.sequence, kept.session, kept.time) == (before[stays].sequence, "s", before[stays].time)
        assert kept.sequence < first.sequence < second.sequence
        assert gone not in {first.id, second.id}
        assert [hit["id"] for hit in backend.recall("new")] == [second.id, first.id]
        assert backend.recall("gone") == []

    def test_importing_the_same_again_is_no_write(self, backend: BaseBackend) -> None:
        backend.import_blob(canonical.encode(backend.owner, ODD))
        before = backend.change_counter(), backend.all_records()
        backend.import_blob(backend.export_blob())
        assert (backend.change_counter(), backend.all_records()) == before

    @pytest.mark.parametrize(
        ("spoil", "error"),
        [
            (lambda blob, _: blob + b"\n", NonCanonical),
            (lambda blob, _: blob[:-1], NonCanonical),
            (lambda blob, _: blob.replace(b"bb", b"\xc3\xa9"), NonCanonical),
            (lambda blob, owner: blob.replace(owner.encode(), _ANOTHER_OWNER.encode()), WrongOwner),
            (lambda _, __: b"", NonCanonical),
        ],
    )
    def test_a_bad_blob_changes_nothing(
        self, backend: BaseBackend, spoil: Callable[[bytes, str], bytes], error: type[VerificationError]
    ) -> None:
        backend.remember("mine")
        before = backend.change_counter(), backend.all_records()
        blob = canonical.encode(
            backend.owner, [Record("aa"), Record("bb"), *map(Record, map(str, range(5000)))]
        )
        with pytest.raises(error):
            backend.import_blob(spoil(blob, backend.owner))
        with pytest.raises(LimitExceeded):
            backend.import_blob(blob, max_bytes=len(blob) - 1)
        assert (backend.change_counter(), backend.all_records()) == before

    def test_a_source_that_breaks_off_changes_nothing(self, backend: BaseBackend) -> None:
        backend.remember("mine")
        before = backend.change_counter(), backend.all_records()
        blob = canonical.encode(backend.owner, [Record(str(number)) for number in range(5000)])

        def source() -> Iterator[bytes]:
            yield blob[: len(blob) // 2]
            raise OSError("the cable was pulled")

        with pytest.raises(OSError, match="cable"):
            backend.import_blob(source())
        assert (backend.change_counter(), backend.all_records()) == before

    def test_importing_over_a_write_that_the_caller_has_not_seen_is_refused(
        self, backend: BaseBackend
    ) -> None:
        seen = backend.change_counter()
        backend.remember("unseen")
        blob = canonical.encode(backend.owner, [])
        with pytest.raises(UnanchoredWrites):
            backend.load(blob, expected_changes=seen)
        assert backend.count() == 1
        assert backend.load(blob, expected_changes=backend.change_counter()).records == 0

    def test_an_export_shows_one_state(self, backend: BaseBackend) -> None:
        backend.remember_many([f"memory {number}" for number in range(3000)])
        before = backend.export_blob()
        counter = backend.change_counter()
        with backend.export() as exported:
            first = next(exported.chunks)
            backend.remember("written meanwhile")
            backend.forget(tag="nothing")
            backend.clear()
            assert (b"".join([first, *exported.chunks]), exported.change_counter) == (before, counter)
        assert backend.change_counter() > counter
        assert backend.export_blob() == canonical.encode(backend.owner, [])

    def test_an_export_left_halfway_holds_nothing_back(self, backend: BaseBackend) -> None:
        backend.remember_many(f"memory {number}" for number in range(3000))
        for number in range(20):
            with backend.export() as (chunks, _):
                next(chunks)
            backend.remember(f"then {number}")
            assert backend.count() == 3001 + number
            assert len(backend.recall("then", k=100)) == number + 1
            next(backend.iter_records())

    # -- forgetting

    @pytest.mark.parametrize("secure", [False, True])
    def test_forgetting_by_id_and_by_tag(self, backend: BaseBackend, *, secure: bool) -> None:
        first = backend.remember("first one", ["a", "b"])
        backend.remember_many([("second one", ["b"]), ("third one", ["c"])])
        assert len(backend.recall("one")) == 3
        counter = backend.change_counter()
        assert (
            backend.forget("no such id", secure=secure) == backend.forget(tag="no such", secure=secure) == 0
        )
        assert backend.change_counter() == counter
        assert backend.forget(first, secure=secure) == 1
        assert backend.forget(first, secure=secure) == 0
        assert backend.forget(tag="b", secure=secure) == 1
        assert backend.change_counter() > counter
        assert [hit["content"] for hit in backend.recall("first second third one")] == ["third one"]
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
        assert backend.remember("one") not in old
        assert len(backend.recall("one")) == 1

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
