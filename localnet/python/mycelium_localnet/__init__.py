"""An embedded Soroban chain: the network's own host, a ledger around it, and Stellar RPC."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mycelium_localnet import errors
    from mycelium_localnet.inprocess import IN_PROCESS_URL, AsyncInProcessClient, InProcessClient
    from mycelium_localnet.ledger import Chain
    from mycelium_localnet.rpc.dispatcher import Dispatcher

__all__ = ["IN_PROCESS_URL", "AsyncInProcessClient", "Chain", "Dispatcher", "InProcessClient", "errors"]

_HOMES = {
    "IN_PROCESS_URL": "inprocess",
    "AsyncInProcessClient": "inprocess",
    "Chain": "ledger",
    "Dispatcher": "rpc.dispatcher",
    "InProcessClient": "inprocess",
}


def __getattr__(name: str) -> object:
    """Load what is asked for, when it is asked for: importing the package alone loads neither stellar_sdk nor
    the host."""
    if name == "errors":
        return import_module("mycelium_localnet.errors")
    if name in _HOMES:
        return getattr(import_module(f"mycelium_localnet.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
