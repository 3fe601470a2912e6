"""What keeps a transaction out of a ledger: result codes in the network's order, with nothing charged."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING

import pytest
from stellar_sdk import (
    Asset,
    FeeBumpTransactionEnvelope,
    MuxedAccount,
    SignerKey,
    TransactionBuilder,
    xdr,
)
from stellar_sdk.fee_bump_transaction import FeeBumpTransaction
from stellar_sdk.operation import BumpSequence, Payment

from mycelium_localnet.clock import FROZEN_START
from tests.localnet.ledger.lab import CODES, create, keypair, operation_code, operation_result, result_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from stellar_sdk import Keypair
    from stellar_sdk.operation import Operation

    from tests.localnet.ledger.lab import Lab

_Op = xdr.OperationResultCode


# The transaction itself


def test_no_operation(lab: Lab, bob: Keypair) -> None:
    assert lab.refused(lab.build(bob)) == CODES.txMISSING_OPERATION


@pytest.mark.parametrize(
    ("minimum", "maximum", "code"),
    [
        (FROZEN_START + 1, 0, CODES.txTOO_EARLY),
        (FROZEN_START, FROZEN_START, None),
        (0, FROZEN_START - 1, CODES.txTOO_LATE),
        (0, 0, None),
    ],
)
def test_time_bounds(
    lab: Lab, bob: Keypair, minimum: int, maximum: int, code: xdr.TransactionResultCode | None
) -> None:
    envelope = lab.build(bob, create(), change=lambda builder: builder.add_time_bounds(minimum, maximum))
    if code is None:
        lab.succeed(envelope)
    else:
        assert lab.refused(envelope) == code


@pytest.mark.parametrize(
    ("minimum", "maximum", "code"),
    [
        (4, 0, CODES.txTOO_EARLY),
        (3, 4, None),
        (0, 3, CODES.txTOO_LATE),
        (0, 4, None),
    ],
)
def test_ledger_bounds(
    lab: Lab, bob: Keypair, minimum: int, maximum: int, code: xdr.TransactionResultCode | None
) -> None:
    """The next ledger is number 3."""

    def bound(builder: TransactionBuilder) -> None:
        builder.add_time_bounds(0, 0).set_ledger_bounds(minimum, maximum)

    envelope = lab.build(bob, create(), change=bound)
    if code is None:
        assert lab.succeed(envelope).ledger == 3
    else:
        assert lab.refused(envelope) == code


@pytest.mark.parametrize(("fee", "operations"), [(99, 1), (199, 2)])
def test_a_bid_below_the_base_fee(lab: Lab, bob: Keypair, fee: int, operations: int) -> None:
    envelope = lab.build(bob, *[create(str(number)) for number in range(operations)], fee=fee)
    result = lab.refuse(envelope)
    assert result.result.code == CODES.txINSUFFICIENT_FEE
    assert result.fee_charged.int64 == 100 * operations


def test_no_account(lab: Lab) -> None:
    stranger = keypair("stranger")
    envelope = lab.build(stranger, create(), sequence=1)
    assert lab.refused(envelope) == CODES.txNO_ACCOUNT


@pytest.mark.parametrize("step", [-1, 0, 2, 1 << 40])
def test_a_sequence_that_is_not_the_next(lab: Lab, bob: Keypair, step: int) -> None:
    envelope = lab.build(bob, create(), sequence=lab.sequence(bob) + step)
    assert lab.refused(envelope) == CODES.txBAD_SEQ


def test_the_starting_sequence_of_the_ledger_cannot_be_used(lab: Lab, bob: Keypair) -> None:
    """So that an account which is merged and made again never repeats a number."""
    gap = (3 << 32) - lab.sequence(bob)

    def allow(builder: TransactionBuilder) -> None:
        builder.add_time_bounds(0, 0).set_min_sequence_number(0)

    envelope = lab.build(bob, create(), sequence=lab.sequence(bob) + gap, change=allow)
    assert lab.refused(envelope) == CODES.txBAD_SEQ


def test_a_minimum_sequence_allows_gaps(lab: Lab, bob: Keypair) -> None:
    def allow(builder: TransactionBuilder) -> None:
        builder.add_time_bounds(0, 0).set_min_sequence_number(lab.sequence(bob))

    number = lab.sequence(bob) + 5
    lab.succeed(lab.build(bob, create(), sequence=number, change=allow))
    assert lab.sequence(bob) == number


def test_a_sequence_age_and_ledger_gap(lab: Lab, bob: Keypair) -> None:
    lab.succeed(lab.build(bob, create("first")))

    def gap(ledgers: int, seconds: int = 0) -> Callable[[TransactionBuilder], None]:
        def change(builder: TransactionBuilder) -> None:
            builder.add_time_bounds(0, 0).set_min_sequence_ledger_gap(ledgers).set_min_sequence_age(seconds)

        return change

    code = CODES.txBAD_MIN_SEQ_AGE_OR_GAP
    assert lab.refused(lab.build(bob, create(), change=gap(2))) == code
    assert lab.refused(lab.build(bob, create(), change=gap(0, 1))) == code
    lab.chain.close_ledger()
    lab.succeed(lab.build(bob, create(), change=gap(2)))


def test_extra_signers_are_not_supported(lab: Lab, bob: Keypair) -> None:
    signer = SignerKey.ed25519_public_key(keypair("other").public_key)

    def demand(builder: TransactionBuilder) -> None:
        builder.add_time_bounds(0, 0).add_extra_signer(signer)

    envelope = lab.build(bob, create(), change=demand, signers=[bob, keypair("other")])
    assert lab.refused(envelope) == CODES.txNOT_SUPPORTED


def test_a_fee_bump_is_not_supported(lab: Lab, bob: Keypair) -> None:
    inner = lab.build(bob, create())
    bump = FeeBumpTransactionEnvelope(
        FeeBumpTransaction(keypair("payer").public_key, 400, inner), lab.chain.passphrase
    )
    bump.sign(keypair("payer"))
    answer = lab.chain.submit(bump.to_xdr_object().to_xdr_bytes())
    assert answer.status == "ERROR"
    assert answer.hash == bump.hash()
    assert answer.result is not None
    assert result_of(answer.result).result.code == CODES.txNOT_SUPPORTED


# Balance


def test_the_reserve_cannot_pay_the_fee(lab: Lab) -> None:
    """What an account of two base reserves (1 XLM) may spend is what lies above them."""
    poor = lab.account("poor", 10_000_100)
    assert lab.refused(lab.build(poor, create(), fee=101)) == CODES.txINSUFFICIENT_BALANCE
    row = lab.apply(lab.build(poor, create(), fee=100))
    assert not row.successful  # paid for, but nothing is left for the new account
    assert lab.balance(poor) == 10_000_000


# Operations


@pytest.mark.parametrize("place", [0, 1])
def test_an_operation_that_is_not_supported(lab: Lab, bob: Keypair, place: int) -> None:
    operations: list[Operation] = [create(), create("other")]
    operations[place] = Payment(bob.public_key, Asset.native(), "1")
    result = lab.refuse(lab.build(bob, *operations, fee=200))
    assert operation_code(result, place) == _Op.opNOT_SUPPORTED


def test_another_operation_that_is_not_supported(lab: Lab, bob: Keypair) -> None:
    assert operation_code(lab.refuse(lab.build(bob, BumpSequence(1)))) == _Op.opNOT_SUPPORTED


@pytest.mark.parametrize("flaw", ["its own source", "a negative amount"])
def test_a_malformed_create_account(lab: Lab, bob: Keypair, flaw: str) -> None:
    """Signed by hand, since the SDK would not build the second."""
    envelope = lab.build(bob, create("bob" if flaw == "its own source" else "new")).to_xdr_object()
    assert envelope.v1 is not None
    operation = envelope.v1.tx.operations[0].body.create_account_op
    assert operation is not None
    if flaw == "a negative amount":
        operation.starting_balance = xdr.Int64(-1)
    tagged = xdr.TransactionSignaturePayloadTaggedTransaction(
        xdr.EnvelopeType.ENVELOPE_TYPE_TX, tx=envelope.v1.tx
    )
    payload = xdr.TransactionSignaturePayload(xdr.Hash(lab.chain.network_id), tagged)
    digest = sha256(payload.to_xdr_bytes()).digest()
    envelope.v1.signatures = [bob.sign_decorated(digest).to_xdr_object()]
    answer = lab.chain.submit(envelope.to_xdr_bytes())
    assert (answer.status, answer.hash) == ("ERROR", digest)
    assert answer.result is not None
    inner = operation_result(result_of(answer.result)).tr
    assert inner is not None
    assert inner.create_account_result is not None
    assert inner.create_account_result.code == xdr.CreateAccountResultCode.CREATE_ACCOUNT_MALFORMED


def test_memo_and_muxed_source_are_fine_elsewhere(lab: Lab, bob: Keypair) -> None:
    def remember(builder: TransactionBuilder) -> None:
        builder.set_timeout(300).add_id_memo(7)

    envelope = lab.build(bob, create(), change=remember, signers=[])
    envelope.transaction.source = MuxedAccount(bob.public_key, 7)
    envelope.sign(bob)
    assert lab.succeed(envelope).source == bob.public_key
