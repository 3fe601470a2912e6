"""An agent's memory: remember, recall, anchor, verify, rehydrate.

Importing this package loads no Stellar library and no backend; each export is loaded when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mycelium_sdk._lazy import lazy_exports

if TYPE_CHECKING:
    from mycelium_sdk.backends.local import LocalVectorBackend
    from mycelium_sdk.backends.postgres import PostgresBackend
    from mycelium_sdk.backends.supermemory import SupermemoryBackend
    from mycelium_sdk.backends.tiered import TieredBackend
    from mycelium_sdk.blobs.https_put import HttpsPut
    from mycelium_sdk.chain.anchor_client import MemoryAnchorClient
    from mycelium_sdk.chain.indexer import IndexerClient
    from mycelium_sdk.fetching.policy import FetchPolicy
    from mycelium_sdk.memory.agent_memory import AgentMemory
    from mycelium_sdk.memory.async_memory import AsyncAgentMemory
    from mycelium_sdk.memory.policy import AnchoringPolicy
    from mycelium_sdk.memory.reading import ForeignMemory, read_memory
    from mycelium_sdk.memory.verification import Verification

__all__ = [
    "AgentMemory",
    "AnchoringPolicy",
    "AsyncAgentMemory",
    "FetchPolicy",
    "ForeignMemory",
    "HttpsPut",
    "IndexerClient",
    "LocalVectorBackend",
    "MemoryAnchorClient",
    "PostgresBackend",
    "SupermemoryBackend",
    "TieredBackend",
    "Verification",
    "read_memory",
]

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "AgentMemory": "mycelium_sdk.memory.agent_memory",
        "AnchoringPolicy": "mycelium_sdk.memory.policy",
        "AsyncAgentMemory": "mycelium_sdk.memory.async_memory",
        "FetchPolicy": "mycelium_sdk.fetching.policy",
        "ForeignMemory": "mycelium_sdk.memory.reading",
        "HttpsPut": "mycelium_sdk.blobs.https_put",
        "IndexerClient": "mycelium_sdk.chain.indexer",
        "LocalVectorBackend": "mycelium_sdk.backends.local",
        "MemoryAnchorClient": "mycelium_sdk.chain.anchor_client",
        "PostgresBackend": "mycelium_sdk.backends.postgres",
        "SupermemoryBackend": "mycelium_sdk.backends.supermemory",
        "TieredBackend": "mycelium_sdk.backends.tiered",
        "Verification": "mycelium_sdk.memory.verification",
        "read_memory": "mycelium_sdk.memory.reading",
    },
)
