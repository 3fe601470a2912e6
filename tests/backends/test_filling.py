"""An empty store is filled at once with a blob that is in memory: the same store as if the blob had been
staged, and none if anything is wrong."""

from __future__ import annotations

import io
import random
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from mycelium_sdk import canonical
from mycelium_sdk.backends.base import Context
from mycelium_sdk.backends.local import LocalVectorBackend, filling, loading
from mycelium_sdk.backends.local.rows import PREFIX_BYTES
from mycelium_sdk.canonical import parsing
from mycelium_sdk.errors import InputError, NonCanonical, UnanchoredWrites
from mycelium_sdk.records import Record
from tests.backends.programs import killed_ever_later
from tests.backends.tampering import edit

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from mycelium_sdk.canonical import Source

ODD = [
    Record(""),
    *[Record("three of these")] * 3,
    *[Record("many of these", ("tag",))] * 400,
    Record("repeated", ("a", "a", "b")),
    Record("tagged", ("a", "b")),
    Record('a "quote", a \\ and a \u6f22\U0001f602\x00', ("\u00e9", "\U0001f602")),
    Record("long " * 500, ("tag",)),
    *[Record("x" * PREFIX_BYTES + end) for end in ("1", "2", "22", "")],
    *[Record(f"memory {number}", ("tag",) * (number % 2)) for number in range(300)],
]


class Staged(Exception):  # noqa: N818 - no error
    """Somebody stages a blob."""


@pytest.fixture
def unstaged(monkeypatch: pytest.MonkeyPatch) -> None:
    def stage(*_: object) -> bool:
        raise Staged

    monkeypatch.setattr(loading, "stage", stage)


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """The parser reads very little at once, so that copies are apart."""
    monkeypatch.setattr(parsing, "CHUNK_BYTES", 700)


def _contexts(count: int) -> list[Context]:
    chance = random.Random(7)  # noqa: S311
    return [
        Context(
            chance.randrange(count), chance.choice([None, "one", "two"]), chance.choice([None, 0.0, 1e9 + n])
        )
        for n in range(count)
    ]


def _state(path: Path) -> dict[str, list[Any]]:
    """All that a file says, apart from seals, with ids in their order instead of the ids."""
    with closing(sqlite3.connect(path)) as connection:
        ids = [number for (number,) in connection.execute("SELECT id FROM memories ORDER BY id")]
        place = {number: at for at, number in enumerate(ids)}
        queries = {
            "rows": "SELECT id, key, identity, copies, session, time, fragment FROM texts ORDER BY key",
            "short": "SELECT id, fragment IS NULL FROM memories ORDER BY key",
            "tags": "SELECT id, tag FROM tags ORDER BY tag, id",
            "sessions": "SELECT id, session FROM sessions ORDER BY session, id",
        }
        found: dict[str, list[Any]] = {
            name: [(place[number], *rest) for number, *rest in connection.execute(sql)]
            for name, sql in queries.items()
        }
        found["store"] = connection.execute("SELECT owner, changes, records, plain FROM store").fetchall()
        found["tables"] = sorted(connection.execute("SELECT type, name, sql FROM sqlite_master"))
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert connection.execute("SELECT max(sequence) FROM store").fetchone()[0] >= max(ids, default=0)
    return found


