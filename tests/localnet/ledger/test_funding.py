"""The friendbot: new accounts, by real transactions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from stellar_sdk import Keypair, scval, xdr

from mycelium_localnet import errors
from tests.localnet.ledger.lab import create, keypair, meta_of, operation_result, result_of

if TYPE_CHECKING:
    from stellar_sdk import TransactionBuilder

    from tests.localnet.ledger.lab import Lab

_Create = xdr.CreateAccountResultCode


def test_funding_is_a_transaction_like_any_other(lab: Lab) -> None:
    friendbot = Keypair.from_public_key(lab.chain.friendbot)
    before = lab.balance(friendbot)
    name = lab.chain.fund(keypair("bob").public_key)
    row = lab.transaction(bytes.fromhex(name))
    assert row.successful
    assert (row.ledger, row.application_order, row.fee_bump) == (2, 1, False)
    assert row.source == lab.chain.friendbot
    account = lab.account_entry(keypair("bob"))
    assert account.balance.int64 == 10_000 * 10**7
    assert account.seq_num.sequence_number.int64 == 2 << 32
    assert account.thresholds.thresholds == b"\1\0\0\0"
    assert lab.balance(friendbot) == before - 10_000 * 10**7 - 100


def test_a_new_account_can_act_at_once(lab: Lab, bob: Keypair) -> None:
    lab.succeed(lab.build(bob, create()))
    assert lab.sequence(bob) == (2 << 32) + 1


def test_an_account_that_exists(lab: Lab, bob: Keypair) -> None:
    before = lab.latest()
    with pytest.raises(errors.AccountExistsError, match=bob.public_key) as caught:
        lab.chain.fund(bob.public_key)
    assert lab.latest() == before
    assert caught.value.result is not None
    inner = operation_result(result_of(caught.value.result)).tr
    assert inner is not None
    assert inner.create_account_result is not None
    assert inner.create_account_result.code == _Create.CREATE_ACCOUNT_ALREADY_EXIST


@pytest.mark.parametrize(
    "address",
    [
        "",
        "bob",
        "CAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAD2KM",
        "MAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAACJUQ",
        "GAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAWHG",
    ],
)
def test_what_is_not_an_account(lab: Lab, address: str) -> None:
    with pytest.raises(errors.InvalidRequestError):
        lab.chain.fund(address)
    assert lab.latest().sequence == 1


@pytest.mark.parametrize(("amount", "code"), [(9_999_999, "LOW_RESERVE"), (10**18, "UNDERFUNDED")])
def test_an_amount_that_cannot_be(lab: Lab, amount: int, code: str) -> None:
    with pytest.raises(errors.FundingError, match=code):
        lab.chain.fund(keypair("bob").public_key, amount)


@pytest.mark.parametrize("amount", [-1, 1 << 63])
def test_an_amount_that_is_none(lab: Lab, amount: int) -> None:
    with pytest.raises(errors.InvalidRequestError):
        lab.chain.fund(keypair("bob").public_key, amount)
    assert lab.latest().sequence == 1


def test_the_least_an_account_can_have(lab: Lab) -> None:
    assert lab.balance(lab.account("bob", 10_000_000)) == 10_000_000


def test_many_wait_for_one_ledger(manual: Lab) -> None:
    names = [f"account {number}" for number in range(5)]
    hashes = [bytes.fromhex(manual.chain.fund(keypair(name).public_key)) for name in names]
    number = manual.chain.close_ledger()
    with manual.chain.read() as view:
        rows = view.transactions((number - 1, 1 << 20), 10)
    assert [row.hash for row in rows] == hashes
    assert all(row.successful for row in rows)
    assert all(manual.balance(keypair(name)) == 10_000 * 10**7 for name in names)


def test_an_account_that_is_being_funded(manual: Lab) -> None:
    name = manual.chain.fund(keypair("bob").public_key)
    manual.chain.fund(keypair("carol").public_key)
    with pytest.raises(errors.AccountExistsError, match="being funded") as caught:
        manual.chain.fund(keypair("bob").public_key)
    assert caught.value.pending == bytes.fromhex(name)
    assert caught.value.result is not None
    operation_result(result_of(caught.value.result))
    manual.chain.close_ledger()
    assert all(manual.balance(keypair(name)) == 10_000 * 10**7 for name in ("bob", "carol"))
    with pytest.raises(errors.AccountExistsError, match="exists already") as caught:
        manual.chain.fund(keypair("bob").public_key)
    assert caught.value.pending is None


def test_what_is_told_of_a_transfer(lab: Lab, bob: Keypair) -> None:
    def remember(builder: TransactionBuilder) -> None:
        builder.set_timeout(300).add_text_memo("rent")

    plain = lab.succeed(lab.build(bob, create("one", "5")))
    noted = lab.succeed(lab.build(bob, create("two", "5"), change=remember))
    for row, name in ((plain, "one"), (noted, "two")):
        (event,) = meta_of(row).operations[0].events
        body = event.body.v0
        assert body is not None
        assert scval.from_symbol(body.topics[0]) == "transfer"
        assert scval.from_address(body.topics[1]).address == bob.public_key
        assert scval.from_address(body.topics[2]).address == keypair(name).public_key
        assert scval.from_string(body.topics[3]) == b"native"
        if row is plain:
            assert scval.from_int128(body.data) == 5 * 10**7
        else:
            data = scval.from_map(body.data)
            assert scval.from_int128(data[scval.to_symbol("amount")]) == 5 * 10**7
            assert scval.from_string(data[scval.to_symbol("to_muxed_id")]) == b"rent"
