"""What the configured indexer says of an owner, compared with the chain, for commands to show."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mycelium_sdk.chain.anchors import Anchor
    from mycelium_sdk.chain.indexer import IndexedLatest
    from mycelium_sdk.context import AgentContext

__all__ = ["Indexed", "compared", "indexed", "standing"]


@dataclass(frozen=True, slots=True)
class Indexed:
    """What a command shows: its JSON (None where there is nothing to tell), lines, and warnings."""

    document: dict[str, Any] | None = None
    lines: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def indexed(context: AgentContext, contract: str, owner: str, anchor: Anchor | None) -> Indexed:
    """What the indexer says of an owner whose anchor on the chain is `anchor`. Nothing where none is
    configured; one that cannot be used, or contradicts the chain, is a warning."""
    from mycelium_sdk.errors import ChainError, VerificationError

    if context.configuration.indexer.url is None:
        return Indexed()
    try:
        found = compared(context, contract, owner, anchor)
    except (ChainError, VerificationError) as error:
        hint = "" if error.hint is None else f"; {error.hint}"
        return Indexed(warnings=(f"{error.message}{hint}",))
    if found is None:
        return Indexed(lines=("indexer   has no anchor of this owner",))
    return Indexed(
        {
            "version": found.past.anchor.version,
            "as_of_ledger": found.as_of_ledger,
            "lag": found.lag,
        },
        (f"indexer   {standing(found, anchor)}",),
    )


def compared(context: AgentContext, contract: str, owner: str, anchor: Anchor | None) -> IndexedLatest | None:
    """The owner's newest anchor as the indexer has it, None if it has none; see `IndexerClient.compare`.

    Raises VerificationError if the indexer contradicts the chain, ChainError if it cannot be used.
    """
    from mycelium_sdk.errors import ChainError, Rollback

    indexer = context.indexer_client(contract)
    if indexer is None:
        return None
    client = context.found_anchor_client(contract)
    if client is None:
        raise ChainError("the indexer was not asked: there is no chain here to compare its answer with")
    if anchor is not None:
        ledger = client.entry_state(owner).last_modified
        return indexer.compare(anchor, ledger=ledger, again=client.get_anchor)
    found = indexer.latest(owner)
    if found is None:
        return None
    now = client.get_anchor(owner)  # it may have been made meanwhile
    if now is not None:
        return indexer.compare(now, again=client.get_anchor)
    raise Rollback(
        f"{indexer.name} has version {found.past.anchor.version} of this owner, and the chain has none",
        hint="ask another RPC server: this one is behind, or the indexer invents anchors",
    )


def standing(found: IndexedLatest, anchor: Anchor | None) -> str:
    """For a person: which version, as of when, and whether that is older than the anchor on the chain."""
    version = found.past.anchor.version
    behind = "" if anchor is None or version >= anchor.version else ", behind the chain"
    return f"version {version} as of ledger {found.as_of_ledger}, lag {found.lag:.0f} s{behind}"
