"""What export and import must do in every backend: the part of the suite about the blob."""

# ruff: noqa: S101 - a test suite

from __future__ import annotations

import hashlib
import itertools
from typing import TYPE_CHECKING

import pytest

from mycelium_sdk import canonical
from mycelium_sdk.backends.base import Context
from mycelium_sdk.errors import (
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


class BlobConformance(RecallConformance):
    """Export and import, in every backend. Subclasses give the fixture `open_backend`."""

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

    def test_the_root_is_the_hash_of_the_blob_after_every_change(self, backend: BaseBackend) -> None:
        blob = canonical.encode(backend.owner, ODD)
        acts: list[Callable[[], object]] = [
            lambda: None, lambda: backend.remember("a", ["t"]), lambda: backend.remember("b"),
            lambda: backend.forget(tag="t"), lambda: backend.import_blob(blob), backend.clear,
        ]  # fmt: skip
        for act in acts:
            act()
            for _ in range(2):
                assert backend.root() == hashlib.sha256(backend.export_blob()).digest()

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

    def test_what_a_blob_does_not_say_comes_beside_it(self, backend: BaseBackend) -> None:
        own = backend.remember("b", session="mine")
        before = backend.all_records()
        blob = canonical.encode(backend.owner, map(Record, ["a", "a", "b", "c", "d"]))
        contexts = [
            Context(40, "late", 1.8e9), Context(41, None, None), Context(7, "other", 1.0),
            Context(9, "early", 1.7e9), Context(30, None, None),
        ]  # fmt: skip
        backend.load(blob, contexts=iter(contexts), progress=lambda *_: None)
        a, b, c, d = backend.all_records()
        assert b == before[0]
        assert b.id == own
        assert c.sequence < d.sequence < a.sequence
        assert [(one.session, one.time) for one in (a, c, d)] == [
            ("late", 1.8e9),
            ("early", 1.7e9),
            (None, None),
        ]
        assert [hit["id"] for hit in backend.recall("c", session="early")] == [c.id]

    @pytest.mark.parametrize("number", [0, 1, 3])
    def test_a_context_of_another_length_is_refused(self, backend: BaseBackend, number: int) -> None:
        backend.remember("mine")
        before = backend.change_counter(), backend.all_records()
        blob = canonical.encode(backend.owner, [Record("a"), Record("b")])
        with pytest.raises(InputError):
            backend.load(blob, contexts=[Context(1, None, None)] * number)
        assert (backend.change_counter(), backend.all_records()) == before

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

    def test_a_checked_export_shows_one_state_and_finds_it_whole(self, backend: BaseBackend) -> None:
        backend.remember_many([f"memory {number}" for number in range(300)])
        before, stats = backend.export_blob(), backend.stats()
        with backend.export_checked() as (chunks, view, integrity):
            first = next(chunks)
            backend.remember("written meanwhile")
            assert b"".join([first, *chunks]) == before
            assert view.stats == stats
            assert [stored.copies for stored in view.stored()] == [1] * 300
            assert integrity()

    def test_an_export_left_halfway_holds_nothing_back(self, backend: BaseBackend) -> None:
        backend.remember_many(f"memory {number}" for number in range(3000))
        for number in range(20):
            with backend.export() as (chunks, _):
                next(chunks)
            backend.remember(f"then {number}")
            assert backend.count() == 3001 + number
            assert len(backend.recall("then", k=100)) == number + 1
            next(backend.iter_records())
