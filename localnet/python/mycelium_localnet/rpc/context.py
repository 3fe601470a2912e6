"""What every method gets: the chain, and how clients reach this door."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from mycelium_localnet.ledger import Chain

    from .params import Params


IN_PROCESS_FRIENDBOT: Final = "http://localnet.invalid/friendbot"
"""The friendbot of a door without a socket; the domain is reserved by RFC 2606 and never resolved."""


@dataclass(frozen=True, slots=True)
class Context:
    """`friendbot_url` is absolute: the JavaScript client looks for the friendbot nowhere else."""

    chain: Chain
    friendbot_url: str


Result: TypeAlias = Mapping[str, object]
"""The `result` member of an answer."""

Method: TypeAlias = "Callable[[Context, Params], Result]"
"""A method: opens one read view, so that its answer comes from one state; raises RpcFault to answer with an
error."""
