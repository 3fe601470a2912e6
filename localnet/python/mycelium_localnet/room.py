"""What fits into one ledger: the network's limits for all transactions of a ledger together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mycelium_localnet import fees, resources
from mycelium_localnet.envelopes import present

if TYPE_CHECKING:
    from mycelium_localnet.context import LedgerContext
    from mycelium_localnet.envelopes import Transaction


class Room:
    """The room that is left in the ledger of a context. Classic transactions share a number of operations;
    Soroban ones a number of transactions, and each of the resources that they declare."""

    def __init__(self, context: LedgerContext) -> None:
        settings = context.settings
        self._classic_limits: tuple[int, ...] = (context.max_operations,)
        self._soroban_limits: tuple[int, ...] = (
            settings.ledger_max_tx_count,
            settings.ledger_max_instructions,
            settings.ledger_max_txs_size_bytes,
            settings.ledger_max_disk_read_entries,
            settings.ledger_max_disk_read_bytes,
            settings.ledger_max_write_entries,
            settings.ledger_max_write_bytes,
        )
        self._used: dict[bool, tuple[int, ...]] = {}

    def take(self, transaction: Transaction) -> bool:
        """Take a valid transaction in if there is room; False when it must wait for another ledger.

        The first of its kind always has room, so that none waits forever.
        """
        kind = transaction.is_soroban
        needed, limits = self._needs(transaction), self._soroban_limits if kind else self._classic_limits
        used = self._used.get(kind)
        if used is not None:
            needed = tuple(map(sum, zip(used, needed, strict=True)))
            if any(total > limit for total, limit in zip(needed, limits, strict=True)):
                return False
        self._used[kind] = needed
        return True

    @staticmethod
    def _needs(transaction: Transaction) -> tuple[int, ...]:
        if not transaction.is_soroban:
            return (len(transaction.operations),)
        soroban = present(transaction.soroban)
        return (
            1,
            soroban.instructions,
            len(transaction.envelope),
            fees.disk_reads(soroban, restores=resources.restores(transaction)),
            soroban.disk_read_bytes,
            len(soroban.read_write),
            soroban.write_bytes,
        )
