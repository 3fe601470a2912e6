"""Transactions that wait for a ledger, and those that come again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from stellar_sdk import xdr

from mycelium_localnet import Chain, genesis
from mycelium_localnet.clock import FROZEN_START
from tests.localnet.ledger.lab import CODES, Lab, create, keypair, result_of

if TYPE_CHECKING:
    from pathlib import Path

    from stellar_sdk import Keypair, TransactionEnvelope


def funded(lab: Lab, *names: str) -> list[Keypair]:
    """Accounts on a chain that closes ledgers only when told to."""
    found = [lab.account(name) for name in names]
    lab.chain.close_ledger()
    return found


def test_an_accepted_transaction_waits_for_its_ledger(manual: Lab) -> None:
    (bob,) = funded(manual, "bob")
    before = manual.latest()
    answer = manual.submit(manual.build(bob, create()))
    assert answer.status == "PENDING"
    assert (answer.latest_ledger, answer.close_time) == (before.sequence, before.close_time)
    assert manual.latest() == before
    with manual.chain.read() as view:
        assert view.is_pending(answer.hash)
        assert view.transaction(answer.hash) is None
    assert manual.chain.close_ledger() == before.sequence + 1
    with manual.chain.read() as view:
        assert not view.is_pending(answer.hash)
        row = view.transaction(answer.hash)
    assert row is not None
    assert row.successful
    assert (row.ledger, row.application_order) == (before.sequence + 1, 1)


def test_the_same_transaction_while_it_waits(manual: Lab) -> None:
    (bob,) = funded(manual, "bob")
    envelope = manual.build(bob, create())
    assert manual.submit(envelope).status == "PENDING"
    assert manual.submit(envelope).status == "DUPLICATE"
    manual.chain.close_ledger()
    with manual.chain.read() as view:
        assert [row.hash for row in view.transactions((2, 99), 10)] == [envelope.hash()]


def test_another_transaction_of_the_source_while_one_waits(manual: Lab) -> None:
    (bob,) = funded(manual, "bob")
    first = manual.build(bob, create())
    second = manual.build(bob, create("other"), sequence=manual.sequence(bob) + 2)
    again = manual.build(bob, create("other"))
    earlier = manual.build(bob, create("other"), sequence=manual.sequence(bob))
    assert manual.submit(first).status == "PENDING"
    assert manual.submit(second).status == "TRY_AGAIN_LATER"
    assert manual.submit(again).status == "TRY_AGAIN_LATER"
    assert manual.refused(earlier) == CODES.txBAD_SEQ
    manual.chain.close_ledger()
    assert manual.submit(second).status == "PENDING"


def test_bad_resources_are_told_even_while_another_waits(manual: Lab) -> None:
    (alice,) = funded(manual, "alice")
    assert manual.submit(manual.build(alice, create())).status == "PENDING"

    settings = manual.chain.settings
    zero, room = xdr.Uint32(0), xdr.Uint32(settings.tx_max_instructions + 1)
    data = xdr.SorobanTransactionData(
        xdr.SorobanTransactionDataExt(0),
        xdr.SorobanResources(xdr.LedgerFootprint([], []), room, zero, zero),
        xdr.Int64(10**7),
    )
    manual.contract_id = "CAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAD2KM"
    envelope = manual.build(alice, manual.call("put"), soroban=data, fee=10**8)
    assert manual.refused(envelope) == CODES.txSOROBAN_INVALID


def test_other_sources_do_not_wait(manual: Lab) -> None:
    bob, carol = funded(manual, "bob", "carol")
    hashes = []
    for source in (carol, bob):
        answer = manual.submit(manual.build(source, create(source.public_key)))
        assert answer.status == "PENDING"
        hashes.append(answer.hash)
    number = manual.chain.close_ledger()
    with manual.chain.read() as view:
        rows = view.transactions((number - 1, 1 << 20), 10)
    assert [row.hash for row in rows] == hashes
    assert [row.application_order for row in rows] == [1, 2]


def test_a_transaction_that_was_applied_comes_again(lab: Lab, bob: Keypair) -> None:
    """Put off for ten ledgers, then judged by its sequence number."""
    envelope = lab.build(bob, create())
    applied = lab.succeed(envelope)
    for _ in range(10):
        assert lab.submit(envelope).status == "TRY_AGAIN_LATER"
        lab.chain.close_ledger()
    assert lab.latest().sequence == applied.ledger + 10
    assert lab.refused(envelope) == CODES.txBAD_SEQ


def test_what_became_too_late_while_it_waited_is_left_out(manual: Lab) -> None:
    """A ledger takes only what is valid when it closes; the rest is as if it had never come."""
    bob, carol = funded(manual, "bob", "carol")
    late = manual.build(bob, create(), change=lambda builder: builder.add_time_bounds(0, FROZEN_START))
    fine = manual.build(carol, create("other"))
    assert manual.submit(late).status == "PENDING"
    assert manual.submit(fine).status == "PENDING"
    with manual.chain._storage.write() as connection:
        connection.execute("UPDATE settings SET value = ? WHERE key = 'clock_time'", (str(FROZEN_START + 1),))
    number = manual.chain.close_ledger()
    before = manual.sequence(bob)
    with manual.chain.read() as view:
        assert [row.hash for row in view.transactions((number - 1, 1 << 20), 10)] == [fine.hash()]
        assert view.transaction(late.hash()) is None
        assert not view.is_pending(late.hash())
        assert view.latest().close_time == FROZEN_START + 1
    assert manual.sequence(bob) == before
    assert manual.refused(late) == CODES.txTOO_LATE


def test_two_of_one_ledger_may_get_in_each_others_way(manual: Lab) -> None:
    """Both are valid when they come. The first spends the second's source empty, and the second fails for it:
    fee and sequence number are gone all the same."""
    bob, carol = funded(manual, "bob", "carol")
    everything = str(9_998)
    spend = manual.build(bob, create("x", everything, source=carol), signers=[bob, carol])
    mine = manual.build(carol, create("y", "500"))
    number = manual.sequence(carol)
    assert manual.submit(spend).status == "PENDING"
    assert manual.submit(mine).status == "PENDING"
    manual.chain.close_ledger()
    assert manual.transaction(spend.hash()).successful
    row = manual.transaction(mine.hash())
    assert not row.successful
    assert result_of(row.result).fee_charged.int64 == 100
    assert manual.sequence(carol) == number + 1
    assert manual.balance(carol) == 2 * 10**7 - 100


def test_classic_transactions_come_before_soroban_ones(manual: Lab) -> None:
    alice, bob = funded(manual, "alice", "bob")
    zero = xdr.Uint32(0)
    footprint = xdr.LedgerFootprint([], [])
    data = xdr.SorobanTransactionData(
        xdr.SorobanTransactionDataExt(0),
        xdr.SorobanResources(footprint, zero, zero, zero),
        xdr.Int64(10**7),
    )
    manual.contract_id = "CAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAD2KM"
    soroban = manual.build(alice, manual.call("put"), soroban=data, fee=10**7 + 100)
    classic = manual.build(bob, create())
    assert manual.submit(soroban).status == "PENDING"
    assert manual.submit(classic).status == "PENDING"
    number = manual.chain.close_ledger()
    with manual.chain.read() as view:
        rows = view.transactions((number - 1, 1 << 20), 10)
        ledger = view.ledger(number)
    assert [row.hash for row in rows] == [classic.hash(), soroban.hash()]
    assert ledger is not None
    close = xdr.LedgerCloseMeta.from_xdr_bytes(ledger.close_meta).v2
    assert close is not None
    assert close.tx_set.v1_tx_set is not None
    first, second = close.tx_set.v1_tx_set.phases
    assert first.v0_components is not None
    component = first.v0_components[0].txs_maybe_discounted_fee
    assert component is not None
    assert [envelope.to_xdr_bytes() for envelope in component.txs] == [rows[0].envelope]
    assert second.parallel_txs_component is not None
    stages = second.parallel_txs_component.execution_stages
    clusters = stages[0].parallel_tx_execution_stage
    assert [envelope.to_xdr_bytes() for envelope in clusters[0].dependent_tx_cluster] == [rows[1].envelope]
    assert [part.result.transaction_hash.hash for part in close.tx_processing] == [
        rows[0].hash,
        rows[1].hash,
    ]


def test_a_waiting_transaction_survives_reopening(tmp_path: Path, wasm: bytes) -> None:
    path = tmp_path / "chain.db"
    with Chain.open(path, closing="manual", clock="frozen") as chain:
        lab = Lab(chain, wasm)
        (bob,) = funded(lab, "bob")
        envelope = lab.build(bob, create())
        assert lab.submit(envelope).status == "PENDING"
    with Chain.open(path) as chain:
        lab = Lab(chain, wasm)
        assert lab.submit(envelope).status == "DUPLICATE"
        chain.close_ledger()
        assert lab.transaction(envelope.hash()).successful
        assert lab.balance(keypair("new")) == 5 * 10**7


def heavy(lab: Lab, count: int, **resources: int) -> list[TransactionEnvelope]:
    """Soroban transactions of as many sources that wait for a ledger; what they declare is what counts."""
    sources = funded(lab, *(f"source {number}" for number in range(count)))
    declared = {"instructions": 0, "disk_read_bytes": 0, "write_bytes": 0, **resources}
    data = xdr.SorobanTransactionData(
        xdr.SorobanTransactionDataExt(0),
        xdr.SorobanResources(
            xdr.LedgerFootprint([], []), **{name: xdr.Uint32(value) for name, value in declared.items()}
        ),
        xdr.Int64(10**7),
    )
    lab.contract_id = "CAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAD2KM"
    envelopes = [lab.build(one, lab.call("put"), soroban=data, fee=10**7 + 100) for one in sources]
    assert {lab.submit(envelope).status for envelope in envelopes} == {"PENDING"}
    return envelopes


def taken_up(lab: Lab) -> list[list[bytes]]:
    """Close ledgers until nothing waits: the hashes of each one's transactions."""
    found: list[list[bytes]] = []
    while True:
        number = lab.chain.close_ledger()
        with lab.chain.read() as view:
            rows = view.transactions((number - 1, 1 << 20), 1_000)
        if not rows:
            return found
        found.append([row.hash for row in rows])


