"""What a ledger is closed by: its number and time, and the rules of the network."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import TYPE_CHECKING

from mycelium_localnet import _native, pack

if TYPE_CHECKING:
    from mycelium_localnet._native import LedgerInfo, NetworkSettings
    from mycelium_localnet.headers import Header


@dataclass(frozen=True)
class Network:
    """What stays the same from ledger to ledger.

    `network_id`: 32 bytes, the SHA-256 of the passphrase; `native_contract`: 32 bytes, the contract id of the
    native asset, which the network's own events name.
    """

    network_id: bytes
    settings: NetworkSettings
    native_contract: bytes


@dataclass(frozen=True)
class LedgerContext:
    """The ledger that is being closed. Amounts in stroops, `close_time` in Unix seconds."""

    network: Network
    sequence: int
    close_time: int
    base_fee: int
    base_reserve: int
    max_operations: int
    """Of the classic transactions in the ledger, together."""

    @classmethod
    def of(cls, network: Network, header: Header, sequence: int, close_time: int) -> LedgerContext:
        """The context of ledger `sequence`, with the fee, reserve and size of `header`."""
        return cls(
            network, sequence, close_time, header.base_fee, header.base_reserve, header.max_tx_set_size
        )

    @property
    def settings(self) -> NetworkSettings:
        return self.network.settings

    @cached_property
    def host_info(self) -> LedgerInfo:
        """The same for the host."""
        return _native.LedgerInfo(
            sequence=self.sequence,
            close_time=self.close_time,
            network_id=self.network.network_id,
            base_reserve=self.base_reserve,
            settings=self.settings,
        )

    def random_seed(self, index: int) -> bytes:
        """32 bytes for the host's random numbers, from (network, ledger, index of the transaction): runs
        repeat."""
        return sha256(self.network.network_id + pack.u32(self.sequence) + pack.u32(index)).digest()
