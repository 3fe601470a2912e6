"""Durable, portable, verifiable memory for AI agents.

`mycelium_sdk.memory` holds what agents use; `mycelium` is its short facade.
"""

from __future__ import annotations

__all__ = ["__version__"]

__version__: str


def __getattr__(name: str) -> str:
    if name != "__version__":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    # Reading the metadata takes longer than everything else that a short command imports.
    from importlib.metadata import version

    return version("mycelium-memory")
