"""Funding new accounts by transactions of the friendbot's account."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Final

from stellar_sdk import StrKey, xdr

from mycelium_localnet import results
from mycelium_localnet.envelopes import account_of_id
from mycelium_localnet.errors import AccountExistsError, FundingError, InvalidRequestError

if TYPE_CHECKING:
    from stellar_sdk import Keypair

    from mycelium_localnet.envelopes import Transaction

STARTING_BALANCE: Final = 10_000 * 10**7
"""Stroops of a new account, unless another amount is asked for."""

_Create = xdr.CreateAccountResultCode
_EXISTS = results.operation_result(xdr.OperationType.CREATE_ACCOUNT, _Create.CREATE_ACCOUNT_ALREADY_EXIST)


def public_key_of(address: str) -> bytes:
    """The raw public key of a G... address. Raises InvalidRequestError."""
    if not StrKey.is_valid_ed25519_public_key(address):
        # What came instead is not repeated: it may be a secret seed.
        raise InvalidRequestError("this is not the address of an account", hint="it begins with G")
    return StrKey.decode_ed25519_public_key(address)


def funding_envelope(
    friendbot: Keypair, network_id: bytes, sequence: int, destination: bytes, amount: int, *, fee: int
) -> bytes:
    """The signed TransactionEnvelope that creates `destination` with `amount` stroops. It has no time
    bounds."""
    create = xdr.CreateAccountOp(_account_id(destination), xdr.Int64(amount))
    body = xdr.OperationBody(xdr.OperationType.CREATE_ACCOUNT, create_account_op=create)
    transaction = xdr.Transaction(
        source_account=friendbot.xdr_muxed_account(),
        fee=xdr.Uint32(fee),
        seq_num=xdr.SequenceNumber(xdr.Int64(sequence)),
        cond=xdr.Preconditions(xdr.PreconditionType.PRECOND_NONE),
        memo=xdr.Memo(xdr.MemoType.MEMO_NONE),
        operations=[xdr.Operation(None, body)],
        ext=xdr.TransactionExt(0),
    )
    payload = xdr.TransactionSignaturePayload(
        xdr.Hash(network_id),
        xdr.TransactionSignaturePayloadTaggedTransaction(xdr.EnvelopeType.ENVELOPE_TYPE_TX, tx=transaction),
    )
    signature = friendbot.sign_decorated(sha256(payload.to_xdr_bytes()).digest()).to_xdr_object()
    v1 = xdr.TransactionV1Envelope(transaction, [signature])
    return xdr.TransactionEnvelope(xdr.EnvelopeType.ENVELOPE_TYPE_TX, v1=v1).to_xdr_bytes()


def creates(transaction: Transaction, destination: bytes) -> bool:
    """Whether a transaction is to create the account of this raw public key."""
    created = (operation.body.create_account_op for operation in transaction.operations)
    return any(one is not None and account_of_id(one.destination) == destination for one in created)


def account_exists(address: str, fee: int, *, pending: bytes | None = None) -> AccountExistsError:
    """The error for an account that is there already, with the result that such a transaction would have, or
    will be when the friendbot's transaction with the hash `pending` is in a ledger."""
    outcome = results.Outcome(xdr.TransactionResultCode.txFAILED, [_EXISTS])
    when, hint = ("exists already", "it needs no funding")
    if pending is not None:
        when, hint = ("is being funded already", "it is there when the next ledgers are closed")
    return AccountExistsError(
        f"the account {address} {when}", result=outcome.result(fee), hint=hint, pending=pending
    )


def failed(result: bytes | None) -> FundingError:
    """The error for a funding transaction that was not accepted, or failed."""
    code = "" if result is None else _describe(result)
    return FundingError(
        f"the friendbot could not create the account{code}", result=result, hint="ask for another amount"
    )


def is_existing_account(result: bytes) -> bool:
    """Whether a funding transaction with this TransactionResult failed since the account was there."""
    operations = xdr.TransactionResult.from_xdr_bytes(result).result.results or ()
    created = [one.tr.create_account_result for one in operations if one.tr is not None]
    return any(one is not None and one.code == _Create.CREATE_ACCOUNT_ALREADY_EXIST for one in created)


def _describe(result: bytes) -> str:
    decoded = xdr.TransactionResult.from_xdr_bytes(result).result
    for operation in decoded.results or ():
        if operation.tr is not None and operation.tr.create_account_result is not None:
            return f": {operation.tr.create_account_result.code.name}"
    return f": {decoded.code.name}"


def _account_id(public_key: bytes) -> xdr.AccountID:
    return xdr.AccountID(xdr.PublicKey(xdr.PublicKeyType.PUBLIC_KEY_TYPE_ED25519, xdr.Uint256(public_key)))
