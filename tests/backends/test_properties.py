"""Properties over arbitrary memories, and a model that a store must agree with through any history."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from mycelium_sdk import canonical
from mycelium_sdk.backends.local import LocalVectorBackend, search
from mycelium_sdk.backends.text import query_terms, terms
from mycelium_sdk.records import Record
from tests.backends.index_checks import check_index

if TYPE_CHECKING:
    import random

OWNER = "GBRPYHIL2CI3FNQ4BXLFMNDLFJUNPU2HY3ZMFSHONUCEOASW7QC7OX2H"

# Few characters, so that prefixes, ties and repeats are common: NUL, UTF-16's odd order, a combining mark.
_characters = st.sampled_from("ab\0 \u0301é\uff5e\U0001f602漢\"\\'")
_texts = st.text(_characters, min_size=1, max_size=4) | st.text(min_size=1, max_size=10)
_tags = st.lists(_texts, max_size=3)
_inputs = st.lists(st.tuples(_texts, _tags), max_size=12)
_records = st.lists(
    st.builds(
        lambda content, tags: Record(content, tuple(sorted(tags))),
        st.text(_characters, max_size=3),
        st.lists(st.text(_characters, max_size=2), max_size=3),
    ),
    max_size=12,
)


@settings(deadline=None)
@given(_inputs, st.randoms(use_true_random=False))
def test_the_root_does_not_depend_on_the_order_of_writes(
    inputs: list[tuple[str, list[str]]], shuffle: random.Random
) -> None:
    expected = canonical.encode(OWNER, {Record(text, tuple(sorted(set(tags)))) for text, tags in inputs})
    for _ in range(2):
        with LocalVectorBackend(OWNER, ":memory:") as store:
            for text, tags in inputs:
                shuffle.shuffle(tags)
                store.remember(text, tags)
            assert store.export_blob() == expected
        shuffle.shuffle(inputs)
    with LocalVectorBackend(OWNER, ":memory:") as store:
        store.remember_many(inputs)
        assert store.export_blob() == expected


@settings(deadline=None)
@given(_records, _records)
def test_whatever_is_imported_comes_back_byte_for_byte(first: list[Record], second: list[Record]) -> None:
    with LocalVectorBackend(OWNER, ":memory:") as store:
        for records in (first, second, first):
            blob = canonical.encode(OWNER, records)
            assert store.import_blob(blob) == store.count() == len(records)
            assert store.export_blob() == blob


class Memory(RuleBasedStateMachine):
    """A store against a dictionary from records to ids."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.kept = search.TAIL
        self.store = self._open()
        self.ids: dict[Record, str] = {}
        self.ever: set[str] = set()
        self.changes = 0

    def _open(self) -> LocalVectorBackend:
        return LocalVectorBackend(OWNER, self.folder / "memory.db")

    def teardown(self) -> None:
        search.TAIL = self.kept
        self.store.close()
        shutil.rmtree(self.folder)

    @rule(inputs=_inputs)
    def remember(self, inputs: list[tuple[str, list[str]]]) -> None:
        for (text, tags), number in zip(inputs, self.store.remember_many(inputs), strict=True):
            record = Record(text, tuple(sorted(set(tags))))
            if record not in self.ids:
                assert number not in self.ever
                self.ids[record] = number
                self.ever.add(number)
                self.changes += 1
            assert self.ids[record] == number

    @precondition(lambda self: self.ids)
    @rule(data=st.data(), secure=st.booleans())
    def forget_one(self, data: st.DataObject, *, secure: bool) -> None:
        record = data.draw(st.sampled_from(sorted(self.ids, key=canonical.order_key)))
        assert self.store.forget(self.ids.pop(record), secure=secure) == 1
        self.changes += 1

    @precondition(lambda self: any(record.tags for record in self.ids))
    @rule(data=st.data())
    def forget_tag(self, data: st.DataObject) -> None:
        tag = data.draw(st.sampled_from(sorted({tag for record in self.ids for tag in record.tags})))
        gone = [record for record in self.ids if tag in record.tags]
        assert self.store.forget(tag=tag) == len(gone)
        for record in gone:
            del self.ids[record]
        self.changes += len(gone)

    @rule(inputs=_inputs, keep=st.booleans())
    def import_blob(self, inputs: list[tuple[str, list[str]]], *, keep: bool) -> None:
        records = {Record(text, tuple(sorted(set(tags)))) for text, tags in inputs}
        if keep:
            records |= set(self.ids)
        self.store.import_blob(canonical.encode(OWNER, records))
        stored = {record.record: record.id for record in self.store.iter_records()}
        assert set(stored) == records
        for record, number in stored.items():
            if record in self.ids:
                assert number == self.ids[record]
            else:
                assert number not in self.ever
        self.changes += len(records.symmetric_difference(self.ids))
        self.ever.update(stored.values())
        self.ids = stored

    @rule()
    def clear(self) -> None:
        assert self.store.clear() == len(self.ids)
        self.changes += len(self.ids)
        self.ids = {}

    @rule()
    def open_again(self) -> None:
        self.store.close()
        self.store = self._open()

    @rule(tail=st.sampled_from([0, 3, 10**6]))
    def index_sooner_or_later(self, tail: int) -> None:
        search.TAIL = tail

    @rule(query=_texts)
    def recall(self, query: str) -> None:
        wanted = set(query_terms(query))
        expected = {
            number
            for record, number in self.ids.items()
            if wanted & {term for text in (record.content, *record.tags) for term in terms(text)}
        }
        hits = self.store.recall(query, k=1000)
        found = {hit["id"] for hit in hits}
        # Beside what holds a term: what was written just before or after such a memory, where it helps.
        assert found >= expected if query.strip() else not found
        assert expected or not found
        assert all(self.ids[Record(hit["content"], tuple(hit["tags"]))] == hit["id"] for hit in hits)
        check_index(self.store, coherence=False)

    @invariant()
    def agrees(self) -> None:
        assert self.store.count() == len(self.ids)
        assert self.store.change_counter() == self.changes
        assert self.store.export_blob() == canonical.encode(OWNER, self.ids)
        assert self.store.root() == canonical.root(canonical.encode(OWNER, self.ids))
        assert self.store.check()


TestHistory = Memory.TestCase
TestHistory.settings = settings(max_examples=25, stateful_step_count=30, deadline=None)
