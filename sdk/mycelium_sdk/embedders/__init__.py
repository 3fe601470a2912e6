"""Models that turn texts into vectors: the seam, and one that runs offline in plain numpy.

`MiniLM` needs the extra `dense` (numpy, tokenizers, safetensors) and a folder with the model's files.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mycelium_sdk._lazy import lazy_exports

if TYPE_CHECKING:
    from mycelium_sdk.embedders.base import Embed, Embedder, Identity
    from mycelium_sdk.embedders.minilm import MiniLM

__all__ = ["Embed", "Embedder", "Identity", "MiniLM"]

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "Embed": "mycelium_sdk.embedders.base",
        "Embedder": "mycelium_sdk.embedders.base",
        "Identity": "mycelium_sdk.embedders.base",
        "MiniLM": "mycelium_sdk.embedders.minilm",
    },
)
