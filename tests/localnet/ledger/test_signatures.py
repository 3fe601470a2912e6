"""Who must have signed: keys, weights and thresholds, and nobody more than that."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from stellar_sdk import SignerKey, TransactionBuilder, TransactionEnvelope, xdr
from stellar_sdk.account import Account as SourceAccount

from mycelium_localnet.accounts import Account
from mycelium_localnet.state import stored_state
from tests.localnet.ledger.lab import CODES, create, keypair, operation_code, result_of

if TYPE_CHECKING:
    from stellar_sdk import Keypair

    from tests.localnet.ledger.lab import Lab

_Op = xdr.OperationResultCode


def test_no_signature(lab: Lab, bob: Keypair) -> None:
    assert lab.refused(lab.build(bob, create(), signers=[])) == CODES.txBAD_AUTH


def test_somebody_elses_signature(lab: Lab, bob: Keypair) -> None:
    assert lab.refused(lab.build(bob, create(), signers=[keypair("mallory")])) == CODES.txBAD_AUTH


def test_a_signature_for_another_network(lab: Lab, bob: Keypair) -> None:
    envelope = lab.build(bob, create(), signers=[])
    elsewhere = TransactionEnvelope(envelope.transaction, "Test SDF Network ; September 2015")
    elsewhere.sign(bob)
    envelope.signatures = elsewhere.signatures
    assert lab.refused(envelope) == CODES.txBAD_AUTH


def test_a_broken_signature(lab: Lab, bob: Keypair) -> None:
    envelope = lab.build(bob, create())
    good = envelope.signatures[0].signature
    envelope.signatures[0].signature = bytes([good[0] ^ 1]) + good[1:]
    assert lab.refused(envelope) == CODES.txBAD_AUTH
    envelope.signatures[0].signature = good[:10]
    assert lab.refused(envelope) == CODES.txBAD_AUTH


@pytest.mark.parametrize("extra", ["mallory", "bob"])
def test_a_signature_too_many(lab: Lab, bob: Keypair, extra: str) -> None:
    envelope = lab.build(bob, create(), signers=[bob, keypair(extra)])
    assert lab.refused(envelope) == CODES.txBAD_AUTH_EXTRA


def test_an_operation_for_another_account_needs_its_signature(lab: Lab, bob: Keypair) -> None:
    carol = lab.account("carol")
    unsigned = lab.build(bob, create(source=carol))
    assert operation_code(lab.refuse(unsigned)) == _Op.opBAD_AUTH
    before = lab.balance(carol)
    lab.succeed(lab.build(bob, create(source=carol), signers=[bob, carol]))
    assert lab.balance(carol) == before - 5 * 10**7


def test_an_operation_for_an_account_that_is_not_there(lab: Lab, bob: Keypair) -> None:
    """Its key must have signed; whether it is there shows when it is applied."""
    ghost = keypair("ghost")
    unsigned = lab.build(bob, create(source=ghost))
    assert operation_code(lab.refuse(unsigned)) == _Op.opBAD_AUTH
    row = lab.apply(lab.build(bob, create(source=ghost), signers=[bob, ghost]))
    assert not row.successful
    assert operation_code(result_of(row.result)) == _Op.opNO_ACCOUNT


def test_an_operation_may_act_for_an_account_made_before_it(lab: Lab, bob: Keypair) -> None:
    ghost = keypair("ghost")
    operations = [create("ghost", "20"), create("other", "5", source=ghost)]
    lab.succeed(lab.build(bob, *operations, fee=200, signers=[bob, ghost]))
    assert lab.balance(ghost) == 15 * 10**7


def _set_signers(lab: Lab, owner: Keypair, thresholds: tuple[int, int, int, int], **weights: int) -> None:
    """What SetOptions would do."""
    with lab.chain._storage.write() as connection:
        state = stored_state(connection, lab.latest().sequence)
        account = Account.load(state, owner.raw_public_key())
        assert account is not None
        account.entry.thresholds = xdr.Thresholds(bytes(thresholds))
        account.entry.signers = [
            xdr.Signer(
                SignerKey.ed25519_public_key(keypair(name).public_key).to_xdr_object(), xdr.Uint32(weight)
            )
            for name, weight in weights.items()
        ]
        account.save(state)
        state.store(connection)


def test_weights_against_thresholds(lab: Lab, bob: Keypair) -> None:
    _set_signers(lab, bob, (1, 2, 3, 4), carol=2, dave=1)
    carol, dave = keypair("carol"), keypair("dave")

    def sign(*signers: Keypair) -> TransactionEnvelope:
        return lab.build(bob, create(), signers=signers)

    assert lab.refused(sign(bob)) == CODES.txBAD_AUTH
    assert lab.refused(sign(bob, bob)) == CODES.txBAD_AUTH  # a signer counts once
    # Enough for the transaction (low), not for the operation (medium).
    assert operation_code(lab.refuse(sign(carol))) == _Op.opBAD_AUTH
    assert operation_code(lab.refuse(sign(bob, dave))) == _Op.opBAD_AUTH
    # More than enough: the last one is not needed.
    assert lab.refused(sign(carol, dave, bob)) == CODES.txBAD_AUTH_EXTRA
    lab.succeed(sign(carol, dave))


def test_extending_needs_the_low_threshold_only(lab: Lab, alice: Keypair) -> None:
    _set_signers(lab, alice, (1, 1, 2, 2))
    lab.succeed(lab.prepare_ttl(alice, [lab.instance_key], extend_to=200_000))
    refusing = lab.refuse(lab.build(alice, create()))
    assert operation_code(refusing) == _Op.opBAD_AUTH


def test_a_master_key_without_weight_signs_nothing(lab: Lab, bob: Keypair) -> None:
    _set_signers(lab, bob, (0, 1, 1, 1), carol=1)
    assert lab.refused(lab.build(bob, create())) == CODES.txBAD_AUTH
    lab.succeed(lab.build(bob, create(), signers=[keypair("carol")]))


def test_nobody_signs_for_the_null_account(lab: Lab, bob: Keypair) -> None:
    """Its key is a point of small order, for which a lax verifier takes a signature that anybody can make."""
    null = "GAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAWHF"
    account = SourceAccount(null, 1 << 32)
    builder = TransactionBuilder(account, lab.chain.passphrase, 100).append_operation(create())
    envelope = builder.add_time_bounds(0, 0).build()
    envelope.sign(bob)
    envelope.signatures[0].signature_hint = bytes(4)
    for point in (bytes(32), b"\1" + bytes(31)):
        envelope.signatures[0].signature = point + bytes(32)
        assert lab.refused(envelope) == CODES.txBAD_AUTH
