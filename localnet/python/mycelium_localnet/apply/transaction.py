"""Applying one transaction whose fee was taken: sequence number, operations, and what is to be told of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stellar_sdk.xdr import OperationResultCode, OperationType, TransactionResultCode

from mycelium_localnet import keys, resources
from mycelium_localnet.accounts import Account
from mycelium_localnet.apply.classic import create_account
from mycelium_localnet.apply.effects import Effects
from mycelium_localnet.apply.invoke import invoke_host_function
from mycelium_localnet.apply.ttl import extend_footprint, restore_footprint
from mycelium_localnet.envelopes import present
from mycelium_localnet.fees import RefundableFee
from mycelium_localnet.results import operation_refusal
from mycelium_localnet.validation import validate

if TYPE_CHECKING:
    from stellar_sdk import xdr

    from mycelium_localnet.context import LedgerContext
    from mycelium_localnet.envelopes import Transaction
    from mycelium_localnet.results import Outcome
    from mycelium_localnet.state import State


@dataclass
class Applied:
    """One transaction of the ledger. Changes are LedgerEntryChange each.

    `order`: its place in the ledger, from 1; `fee`: what was taken, in stroops; `refundable`: None unless it
    is a Soroban transaction; `effects`: of each operation, empty when the transaction failed.
    """

    transaction: Transaction
    order: int
    fee: int
    fee_changes: list[bytes]
    outcome: Outcome
    refundable: RefundableFee | None = None
    sequence_changes: list[bytes] = field(default_factory=list)
    effects: list[Effects] = field(default_factory=list)
    refund_changes: list[bytes] = field(default_factory=list)

    @property
    def refund(self) -> int:
        return 0 if self.refundable is None else self.refundable.refund


def take_fee(transaction: Transaction, state: State, fee: int) -> tuple[int, list[bytes]]:
    """Take the fee, or what the account has of it. Returns what was taken and the LedgerEntryChanges."""
    layer = state.child()
    account = present(Account.load(layer, transaction.source))
    taken = min(account.balance, fee)
    account.add_balance(-taken)
    account.save(layer)
    changes = layer.changes()
    state.merge(layer)
    return taken, changes


def apply_transaction(
    transaction: Transaction,
    state: State,
    context: LedgerContext,
    order: int,
    taken: tuple[int, list[bytes]],
) -> Applied:
    """Use up the sequence number and apply the operations to `state`, all of them or none. `taken`: from
    `take_fee`."""
    soroban = transaction.soroban if transaction.is_soroban else None
    refundable = None
    if soroban is not None:
        non_refundable, _ = resources.required_fee(transaction, soroban, context.settings)
        refundable = RefundableFee(soroban.resource_fee - non_refundable, non_refundable)
    validation = validate(transaction, state, context, applying=True)
    applied = Applied(transaction, order, *taken, validation.outcome, refundable)
    if validation.uses_sequence:
        applied.sequence_changes = _use_sequence(transaction, state, context)
    if validation.valid:
        _apply_operations(applied, state, context)
    if refundable is not None and not applied.outcome.successful:
        refundable.reset()
    return applied


def give_back(applied: Applied, state: State) -> None:
    """Return what is left of the refundable fee, after all transactions of the ledger."""
    if not applied.refund:
        return
    layer = state.child()
    account = present(Account.load(layer, applied.transaction.source))
    account.add_balance(applied.refund)
    account.save(layer)
    applied.refund_changes = layer.changes()
    state.merge(layer)


def _use_sequence(transaction: Transaction, state: State, context: LedgerContext) -> list[bytes]:
    layer = state.child()
    account = present(Account.load(layer, transaction.source))
    account.set_sequence(transaction.sequence, context.sequence, context.close_time)
    account.save(layer)
    changes = layer.changes()
    state.merge(layer)
    return changes


def _apply_operations(applied: Applied, state: State, context: LedgerContext) -> None:
    """Every operation is tried and has its result, as on the network, but the changes stay only if all
    succeed."""
    work = state.child()
    all_effects = []
    for operation in applied.transaction.operations:
        layer = work.child()
        effects = _apply_operation(applied, operation, layer, context)
        if effects.successful:
            work.merge(layer)
        all_effects.append(effects)
    outcome = applied.outcome
    outcome.operations = [effects.result for effects in all_effects]
    for effects in all_effects:
        outcome.diagnostics += effects.diagnostics
    if any(effects.internal_error for effects in all_effects):
        outcome.code = TransactionResultCode.txINTERNAL_ERROR
    elif not all(effects.successful for effects in all_effects):
        outcome.code = TransactionResultCode.txFAILED
    else:
        applied.effects = all_effects
        state.merge(work)


def _apply_operation(
    applied: Applied, operation: xdr.Operation, layer: State, context: LedgerContext
) -> Effects:
    transaction, refundable = applied.transaction, applied.refundable
    if layer.get(keys.account(transaction.operation_source(operation))) is None:
        return Effects(operation_refusal(OperationResultCode.opNO_ACCOUNT))
    kind = operation.body.type
    if kind == OperationType.CREATE_ACCOUNT:
        return create_account(transaction, operation, layer, context)
    fee = present(refundable)
    if kind == OperationType.INVOKE_HOST_FUNCTION:
        return invoke_host_function(transaction, operation, layer, context, fee, order=applied.order)
    if kind == OperationType.EXTEND_FOOTPRINT_TTL:
        return extend_footprint(transaction, operation, layer, context, fee)
    return restore_footprint(transaction, layer, context, fee)
