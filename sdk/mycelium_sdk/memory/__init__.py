"""An agent's memory: remember, recall, anchor, verify, rehydrate.

Importing this package loads no Stellar library and no backend; each export is loaded when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mycelium_sdk._lazy import lazy_exports

if TYPE_CHECKING:
    from mycelium_sdk.backends.local import LocalVectorBackend
    from mycelium_sdk.chain.anchor_client import MemoryAnchorClient
    from mycelium_sdk.memory.agent_memory import AgentMemory
    from mycelium_sdk.memory.async_memory import AsyncAgentMemory
    from mycelium_sdk.memory.policy import AnchoringPolicy
    from mycelium_sdk.memory.verification import Verification

__all__ = [
    "AgentMemory",
    "AnchoringPolicy",
    "AsyncAgentMemory",
    "LocalVectorBackend",
    "MemoryAnchorClient",
    "Verification",
]

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "AgentMemory": "mycelium_sdk.memory.agent_memory",
        "AnchoringPolicy": "mycelium_sdk.memory.policy",
        "AsyncAgentMemory": "mycelium_sdk.memory.async_memory",
        "LocalVectorBackend": "mycelium_sdk.backends.local",
        "MemoryAnchorClient": "mycelium_sdk.chain.anchor_client",
        "Verification": "mycelium_sdk.memory.verification",
    },
)
