"""The same memories have the same root, and the same answers, here and in the local store."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest

from benchmarks.baseline import Corpus
from benchmarks.conversations import own_conversation
from mycelium_sdk import canonical
from mycelium_sdk.backends.local import LocalVectorBackend
from mycelium_sdk.backends.postgres import view
from mycelium_sdk.records import Record
from tests.external.postgres.conftest import OWNER

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mycelium_sdk.backends.base import BaseBackend
    from mycelium_sdk.backends.postgres import PostgresBackend
    from tests.external.postgres.server import Server

NASTY: list[tuple[str, list[str]]] = [
    ("commas", ["a,b", "a", "b", ",", ", "]),
    ("quotes", ['"', "'", "''", "\\", "\\'", "{", "}", '{"a","b"}', "NULL", "$1", "%s", "%(x)s"]),
    ("unicode", ["\uff5e", "\U0001f602", "é", "e\u0301", "\u202e", "\ufeff", "ß"]),
    ("nothing\0", ["\0", "a\0", "\0a", "a\0b"]),
    ("\0", []),
    ("https://example.org/a?b=c&d=%00#e", ["https://example.org"]),
    ("https://example.org/a?b=c&d=%00#e", []),
    ("same", []),
    ("same", ["same"]),
    ("same", ["same", "other"]),
    ("line\nbreak\r\n\ttab \\x00 \\u0000", ["\n"]),
    ("'; DROP TABLE memories; --", ["'); DELETE FROM owners; --"]),
    ("x" * (1 << 20), []),
    ("\U0001f602" * (1 << 18), []),
    ("é" * 2000, ["tag" * 3000]),
    ("begins alike " * 20 + "b", []),
    ("begins alike " * 20 + "a", []),
]


@pytest.fixture
def local() -> Iterator[LocalVectorBackend]:
    with LocalVectorBackend(OWNER, ":memory:", max_record_bytes=1 << 21) as store:
        yield store


def same(one: BaseBackend, other: BaseBackend) -> bool:
    return one.export_blob() == other.export_blob()


def test_ten_thousand_memories_in_any_order_have_one_root(
    opened: Callable[..., PostgresBackend], server: Server, schema: str, local: LocalVectorBackend
) -> None:
    texts = Corpus(7).sentences(10_000)
    items = [(text, sorted(set(text.split()[: number % 4]))) for number, text in enumerate(texts)]
    local.remember_many(items)
    expected = canonical.root(canonical.encode(OWNER, [Record(text, tuple(tags)) for text, tags in items]))
    assert local.root() == expected
    for number in range(3):
        random.Random(number).shuffle(items)  # noqa: S311 - no secret
        store = opened(schema=f"{schema}_{number}")
        for start in range(0, len(items), 2500):
            store.remember_many(items[start : start + 2500])
        assert store.count() == 10_000
        assert store.root() == expected
        assert store.root() == canonical.root(store.iter_blob())  # also once it is kept in the database
    again = opened(schema=f"{schema}_0")
    assert again.known_root() == expected
    again.remember("one more")
    assert again.known_root() is None
    assert again.root() != expected


def test_nasty_records(opened: Callable[..., PostgresBackend], local: LocalVectorBackend) -> None:
    store = opened(max_record_bytes=1 << 21)
    for content, tags in NASTY:
        local.remember(content, tags)
        wanted = store.remember(content, tags, session="s'\0\"")
        assert store.remember(content, [*reversed(tags), *tags]) == wanted
        for tag in tags:
            assert wanted in {hit["id"] for hit in store.recall(content[:100] + " " + tag, k=50, tags=[tag])}
    assert store.count() == len(NASTY)
    assert store.root() == local.root()
    assert {one.session for one in store.iter_records()} == {"s'\0\""}
    assert len(store.recall("same", session="s'\0\"")) == 3
    for stored in store.all_records():
        assert store.records([stored.id]) == [stored]
    assert store.forget(tag="a\0") == 1
    assert store.forget(tag="{") == 1
    assert local.forget(tag="a\0") + local.forget(tag="{") == 2
    assert same(store, local)
    blob = store.export_blob()
    store.clear()
    store.import_blob(blob)
    assert store.export_blob() == blob


def test_memories_that_begin_alike_come_in_order_however_many_there_are(
    store: PostgresBackend, local: LocalVectorBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(view, "_SORTED_IN_MEMORY", 300)
    numbers = list(range(1700))
    random.Random(3).shuffle(numbers)  # noqa: S311 - no secret
    texts = ["a", "z", *(f"{'begins alike ' * 8}{number}" for number in numbers)]
    texts += [f"{'begins otherwise ' * 8}{number}" for number in numbers[:20]]
    local.remember_many(texts)
    store.remember_many(texts)
    assert same(store, local)
    assert [one.record for one in store.iter_records()] == [one.record for one in local.iter_records()]


def ask(store: BaseBackend, questions: list[str], **arguments: Any) -> list[list[tuple[str, float]]]:
    return [
        [(hit["content"], hit["score"]) for hit in store.recall(question, k=20, **arguments)]
        for question in questions
    ]


def test_answers_are_those_of_the_local_store(store: PostgresBackend, local: LocalVectorBackend) -> None:
    own = own_conversation()
    questions = [question.text for question in own.questions]
    for memory in own.memories:
        for one in (store, local):
            one.remember(memory.content, [memory.session], session=memory.session)
    assert ask(store, questions) == ask(local, questions)
    session = own.memories[0].session
    assert ask(store, questions, session=session) == ask(local, questions, session=session)
    assert ask(store, questions, tags=[session]) == ask(local, questions, tags=[session])
    assert search_index(store)
    for stored in store.all_records()[::5]:  # also out of the windows of others
        assert store.forget(stored.id) == local.forget(stored.id) == 1
    assert ask(store, questions) == ask(local, questions)


def search_index(store: PostgresBackend) -> int:
    """How many segments there are."""
    rows = store._connections.read(lambda connection: connection.execute("SELECT 1 FROM segments").fetchall())
    return len(rows)


def test_answers_stay_those_of_the_local_store_as_it_grows_and_shrinks(
    store: PostgresBackend, local: LocalVectorBackend
) -> None:
    corpus = Corpus(5)
    texts = corpus.sentences(3200)
    questions = corpus.questions(texts, 12)
    chance = random.Random(9)  # noqa: S311 - no secret
    for start in range(0, len(texts), 160):
        items = [
            {"content": text, "tags": [f"t{chance.randrange(40)}"]} for text in texts[start : start + 160]
        ]
        ids = [one.remember_many(items, session=f"s{start // 640}") for one in (store, local)]
        assert ids[0] == ids[1]
        assert ask(store, questions[:2]) == ask(local, questions[:2])
        doomed = chance.choice(ids[0])
        assert store.forget(doomed) == local.forget(doomed) == 1
    assert store.forget(tag="t7") == local.forget(tag="t7") > 0
    assert ask(store, questions) == ask(local, questions)
    assert ask(store, questions, tags=["t3"]) == ask(local, questions, tags=["t3"])
    blob = canonical.encode(OWNER, map(Record, texts[100:900]))
    assert store.import_blob(blob) == local.import_blob(blob)
    assert ask(store, questions) == ask(local, questions)
    assert same(store, local)