@pytest.mark.parametrize(
    ("count", "resources", "sizes"),
    [
        (103, {}, [100, 3]),
        (7, {"instructions": 100_000_000}, [5, 2]),
        (3, {"write_bytes": 100_000}, [1, 1, 1]),
        (19, {"disk_read_bytes": 200_000}, [17, 2]),
    ],
)
def test_a_ledger_takes_what_the_network_allows_and_the_rest_waits(
    manual: Lab, count: int, resources: dict[str, int], sizes: list[int]
) -> None:
    envelopes = heavy(manual, count, **resources)
    found = taken_up(manual)
    assert [len(hashes) for hashes in found] == sizes
    assert [name for hashes in found for name in hashes] == [envelope.hash() for envelope in envelopes]


def test_what_is_small_passes_what_waits(manual: Lab) -> None:
    funded(manual, "bob")
    first, second = heavy(manual, 2, write_bytes=100_000)
    third = manual.build(keypair("bob"), create())
    assert manual.submit(third).status == "PENDING"
    assert taken_up(manual) == [[third.hash(), first.hash()], [second.hash()]]


def test_classic_transactions_have_limits_too_and_stay_in_order(
    monkeypatch: pytest.MonkeyPatch, wasm: bytes
) -> None:
    """Several of one source: none is taken before those that come before it."""
    monkeypatch.setattr(genesis, "_MAX_TX_SET_SIZE", 3)
    with Chain.open(":memory:", closing="manual") as chain:
        lab = Lab(chain, wasm)
        hashes = [bytes.fromhex(chain.fund(keypair(name).public_key)) for name in "abcdefgh"]
        assert taken_up(lab) == [hashes[:3], hashes[3:6], hashes[6:]]
        assert all(lab.transaction(name).successful for name in hashes)


def test_skipping_and_instant_closing_leave_nothing_behind(manual: Lab) -> None:
    envelopes = heavy(manual, 3, write_bytes=100_000)
    before = manual.latest().sequence
    assert manual.chain.skip_ledgers(2) == before + 2
    assert [manual.transaction(one.hash()).ledger for one in envelopes[:2]] == [before + 1, before + 2]
    with manual.chain.read() as view:
        assert view.is_pending(envelopes[2].hash())
    assert manual.chain.skip_ledgers(5) == before + 7
    assert manual.transaction(envelopes[2].hash()).ledger == before + 3
    again = [manual.build(keypair(f"source {number}"), create(f"new {number}")) for number in range(2)]
    for envelope in again:
        assert manual.submit(envelope).status == "PENDING"
    manual.chain.set_interval(closing="instant")
    assert all(manual.transaction(envelope.hash()).successful for envelope in again)
