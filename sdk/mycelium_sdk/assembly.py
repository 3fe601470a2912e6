"""The contract's client bound to an owner, as the procedures of a memory need it."""

from __future__ import annotations

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
        self._client: MemoryAnchorClient | None = None

    @property
    def contract_id(self) -> str:
        """The contract's C-address. Does not ask the chain. Raises ConfigError where none is chosen."""
        return self._ctx.anchor_address(self._address)

    def identity(self) -> ChainIdentity:
        """The network and its latest ledger: ledger 0 of no chain where `local` has none yet."""
        from mycelium_sdk.chain.base import ChainIdentity

        if not self._ctx.has_chain:
            self._ctx.let_go_of_chain()  # its file may have been removed while it was open
            return ChainIdentity(self._ctx.network.passphrase, None, 0, 0, 0)
        return self._ctx.chain.identity()

    def get_anchor(self, owner: str) -> Anchor | None:
        """The owner's anchor, None if there is none; an archived one is returned. Makes nothing."""
        client = self._found()
        return None if client is None else client.get_anchor(owner)

    def entry_state(self, owner: str) -> EntryState:
        """Whether the owner's entry is live, expiring, archived or absent. Makes nothing."""
        from mycelium_sdk.chain.base import EntryState, EntryStatus

        client = self._found()
        return EntryState(EntryStatus.ABSENT, 0) if client is None else client.entry_state(owner)

    def make_ready(self) -> bool:
        """Make the chain and the contract, where `local` has none yet; whether that was so."""
        missing = self._found() is None
        self._opened()
        return missing

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

        client = self._found()
        if client is None:
            return ()
        events = event_history(client)
        indexer = self.indexer()
        return (events,) if indexer is None else (indexer.source(again=client.get_anchor), events)

    def indexer(self) -> IndexerClient | None:
        """The configured indexer about this contract, None without one. Asks nobody."""
        return self._ctx.indexer_client(self._address)

    def keeper(self) -> AnchorKeeper:
        """What keeps anchors of this contract alive. Raises `NotAnchored` where there is none at all."""
        from mycelium_sdk.chain.keeping import AnchorKeeper
        from mycelium_sdk.errors import NotAnchored

        client = self._found()
        if client is None:
            raise NotAnchored("there is no anchor on the local chain, which is not made yet")
        return AnchorKeeper(client)

    def _found(self) -> MemoryAnchorClient | None:
        if not self._ctx.has_chain:
            self._client = None
        elif self._client is None or self._client.chain is not self._ctx.chain:
            self._client = self._ctx.found_anchor_client(self._address)
        return self._client

    def _opened(self) -> MemoryAnchorClient:
        # Under no lock: on `local` this may deploy the contract and tell the user's `notify`, which may ask
        # the memory something. That several threads do it at once does no harm.
        client = self._client
        if client is None or client.chain is not self._ctx.chain:
            client = self._client = self._ctx.anchor_client(self._address)
        return client
