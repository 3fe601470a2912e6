"""Configuration turned into objects: which backend, and the contract's client bound to an owner.

The only module that knows which class serves which name, and it imports each one when it is needed.
"""

from __future__ import annotations

import inspect
import threading
from typing import TYPE_CHECKING, Any

from mycelium_sdk.errors import ConfigError, InputError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mycelium_sdk.backends.base import BaseBackend
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
    from mycelium_sdk.context import AgentContext

__all__ = ["AnchorDesk", "open_backend"]

_LOCAL_NAMES = ("auto", "local")


def open_backend(
    backend: str | BaseBackend, ctx: AgentContext, arguments: Mapping[str, Any] | None
) -> tuple[BaseBackend, bool]:
    """The backend that `backend` names or is, and whether whoever asked owns it and must close it.

    "auto" takes the configuration's choice.

    Raises:
        InputError: arguments for an instance, or arguments that the backend does not take.
        ConfigError: no backend has that name.
        VerificationError, BackendError: the store is another owner's or cannot be used.
    """
    if not isinstance(backend, str):
        if arguments:
            raise InputError(
                "backend_kwargs go with a backend's name, not with an instance", hint="drop one of them"
            )
        if backend.owner != ctx.address:
            raise InputError(
                "the backend holds another owner's memory", hint="open it for this wallet's address"
            )
        return backend, False
    name = ctx.configuration.memory.backend if backend == "auto" else backend
    if name not in _LOCAL_NAMES:
        raise ConfigError(
            f"the backend {name!r} is not part of this version", hint=f"use one of {', '.join(_LOCAL_NAMES)}"
        )
    from mycelium_sdk.backends.local import LocalVectorBackend

    defaults = {"path": ctx.home.memory_file(ctx.address), "integrity": ctx.home.integrity}
    given = {**defaults, **(arguments or {})}
    taken = inspect.signature(LocalVectorBackend).parameters.keys() - {"owner"}
    if unknown := given.keys() - taken:
        raise InputError(
            f"the local backend does not take {', '.join(sorted(unknown))}",
            hint=f"it takes {', '.join(sorted(taken))}",
        )
    return LocalVectorBackend(ctx.address, **given), True


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

    def _opened(self) -> MemoryAnchorClient:
        with self._lock:
            if self._client is None:
                self._client = self._ctx.anchor_client(self._address)
            return self._client
