"""The seam of embedders: texts to vectors, with an identity. A function from a text to floats is one too."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

from mycelium_sdk.errors import InputError

Embed = Callable[[str], Sequence[float]]
"""A text to a vector, always of the same dimension. An attribute `identity` (a string naming model and
revision), where there is one, says whether stored vectors are still its own; else its module and name do."""


class Identity(NamedTuple):
    """Whose vectors they are. `dimension` None: as many as the vectors have."""

    name: str
    dimension: int | None
    revision: str


@runtime_checkable
class Embedder(Protocol):
    """What gives vectors. Those of equal identity must be comparable with each other, and no others."""

    @property
    def identity(self) -> Identity:
        """Name, dimension and revision of the model. Asked for before `embed`; need not load the model."""
        ...

    def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """One vector for each text, in their order. May be called from many threads; whatever it raises
        reaches the caller of `recall`."""
        ...


def as_embedder(embed: object) -> Embedder:
    """The embedder, or the one that a function is. Raises `InputError` for what is neither."""
    if isinstance(embed, Embedder):
        return embed
    if not callable(embed):
        raise InputError(
            "embed is neither a function from a text to a vector nor an embedder",
            hint="give a function, or an object with `identity` and `embed(texts)`",
        )
    return _Function(embed)


class _Function:
    def __init__(self, embed: Callable[[str], Any]) -> None:
        self._embed = embed

    @property
    def identity(self) -> Identity:
        name = getattr(self._embed, "identity", None)
        if name is None:
            named = self._embed if hasattr(self._embed, "__qualname__") else type(self._embed)
            name = f"{named.__module__}.{named.__qualname__}"
        return Identity(str(name), None, "")

    def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        return [self._embed(text) for text in texts]
