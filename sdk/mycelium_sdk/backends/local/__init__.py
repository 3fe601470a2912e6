"""The default backend: one SQLite file per owner."""

from mycelium_sdk.backends.local.store import LocalVectorBackend

__all__ = ["LocalVectorBackend"]
