"""Taking memories into a store: all or none, by either way, and out and in again without a loss."""

from __future__ import annotations

import io
import sqlite3
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mycelium_sdk import canonical
from mycelium_sdk.backends.local import LocalVectorBackend
from mycelium_sdk.errors import InputError, IntegrityKeyMissing, Tampered, UnanchoredWrites
from mycelium_sdk.interchange import Entry, Intake, json_line, read_entries
from mycelium_sdk.memory import importing
from mycelium_sdk.memory.exporting import in_order_of_arrival, require_unchanged
from mycelium_sdk.memory.importing import Import, import_entries
from mycelium_sdk.records import Record
from tests.interchange.sources import NOW, OWNER

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    monkeypatch.setenv("MYCELIUM_HOME", str(home))
    return tmp_path / "memory.db"


@pytest.fixture
def store(path: Path) -> Iterator[LocalVectorBackend]:
    with LocalVectorBackend(OWNER, path) as backend:
        yield backend


@pytest.fixture(params=["remembered", "merged"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The way of few, and the way of many."""
    if request.param == "merged":
        monkeypatch.setattr(importing, "_FEW", 0)
    return str(request.param)


def entries(*texts: str, **known: Any) -> list[Entry]:
    return [Entry(Record(text), time=NOW, **known) for text in texts]


def held(backend: LocalVectorBackend) -> list[tuple[str, tuple[str, ...], str | None, float | None, int]]:
    """Everything in a store but the ids, in the order of arrival."""
    with in_order_of_arrival(backend) as everything:
        return [
            (one.record.content, one.record.tags, one.session, one.time, one.copies) for one in everything
        ]


def exported(backend: LocalVectorBackend) -> bytes:
    with in_order_of_arrival(backend) as everything:
        return b"".join(json_line(one) for one in everything)


def imported(backend: LocalVectorBackend, kind: str, data: bytes, **options: Any) -> Import:
    source = read_entries(io.BytesIO(data), kind, Intake(OWNER, NOW))
    return import_entries(backend, source, **options)


@pytest.mark.usefixtures("way")
def test_new_memories_come_in_the_order_of_the_source(store: LocalVectorBackend) -> None:
    old = store.remember("b", ["t"], session="old")
    before = store.records([old])[0]
    source = [
        Entry(Record("z", ("x",)), "s", 1.5),
        Entry(Record("b", ("t",)), "new", 2.5),
        Entry(Record("a"), None, None),
        Entry(Record("z", ("x",)), "other", 3.5),
    ]
    assert import_entries(store, iter(source)) == Import(imported=2, present=1, repeated=1)
    assert held(store)[1:] == [("z", ("x",), "s", 1.5, 1), ("a", (), None, None, 1)]
    assert store.records([old]) == [before], "what was there keeps what is known of it"
    assert import_entries(store, iter(source)) == Import(imported=0, present=3, repeated=1)
    assert import_entries(store, []) == Import(0, 0, 0)
    assert store.check()


@pytest.mark.usefixtures("way")
def test_sequences_tell_the_order_if_all_have_one(store: LocalVectorBackend) -> None:
    import_entries(
        store, [Entry(Record(text), sequence=number) for text, number in (("c", 9), ("b", 2), ("a", 5))]
    )
    assert [text for text, *_ in held(store)] == ["b", "a", "c"]
    store.clear()
    import_entries(
        store, [Entry(Record("c"), sequence=9), Entry(Record("b")), Entry(Record("a"), sequence=5)]
    )
    assert [text for text, *_ in held(store)] == ["c", "b", "a"]


@pytest.mark.usefixtures("way")
def test_a_dry_run_counts_and_writes_nothing(store: LocalVectorBackend) -> None:
    store.remember("a")
    changes = store.change_counter()
    assert import_entries(store, entries("a", "b", "b"), dry_run=True) == Import(1, 1, 1)
    assert (store.count(), store.change_counter()) == (1, changes)


@pytest.mark.usefixtures("way")
def test_nothing_is_kept_if_the_source_fails_at_its_end(store: LocalVectorBackend) -> None:
    def source() -> Iterator[Entry]:
        yield from entries(*map(str, range(100)))
        raise InputError("the last one is bad")

    with pytest.raises(InputError, match="the last one is bad"):
        import_entries(store, source())
    assert store.count() == store.change_counter() == 0


@pytest.mark.usefixtures("way")
def test_what_was_changed_behind_the_stores_back_is_not_made_genuine(
    store: LocalVectorBackend, path: Path
) -> None:
    store.remember("genuine")
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE memories SET fragment = replace(fragment, 'genuine', 'altered')")
    connection.close()
    with pytest.raises(Tampered):
        import_entries(store, entries("genuine", "altered", "new"))
    assert not store.check()
    with pytest.raises(Tampered):
        require_unchanged(store)


def test_a_store_that_nothing_vouches_for_is_not_merged_with(
    store: LocalVectorBackend, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.remember("a")
    store.close()
    monkeypatch.setattr(importing, "_FEW", 0)
    other = path.parent / "other"
    other.mkdir(mode=0o700)
    with LocalVectorBackend(OWNER, path, integrity=other) as moved:
        with pytest.raises(IntegrityKeyMissing):
            import_entries(moved, entries("b"))
        assert not require_unchanged(moved), "it is exported, with a warning"


def test_a_write_in_between_is_not_lost(store: LocalVectorBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importing, "_FEW", 0)
    seen: list[int] = []
    check = LocalVectorBackend.check

    def write_meanwhile(self: LocalVectorBackend, progress: Any = None) -> Any:
        if len(seen) < writes:
            seen.append(len(seen))
            store.remember(f"written meanwhile {len(seen)}")
        return check(self, progress)

    monkeypatch.setattr(LocalVectorBackend, "check", write_meanwhile)
    writes = 2
    assert import_entries(store, entries("a")) == Import(1, 0, 0)
    assert sorted(text for text, *_ in held(store)) == ["a", "written meanwhile 1", "written meanwhile 2"]
    writes = 99
    with pytest.raises(UnanchoredWrites):
        import_entries(store, entries("b"))
    assert store.count() == 6


BLOB = canonical.encode(
    OWNER,
    [Record("a", ("t",)), Record("a", ("t", "t")), Record("b"), Record("b"), Record(""), Record("c", ("",))],
)


def test_a_blob_is_added_to_what_is_here_with_copies_and_oddities(
    store: LocalVectorBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.remember_many(["b", "mine"])
    assert imported(store, "blob", BLOB) == Import(imported=4, present=1, repeated=0)
    assert store.export_blob() == canonical.encode(
        OWNER, [*canonical.parse(BLOB, OWNER, max_bytes=9999), Record("mine")]
    )
    more = canonical.encode(OWNER, [Record("b")] * 3)
    assert imported(store, "blob", more) == Import(0, 1, 0)
    assert [copies for text, *_, copies in held(store) if text == "b"] == [3]

    def replace(*_: Any, **__: Any) -> None:
        pytest.fail("an import that adds nothing writes nothing, and leaves the search index as it is")

    monkeypatch.setattr(LocalVectorBackend, "replace", replace)
    assert imported(store, "blob", BLOB) == Import(0, 5, 0)


def test_of_repeated_entries_the_most_copies_count(store: LocalVectorBackend) -> None:
    source = [Entry(Record("a"), copies=copies, exact=True) for copies in (1, 3, 2)]
    assert import_entries(store, source) == Import(1, 0, 2)
    assert [copies for *_, copies in held(store)] == [3]


@pytest.mark.parametrize(
    "records",
    [[Record("a", ("t", "t"))], [Record("")], [Record("a", ("",))], [Record("a")] * 2, [Record("long" * 9)]],
    ids=["repeated tag", "no content", "empty tag", "two copies", "too long to be remembered"],
)
def test_what_cannot_be_remembered_is_carried_by_json_lines(
    store: LocalVectorBackend, records: list[Record]
) -> None:
    store.import_blob(canonical.encode(OWNER, records))
    root, lines = store.root(), exported(store)
    store.clear()
    store.max_record_bytes = 9
    imported(store, "jsonl", lines)
    assert store.root() == root


def test_a_blob_replaces_only_when_told(store: LocalVectorBackend) -> None:
    kept, _ = store.remember_many(["b", "mine"])
    assert imported(store, "blob", BLOB, replace=True, dry_run=True) == Import(4, 1, 0, dropped=1)
    assert store.count() == 2
    assert imported(store, "blob", BLOB, replace=True) == Import(4, 1, 0, dropped=1)
    assert store.export_blob() == BLOB
    assert store.records([kept])[0].record == Record("b")


def test_a_plain_memory_equal_to_an_odd_one_is_there_already(
    store: LocalVectorBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.import_blob(canonical.encode(OWNER, [Record("a", ("t", "t"))]))
    plain = [Entry(Record("a", ("t",)), time=NOW)]
    assert import_entries(store, plain) == Import(0, 1, 0)
    monkeypatch.setattr(importing, "_FEW", 0)
    assert import_entries(store, [*plain, *entries("new")]) == Import(1, 1, 0)
    assert store.count() == 2


def test_an_import_says_how_far_it_is(store: LocalVectorBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importing, "_FEW", 0)
    monkeypatch.setattr(importing, "_REPORTED_EVERY", 2)
    store.remember_many(["a", "b", "c"])
    told: list[tuple[str, int, int | None]] = []
    import_entries(store, entries("a", "d", "e", "f"), progress=lambda *what: told.append(what))
    assert [what for what in told if what[0] in {"reading", "comparing"}] == [
        ("reading", 2, None),
        ("reading", 4, None),
        ("comparing", 2, 3),
    ]


TEXTS = st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from('\0\n\r😀\u2028"\\'), max_size=8)
NAMES = TEXTS.filter(bool)
TIMES = st.none() | st.floats(0, 4e9)
RECORDS = st.builds(
    lambda content, tags: Record(content, tuple(sorted(tags))), TEXTS, st.lists(TEXTS, max_size=3)
)
STORED = st.tuples(RECORDS, st.integers(1, 3), st.none() | NAMES, TIMES)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(STORED, max_size=8, unique_by=lambda one: one[0]), st.booleans(), st.randoms())
def test_json_lines_carry_every_memory_whatever_it_holds(
    memories: list[tuple[Record, int, str | None, float | None]], plain: bool, random: Any
) -> None:
    if plain:  # what `remember` accepts
        memories = [
            (Record(record.content or "x", tuple(sorted(set(record.tags) - {""}))), 1, session, time)
            for record, _, session, time in memories
        ]
    with LocalVectorBackend(OWNER, ":memory:") as first, LocalVectorBackend(OWNER, ":memory:") as second:
        _fill(first, memories, random)
        lines = exported(first)
        imported(second, "jsonl", lines)
        assert second.root() == first.root()
        assert held(second) == held(first)
        assert exported(second).count(b"\n") == lines.count(b"\n")


def _fill(
    backend: LocalVectorBackend, memories: Iterable[tuple[Record, int, str | None, float | None]], random: Any
) -> None:
    """A store of these, which arrived in any order."""
    from mycelium_sdk.backends.base import Context

    once: dict[Record, Any] = {}
    for record, copies, session, time in memories:
        once.setdefault(record, (copies, session, time))
    order = list(range(len(once)))
    random.shuffle(order)
    ordered = sorted(zip(once.items(), order, strict=True), key=lambda one: canonical.order_key(one[0][0]))
    blob = canonical.encode(OWNER, [record for (record, (copies, *_)), _ in ordered for _ in range(copies)])
    contexts = [
        Context(place, session, time)
        for (_, (copies, session, time)), place in ordered
        for _ in range(copies)
    ]
    backend.load(blob, contexts=contexts)
