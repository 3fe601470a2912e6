"""Ranking with an embedder: vectors are derived, made late, and made anew when the embedder changes."""

from __future__ import annotations

import math
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from mycelium_sdk import canonical
from mycelium_sdk.backends.local import LocalVectorBackend
from mycelium_sdk.errors import BackendError, InputError
from mycelium_sdk.records import Record

if TYPE_CHECKING:
    from pathlib import Path

MEANINGS = {"car": 0, "automobile": 0, "vehicle": 0, "cat": 1, "feline": 1, "kitten": 1, "sea": 2, "ocean": 2}


class Embedder:
    """Knows synonyms; counts what it was asked."""

    def __init__(self, identity: str | None = None, *, dimensions: int = 4, sign: float = 1.0) -> None:
        if identity is not None:
            self.identity = identity
        self.dimensions = dimensions
        self.sign = sign
        self.texts: list[str] = []

    def __call__(self, text: str) -> list[float]:
        self.texts.append(text)
        vector = [0.0] * self.dimensions
        vector[3] = 0.1 * self.sign
        for word in text.lower().split():
            if word in MEANINGS:
                vector[MEANINGS[word]] += self.sign
        return vector


def _contents(backend: LocalVectorBackend, query: str, **options: Any) -> list[str]:
    return [hit["content"] for hit in backend.recall(query, **options)]


def _fill(backend: LocalVectorBackend) -> None:
    backend.remember_many(
        [("my automobile is red", ["t"]), "a feline sleeps", "the ocean is deep", "nothing here"]
    )


def test_meaning_is_found_where_words_differ(owner: str, path: Path) -> None:
    with LocalVectorBackend(owner, path, Embedder()) as backend:
        _fill(backend)
        hits = backend.recall("car", k=10)
        assert hits[0]["content"] == "my automobile is red"
        assert len(hits) == 4
        assert all(0 < hit["score"] <= 1 for hit in hits)
        assert _contents(backend, "kitten", k=1) == ["a feline sleeps"]
        assert _contents(backend, "sea", tags=["t"]) == ["my automobile is red"]
        assert backend.recall(" ") == []
        assert _contents(backend, "???", k=100) != []


def test_words_still_count(owner: str, path: Path) -> None:
    with LocalVectorBackend(owner, path, Embedder()) as backend:
        _fill(backend)
        backend.remember("nothing sleeps at sea")
        assert _contents(backend, "sleeps sea", k=1) == ["nothing sleeps at sea"]


def test_pages_fit_together(owner: str, path: Path) -> None:
    with LocalVectorBackend(owner, path, Embedder()) as backend:
        words = [*MEANINGS, "other"]
        backend.remember_many(f"{words[number % 9]} number {number % 13} {number}" for number in range(400))
        everything = backend.recall("car number 7", k=1000)
        pages = [
            hit for start in range(0, 400, 70) for hit in backend.recall("car number 7", k=70, offset=start)
        ]
        assert pages == everything
        assert len({hit["id"] for hit in everything}) == 400
        scores = [hit["score"] for hit in everything]
        assert scores == sorted(scores, reverse=True)


def test_remembering_never_asks_the_embedder(owner: str, path: Path) -> None:
    embed = Embedder()
    with LocalVectorBackend(owner, path, embed) as backend:
        _fill(backend)
        assert embed.texts == []
        backend.recall("car")
        asked = len(embed.texts)
        backend.recall("car")
        assert embed.texts[asked:] == ["car"]


def test_vectors_outlive_the_process(owner: str, path: Path) -> None:
    with LocalVectorBackend(owner, path, Embedder()) as backend:
        _fill(backend)
        backend.recall("car")
    embed = Embedder()
    with LocalVectorBackend(owner, path, embed) as backend:
        assert _contents(backend, "car", k=1) == ["my automobile is red"]
        assert "a feline sleeps" not in embed.texts
        backend.remember("one more car")
        backend.recall("car")
        assert embed.texts.count("one more car") == 1


