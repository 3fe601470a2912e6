"""Decoding what comes in: the SDK's own hash, or one clear error."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stellar_sdk import MuxedAccount, Network, TransactionBuilder
from stellar_sdk.account import Account
from stellar_sdk.operation import CreateAccount

from mycelium_localnet import errors
from mycelium_localnet.envelopes import Transaction, decode
from tests.localnet.ledger.lab import create, keypair

if TYPE_CHECKING:
    from stellar_sdk import Keypair

    from tests.localnet.ledger.lab import Lab

PASSPHRASE = "A network"


def sample(*, v1: bool = True) -> bytes:
    source = keypair("source")
    envelope = (
        TransactionBuilder(Account(source.public_key, 5), PASSPHRASE, 100, v1=v1)
        .append_operation(create())
        .add_time_bounds(0, 0)
        .build()
    )
    envelope.sign(source)
    return envelope.to_xdr_object().to_xdr_bytes()


@given(
    sequence=st.integers(1, 2**62),
    fee=st.integers(100, 2**32 - 1),
    muxed=st.one_of(st.none(), st.integers(0, 2**64 - 1)),
    memo=st.one_of(st.none(), st.text(max_size=7)),
    limit=st.integers(0, 2**40),
)
def test_the_hash_is_the_sdks(
    sequence: int, fee: int, muxed: int | None, memo: str | None, limit: int
) -> None:
    source = keypair("source")
    account = Account(MuxedAccount(source.public_key, muxed), sequence)
    builder = (
        TransactionBuilder(account, PASSPHRASE, fee).append_operation(create()).add_time_bounds(0, limit)
    )
    if memo is not None:
        builder.add_text_memo(memo)
    envelope = builder.build()
    envelope.sign(source)
    decoded = decode(envelope.to_xdr_object().to_xdr_bytes(), Network(PASSPHRASE).network_id())
    assert isinstance(decoded, Transaction)
    assert decoded.hash == envelope.hash()
    assert decoded.source_address == source.public_key
    assert (decoded.sequence, decoded.fee) == (sequence + 1, fee)


def test_an_old_envelope_is_taken_as_the_new_one(lab: Lab, bob: Keypair) -> None:
    """What the network does with V0 envelopes, whose hash is the same."""
    builder = TransactionBuilder(
        Account(bob.public_key, lab.sequence(bob)), lab.chain.passphrase, 100, v1=False
    )
    old = builder.append_operation(create()).add_time_bounds(0, 0).build()
    old.sign(bob)
    assert old.to_xdr_object().v0 is not None
    row = lab.succeed(old)
    assert row.hash == old.hash()
    stored = decode(row.envelope, lab.chain.network_id)
    assert isinstance(stored, Transaction)
    assert stored.hash == old.hash()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\0",
        b"\0\0\0\7",
        b"not an envelope at all",
        sample()[:-1],
        sample() + b"\0",
        sample() + bytes(4),
        sample()[:4] + b"\xff" * 40,
    ],
)
def test_what_is_not_an_envelope(lab: Lab, data: bytes) -> None:
    with pytest.raises(errors.MalformedEnvelopeError):
        lab.chain.submit(data)
    assert lab.latest().sequence == 1


@given(at=st.integers(0, len(sample()) - 1), value=st.integers(0, 255))
def test_any_changed_byte_is_an_envelope_or_an_error(at: int, value: int) -> None:
    data = bytearray(sample())
    data[at] = value
    try:
        decoded = decode(bytes(data), bytes(32))
    except errors.MalformedEnvelopeError:
        return
    assert decoded.envelope == bytes(data)


@given(st.binary(max_size=300))
def test_any_bytes_are_an_envelope_or_an_error(data: bytes) -> None:
    for kind in (b"", b"\0\0\0\0", b"\0\0\0\2", b"\0\0\0\5"):
        try:
            decode(kind + data, bytes(32))
        except errors.MalformedEnvelopeError:
            continue


def test_an_error_says_nothing_of_the_contents(lab: Lab) -> None:
    operation = CreateAccount(keypair("new").public_key, "5")
    builder = TransactionBuilder(Account(keypair("source").public_key, 5), PASSPHRASE, 100)
    envelope = builder.append_operation(operation).add_text_memo("a secret").add_time_bounds(0, 0).build()
    with pytest.raises(errors.MalformedEnvelopeError) as caught:
        lab.chain.submit(envelope.to_xdr_object().to_xdr_bytes() + b"\0")
    assert "secret" not in str(caught.value)
