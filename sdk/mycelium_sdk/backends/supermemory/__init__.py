"""The Supermemory backend: one owner's memory in a namespace of a Supermemory service."""

from mycelium_sdk.backends.supermemory.store import SupermemoryBackend

__all__ = ["SupermemoryBackend"]