@pytest.mark.parametrize(
    ("before", "after", "again"),
    [
        ({"identity": "m/1"}, {"identity": "m/1"}, False),
        ({}, {}, False),
        ({"identity": "m/1"}, {"identity": "m/2"}, True),
        ({}, {"identity": "m/1"}, True),
        ({}, {"dimensions": 5}, True),
        ({"identity": "m/1"}, {"identity": "m/1", "sign": -1.0}, True),
    ],
    ids=["same identity", "same class", "other identity", "named now", "other dimensions", "other probe"],
)
def test_another_embedder_embeds_anew(
    owner: str, path: Path, before: dict[str, Any], after: dict[str, Any], *, again: bool
) -> None:
    with LocalVectorBackend(owner, path, Embedder(**before)) as backend:
        _fill(backend)
        backend.recall("car")
        root = canonical.root(backend.export_blob())
    embed = Embedder(**after)
    with LocalVectorBackend(owner, path, embed) as backend:
        assert _contents(backend, "car", k=1) == ["my automobile is red"]
        assert canonical.root(backend.export_blob()) == root
    assert ("a feline sleeps" in embed.texts) is again


def test_importing_and_forgetting_remake_and_remove_vectors(owner: str, path: Path) -> None:
    embed = Embedder()
    with LocalVectorBackend(owner, path, embed) as backend:
        _fill(backend)
        backend.recall("car")
        blob = canonical.encode(owner, [Record("a feline sleeps"), Record("old vehicle"), Record("", ("t",))])
        embed.texts.clear()
        backend.import_blob(blob)
        assert _contents(backend, "car", k=1) == ["old vehicle"]
        assert {"a feline sleeps", "old vehicle"} < set(embed.texts)
        assert "" not in embed.texts
        backend.forget(backend.recall("car", k=1)[0]["id"])
        assert _contents(backend, "car") == ["a feline sleeps", ""]
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT count(*) FROM vectors").fetchone() == (2,)


def test_the_store_works_without_the_embedder_it_had(owner: str, path: Path) -> None:
    with LocalVectorBackend(owner, path, Embedder()) as backend:
        _fill(backend)
        backend.recall("car")
    with LocalVectorBackend(owner, path) as backend:
        assert _contents(backend, "car") == []
        assert _contents(backend, "ocean") == ["the ocean is deep"]
        backend.forget(tag="t")
    with LocalVectorBackend(owner, path, Embedder()) as backend:
        assert len(backend.recall("car", k=10)) == 3


@pytest.mark.parametrize("vector", [[], [math.nan, 1.0], [math.inf], [0.0, 0.0]])
def test_an_embedder_that_gives_no_vector(owner: str, path: Path, vector: list[float]) -> None:
    with LocalVectorBackend(owner, path, lambda _: vector) as backend:
        _fill(backend)
        with pytest.raises(BackendError, match="embedder") as caught:
            backend.recall("car")
        assert caught.value.hint
        assert backend.count() == 4


def test_an_embedder_that_changes_its_mind_about_dimensions(owner: str, path: Path) -> None:
    with LocalVectorBackend(owner, path, lambda text: [1.0] * (len(text) % 3 + 1)) as backend:
        _fill(backend)
        with pytest.raises(BackendError, match="dimensions"):
            backend.recall("car")


def test_an_embedders_own_error_passes_through_and_loses_nothing(owner: str, path: Path) -> None:
    def embed(text: str) -> list[float]:
        if "feline" in text:
            raise RuntimeError("out of memory")
        return [1.0, float(len(text))]

    with LocalVectorBackend(owner, path, embed) as backend:
        _fill(backend)
        with pytest.raises(RuntimeError, match="out of memory"):
            backend.recall("car")
        assert backend.count() == 4
        backend.forget(backend.all_records()[0].id)
        assert len(backend.recall("car", k=10)) == 3


def test_vectors_that_cannot_be_stored_serve_from_memory(owner: str, path: Path) -> None:
    embed = Embedder()
    with LocalVectorBackend(owner, path, embed) as backend:
        _fill(backend)
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            for _ in range(2):
                assert _contents(backend, "car", k=1) == ["my automobile is red"]
            assert embed.texts.count("a feline sleeps") == 1
            other.execute("ROLLBACK")
            backend.recall("car")
            assert other.execute("SELECT count(*) FROM vectors").fetchone() == (4,)
        assert embed.texts.count("a feline sleeps") == 1


def test_embed_is_a_function(owner: str, path: Path) -> None:
    with pytest.raises(InputError):
        LocalVectorBackend(owner, path, embed="model")  # type: ignore[arg-type]
    assert not path.exists()
