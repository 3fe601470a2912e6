"""A BERT encoder in numpy: token ids to one vector of length 1 for each text.

The texts of a batch are laid end to end, so that no padding is computed; only attention is computed text by
text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float32]

# Abramowitz and Stegun, formula 7.1.26: the error function to 1.5e-7, as exact as float32.
_ERF_SCALE = np.float32(0.3275911)
_ERF = tuple(map(np.float32, (1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592)))


class Encoder:
    """`config` and `weights` are the model's, under the names of its publication. `tokens` gives the ids of
    each text, with the marks at both ends. `tokens_together`: about how many are computed at once."""

    def __init__(
        self,
        config: Mapping[str, Any],
        weights: Mapping[str, Floats],
        tokens: Callable[[Sequence[str]], list[list[int]]],
        *,
        tokens_together: int,
    ) -> None:
        self._heads = int(config["num_attention_heads"])
        self._epsilon = np.float32(config["layer_norm_eps"])
        self._tokens = tokens
        self._tokens_together = tokens_together
        self._weights = weights
        self._layers = [_Layer(weights, number) for number in range(int(config["num_hidden_layers"]))]

    def embed(self, texts: Sequence[str]) -> Floats:
        """Shape (number of texts, dimension)."""
        ids = self._tokens(texts)
        dimension = self._weights["embeddings.word_embeddings.weight"].shape[1]
        vectors = np.zeros((len(ids), dimension), np.float32)
        for chosen in self._batches(ids):
            vectors[chosen] = self._embed([ids[number] for number in chosen])
        return vectors

    def _batches(self, ids: Sequence[Sequence[int]]) -> Iterator[list[int]]:
        batch: list[int] = []
        size = 0
        for number, text in enumerate(ids):
            if batch and size + len(text) > self._tokens_together:
                yield batch
                batch, size = [], 0
            batch.append(number)
            size += len(text)
        if batch:
            yield batch

    def _embed(self, ids: Sequence[Sequence[int]]) -> Floats:
        lengths = [len(text) for text in ids]
        ends = np.cumsum(lengths)
        starts = ends - np.asarray(lengths)
        w = self._weights
        places = np.concatenate([np.arange(length) for length in lengths])
        states = (
            w["embeddings.word_embeddings.weight"][np.concatenate(ids)]
            + w["embeddings.position_embeddings.weight"][places]
            + w["embeddings.token_type_embeddings.weight"][0]
        )
        states = self._normal(states, w["embeddings.LayerNorm.weight"], w["embeddings.LayerNorm.bias"])
        for layer in self._layers:
            states = self._through(layer, states, list(zip(starts, ends, strict=True)))
        means = np.add.reduceat(states, starts, axis=0) / np.asarray(lengths, np.float32)[:, None]
        return np.asarray(means / np.linalg.norm(means, axis=1, keepdims=True), np.float32)

    def _through(self, layer: _Layer, states: Floats, spans: Sequence[tuple[int, int]]) -> Floats:
        attended = self._attend(states @ layer.into[0] + layer.into[1], spans)
        states = self._normal(attended @ layer.out[0] + layer.out[1] + states, *layer.out_norm)
        inner = states @ layer.up[0] + layer.up[1]
        inner *= _normal_distribution(inner)  # GELU
        return self._normal(inner @ layer.down[0] + layer.down[1] + states, *layer.down_norm)

    def _attend(self, mixed: Floats, spans: Sequence[tuple[int, int]]) -> Floats:
        """Each text's tokens look at each other. `mixed` has queries, keys and values side by side."""
        width = mixed.shape[1] // 3
        result = np.empty((mixed.shape[0], width), np.float32)
        scale = np.float32(1.0 / np.sqrt(width / self._heads))
        for start, end in spans:
            size = end - start
            query, key, value = mixed[start:end].reshape(size, 3, self._heads, -1).transpose(1, 2, 0, 3)
            scores = query @ key.transpose(0, 2, 1) * scale
            scores -= scores.max(axis=-1, keepdims=True)
            np.exp(scores, out=scores)
            scores /= scores.sum(axis=-1, keepdims=True)
            result[start:end] = (scores @ value).transpose(1, 0, 2).reshape(size, width)
        return result

    def _normal(self, states: NDArray[Any], weight: Floats, bias: Floats) -> Floats:
        centred = states - states.mean(axis=-1, keepdims=True)
        variance = (centred * centred).mean(axis=-1, keepdims=True)
        return np.asarray(centred / np.sqrt(variance + self._epsilon) * weight + bias, np.float32)


class _Layer:
    """The weights of one layer; matrices as (inputs, outputs)."""

    def __init__(self, weights: Mapping[str, Floats], number: int) -> None:
        name = f"encoder.layer.{number}."
        parts = [f"{name}attention.self.{part}." for part in ("query", "key", "value")]
        self.into = (
            np.concatenate([weights[f"{part}weight"] for part in parts]).T,
            np.concatenate([weights[f"{part}bias"] for part in parts]),
        )
        self.out = _linear(weights, f"{name}attention.output.dense.")
        self.out_norm = _norm(weights, f"{name}attention.output.LayerNorm.")
        self.up = _linear(weights, f"{name}intermediate.dense.")
        self.down = _linear(weights, f"{name}output.dense.")
        self.down_norm = _norm(weights, f"{name}output.LayerNorm.")


def _linear(weights: Mapping[str, Floats], name: str) -> tuple[Floats, Floats]:
    return weights[f"{name}weight"].T, weights[f"{name}bias"]


def _norm(weights: Mapping[str, Floats], name: str) -> tuple[Floats, Floats]:
    return weights[f"{name}weight"], weights[f"{name}bias"]


def _normal_distribution(values: Floats) -> Floats:
    """The share of the standard normal distribution below each value."""
    size = np.abs(values) * np.float32(np.sqrt(0.5))
    step = np.asarray(1 / (1 + _ERF_SCALE * size), np.float32)
    series = np.zeros_like(values)
    for factor in _ERF:
        series = np.multiply(series + factor, step)
    above = series * np.exp(-size * size) * np.float32(0.5)
    return np.asarray(np.where(values >= 0, 1 - above, above), np.float32)
