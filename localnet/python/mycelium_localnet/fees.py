"""What a transaction pays, in stroops: inclusion fee, resource fee, and what is given back.

The fee is taken before anything is applied. The non-refundable part of the resource fee follows from what the
transaction declares; rent and events come out of the rest, and what is left of it is given back after all
transactions of the ledger (everything, when the transaction failed).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mycelium_localnet import _native, keys, pack, results

if TYPE_CHECKING:
    from mycelium_localnet._native import NetworkSettings
    from mycelium_localnet.envelopes import Soroban, Transaction

MAX_RESOURCE_FEE = 1 << 50


def quoted_fee(transaction: Transaction, base_fee: int) -> int:
    """What a refused transaction's result shows as its fee; nothing is charged."""
    resource_fee = transaction.soroban.resource_fee if transaction.is_soroban and transaction.soroban else 0
    return resource_fee + base_fee * max(1, len(transaction.operations))


def charged_fee(transaction: Transaction, base_fee: int) -> int:
    """What is taken before applying: the resource fee, and for inclusion the bid or the base fee, if that is
    less."""
    inclusion = base_fee * max(1, len(transaction.operations))
    return transaction.fee - transaction.inclusion_bid + min(transaction.inclusion_bid, inclusion)


def disk_reads(soroban: Soroban, *, restores: bool) -> int:
    """Entries that are read from disk: classic ones and archived ones; for RestoreFootprint, all of them."""
    if restores:
        return len(soroban.read_write)
    return sum(not keys.has_ttl(key) for key in soroban.footprint) + len(soroban.archived)


def resource_fee(
    soroban: Soroban, settings: NetworkSettings, *, size: int, restores: bool, events_size: int = 0
) -> tuple[int, int]:
    """`(non-refundable, refundable)` for the declared resources of an envelope of `size` bytes."""
    return _native.transaction_resource_fee(
        settings,
        instructions=soroban.instructions,
        disk_read_entries=disk_reads(soroban, restores=restores),
        write_entries=len(soroban.read_write),
        disk_read_bytes=soroban.disk_read_bytes,
        write_bytes=soroban.write_bytes,
        contract_events_size=events_size,
        transaction_size=size,
    )


@dataclass
class RefundableFee:
    """The refundable part of one transaction's resource fee."""

    available: int
    non_refundable: int = 0
    rent: int = 0
    consumed: int = 0

    def consume(
        self, settings: NetworkSettings, soroban: Soroban, *, events_size: int, rent: int
    ) -> bytes | None:
        """Pay for `rent` and for `events_size` bytes of events and return value.

        Returns None, or the DiagnosticEvent that says why it was not enough.
        """
        self.rent = self.consumed = rent
        if rent > self.available:
            return _insufficient("ledger storage rent: {} > {}", rent, self.available)
        _, events = resource_fee(soroban, settings, size=0, restores=False, events_size=events_size)
        self.consumed = rent + events
        if self.consumed > self.available:
            return _insufficient(
                "events fee after paying for ledger storage rent: {} > {}", events, self.available
            )
        return None

    def reset(self) -> None:
        """The transaction failed: nothing was used."""
        self.rent = self.consumed = 0

    @property
    def refund(self) -> int:
        return self.available - self.consumed


def _insufficient(what: str, wanted: int, available: int) -> bytes:
    return results.error_event(
        results.BUDGET,
        results.EXCEEDED_LIMIT,
        f"refundable resource fee was not sufficient to cover the {what}",
        [pack.sc_u64(wanted), pack.sc_u64(available)],
    )
