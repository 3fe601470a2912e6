"""With an embedder: the ranking of the local store, vectors made once for all, and gone with the text."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import psycopg
import pytest
from psycopg import sql

from benchmarks.conversations import own_conversation
from mycelium_sdk.backends.local import LocalVectorBackend
from mycelium_sdk.embedders.base import Identity
from tests.external.postgres.conftest import OWNER

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mycelium_sdk.backends.postgres import PostgresBackend
    from tests.external.postgres.server import Server


class Hashed:
    """Vectors of 16 dimensions by the texts' characters; counts what it embeds."""

    def __init__(self, name: str = "hashed") -> None:
        self.identity = Identity(name, 16, "")
        self.embedded = 0

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        self.embedded += len(texts)
        return [self._vector(text) for text in texts]

    def _vector(self, text: str) -> list[float]:
        values = [0.0] * 16
        for word in text.lower().split():
            digest = hashlib.sha256(f"{self.identity.name} {word}".encode()).digest()
            values[digest[0] % 16] += digest[1] / 255 - 0.5
        return values


def vectors(server: Server, store: PostgresBackend) -> int:
    table = sql.Identifier(store._connections.target.schema, "vectors")
    with psycopg.connect(server.dsn) as connection:
        row = connection.execute(sql.SQL("SELECT count(*) FROM {}").format(table)).fetchone()
    assert row is not None
    return int(row[0])


def test_answers_are_those_of_the_local_store(opened: Callable[..., PostgresBackend], server: Server) -> None:
    own = own_conversation()
    store = opened(embed=Hashed())
    with LocalVectorBackend(OWNER, ":memory:", Hashed()) as local:
        for memory in own.memories:
            for one in (store, local):
                one.remember(memory.content, [memory.session], session=memory.session)
        for question in own.questions:
            hits = [store.recall(question.text, k=15), local.recall(question.text, k=15)]
            assert [hit["id"] for hit in hits[0]] == [hit["id"] for hit in hits[1]]
            assert [hit["score"] for hit in hits[0]] == pytest.approx([hit["score"] for hit in hits[1]])
        doomed = store.recall(own.questions[0].text, k=1)[0]["id"]
        assert store.forget(doomed) == local.forget(doomed) == 1
        assert doomed not in {hit["id"] for hit in store.recall(own.questions[0].text, k=10**6)}
        assert len(store.recall("anything at all", k=10**6)) == store.count() == local.count()
        assert vectors(server, store) == store.count()


def test_what_one_agent_embedded_no_other_embeds(
    opened: Callable[..., PostgresBackend], server: Server
) -> None:
    first, second = Hashed(), Hashed()
    one, other = opened(embed=first), opened(embed=second)
    one.remember_many([f"note {number}" for number in range(150)])
    one.prepare()
    other.recall("note")
    assert first.embedded == 150 + 1  # and the probe
    assert second.embedded == 1 + 1  # the probe and the query
    blob = one.export_blob()
    one.clear()
    assert vectors(server, one) == 0
    one.import_blob(blob)
    assert len(other.recall("note", k=1000)) == 150


def test_another_model_starts_anew(opened: Callable[..., PostgresBackend], server: Server) -> None:
    opened(embed=Hashed()).remember("a note")
    assert opened(embed=Hashed()).recall("note")
    other = Hashed("other")
    store = opened(embed=other)
    assert store.recall("note")
    assert other.embedded == 1 + 1 + 1
    assert vectors(server, store) == 1


def test_what_an_import_keeps_keeps_its_vector(opened: Callable[..., PostgresBackend]) -> None:
    embedder = Hashed()
    store = opened(embed=embedder)
    store.remember_many(["stays", "goes"])
    store.prepare()
    both = store.export_blob()
    store.forget("2")
    store.import_blob(both)
    before = embedder.embedded
    store.prepare()
    assert embedder.embedded == before + 1
