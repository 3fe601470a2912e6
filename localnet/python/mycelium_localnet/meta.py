"""What is told of an applied transaction: TransactionMeta, its part of the ledger's close meta, and event
rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mycelium_localnet import pack
from mycelium_localnet.events import AFTER_ALL, BEFORE_ALL, fee_event, take_apart
from mycelium_localnet.schema import pack_list

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mycelium_localnet.apply.transaction import Applied

AFTER_ALL_INDEX = 0xFFFFF
"""The transaction index of refund events in event ids: behind every transaction of the ledger."""

_V4 = pack.u32(4)
_STAGE_BYTES = 4


class Report:
    """One applied transaction as XDR, each part put together once."""

    def __init__(self, applied: Applied, native_contract: bytes) -> None:
        self.applied = applied
        source = applied.transaction.source
        self.fee_event = fee_event(native_contract, source, applied.fee, BEFORE_ALL) if applied.fee else None
        self.refund_event = (
            fee_event(native_contract, source, -applied.refund, AFTER_ALL) if applied.refund else None
        )
        self.result = applied.outcome.result(applied.fee - applied.refund)
        self.meta = self._meta()

    @property
    def transaction_events(self) -> list[bytes]:
        """TransactionEvent each."""
        return [event for event in (self.fee_event, self.refund_event) if event is not None]

    @property
    def result_pair(self) -> bytes:
        """TransactionResultPair."""
        return self.applied.transaction.hash + self.result

    @property
    def close_part(self) -> bytes:
        """TransactionResultMetaV1."""
        return b"".join(
            (
                pack.ZERO,
                self.result_pair,
                pack.array(self.applied.fee_changes),
                self.meta,
                pack.array(self.applied.refund_changes),
            )
        )

    def transaction_row(self, ledger: int) -> tuple[Any, ...]:
        """The row of the transactions table."""
        applied = self.applied
        transaction = applied.transaction
        return (
            ledger,
            applied.order,
            transaction.hash,
            transaction.source_address,
            transaction.envelope,
            self.result,
            self.meta,
            applied.outcome.successful,
            False,
            pack_list(self.transaction_events),
            pack_list(pack_list(effects.events) for effects in applied.effects),
            pack_list(applied.outcome.diagnostics),
        )

    def _meta(self) -> bytes:
        """TransactionMeta, V4."""
        applied = self.applied
        operations = [
            pack.ZERO + pack.array(effects.changes) + pack.array(effects.events)
            for effects in applied.effects
        ]
        return b"".join(
            (
                _V4,
                pack.ZERO,
                pack.array(applied.sequence_changes),
                pack.array(operations),
                pack.ZERO,
                self._soroban_meta(),
                pack.array(self.transaction_events),
                pack.array(applied.outcome.diagnostics),
            )
        )

    def _soroban_meta(self) -> bytes:
        """SorobanTransactionMetaV2 or nothing: what was charged for resources, and the return value."""
        fee = self.applied.refundable
        if fee is None:
            return pack.ZERO
        value = self.applied.effects[0].return_value if self.applied.effects else None
        charged = pack.i64(fee.non_refundable) + pack.i64(fee.consumed) + pack.i64(fee.rent)
        returned = pack.ZERO if value is None else pack.ONE + value
        return pack.ONE + pack.ONE + pack.ZERO + charged + returned


def event_rows(ledger: int, reports: Sequence[Report]) -> Iterator[tuple[Any, ...]]:
    """The rows of the events table, for all transactions of a ledger: fees, then operations' events, then
    refunds."""
    before = after = 0
    for report in reports:
        if report.fee_event is not None:
            yield _event_row(report, (ledger, 0, 0, before), report.fee_event[_STAGE_BYTES:])
            before += 1
        for op_index, effects in enumerate(report.applied.effects):
            for event_index, event in enumerate(effects.events):
                yield _event_row(report, (ledger, report.applied.order, op_index, event_index), event)
        if report.refund_event is not None:
            position = (ledger, AFTER_ALL_INDEX, 0, after)
            yield _event_row(report, position, report.refund_event[_STAGE_BYTES:])
            after += 1


def _event_row(report: Report, position: tuple[int, int, int, int], event: bytes) -> tuple[Any, ...]:
    parts = take_apart(event)
    return (
        *position,
        report.applied.transaction.hash,
        report.applied.order,
        parts.type,
        parts.contract_id,
        len(parts.topics),
        pack_list(parts.topics),
        parts.value,
        report.applied.outcome.successful,
    )
