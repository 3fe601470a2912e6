"""What the chain hands out: plain, frozen values, everything binary as XDR bytes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

EventPosition: TypeAlias = tuple[int, int, int, int]
"""`(ledger, tx_index, op_index, event_index)`, the order of events; see `EventRow`."""

SubmissionStatus: TypeAlias = Literal["PENDING", "DUPLICATE", "TRY_AGAIN_LATER", "ERROR"]


@dataclass(frozen=True, slots=True)
class LedgerRow:
    """One closed ledger. `hash` is the SHA-256 of `header`; times are Unix seconds."""

    sequence: int
    hash: bytes
    close_time: int
    header: bytes
    """LedgerHeader."""
    close_meta: bytes
    """LedgerCloseMeta, V2."""

    @property
    def history_entry(self) -> bytes:
        """LedgerHeaderHistoryEntry."""
        return self.hash + self.header + bytes(4)


@dataclass(frozen=True, slots=True)
class TransactionRow:
    """One applied transaction, successful or not. `application_order` counts from 1 in each ledger."""

    ledger: int
    application_order: int
    close_time: int
    hash: bytes
    source: str
    """G... of the transaction's source account."""
    envelope: bytes
    """TransactionEnvelope."""
    result: bytes
    """TransactionResult."""
    meta: bytes
    """TransactionMeta, V4."""
    successful: bool
    fee_bump: bool
    transaction_events: tuple[bytes, ...]
    """TransactionEvent each: fee and refund."""
    contract_events: tuple[tuple[bytes, ...], ...]
    """ContractEvent each, one inner tuple per operation; empty when the transaction failed."""
    diagnostic_events: tuple[bytes, ...]
    """DiagnosticEvent each, as in the meta."""


@dataclass(frozen=True, slots=True)
class EventRow:
    """One event of an applied transaction.

    Positions are those of the RPC's event ids, `%019d-%010d` of `(ledger << 32 | tx_index << 12 | op_index)`
    and `event_index`. Events of an operation: its transaction's application order (from 1), the operation's
    index (from 0) and the event's index in the operation. Fee events: `tx_index` 0, `op_index` 0; refund
    events: `tx_index` 0xFFFFF, `op_index` 0; `event_index` counts these over the whole ledger.
    """

    ledger: int
    tx_index: int
    op_index: int
    event_index: int
    close_time: int
    tx_hash: bytes
    type: Literal["contract", "system"]
    contract_id: str | None
    """C..., None when the event names none."""
    topics: tuple[bytes, ...]
    """SCVal each."""
    value: bytes
    """SCVal."""
    in_successful_call: bool
    transaction_order: int
    """Application order of the transaction that the event belongs to, also for fee and refund events."""

    @property
    def position(self) -> EventPosition:
        return self.ledger, self.tx_index, self.op_index, self.event_index


@dataclass(frozen=True, slots=True)
class Submission:
    """What became of a transaction that was handed in, in the words of the RPC's sendTransaction.

    `latest_ledger` and `close_time` are those of the last ledger that was closed when the answer was made:
    with instant closing, the ledger that holds the transaction.
    """

    status: SubmissionStatus
    hash: bytes
    latest_ledger: int
    close_time: int
    result: bytes | None = None
    """TransactionResult with the reason, only with ERROR."""
    diagnostic_events: tuple[bytes, ...] = ()
    """DiagnosticEvent each, only with ERROR."""
