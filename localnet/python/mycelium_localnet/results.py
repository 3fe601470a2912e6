"""Transaction results and the error events that explain a refusal, as XDR bytes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from stellar_sdk.xdr import OperationResultCode, OperationType, TransactionResultCode

from mycelium_localnet import pack

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stellar_sdk import xdr

_WITH_OPERATIONS = (TransactionResultCode.txSUCCESS, TransactionResultCode.txFAILED)

# SCErrorType and SCErrorCode, as the network's own diagnostics use them.
CONTEXT, STORAGE, BUDGET, VALUE = 2, 3, 7, 8
INVALID_INPUT, EXCEEDED_LIMIT, INTERNAL_ERROR, UNEXPECTED_TYPE = 2, 5, 7, 8

_DIAGNOSTIC: Final = 2  # ContractEventType


@dataclass
class Outcome:
    """How a transaction stands: its code, the result of each operation (for success and txFAILED), and
    diagnostics.

    `operations`: OperationResult each; `diagnostics`: DiagnosticEvent each.
    """

    code: TransactionResultCode
    operations: list[bytes] = field(default_factory=list)
    diagnostics: list[bytes] = field(default_factory=list)

    @property
    def successful(self) -> bool:
        return self.code == TransactionResultCode.txSUCCESS

    def result(self, fee_charged: int) -> bytes:
        """TransactionResult with `fee_charged` in stroops."""
        body = pack.array(self.operations) if self.code in _WITH_OPERATIONS else b""
        return pack.i64(fee_charged) + pack.i32(self.code) + body + pack.ZERO


def refused(code: TransactionResultCode, *diagnostics: bytes) -> Outcome:
    """An outcome without operation results."""
    return Outcome(code, diagnostics=list(diagnostics))


def operation_result(kind: xdr.OperationType, code: int, body: bytes = b"") -> bytes:
    """OperationResult of an operation that was looked at: its own result code, and what comes with it."""
    return pack.ZERO + pack.u32(kind) + pack.i32(code) + body


def operation_refusal(code: OperationResultCode) -> bytes:
    """OperationResult of an operation that was refused before its own rules: opBAD_AUTH and the like."""
    return pack.i32(code)


def untouched_result(operation: xdr.Operation) -> bytes:
    """OperationResult of an operation whose turn did not come: success with nothing, as the network fills it
    in."""
    body = bytes(32) if operation.body.type == OperationType.INVOKE_HOST_FUNCTION else b""
    return operation_result(operation.body.type, 0, body)


def first_operation_type(result: bytes) -> int | None:
    """The OperationType in a TransactionResult (or its first 24 bytes), of its first operation; None where
    the result does not tell it: the transaction or that operation was refused before it was looked at."""
    code, operations, refusal = (
        int.from_bytes(result[at : at + 4], "big", signed=True) for at in (8, 12, 16)
    )
    if code not in _WITH_OPERATIONS or not operations or refusal:
        return None
    return int.from_bytes(result[20:24], "big")


def error_event(kind: int, code: int, message: str, arguments: Sequence[bytes] = ()) -> bytes:
    """DiagnosticEvent of a refusal. `arguments`: SCVal each."""
    text = pack.sc_string(message)
    data = pack.sc_vec([text, *arguments]) if arguments else text
    return diagnostic_event([pack.sc_symbol("error"), pack.sc_error(kind, code)], data, successful=False)


def diagnostic_event(topics: Sequence[bytes], data: bytes, *, successful: bool) -> bytes:
    """DiagnosticEvent that no contract emitted. `topics` and `data`: SCVals."""
    flag = pack.ONE if successful else pack.ZERO
    return flag + pack.ZERO + pack.ZERO + pack.u32(_DIAGNOSTIC) + pack.ZERO + pack.array(topics) + data
