"""The contract's client bound to an owner, as the procedures of a memory need it."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mycelium_sdk.chain.anchor_client import MemoryAnchorClient
    from mycelium_sdk.chain.anchors import Anchor
    from mycelium_sdk.chain.base import (
        AnchorReceipt,
        BeforeSend,
        ChainIdentity,
        EntryState,
        Receipt,
        SignedTransaction,
    )
    from mycelium_sdk.chain.history import HistorySource, NamedSource
    from mycelium_sdk.chain.indexer import IndexerClient
    from mycelium_sdk.chain.keeping import AnchorKeeper
    from mycelium_sdk.context import AgentContext

__all__ = ["AnchorDesk"]


class AnchorDesk:
    """The anchoring contract as one owner uses it: opened at first need, the key unlocked when signing.

    Serves `AnchorSource` and `AnchorWriter` of `mycelium_sdk.memory`.
    """

    def __init__(self, ctx: AgentContext, address: str | None) -> None:
        self._ctx = ctx
        self._address = address
        self._lock = threading.Lock()
        self._client: MemoryAnchorClient | None = None

    @property
    def contract_id(self) -> str:
        """The contract's C-address. Does not ask the chain. Raises ConfigError where none is chosen."""
        return self._ctx.anchor_address(self._address)

    def identity(self) -> ChainIdentity:
        """The network and its latest ledger."""
        return self._opened().identity()

    def get_anchor(self, owner: str) -> Anchor | None:
        """The owner's anchor, None if there is none; an archived one is returned."""
        return self._opened().get_anchor(owner)

    def entry_state(self, owner: str) -> EntryState:
        """Whether the owner's entry is live, expiring, archived or absent."""
        return self._opened().entry_state(owner)

    def witnesses(self) -> tuple[MemoryAnchorClient, ...]:
        """The contract as the servers of the cross-check show it."""
        return self._ctx.witness_clients(self._address)

    def set_anchor_if(
        self, expected_version: int, root: bytes, uri: str, acl: bytes, *, before_send: BeforeSend
    ) -> AnchorReceipt:
        """Anchor for this owner iff the chain's version is `expected_version`."""
        keypair = self._ctx.keypair()
        return self._opened().set_anchor_if(
            keypair, expected_version, root, uri.encode("utf-8"), acl, before_send=before_send
        )

    def resume(self, signed: SignedTransaction) -> Receipt:
        """Bring a transaction to its end that was signed before."""
        return self._opened().chain.resume(signed)

    def sign(self, message: bytes) -> bytes:
        """The owner's Ed25519 signature of a message, 64 bytes."""
        return self._ctx.keypair().sign(message)

    def history_sources(self) -> tuple[HistorySource | NamedSource, ...]:
        """Who may know the owner's past anchors; what they say is proved before it is used.

        The indexer, if one is configured, and then the chain's events. An indexer that cannot be used is a
        note of the history; one that contradicts the chain is an error.
        """
        from mycelium_sdk.chain.history import event_history

        client = self._opened()
        events = event_history(client)
        indexer = self.indexer()
        return (events,) if indexer is None else (indexer.source(again=client.get_anchor), events)

    def indexer(self) -> IndexerClient | None:
        """The configured indexer about this contract, None without one. Asks nobody."""
        return self._ctx.indexer_client(self._address)

    def keeper(self) -> AnchorKeeper:
        """What keeps anchors of this contract alive."""
        from mycelium_sdk.chain.keeping import AnchorKeeper

        return AnchorKeeper(self._opened())

    def _opened(self) -> MemoryAnchorClient:
        with self._lock:
            if self._client is None:
                self._client = self._ctx.anchor_client(self._address)
            return self._client
