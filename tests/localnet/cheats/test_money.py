"""Balances out of nowhere, and the accounts that everybody knows."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from stellar_sdk import Keypair, SorobanServer, xdr

from mycelium_localnet import IN_PROCESS_URL, Chain, InProcessClient, errors
from mycelium_localnet.cheats.named import NAMES
from tests.localnet.ledger.lab import CODES, Lab, create, keypair
from tests.localnet.ledger.test_headers import check_chained

if TYPE_CHECKING:
    from pathlib import Path


def coins(lab: Lab) -> tuple[int, int]:
    """What accounts and the fee pool hold, and what there is said to be."""
    held = 0
    with lab.chain._storage.read() as connection:
        for (data,) in connection.execute("SELECT entry FROM entries WHERE type = 0"):
            account = xdr.LedgerEntry.from_xdr_bytes(data).data.account
            assert account is not None
            held += account.balance.int64
    header = xdr.LedgerHeader.from_xdr_bytes(lab.latest().header)
    return held + header.fee_pool.int64, header.total_coins.int64


def test_a_balance_is_set_up_and_down(lab: Lab) -> None:
    alice, before = keypair("alice"), lab.latest()
    sequence = lab.sequence(alice)
    for number, balance in enumerate((12_345, 10**15, 0, 5 * 10**7), start=1):
        assert lab.chain.set_balance(alice.public_key, balance) == before.sequence + number
        assert lab.balance(alice) == balance
        held, said = coins(lab)
        assert held == said
    assert lab.sequence(alice) == sequence
    check_chained(lab.ledgers())
    hashes = {xdr.LedgerHeader.from_xdr_bytes(row.header).bucket_list_hash.hash for row in lab.ledgers()[-5:]}
    assert len(hashes) == 5  # each state is another one
    lab.succeed(lab.build(alice, create("new", "2")))


def test_an_account_that_is_not_there_is_made(lab: Lab) -> None:
    bob = keypair("bob")
    ledger = lab.chain.set_balance(bob.public_key, 20 * 10**7)
    entry = lab.account_entry(bob)
    assert (entry.balance.int64, entry.seq_num.sequence_number.int64) == (20 * 10**7, ledger << 32)
    lab.succeed(lab.build(bob, create("new")))
    assert coins(lab)[0] == coins(lab)[1]


def test_a_poor_account_cannot_pay(lab: Lab) -> None:
    lab.chain.set_balance(keypair("alice").public_key, 0)
    assert lab.refused(lab.build(keypair("alice"), create("new"))) == CODES.txINSUFFICIENT_BALANCE


def test_what_is_pending_stays_so() -> None:
    with Chain.open(":memory:", closing="manual") as chain:
        chain.fund(keypair("bob").public_key)
        chain.set_balance(keypair("carol").public_key, 1)
        with chain.read() as view:
            assert view.entry(bytes(8) + keypair("bob").raw_public_key()) is None
            assert view.transactions((0, 0), 10) == []
        chain.close_ledger()
        with chain.read() as view:
            assert view.entry(bytes(8) + keypair("bob").raw_public_key()) is not None


@pytest.mark.parametrize("balance", [-1, 1 << 63])
def test_what_is_no_balance(lab: Lab, balance: int) -> None:
    with pytest.raises(errors.InvalidRequestError, match=str(balance)):
        lab.chain.set_balance(keypair("alice").public_key, balance)


def test_more_coins_than_can_be_counted(lab: Lab) -> None:
    alice, before = keypair("alice"), lab.latest()
    most = (1 << 63) - 1
    with pytest.raises(errors.InvalidRequestError, match="so many coins"):
        lab.chain.set_balance(alice.public_key, most)
    assert lab.latest() == before
    others = coins(lab)[1] - lab.balance(alice)
    lab.chain.set_balance(alice.public_key, most - others)
    assert coins(lab) == (most, most)
    with pytest.raises(errors.InvalidRequestError, match="so many coins"):
        lab.chain.set_balance(keypair("bob").public_key, 1)
    lab.succeed(lab.build(alice, create("new")))


def test_named_accounts_that_are_being_funded() -> None:
    with Chain.open(":memory:", closing="manual") as chain:
        first = chain.accounts(fund=False)[0]
        chain.fund(first.address)
        assert all(one.funded for one in chain.accounts())
        with chain.read() as view:
            assert len(view.transactions((0, 0), 100)) == len(NAMES)


def test_a_seed_in_the_place_of_an_address_is_not_repeated(lab: Lab) -> None:
    seed = keypair("alice").secret
    before = lab.latest()
    for call in (lambda: lab.chain.set_balance(seed, 1), lambda: lab.chain.fund(seed)):
        with pytest.raises(errors.InvalidRequestError) as caught:
            call()
        assert seed not in str(caught.value)
    assert lab.latest() == before


def test_named_accounts_are_there(lab: Lab) -> None:
    listed = lab.chain.accounts(fund=False)
    assert [one.name for one in listed] == list(NAMES)
    assert not any(one.funded for one in listed)
    first = lab.latest().sequence
    found = lab.chain.accounts()
    assert lab.latest().sequence == first + len(NAMES)
    assert all(one.funded for one in found)
    assert lab.chain.accounts() == found
    assert lab.latest().sequence == first + len(NAMES)  # nothing to do
    server = SorobanServer(IN_PROCESS_URL, InProcessClient(lab.chain))
    for one in found:
        owner = Keypair.from_secret(one.secret)
        assert owner.public_key == one.address
        assert lab.balance(owner) == 10_000 * 10**7
        server.load_account(one.address)
        assert one.secret not in repr(one)
    lab.succeed(lab.build(Keypair.from_secret(found[0].secret), create("new")))


def test_named_accounts_that_are_there_already_are_left_alone(lab: Lab) -> None:
    bob = lab.chain.accounts(fund=False)[1]
    lab.chain.set_balance(bob.address, 777)
    assert all(one.funded for one in lab.chain.accounts())
    assert lab.balance(Keypair.from_secret(bob.secret)) == 777


def test_named_accounts_do_not_wait_for_a_ledger() -> None:
    with Chain.open(":memory:", closing="manual") as chain:
        assert all(one.funded for one in chain.accounts())
        with chain.read() as view:
            assert view.latest().sequence == 2


def test_named_accounts_are_the_same_everywhere_and_other_ones_elsewhere(tmp_path: Path) -> None:
    """Pinned: users write these addresses down."""
    program = (
        "from mycelium_localnet import Chain\n"
        "with Chain.open(':memory:') as chain: print(chain.accounts(fund=False)[0].address)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, text=True)
    alice = "GDWCE3K3PCOI45FEBPVQFILETMSIREUIOXLE6LYAHZBP7BRM3CHLK2DW"
    with Chain.open(tmp_path / "chain.db") as chain:
        assert done.stdout.strip() == chain.accounts(fund=False)[0].address == alice
        ours = {one.address for one in chain.accounts(fund=False)}
    with Chain.open(":memory:", passphrase="Test SDF Network ; September 2015") as chain:
        theirs = {one.address for one in chain.accounts(fund=False)}
    assert len(ours) == len(theirs) == len(NAMES)
    assert ours.isdisjoint(theirs)
