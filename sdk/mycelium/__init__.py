"""Durable, portable, verifiable memory for AI agents: the short names of `mycelium_sdk`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mycelium_sdk._lazy import lazy_exports

if TYPE_CHECKING:
    from mycelium_sdk.context import AgentContext
    from mycelium_sdk.errors import MyceliumError
    from mycelium_sdk.memory.agent_memory import AgentMemory
    from mycelium_sdk.memory.async_memory import AsyncAgentMemory
    from mycelium_sdk.memory.policy import AnchoringPolicy
    from mycelium_sdk.verdicts import Verdict

__all__ = ["AgentContext", "AgentMemory", "AnchoringPolicy", "AsyncAgentMemory", "MyceliumError", "Verdict"]

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "AgentContext": "mycelium_sdk.context",
        "AgentMemory": "mycelium_sdk.memory.agent_memory",
        "AnchoringPolicy": "mycelium_sdk.memory.policy",
        "AsyncAgentMemory": "mycelium_sdk.memory.async_memory",
        "MyceliumError": "mycelium_sdk.errors",
        "Verdict": "mycelium_sdk.verdicts",
    },
)
