"""The operations that this chain applies, and their own rules that do not depend on the ledger's state."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stellar_sdk import xdr

from mycelium_localnet import keys, pack, results
from mycelium_localnet.envelopes import SOROBAN_OPERATIONS, account_of_id, present

if TYPE_CHECKING:
    from mycelium_localnet.context import LedgerContext
    from mycelium_localnet.envelopes import Transaction

_Type = xdr.OperationType
_SUPPORTED = SOROBAN_OPERATIONS | {_Type.CREATE_ACCOUNT}
_LOW_THRESHOLD = frozenset((_Type.EXTEND_FOOTPRINT_TTL, _Type.RESTORE_FOOTPRINT))

_Checked = tuple[bytes | None, list[bytes]]


def is_soroban(operation: xdr.Operation) -> bool:
    """Whether it is one of the three operations that must be a transaction's only one."""
    return operation.body.type in SOROBAN_OPERATIONS


def is_supported(operation: xdr.Operation) -> bool:
    """Whether this chain applies it; anything else is opNOT_SUPPORTED."""
    return operation.body.type in _SUPPORTED


def needs_low_threshold(operation: xdr.Operation) -> bool:
    """Whether the low threshold is enough for it, rather than the medium one."""
    return operation.body.type in _LOW_THRESHOLD


def check(transaction: Transaction, operation: xdr.Operation, context: LedgerContext) -> _Checked:
    """`(None, [])` when the operation is well-formed, else its OperationResult and the DiagnosticEvents that
    say why."""
    kind = operation.body.type
    if kind == _Type.CREATE_ACCOUNT:
        return _check_create_account(transaction, operation)
    if kind == _Type.INVOKE_HOST_FUNCTION:
        return _check_host_function(operation, context)
    if kind == _Type.EXTEND_FOOTPRINT_TTL:
        return _check_extend(transaction, operation, context)
    return _check_restore(transaction)


def _check_create_account(transaction: Transaction, operation: xdr.Operation) -> _Checked:
    create = present(operation.body.create_account_op)
    destination = account_of_id(create.destination)
    if create.starting_balance.int64 < 0 or destination == transaction.operation_source(operation):
        code = xdr.CreateAccountResultCode.CREATE_ACCOUNT_MALFORMED
        return results.operation_result(_Type.CREATE_ACCOUNT, code), []
    return None, []


def _check_host_function(operation: xdr.Operation, context: LedgerContext) -> _Checked:
    invoke = present(operation.body.invoke_host_function_op)
    wasm, limit = invoke.host_function.wasm, context.settings.max_contract_size_bytes
    if wasm is None or len(wasm) <= limit:
        return None, []
    code = xdr.InvokeHostFunctionResultCode.INVOKE_HOST_FUNCTION_MALFORMED
    event = results.error_event(
        results.BUDGET,
        results.EXCEEDED_LIMIT,
        "uploaded Wasm size exceeds network config maximum contract size",
        [pack.sc_u64(len(wasm)), pack.sc_u64(limit)],
    )
    return results.operation_result(_Type.INVOKE_HOST_FUNCTION, code), [event]


def _check_extend(transaction: Transaction, operation: xdr.Operation, context: LedgerContext) -> _Checked:
    extend, soroban = present(operation.body.extend_footprint_ttl_op), present(transaction.soroban)
    code = xdr.ExtendFootprintTTLResultCode.EXTEND_FOOTPRINT_TTL_MALFORMED
    limit = context.settings.max_entry_ttl - 1
    if soroban.read_write:
        message = "read-write footprint must be empty for ExtendFootprintTTL operation"
    elif not all(keys.has_ttl(key) for key in soroban.read_only):
        message = "only entries with TTL (contract data or code entries) can have it extended"
    elif extend.extend_to.uint32 > limit:
        message = "TTL extension is too large"
    else:
        return None, []
    return results.operation_result(_Type.EXTEND_FOOTPRINT_TTL, code), [_invalid(message)]


def _check_restore(transaction: Transaction) -> _Checked:
    soroban = present(transaction.soroban)
    code = xdr.RestoreFootprintResultCode.RESTORE_FOOTPRINT_MALFORMED
    if soroban.read_only:
        message = "read-only footprint must be empty for RestoreFootprint operation"
    elif not all(keys.is_persistent(key) for key in soroban.read_write):
        message = "only persistent Soroban entries can be restored"
    else:
        return None, []
    return results.operation_result(_Type.RESTORE_FOOTPRINT, code), [_invalid(message)]


def _invalid(message: str) -> bytes:
    return results.error_event(results.STORAGE, results.INVALID_INPUT, message)
