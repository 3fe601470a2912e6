"""An embedder as stores use it: vectors of length 1, checked, and whether stored ones are its own."""

from __future__ import annotations

import array
import math
import sys
from typing import TYPE_CHECKING

from mycelium_sdk.backends.local.similar import dot
from mycelium_sdk.canonical import record_from_fragment
from mycelium_sdk.embedders.base import as_embedder
from mycelium_sdk.errors import BackendError, NonCanonical

if TYPE_CHECKING:
    from collections.abc import Sequence

_PROBE = "the quick brown fox keeps a diary of 27 small mushrooms"
_SAME = 0.999


class Model:
    """Raises `BackendError` for an embedder that does not do what it says; what it raises passes through."""

    def __init__(self, embed: object) -> None:
        self._embedder = as_embedder(embed)
        self._probe: array.array[float] | None = None

    @property
    def probe(self) -> array.array[float]:
        """The vector of a text that is always the same."""
        if self._probe is None:
            (probe,) = self._vectors([_PROBE])
            if not any(probe):
                raise BackendError("the embedder gives a zero vector", hint="look at what `embed` returns")
            said = self._embedder.identity.dimension
            if said not in {None, len(probe)}:
                raise BackendError(
                    f"the embedder says that it gives {said} dimensions, and gives {len(probe)}",
                    hint="look at its `identity`",
                )
            self._probe = probe
        return self._probe

    @property
    def name(self) -> str:
        """Name, revision and dimension in one string."""
        name, _, revision = self._embedder.identity
        return "/".join(filter(None, (name, revision, str(len(self.probe)))))

    def made(self, stored: tuple[str, bytes] | None) -> bool:
        """Whether vectors are this embedder's that were stored with this name and vector of the probe."""
        probe = self.probe
        if stored is None or stored[0] != self.name or len(stored[1]) != len(probe) * probe.itemsize:
            return False
        # Models are not exact to the last bit on every machine.
        return dot(probe, _floats(stored[1])) >= _SAME

    def vector(self, text: str) -> array.array[float]:
        """The vector of a query."""
        (found,) = self._vectors([text])
        return found

    def vectors(self, rows: Sequence[tuple[int, str]]) -> dict[int, bytes]:
        """The vectors of (id, fragment) pairs, as they are stored; of blank texts, zeros."""
        texts = {number: _content(fragment) for number, fragment in rows}
        telling = {number: text for number, text in texts.items() if text.strip()}
        found = dict.fromkeys(texts, bytes(4 * len(self.probe)))
        made = self._vectors(list(telling.values())) if telling else []
        found.update(zip(telling, map(as_bytes, made), strict=True))
        return found

    def _vectors(self, texts: Sequence[str]) -> list[array.array[float]]:
        """Vectors of length 1 (or all zero)."""
        given = self._embedder.embed(texts)
        if len(given) != len(texts):
            raise BackendError(
                f"the embedder gives {len(given)} vectors for {len(texts)} texts",
                hint="look at what `embed` returns",
            )
        return [self._normal([float(value) for value in vector]) for vector in given]

    def _normal(self, values: list[float]) -> array.array[float]:
        length = math.sqrt(sum(value * value for value in values))
        if not values or not math.isfinite(length):
            raise BackendError("the embedder gives no finite vector", hint="look at what `embed` returns")
        if self._probe is not None and len(values) != len(self._probe):
            raise BackendError(
                "the embedder gives vectors of different dimensions", hint="look at what `embed` returns"
            )
        return array.array("f", [value / (length or 1.0) for value in values])


def _content(fragment: str) -> str:
    try:
        return record_from_fragment(fragment).content
    except (NonCanonical, TypeError, AttributeError):  # an edited row, which recall never serves
        return ""


def as_bytes(vector: array.array[float]) -> bytes:
    """Little-endian float32."""
    if sys.byteorder == "big":
        vector = vector[:]
        vector.byteswap()
    return vector.tobytes()


def _floats(vector: bytes) -> array.array[float]:
    floats = array.array("f")
    floats.frombytes(vector)
    if sys.byteorder == "big":
        floats.byteswap()
    return floats
