"""InvokeHostFunction: what goes into the host, what comes out of it, and what that costs."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from typing import TYPE_CHECKING

from stellar_sdk import xdr

from mycelium_localnet import _native, keys, pack, results
from mycelium_localnet.apply.effects import Effects
from mycelium_localnet.envelopes import present
from mycelium_localnet.resources import entry_too_large

if TYPE_CHECKING:
    from mycelium_localnet._native import Change, Invocation, ModuleCache
    from mycelium_localnet.context import LedgerContext
    from mycelium_localnet.envelopes import Soroban, Transaction
    from mycelium_localnet.fees import RefundableFee
    from mycelium_localnet.state import State

_Code = xdr.InvokeHostFunctionResultCode


class _FailedError(Exception):
    """Ends the operation with a result code and what explains it."""

    def __init__(self, code: xdr.InvokeHostFunctionResultCode, *diagnostics: bytes) -> None:
        super().__init__(code)
        self.code = code
        self.diagnostics = list(diagnostics)


@dataclass
class _Metrics:
    """What the call used, for the network's `core_metrics` diagnostics."""

    read_entry: int = 0
    write_entry: int = 0
    ledger_read_byte: int = 0
    ledger_write_byte: int = 0
    emit_event: int = 0
    emit_event_byte: int = 0
    cpu_insn: int = 0
    mem_byte: int = 0

    def to_events(self, *, successful: bool) -> list[bytes]:
        return [
            results.diagnostic_event(
                [pack.sc_symbol("core_metrics"), pack.sc_symbol(name)],
                pack.sc_u64(value),
                successful=successful,
            )
            for name, value in vars(self).items()
        ]


@dataclass
class _Inputs:
    """The footprint's entries as the host takes them, and which of them are being restored."""

    entries: list[tuple[bytes, int | None] | None] = field(default_factory=list)
    restored: dict[bytes, int] = field(default_factory=dict)
    restored_indices: list[int] = field(default_factory=list)


@cache
def module_cache() -> ModuleCache:
    """The process's compiled contracts."""
    return _native.ModuleCache()


def invoke_host_function(
    transaction: Transaction,
    operation: xdr.Operation,
    state: State,
    context: LedgerContext,
    refundable: RefundableFee,
    *,
    order: int,
) -> Effects:
    """Run the host function on `state`, a layer of its own. `order`: the transaction's place in the
    ledger."""
    soroban = present(transaction.soroban)
    invoke = present(operation.body.invoke_host_function_op)
    metrics = _Metrics()
    diagnostics: list[bytes] = []
    try:
        inputs = _read(soroban, state, context, metrics)
        invocation = _native.invoke(
            ledger=context.host_info,
            cache=module_cache(),
            host_function=invoke.host_function.to_xdr_bytes(),
            resources=soroban.resources,
            restored_rw_indices=inputs.restored_indices,
            auth=[entry.to_xdr_bytes() for entry in invoke.auth],
            source_account=pack.ZERO + transaction.operation_source(operation),
            entries=inputs.entries,
            prng_seed=context.random_seed(order),
        )
        diagnostics += invocation.diagnostic_events
        metrics.cpu_insn, metrics.mem_byte = invocation.instructions, invocation.memory
        _check_success(invocation, soroban, context)
        _write(invocation.changes, soroban, state, context, metrics)
        value = invocation.result or b""
        _count_events(invocation.contract_events, value, context, metrics)
        problem = refundable.consume(
            context.settings, soroban, events_size=metrics.emit_event_byte, rent=invocation.rent_fee
        )
        _fail_if(problem, _Code.INVOKE_HOST_FUNCTION_INSUFFICIENT_REFUNDABLE_FEE)
    except _FailedError as failure:
        diagnostics += failure.diagnostics + metrics.to_events(successful=False)
        return Effects(_result(failure.code), diagnostics=diagnostics)
    except _native.HostError as error:
        event = results.error_event(results.CONTEXT, results.INTERNAL_ERROR, str(error))
        return Effects(_result(_Code.INVOKE_HOST_FUNCTION_TRAPPED), diagnostics=[event], internal_error=True)
    events = invocation.contract_events
    return Effects(
        _result(_Code.INVOKE_HOST_FUNCTION_SUCCESS, sha256(value + pack.array(events)).digest()),
        successful=True,
        changes=state.changes(inputs.restored),
        events=events,
        return_value=value,
        diagnostics=diagnostics + metrics.to_events(successful=True),
    )


