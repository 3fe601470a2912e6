"""ExtendFootprintTTL and RestoreFootprint: how entries are kept alive and brought back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stellar_sdk import xdr

from mycelium_localnet import _native, keys, pack, results
from mycelium_localnet.apply.effects import Effects
from mycelium_localnet.envelopes import present
from mycelium_localnet.resources import entry_too_large

if TYPE_CHECKING:
    from mycelium_localnet.context import LedgerContext
    from mycelium_localnet.envelopes import Transaction
    from mycelium_localnet.fees import RefundableFee
    from mycelium_localnet.state import State

_Extend = xdr.ExtendFootprintTTLResultCode
_Restore = xdr.RestoreFootprintResultCode
_RentChange = tuple[bool, bool, int, int, int, int]


def extend_footprint(
    transaction: Transaction,
    operation: xdr.Operation,
    state: State,
    context: LedgerContext,
    refundable: RefundableFee,
) -> Effects:
    """Let every live entry of the read-only footprint live `extend_to` ledgers from now, at least.

    Missing and archived entries, and those that live that long already, are passed over.
    """
    soroban = present(transaction.soroban)
    until = context.sequence + present(operation.body.extend_footprint_ttl_op).extend_to.uint32
    rents: list[_RentChange] = []
    for key in soroban.read_only:
        entry = state.get(key)
        if entry is None or entry.live_until is None or not context.sequence <= entry.live_until < until:
            continue
        problem = entry_too_large(key, len(entry.data), context.settings)
        if problem is not None:
            return _extended(_Extend.EXTEND_FOOTPRINT_TTL_RESOURCE_LIMIT_EXCEEDED, problem)
        size = _native.entry_size_for_rent(context.settings, entry.data)
        rents.append((keys.is_persistent(key), _is_code(key), size, size, entry.live_until, until))
        state.extend(key, until)
    rent = _native.rent_fee(context.settings, changes=rents, ledger_sequence=context.sequence)
    problem = refundable.consume(context.settings, soroban, events_size=0, rent=rent)
    if problem is not None:
        return _extended(_Extend.EXTEND_FOOTPRINT_TTL_INSUFFICIENT_REFUNDABLE_FEE, problem)
    effects = _extended(_Extend.EXTEND_FOOTPRINT_TTL_SUCCESS)
    effects.successful, effects.changes = True, state.changes()
    return effects


def restore_footprint(
    transaction: Transaction, state: State, context: LedgerContext, refundable: RefundableFee
) -> Effects:
    """Bring every archived entry of the read-write footprint back, with the minimum TTL. Others are passed
    over."""
    soroban = present(transaction.soroban)
    until = context.sequence + context.settings.min_persistent_entry_ttl - 1
    rents: list[_RentChange] = []
    restored: dict[bytes, int] = {}
    total = 0
    for key in soroban.read_write:
        entry = state.get(key)
        if entry is None or entry.live_until is None or entry.live_until >= context.sequence:
            continue
        total += len(entry.data)
        problem = (
            _over("byte-read", total, soroban.disk_read_bytes)
            or entry_too_large(key, len(entry.data), context.settings)
            or _over("byte-write", total, soroban.write_bytes)
        )
        if problem is not None:
            return _restored(_Restore.RESTORE_FOOTPRINT_RESOURCE_LIMIT_EXCEEDED, problem)
        size = _native.entry_size_for_rent(context.settings, entry.data)
        rents.append((True, _is_code(key), 0, size, 0, until))
        state.put(key, entry.data, until)
        restored[key] = until
    rent = _native.rent_fee(context.settings, changes=rents, ledger_sequence=context.sequence)
    problem = refundable.consume(context.settings, soroban, events_size=0, rent=rent)
    if problem is not None:
        return _restored(_Restore.RESTORE_FOOTPRINT_INSUFFICIENT_REFUNDABLE_FEE, problem)
    effects = _restored(_Restore.RESTORE_FOOTPRINT_SUCCESS)
    effects.successful, effects.changes = True, state.changes(restored)
    return effects


def _is_code(key: bytes) -> bool:
    return keys.entry_type(key) == keys.CONTRACT_CODE


def _over(what: str, used: int, declared: int) -> bytes | None:
    if used <= declared:
        return None
    return results.error_event(
        results.BUDGET,
        results.EXCEEDED_LIMIT,
        f"operation {what} resources exceeds amount specified",
        [pack.sc_u64(used), pack.sc_u64(declared)],
    )


def _extended(code: xdr.ExtendFootprintTTLResultCode, *diagnostics: bytes) -> Effects:
    result = results.operation_result(xdr.OperationType.EXTEND_FOOTPRINT_TTL, code)
    return Effects(result, diagnostics=list(diagnostics))


def _restored(code: xdr.RestoreFootprintResultCode, *diagnostics: bytes) -> Effects:
    result = results.operation_result(xdr.OperationType.RESTORE_FOOTPRINT, code)
    return Effects(result, diagnostics=list(diagnostics))
