"""What transactions pay, to the stroop: against the published formulas, and nothing lost on the way."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from stellar_sdk import scval, xdr

from tests.localnet.ledger.lab import change_call, create, keypair, meta_of, result_of, return_value

if TYPE_CHECKING:
    from stellar_sdk import Keypair

    from mycelium_localnet.ledger import TransactionRow
    from tests.localnet.ledger.lab import Lab

# Protocol 28's rates, in stroops, as the network publishes them.
PER_10K_INSTRUCTIONS = 25
PER_DISK_READ_ENTRY = 6_250
PER_WRITE_ENTRY = 10_000
PER_DISK_READ_KB = 1_786
PER_WRITE_KB = 3_500
PER_HISTORICAL_KB = 16_235
PER_EVENTS_KB = 10_000
PER_SIZE_KB = 1_624
RESULT_SIZE = 300
MINIMUM_RENT_PER_KB = 1_000
RENT_DENOMINATOR = 1_215
TTL_SIZE = 48


def portion(amount: int, rate: int, unit: int = 1_024) -> int:
    """`rate` for each `unit` of `amount`, rounded up."""
    return -(-amount * rate // unit)


def charged(row: TransactionRow) -> int:
    return result_of(row.result).fee_charged.int64


def soroban_fees(row: TransactionRow) -> tuple[int, int, int]:
    """Non-refundable, refundable, and the rent in the latter."""
    meta = meta_of(row).soroban_meta
    assert meta is not None
    assert meta.ext.v1 is not None
    fees = meta.ext.v1
    return (
        fees.total_non_refundable_resource_fee_charged.int64,
        fees.total_refundable_resource_fee_charged.int64,
        fees.rent_fee_charged.int64,
    )


def non_refundable(row: TransactionRow) -> int:
    """The published formula."""
    envelope = xdr.TransactionEnvelope.from_xdr_bytes(row.envelope)
    assert envelope.v1 is not None
    data = envelope.v1.tx.ext.soroban_data
    assert data is not None
    resources = data.resources
    archived = 0 if data.ext.resource_ext is None else len(data.ext.resource_ext.archived_soroban_entries)
    size = len(row.envelope)
    return (
        portion(resources.instructions.uint32, PER_10K_INSTRUCTIONS, 10_000)
        + PER_DISK_READ_ENTRY * archived
        + PER_WRITE_ENTRY * len(resources.footprint.read_write)
        + portion(resources.disk_read_bytes.uint32, PER_DISK_READ_KB)
        + portion(resources.write_bytes.uint32, PER_WRITE_KB)
        + portion(size + RESULT_SIZE, PER_HISTORICAL_KB)
        + portion(size, PER_SIZE_KB)
    )


def rent_of_new_entry(size: int, ledgers: int) -> int:
    """Rent for `ledgers` ledgers, and the write of the TTL entry."""
    return (
        portion(size * MINIMUM_RENT_PER_KB * ledgers, 1, 1_024 * RENT_DENOMINATOR)
        + PER_WRITE_ENTRY
        + portion(TTL_SIZE, PER_WRITE_KB)
    )


def balance_in(entry: xdr.LedgerEntry) -> int:
    assert entry.data.account is not None
    return entry.data.account.balance.int64


def stored_value(lab: Lab, key: int) -> int:
    """What `put` stored."""
    found = lab.entry(lab.data_key(key))
    assert found is not None
    assert found[0].data.contract_data is not None
    return scval.from_uint64(found[0].data.contract_data.val)


@pytest.mark.parametrize(("bid", "paid"), [(100, 100), (101, 100), (1_000_000, 100)])
def test_inclusion_costs_the_base_fee_at_most(lab: Lab, bob: Keypair, bid: int, paid: int) -> None:
    before = lab.balance(bob)
    row = lab.succeed(lab.build(bob, create(), fee=bid))
    assert charged(row) == paid
    assert lab.balance(bob) == before - paid - 5 * 10**7


def test_the_base_fee_is_for_each_operation(lab: Lab, bob: Keypair) -> None:
    row = lab.succeed(lab.build(bob, create("one"), create("two"), create("three"), fee=1_000))
    assert charged(row) == 300


def test_a_failed_transaction_pays_and_uses_its_sequence_number(lab: Lab, bob: Keypair) -> None:
    before, number = lab.balance(bob), lab.sequence(bob)
    row = lab.apply(lab.build(bob, create("one"), create("one"), fee=1_000))
    assert not row.successful
    assert charged(row) == 200
    assert lab.balance(bob) == before - 200
    assert lab.sequence(bob) == number + 1
    with lab.chain.read() as view:
        assert view.entry(bytes(8) + keypair("one").raw_public_key()) is None


def test_a_first_write_to_the_stroop(lab: Lab, alice: Keypair) -> None:
    before = lab.balance(alice)
    row = lab.put(alice, 1, 2)
    fixed, refundable, rent = soroban_fees(row)
    assert fixed == non_refundable(row)
    entry = lab.entry(lab.data_key(1))
    assert entry is not None
    assert rent == rent_of_new_entry(len(entry[0].to_xdr_bytes()), 120_960)
    value = return_value(row)
    assert value is not None
    size = sum(map(len, row.contract_events[0])) + len(value.to_xdr_bytes())
    assert refundable == rent + portion(size, PER_EVENTS_KB)
    assert charged(row) == 100 + fixed + refundable
    assert lab.balance(alice) == before - charged(row)


def test_an_update_pays_no_rent_again(lab: Lab, alice: Keypair) -> None:
    lab.put(alice, 1, 2)
    row = lab.put(alice, 1, 3)
    fixed, refundable, rent = soroban_fees(row)
    assert rent == 0
    assert charged(row) == 100 + fixed + refundable


def test_what_was_bid_too_much_comes_back(lab: Lab, alice: Keypair) -> None:
    """A higher resource fee is a larger refundable part, and a higher inclusion bid is not taken."""

    def generous(data: xdr.SorobanTransactionData) -> None:
        data.resource_fee = xdr.Int64(data.resource_fee.int64 + 5_000_000)

    envelope = lab.prepare(alice, lab.put_call(), change_data=generous, signers=[])
    envelope.transaction.fee += 777
    envelope.sign(alice)
    before = lab.balance(alice)
    row = lab.succeed(envelope)
    fixed, refundable, _ = soroban_fees(row)
    assert charged(row) == 100 + fixed + refundable
    assert lab.balance(alice) == before - charged(row)


def test_a_failed_invocation_gets_all_refundable_fees_back(lab: Lab, alice: Keypair) -> None:
    envelope = lab.prepare(alice, lab.put_call(), signers=[])
    # Another function in the place of the one that was simulated: it fails, with the same resources.
    change_call(envelope, "nil")
    envelope.sign(alice)
    before = lab.balance(alice)
    row = lab.apply(envelope)
    assert not row.successful
    fixed, refundable, rent = soroban_fees(row)
    assert (refundable, rent) == (0, 0)
    assert fixed == non_refundable(row)
    assert charged(row) == 100 + fixed
    assert lab.balance(alice) == before - charged(row)


@pytest.mark.parametrize("missing", [0, 1])
def test_refundable_fees_must_be_enough(lab: Lab, alice: Keypair, missing: int) -> None:
    """Exactly what is used is enough; one stroop less is not."""
    for number in (1, 2):
        lab.put(alice, number, 7)
    used = sum(soroban_fees(lab.put(alice, 1, 8))[:2])

    def exactly(data: xdr.SorobanTransactionData) -> None:
        data.resource_fee = xdr.Int64(used - missing)

    row = lab.apply(lab.prepare(alice, lab.put_call(2, 8), change_data=exactly))
    if not missing:
        assert row.successful
        assert charged(row) == 100 + used
        return
    result = result_of(row.result)
    assert result.result.results is not None
    inner = result.result.results[0].tr
    assert inner is not None
    assert inner.invoke_host_function_result is not None
    code = xdr.InvokeHostFunctionResultCode.INVOKE_HOST_FUNCTION_INSUFFICIENT_REFUNDABLE_FEE
    assert inner.invoke_host_function_result.code == code
    assert stored_value(lab, 2) == 7


def test_what_is_told_of_fees(lab: Lab, alice: Keypair) -> None:
    """A fee event before all transactions, a refund event behind all of them, and accounts that changed with
    them."""
    row = lab.put(alice, 1, 2)
    envelope = xdr.TransactionEnvelope.from_xdr_bytes(row.envelope)
    assert envelope.v1 is not None
    bid = envelope.v1.tx.fee.uint32
    refund = bid - charged(row)
    assert refund > 0
    amounts = []
    for data, stage in zip(row.transaction_events, (0, 2), strict=True):
        event = xdr.TransactionEvent.from_xdr_bytes(data)
        assert event.stage == stage
        body = event.event.body.v0
        assert body is not None
        assert scval.from_symbol(body.topics[0]) == "fee"
        assert scval.from_address(body.topics[1]).address == alice.public_key
        amounts.append(scval.from_int128(body.data))
    assert amounts == [bid, -refund]
    assert [event.to_xdr_bytes() for event in meta_of(row).events] == list(row.transaction_events)
    close = xdr.LedgerCloseMeta.from_xdr_bytes(lab.latest().close_meta).v2
    assert close is not None
    (part,) = close.tx_processing
    steps = []
    for changes in (part.fee_processing, part.post_tx_apply_fee_processing):
        before, after = changes.ledger_entry_changes
        assert before.state is not None
        assert after.updated is not None
        steps.append(balance_in(after.updated) - balance_in(before.state))
    assert steps == [-bid, refund]


def test_nothing_to_give_back_is_not_told(lab: Lab, bob: Keypair) -> None:
    row = lab.succeed(lab.build(bob, create()))
    assert len(row.transaction_events) == 1
    close = xdr.LedgerCloseMeta.from_xdr_bytes(lab.latest().close_meta).v2
    assert close is not None
    assert close.tx_processing[0].post_tx_apply_fee_processing.ledger_entry_changes == []


def test_the_whole_supply_is_accounted_for(lab: Lab, alice: Keypair) -> None:
    lab.put(alice, 1, 2)
    lab.apply(lab.build(alice, create("x"), create("x"), fee=200))
    with lab.chain._storage.read() as connection:
        rows = connection.execute("SELECT entry FROM entries WHERE type = 0").fetchall()
    held = 0
    for (data,) in rows:
        account = xdr.LedgerEntry.from_xdr_bytes(data).data.account
        assert account is not None
        held += account.balance.int64
    header = xdr.LedgerHeader.from_xdr_bytes(lab.latest().header)
    assert held + header.fee_pool.int64 == header.total_coins.int64