def _read(soroban: Soroban, state: State, context: LedgerContext, metrics: _Metrics) -> _Inputs:
    """The entries of the footprint. What is archived must be listed for restoring, or the operation fails."""
    inputs = _Inputs()
    until = context.sequence + context.settings.min_persistent_entry_ttl - 1
    first_written = len(soroban.read_only)
    for place, key in enumerate(soroban.footprint):
        entry = state.get(key)
        metrics.read_entry += 1
        if entry is None:
            inputs.entries.append(None)
            continue
        live_until = entry.live_until
        if live_until is not None and live_until < context.sequence:
            if place - first_written not in soroban.archived:
                raise _FailedError(_Code.INVOKE_HOST_FUNCTION_ENTRY_ARCHIVED, _archived(key))
            live_until = until
            inputs.restored[key] = until
            inputs.restored_indices.append(place - first_written)
        _limit(entry_too_large(key, len(entry.data), context.settings))
        if live_until is None or key in inputs.restored:
            metrics.ledger_read_byte += len(entry.data)
            _within("byte-read", metrics.ledger_read_byte, soroban.disk_read_bytes)
        inputs.entries.append((entry.data, live_until))
    return inputs


def _check_success(invocation: Invocation, soroban: Soroban, context: LedgerContext) -> None:
    if invocation.ok:
        return
    if invocation.error_kind != "resource_limit":
        raise _FailedError(_Code.INVOKE_HOST_FUNCTION_TRAPPED)
    if invocation.instructions > soroban.instructions:
        what, used, limit = (
            "instructions exceeds amount specified",
            invocation.instructions,
            soroban.instructions,
        )
    else:
        what, used = "memory usage exceeds network config limit", invocation.memory
        limit = context.settings.tx_memory_limit
    raise _FailedError(
        _Code.INVOKE_HOST_FUNCTION_RESOURCE_LIMIT_EXCEEDED, _exceeded(f"operation {what}", used, limit)
    )


def _write(
    changes: list[Change], soroban: Soroban, state: State, context: LedgerContext, metrics: _Metrics
) -> None:
    """Every key of the footprint comes back: new values are stored, what comes back without a value is
    erased."""
    for change in changes:
        if change.read_only:
            if (change.new_live_until or 0) > (change.old_live_until or 0):
                state.extend(change.key, present(change.new_live_until))
            continue
        if change.new_value is None:
            state.erase(change.key)
            continue
        size = len(change.new_value)
        _limit(entry_too_large(change.key, size, context.settings))
        metrics.write_entry += 1
        metrics.ledger_write_byte += size
        _within("byte-write", metrics.ledger_write_byte, soroban.write_bytes)
        state.put(change.key, change.new_value, change.new_live_until if keys.has_ttl(change.key) else None)


def _count_events(events: list[bytes], value: bytes, context: LedgerContext, metrics: _Metrics) -> None:
    limit = context.settings.tx_max_contract_events_size_bytes
    metrics.emit_event = len(events)
    metrics.emit_event_byte = sum(map(len, events))
    if metrics.emit_event_byte > limit:
        what = "total events size exceeds network config maximum"
    else:
        metrics.emit_event_byte += len(value)
        what = "return value pushes events size above network config maximum"
    if metrics.emit_event_byte > limit:
        raise _FailedError(
            _Code.INVOKE_HOST_FUNCTION_RESOURCE_LIMIT_EXCEEDED,
            _exceeded(what, metrics.emit_event_byte, limit),
        )


def _within(what: str, used: int, declared: int) -> None:
    if used > declared:
        _limit(_exceeded(f"operation {what} resources exceeds amount specified", used, declared))


def _limit(problem: bytes | None) -> None:
    _fail_if(problem, _Code.INVOKE_HOST_FUNCTION_RESOURCE_LIMIT_EXCEEDED)


def _fail_if(problem: bytes | None, code: xdr.InvokeHostFunctionResultCode) -> None:
    if problem is not None:
        raise _FailedError(code, problem)


def _exceeded(message: str, used: int, limit: int) -> bytes:
    return results.error_event(
        results.BUDGET, results.EXCEEDED_LIMIT, message, [pack.sc_u64(used), pack.sc_u64(limit)]
    )


def _archived(key: bytes) -> bytes:
    """The network's words for an archived entry: the code's hash, or the contract and the data's key."""
    decoded = xdr.LedgerKey.from_xdr_bytes(key)
    if decoded.contract_code is not None:
        what, named = "code", [pack.sc_bytes(decoded.contract_code.hash.hash)]
    else:
        data = present(decoded.contract_data)
        address = xdr.SCVal(xdr.SCValType.SCV_ADDRESS, address=data.contract)
        what, named = "data", [address.to_xdr_bytes(), data.key.to_xdr_bytes()]
    message = f"trying to access an archived contract {what} entry"
    return results.error_event(results.VALUE, results.INVALID_INPUT, message, named)


def _result(code: xdr.InvokeHostFunctionResultCode, body: bytes = b"") -> bytes:
    return results.operation_result(xdr.OperationType.INVOKE_HOST_FUNCTION, code, body)
