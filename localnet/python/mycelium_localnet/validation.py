"""Whether a transaction may enter a ledger: the network's checks, in the network's order.

The same checks run when a transaction is handed in, when a ledger takes it up, and when it is applied; then
the fee has been taken already, and an earlier transaction of the same ledger may have changed what it stands
on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stellar_sdk.xdr import MemoType, OperationResultCode, OperationType, TransactionResultCode

from mycelium_localnet import fees, operations, resources, results
from mycelium_localnet.accounts import Account, starting_sequence
from mycelium_localnet.envelopes import present
from mycelium_localnet.results import Outcome, refused
from mycelium_localnet.signatures import SignatureChecker

if TYPE_CHECKING:
    from stellar_sdk import xdr

    from mycelium_localnet._native import NetworkSettings
    from mycelium_localnet.context import LedgerContext
    from mycelium_localnet.envelopes import Transaction
    from mycelium_localnet.state import State

_Code = TransactionResultCode
_MAX_SEQUENCE = (1 << 63) - 1


@dataclass
class Validation:
    """What the checks found. `uses_sequence`: applied, it uses up its sequence number, valid or not."""

    outcome: Outcome
    uses_sequence: bool = True

    @property
    def valid(self) -> bool:
        return self.outcome.successful


def validate(
    transaction: Transaction, state: State, context: LedgerContext, *, applying: bool = False
) -> Validation:
    """Check a transaction against `state` for the ledger of `context`. `applying`: its fee has been taken."""
    found = _check_form(transaction, context) or _check_bounds(transaction, context)
    if found is not None:
        return Validation(found, uses_sequence=False)
    account = Account.load(state, transaction.source)
    if account is None:
        return Validation(refused(_Code.txNO_ACCOUNT), uses_sequence=False)
    if _bad_sequence(transaction, account, context):
        return Validation(refused(_Code.txBAD_SEQ), uses_sequence=False)
    if _too_early_for_account(transaction, account, context):
        return Validation(refused(_Code.txBAD_MIN_SEQ_AGE_OR_GAP))
    checker = SignatureChecker(transaction)
    if not checker.check(account.signers, account.low_threshold):
        return Validation(refused(_Code.txBAD_AUTH))
    if account.available_balance(context.base_reserve) < (0 if applying else transaction.fee):
        return Validation(refused(_Code.txINSUFFICIENT_BALANCE))
    outcome = _check_operations(transaction, state, context, checker)
    if outcome.successful and not checker.all_used():
        outcome = refused(_Code.txBAD_AUTH_EXTRA)
    return Validation(outcome)


def malformed(transaction: Transaction) -> bool:
    """Whether the Soroban part does not fit the operations; such a transaction is not even quoted a fee."""
    if not transaction.is_soroban:
        return False
    soroban = transaction.soroban
    return soroban is None or not 0 <= soroban.resource_fee <= fees.MAX_RESOURCE_FEE


def _check_form(transaction: Transaction, context: LedgerContext) -> Outcome | None:
    if malformed(transaction):
        return refused(_Code.txMALFORMED)
    preconditions = transaction.body.cond.v2
    if preconditions is not None and preconditions.extra_signers:
        return refused(_Code.txNOT_SUPPORTED)
    if not transaction.operations:
        return refused(_Code.txMISSING_OPERATION)
    kinds = [operations.is_soroban(operation) for operation in transaction.operations]
    if any(kinds) and len(kinds) > 1:
        return refused(_Code.txMALFORMED)
    if not kinds[0]:
        return None if transaction.soroban is None else refused(_Code.txMALFORMED)
    return soroban_refusal(transaction, context.settings)


def soroban_refusal(transaction: Transaction, settings: NetworkSettings) -> Outcome | None:
    """Why a Soroban transaction that is not `malformed` is txSOROBAN_INVALID whatever the state is; None when
    it is not."""
    problem = _forbidden_extras(transaction) or resources.problem(
        transaction, present(transaction.soroban), settings
    )
    return None if problem is None else refused(_Code.txSOROBAN_INVALID, problem)


def _check_bounds(transaction: Transaction, context: LedgerContext) -> Outcome | None:
    condition = transaction.body.cond
    times = condition.time_bounds or (condition.v2.time_bounds if condition.v2 else None)
    ledgers = condition.v2.ledger_bounds if condition.v2 else None
    if times is not None and times.min_time.time_point.uint64 > context.close_time:
        return refused(_Code.txTOO_EARLY)
    if ledgers is not None and ledgers.min_ledger.uint32 > context.sequence:
        return refused(_Code.txTOO_EARLY)
    if times is not None and 0 < times.max_time.time_point.uint64 < context.close_time:
        return refused(_Code.txTOO_LATE)
    if ledgers is not None and 0 < ledgers.max_ledger.uint32 <= context.sequence:
        return refused(_Code.txTOO_LATE)
    if transaction.inclusion_bid < context.base_fee * len(transaction.operations):
        return refused(_Code.txINSUFFICIENT_FEE)
    return None


def _bad_sequence(transaction: Transaction, account: Account, context: LedgerContext) -> bool:
    if transaction.sequence == starting_sequence(context.sequence):
        return True
    condition = transaction.body.cond.v2
    if condition is not None and condition.min_seq_num is not None:
        lowest = condition.min_seq_num.sequence_number.int64
        return account.sequence < lowest or account.sequence >= transaction.sequence
    return account.sequence == _MAX_SEQUENCE or account.sequence + 1 != transaction.sequence


def _too_early_for_account(transaction: Transaction, account: Account, context: LedgerContext) -> bool:
    condition = transaction.body.cond.v2
    if condition is None:
        return False
    ledger, time = account.sequence_set
    return (
        context.close_time - condition.min_seq_age.duration.uint64 < time
        or context.sequence - condition.min_seq_ledger_gap.uint32 < ledger
    )


def _check_operations(
    transaction: Transaction, state: State, context: LedgerContext, checker: SignatureChecker
) -> Outcome:
    """Each operation's own rules and signatures; the first one that fails ends it."""
    outcome = Outcome(
        _Code.txSUCCESS, [results.untouched_result(operation) for operation in transaction.operations]
    )
    for index, operation in enumerate(transaction.operations):
        failure = _operation_failure(transaction, operation, state, checker)
        diagnostics: list[bytes] = []
        if failure is None:
            failure, diagnostics = operations.check(transaction, operation, context)
        if failure is not None:
            outcome.code = _Code.txFAILED
            outcome.operations[index] = failure
            outcome.diagnostics = diagnostics
            break
    return outcome


