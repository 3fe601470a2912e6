"""Comparing what several servers say about one anchor: a contradiction is an error, never a choice."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mycelium_sdk.errors import ChainUnavailable, Fork, WrongDomain

if TYPE_CHECKING:
    from mycelium_sdk.chain.anchors import Anchor

__all__ = ["MAX_LAG_SECONDS", "Statement", "require_agreement"]

MAX_LAG_SECONDS = 300
"""How far the latest ledgers of two servers may be apart, in seconds of ledger time."""


@dataclass(frozen=True, slots=True)
class Statement:
    """What one server says: the anchor (None: none), the ledger it was written in, and how far the server
    is."""

    server: str
    chain_id: str
    anchor: Anchor | None
    written: int | None
    ledger: int
    close_time: int

    @property
    def version(self) -> int:
        """The anchor's version, 0 for none."""
        return 0 if self.anchor is None else self.anchor.version


def require_agreement(first: Statement, other: Statement) -> None:
    """Raise unless two servers can both be telling the truth.

    What was last written at or before the lower of their ledgers must be the same on both. An anchor that was
    written later may be known to one of them only, and must then be of a higher version.

    Raises:
        Fork: they contradict each other.
        ChainUnavailable: one lags behind too far to be compared.
        WrongDomain: they serve different chains.
    """
    if first.chain_id != other.chain_id:
        raise WrongDomain(f"{other.server} serves another chain than {first.server}")
    if abs(first.close_time - other.close_time) > MAX_LAG_SECONDS:
        behind = first if first.close_time < other.close_time else other
        raise ChainUnavailable(
            f"{behind.server} lags more than {MAX_LAG_SECONDS} seconds behind the other server",
            hint="wait for it to catch up, or name another server for the cross-check",
        )
    if first.anchor == other.anchor:
        return
    lower = min(first.ledger, other.ledger)
    older, newer = (first, other) if first.version < other.version else (other, first)
    if older.version == newer.version or newer.written is None or newer.written <= lower:
        raise _contradiction(first, other)


def _contradiction(first: Statement, other: Statement) -> Fork:
    return Fork(
        f"{first.server} says version {first.version} and {other.server} says version {other.version},"
        " and both cannot be true; neither was believed",
        hint="find out which one is right, for example from a third server, and take the other out of"
        " `[onchain]` (rpc_url, cross_check)",
    )
