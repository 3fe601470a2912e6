"""What is known about chains, as values, and the seam for where a memory's last anchors are kept.

A chain is (network passphrase, chain id where the network serves one, contract id); every fact is per chain
and owner.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

__all__ = ["ChainKey", "Conflict", "Intent", "KnownAnchor", "LastAnchor", "LastAnchors", "Mark"]


@dataclass(frozen=True, slots=True)
class ChainKey:
    """Which chain and whose memory: network passphrase, contract id, owner, chain id ('' where none is
    served)."""

    network: str
    contract: str
    owner: str
    chain_id: str = ""

    @property
    def values(self) -> tuple[str, str, str, str]:
        """The columns in the tables' order."""
        return (self.network, self.contract, self.owner, self.chain_id)

    @property
    def chain(self) -> str:
        """The chain's name in one string, without the owner."""
        return f"{self.network}\n{self.contract}\n{self.chain_id}"


@dataclass(frozen=True, slots=True)
class LastAnchor:
    """The anchor that the local memory is based on: made here, or verified and loaded here.

    `change_counter` is the memory's when its root was `root`; `anchored_at` is in Unix seconds.

    `link`: what the memory's store was given when it was anchored or loaded, so that a copy from before then
    is told from it; None where the store keeps no links. `link_before`: what it may have instead, until it is
    known to have `link` (b"" for nothing); None from then on.
    """

    version: int
    root: bytes
    uri: str | None
    change_counter: int
    anchored_at: float
    link: bytes | None = None
    link_before: bytes | None = None


class LastAnchors(Protocol):
    """Where the last anchors of memories are kept: in the home folder's state, or, for a backend that several
    machines share, in that backend, so that a machine which keeps nothing has them all the same.

    Raises `BackendError` where they cannot be read or written.
    """

    def newest_chain(self, network: str, contract: str, owner: str) -> ChainKey | None:
        """The chain of that network and contract recorded last, for answers that must not ask the chain."""
        ...

    def last_anchor(self, key: ChainKey) -> LastAnchor | None:
        """The anchor the memory is based on, on this chain."""
        ...

    def record_last(self, key: ChainKey, anchor: LastAnchor) -> None:
        """Record it, durably when this returns.

        Harmless when repeated. A newer version that is recorded already stands, since another process or
        machine may have been quicker; an equal one is replaced.
        """
        ...

    def forget_last(self, network: str, contract: str, owner: str) -> None:
        """Forget the last anchors on every chain of that network and contract."""
        ...


@dataclass(frozen=True, slots=True)
class Mark:
    """The highest anchor ever seen on a chain: version, root, and the ledger it was first seen at.

    `entry`: what the anchor after it must carry as `previous`; None where the contract keeps none, or a
    release wrote the mark that did not keep it. `proved_from`: the lowest version from which on every anchor
    is proved to lead to this one; None for its own.
    """

    version: int
    root: bytes
    ledger: int
    entry: bytes | None = None
    proved_from: int | None = None


@dataclass(frozen=True, slots=True)
class Conflict:
    """Evidence of a chain that contradicted what was known: the verdict, and when (Unix seconds)."""

    verdict: str
    noticed_at: float


@dataclass(frozen=True, slots=True)
class KnownAnchor:
    """An anchor that was once verified: its version, root and URI, and where asked for its contract."""

    version: int
    root: bytes
    uri: str | None
    contract: str = ""


@dataclass(frozen=True, slots=True)
class Intent:
    """An anchoring in flight: what is being anchored, on top of which version, at which change counter.

    `transaction_hash` (hex), `envelope` (base64 of its XDR) and `valid_until` (Unix seconds of ledger time)
    are of the transaction, and None until it was signed. `link` is what the memory's store is given before
    that, and `link_before` what it had (b"" for nothing); None where the store keeps no links.
    """

    root: bytes
    uri: str
    expected_version: int
    change_counter: int
    transaction_hash: str | None = None
    envelope: str | None = None
    valid_until: int | None = None
    signed_ledger: int | None = None
    link: bytes | None = None
    link_before: bytes | None = None
