"""The default backend: one SQLite file per owner."""

from mycelium_sdk.backends.local.store import Embed, LocalVectorBackend

__all__ = ["Embed", "LocalVectorBackend"]