def _loaded(owner: str, path: Path, blob: Source, contexts: list[Context] | None) -> dict[str, list[Any]]:
    with LocalVectorBackend(owner, path) as store:
        store.load(blob, contexts=contexts)
        assert store.check()
        number = int(store.remember("one more"))
        assert number > max(int(one.id) for one in store.iter_records() if one.id != str(number))
        assert store.forget(id=str(number)) == 1
        assert [hit["content"] for hit in store.recall("memory 77", k=1)] == ["memory 77"]
    return _state(path)


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("known", [False, True])
def test_it_is_the_store_that_staging_makes(
    owner: str, path: Path, known: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    blob = canonical.encode(owner, ODD)
    contexts = _contexts(len(ODD)) if known else None
    monkeypatch.setattr(filling, "_TAGS_TOGETHER", 50)
    staged = _loaded(owner, path.with_name("staged.db"), io.BytesIO(blob), contexts)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loading, "stage", None)
        assert _loaded(owner, path, blob, contexts) == staged
    with LocalVectorBackend(owner, path) as store:
        assert store.export_blob() == blob


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("more", [[], ["x" * PREFIX_BYTES + "1", "x" * PREFIX_BYTES + "2"], ["memory 5"]])
def test_whether_the_fragments_are_the_blob_is_known(owner: str, path: Path, more: list[str]) -> None:
    texts = [f"memory {number}" for number in range(200)] + more
    blob = canonical.encode(owner, [Record(text) for text in texts])
    with LocalVectorBackend(owner, path) as store:
        store.import_blob(blob)
        assert store.export_blob() == blob
    assert _state(path)["store"] == [(owner, len(set(texts)), len(texts), int(not more))]


@pytest.mark.usefixtures("short", "unstaged")
def test_a_blob_that_is_bad_at_its_end_leaves_an_empty_store(owner: str, path: Path) -> None:
    blob = canonical.encode(owner, ODD)
    with LocalVectorBackend(owner, path) as store:
        before = _state(path)
        for bad in (blob[:-1], blob + b" ", blob.replace(b"memory 99", b"memory 00")):
            with pytest.raises(NonCanonical):
                store.import_blob(bad)
            assert _state(path) == before
        assert store.import_blob(blob) == len(ODD)


@pytest.mark.usefixtures("short", "unstaged")
@pytest.mark.parametrize("more", [-400, -1, 1, 400])
def test_contexts_of_another_number_load_nothing(owner: str, path: Path, more: int) -> None:
    with LocalVectorBackend(owner, path) as store:
        with pytest.raises(InputError):
            store.load(canonical.encode(owner, ODD), contexts=iter(_contexts(len(ODD) + more)))
        assert store.stats() == (type(store.stats())(0, 0))


def test_what_is_written_meanwhile_is_not_taken_for_nothing(owner: str, path: Path) -> None:
    blob = canonical.encode(owner, [Record("early"), Record("late")])

    def contexts() -> Iterator[Context]:
        with LocalVectorBackend(owner, path) as other:
            other.remember("early", session="mine")
            other.remember("never anchored")
        yield Context(2, "theirs", None)
        yield Context(1, "theirs", None)

    with LocalVectorBackend(owner, path) as store:
        with pytest.raises(UnanchoredWrites):
            store.load(blob, contexts=contexts(), expected_changes=0)
        assert store.count() == 2
        store.clear()
        with pytest.raises(UnanchoredWrites):
            store.load(blob, expected_changes=2)
        store.load(blob, contexts=contexts())
        assert [(one.record.content, one.session) for one in store.iter_records()] == [
            ("early", "mine"), ("late", "theirs"),
        ]  # fmt: skip
        assert store.check()


def test_a_store_whose_counters_were_edited_is_made_whole(owner: str, path: Path) -> None:
    LocalVectorBackend(owner, path).close()
    edit(path, "UPDATE store SET sequence = 7")
    with LocalVectorBackend(owner, path) as store:
        assert not store.check()
        store.import_blob(canonical.encode(owner, ODD))
        assert store.check()


def test_a_process_killed_while_it_fills(owner: str, path: Path) -> None:
    blob = canonical.encode(owner, [Record(f"new {number}", ("tag",)) for number in range(300)])
    path.with_name("new.json").write_bytes(blob)
    LocalVectorBackend(owner, path).close()
    script = """
        with LocalVectorBackend(owner, path) as backend:
            backend.import_blob(open(os.path.dirname(path) + "/new.json", "rb").read())
    """
    for lived in killed_ever_later(owner, path, script, more_than=4, factor=2):
        with LocalVectorBackend(owner, path) as backend:
            assert backend.check()
            if lived:
                assert backend.export_blob() == blob
                break
            if backend.count():  # the kill may come right after the commit
                assert backend.export_blob() == blob
                backend.clear()
        assert not _state(path)["rows"]
