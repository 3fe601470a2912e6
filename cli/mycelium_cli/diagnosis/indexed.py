"""What `mycelium doctor` checks of what the indexer has of this wallet's memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mycelium_cli.diagnosis.chain import has_contract
from mycelium_cli.diagnosis.findings import Found, State
from mycelium_cli.indexed import compared, standing
from mycelium_sdk.errors import ChainError

if TYPE_CHECKING:
    from mycelium_sdk.context import AgentContext

__all__ = ["indexed"]

_LONG_LAG = 300.0
"""Seconds that an indexer may be behind before it is taken to stand still."""


def indexed(context: AgentContext) -> str:
    """Whether the indexer has what the chain has. An unusable one is a warning: there is the chain."""
    if not has_contract(context):
        return "none is anchored"
    contract, owner = context.anchor_address(), context.address
    anchor = context.anchor_client(contract).get_anchor(owner)
    try:
        found = compared(context, contract, owner, anchor)
    except ChainError as error:
        raise Found(State.WARNING, error.message, error.hint) from error
    if found is not None:
        said = f"the indexer has {standing(found, anchor)}"
        if anchor is not None and found.past.anchor.version < anchor.version and found.lag > _LONG_LAG:
            raise Found(
                State.WARNING, said, "see whether `mycelium indexer run` runs, and reaches its server"
            )
        return said
    if anchor is None:
        return "none is anchored"
    raise Found(
        State.WARNING,
        f"the indexer has none of this account, and the chain has version {anchor.version}",
        "it began later, or is behind: see whether `mycelium indexer run` follows this contract",
    )
