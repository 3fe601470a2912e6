"""CreateAccount: a new account, its balance taken from another."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stellar_sdk import xdr

from mycelium_localnet import keys, results
from mycelium_localnet.accounts import Account, new_account, starting_sequence
from mycelium_localnet.apply.effects import Effects
from mycelium_localnet.envelopes import account_of_id, present
from mycelium_localnet.events import native_transfer

if TYPE_CHECKING:
    from mycelium_localnet.context import LedgerContext
    from mycelium_localnet.envelopes import Transaction
    from mycelium_localnet.state import State

_Code = xdr.CreateAccountResultCode
_ACCOUNT_RESERVES = 2  # base reserves that an account itself needs


def create_account(
    transaction: Transaction, operation: xdr.Operation, state: State, context: LedgerContext
) -> Effects:
    """Apply the operation to `state`, a layer of its own."""
    create = present(operation.body.create_account_op)
    destination, amount = account_of_id(create.destination), create.starting_balance.int64
    source_key = transaction.operation_source(operation)
    source = Account.load(state, source_key)
    if state.get(keys.account(destination)) is not None:
        return _done(_Code.CREATE_ACCOUNT_ALREADY_EXIST)
    if amount < _ACCOUNT_RESERVES * context.base_reserve:
        return _done(_Code.CREATE_ACCOUNT_LOW_RESERVE)
    if source is None or source.available_balance(context.base_reserve) < amount:
        return _done(_Code.CREATE_ACCOUNT_UNDERFUNDED)
    source.add_balance(-amount)
    source.save(state)
    state.put(
        keys.account(destination), new_account(destination, amount, starting_sequence(context.sequence)), None
    )
    effects = _done(_Code.CREATE_ACCOUNT_SUCCESS)
    effects.successful = True
    effects.changes = state.changes()
    effects.events = [
        native_transfer(
            context.network.native_contract, source_key, destination, amount, transaction.body.memo
        )
    ]
    return effects


def _done(code: xdr.CreateAccountResultCode) -> Effects:
    return Effects(results.operation_result(xdr.OperationType.CREATE_ACCOUNT, code))