def _operation_failure(
    transaction: Transaction, operation: xdr.Operation, state: State, checker: SignatureChecker
) -> bytes | None:
    """None, or the OperationResult of an operation that is not supported, has no account, or is not signed
    for.

    The account of an operation that names its own source may be made by an earlier one: its key must have
    signed.
    """
    code = OperationResultCode
    if not operations.is_supported(operation):
        return results.operation_refusal(code.opNOT_SUPPORTED)
    source = transaction.operation_source(operation)
    account = Account.load(state, source)
    if account is None:
        if operation.source_account is None:
            return results.operation_refusal(code.opNO_ACCOUNT)
        signers, needed = [(source, 1)], 0
    else:
        low = operations.needs_low_threshold(operation)
        signers, needed = account.signers, account.low_threshold if low else account.medium_threshold
    return None if checker.check(signers, needed) else results.operation_refusal(code.opBAD_AUTH)


def _forbidden_extras(transaction: Transaction) -> bytes | None:
    """No memo and no M... source with InvokeHostFunction: nothing that authorizes the call would cover them.
    None, or the DiagnosticEvent that says so."""
    if transaction.operations[0].body.type != OperationType.INVOKE_HOST_FUNCTION:
        return None
    if transaction.body.memo.type == MemoType.MEMO_NONE and not transaction.has_muxed_source:
        return None
    return results.error_event(
        results.CONTEXT,
        results.INVALID_INPUT,
        "Soroban transactions are not allowed to use memo or muxed source account",
    )
