"""What is told of applied transactions: metas that decode, and whose changes lead from one state to the
next."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stellar_sdk import StrKey, scval, xdr

from mycelium_localnet import keys
from tests.localnet.ledger.lab import create, keypair, meta_of, result_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stellar_sdk import Keypair

    from tests.localnet.ledger.lab import Lab

_Change = xdr.LedgerEntryChangeType
_Entries = dict[bytes, bytes]


def key_of(entry: xdr.LedgerEntry) -> bytes:
    """The LedgerKey of an entry."""
    data = entry.data
    kind = data.type
    if data.account is not None:
        key = xdr.LedgerKey(kind, account=xdr.LedgerKeyAccount(data.account.account_id))
    elif data.contract_data is not None:
        found = data.contract_data
        key = xdr.LedgerKey(
            kind, contract_data=xdr.LedgerKeyContractData(found.contract, found.key, found.durability)
        )
    elif data.contract_code is not None:
        key = xdr.LedgerKey(kind, contract_code=xdr.LedgerKeyContractCode(data.contract_code.hash))
    elif data.ttl is not None:
        key = xdr.LedgerKey(kind, ttl=xdr.LedgerKeyTtl(data.ttl.key_hash))
    else:
        raise AssertionError(kind)
    return key.to_xdr_bytes()


def replay(state: _Entries, changes: Sequence[xdr.LedgerEntryChange], ledger: int) -> None:
    """Apply changes to a state, holding each to what it claims of the state before."""
    announced: bytes | None = None
    for change in changes:
        if change.state is not None:
            announced = key_of(change.state)
            assert state[announced] == change.state.to_xdr_bytes()
            continue
        if change.removed is not None:
            key = change.removed.to_xdr_bytes()
            assert key == announced
            del state[key]
            announced = None
            continue
        entry = change.created or change.updated or change.restored
        assert entry is not None
        key = key_of(entry)
        assert entry.last_modified_ledger_seq.uint32 == ledger
        if change.type == _Change.LEDGER_ENTRY_UPDATED:
            assert key == announced
        elif change.type == _Change.LEDGER_ENTRY_CREATED:
            assert announced is None
            assert key not in state
        state[key] = entry.to_xdr_bytes()
        # A restored entry may be updated or removed right behind.
        announced = key if change.type == _Change.LEDGER_ENTRY_RESTORED else None
    assert announced is None or changes[-1].type == _Change.LEDGER_ENTRY_RESTORED


def stored(lab: Lab) -> _Entries:
    """The state as the chain file holds it, TTL entries included."""
    found: _Entries = {}
    with lab.chain._storage.read() as connection:
        for key, entry, live_until, modified in connection.execute(
            "SELECT key, entry, live_until, ttl_modified FROM entries"
        ):
            found[key] = entry
            if live_until is not None:
                ttl = xdr.TTLEntry(xdr.Hash(keys.ttl_hash(key)), xdr.Uint32(live_until))
                value = xdr.LedgerEntry(
                    xdr.Uint32(modified),
                    xdr.LedgerEntryData(xdr.LedgerEntryType.TTL, ttl=ttl),
                    xdr.LedgerEntryExt(0),
                )
                found[key_of(value)] = value.to_xdr_bytes()
    return found


def replay_ledger(state: _Entries, close_meta: bytes) -> None:
    """Every change of a ledger, in the order in which the network makes them."""
    close = xdr.LedgerCloseMeta.from_xdr_bytes(close_meta).v2
    assert close is not None
    ledger = close.ledger_header.header.ledger_seq.uint32
    for part in close.tx_processing:
        replay(state, part.fee_processing.ledger_entry_changes, ledger)
    for part in close.tx_processing:
        meta = part.tx_apply_processing.v4
        assert meta is not None
        replay(state, meta.tx_changes_before.ledger_entry_changes, ledger)
        for operation in meta.operations:
            replay(state, operation.changes.ledger_entry_changes, ledger)
        replay(state, meta.tx_changes_after.ledger_entry_changes, ledger)
    for part in close.tx_processing:
        replay(state, part.post_tx_apply_fee_processing.ledger_entry_changes, ledger)


def test_metas_lead_from_the_first_state_to_the_last(lab: Lab) -> None:
    """Somebody who only reads close metas arrives at the very state of the chain file."""
    state = stored(lab)
    alice = lab.account("alice")
    lab.deploy(alice)
    lab.put(alice, 1, 2)
    lab.put(alice, 1, 3)
    lab.invoke(alice, "put_temporary", scval.to_uint32(9), scval.to_uint64(9))
    lab.invoke(alice, "drop", scval.to_uint32(1))
    lab.succeed(lab.build(alice, create("one"), create("two"), fee=200))
    lab.apply(lab.build(alice, create("one"), create("three"), fee=200))
    lab.succeed(lab.prepare_ttl(alice, [lab.instance_key, lab.code_key], extend_to=500_000))
    for ledger in lab.ledgers():
        replay_ledger(state, ledger.close_meta)
    assert state == stored(lab)


def test_metas_lead_through_archival(short: Lab) -> None:
    """The same where entries expire, come back by themselves and are restored."""
    alice = short.account("alice")
    short.deploy(alice)
    short.put(alice, 1, 2)
    short.put(alice, 2, 2)
    short.invoke(alice, "put_temporary", scval.to_uint32(9), scval.to_uint64(9))
    state = stored(short)
    start = short.latest().sequence + 1
    short.chain.skip_ledgers(50)
    short.put(alice, 1, 3)  # instance, code and data come back by themselves, and the data is changed
    short.succeed(short.prepare_ttl(alice, [short.data_key(2)]))
    short.invoke(alice, "put_temporary", scval.to_uint32(9), scval.to_uint64(10))
    short.chain.skip_ledgers(50)
    short.invoke(alice, "drop", scval.to_uint32(1))  # comes back, and goes
    # An expired temporary entry is gone for good, without a word: a reader has to forget it by its TTL.
    key = short.data_key(9, xdr.ContractDataDurability.TEMPORARY).to_xdr_bytes()
    ttl_key = xdr.LedgerKey(
        xdr.LedgerEntryType.TTL, ttl=xdr.LedgerKeyTtl(xdr.Hash(keys.ttl_hash(key)))
    ).to_xdr_bytes()
    with short.chain.read() as view:
        for ledger in view.ledgers(start, 1_000):
            if view.transactions((ledger.sequence, 0), 1)[:1] and key in state:
                live_until = xdr.LedgerEntry.from_xdr_bytes(state[ttl_key]).data.ttl
                assert live_until is not None
                if live_until.live_until_ledger_seq.uint32 < ledger.sequence:
                    del state[key], state[ttl_key]
            replay_ledger(state, ledger.close_meta)
    final = stored(short)
    for gone in (key, ttl_key):
        state.pop(gone, None)
        final.pop(gone, None)
    assert state == final


def test_the_close_meta_holds_what_the_rows_hold(lab: Lab, alice: Keypair) -> None:
    row = lab.put(alice, 1, 2)
    close = xdr.LedgerCloseMeta.from_xdr_bytes(lab.latest().close_meta).v2
    assert close is not None
    (part,) = close.tx_processing
    assert part.result.transaction_hash.hash == row.hash
    assert part.result.result == result_of(row.result)
    assert part.tx_apply_processing.to_xdr_bytes() == row.meta
    assert close.tx_set.v1_tx_set is not None
    assert len(close.tx_set.v1_tx_set.phases) == 2
    parallel = close.tx_set.v1_tx_set.phases[1].parallel_txs_component
    assert parallel is not None
    assert parallel.base_fee is not None
    assert parallel.base_fee.int64 == 100
    (stage,) = parallel.execution_stages
    (cluster,) = stage.parallel_tx_execution_stage
    assert [envelope.to_xdr_bytes() for envelope in cluster.dependent_tx_cluster] == [row.envelope]
    assert close.ext.v1 is not None
    assert close.ext.v1.soroban_fee_write1_kb.int64 == lab.chain.settings.fee_per_write_1kb


def test_a_written_entry_is_announced_with_its_ttl(lab: Lab, alice: Keypair) -> None:
    (operation,) = meta_of(lab.put(alice, 1, 2)).operations
    kinds = [change.type for change in operation.changes.ledger_entry_changes]
    assert kinds == [_Change.LEDGER_ENTRY_CREATED, _Change.LEDGER_ENTRY_CREATED]
    (operation,) = meta_of(lab.put(alice, 1, 3)).operations
    kinds = [change.type for change in operation.changes.ledger_entry_changes]
    assert kinds == [_Change.LEDGER_ENTRY_STATE, _Change.LEDGER_ENTRY_UPDATED]
    (operation,) = meta_of(lab.invoke(alice, "drop", scval.to_uint32(1))).operations
    kinds = [change.type for change in operation.changes.ledger_entry_changes]
    assert kinds == [_Change.LEDGER_ENTRY_STATE, _Change.LEDGER_ENTRY_REMOVED] * 2


def test_the_sequence_number_is_announced_with_its_time(lab: Lab, bob: Keypair) -> None:
    row = lab.succeed(lab.build(bob, create()))
    before, after = meta_of(row).tx_changes_before.ledger_entry_changes
    assert before.state is not None
    assert after.updated is not None
    account = after.updated.data.account
    assert account is not None
    assert account.seq_num.sequence_number.int64 == (2 << 32) + 1
    assert account.ext.v1 is not None
    assert account.ext.v1.ext.v2 is not None
    recorded = account.ext.v1.ext.v2.ext.v3
    assert recorded is not None
    assert recorded.seq_ledger.uint32 == row.ledger
    assert recorded.seq_time.time_point.uint64 == row.close_time


def test_events_are_found_at_the_positions_of_their_ids(manual: Lab) -> None:
    for name in ("alice", "bob"):
        manual.account(name)
    manual.chain.close_ledger()
    bob = keypair("bob")
    classic = manual.build(bob, create("one"), create("two"), fee=200)
    assert manual.submit(classic).status == "PENDING"
    manual.chain.fund(keypair("three").public_key)
    number = manual.chain.close_ledger()
    found = manual.events(number)
    assert [event.position for event in found] == [
        (number, 0, 0, 0),
        (number, 0, 0, 1),
        (number, 1, 0, 0),
        (number, 1, 1, 0),
        (number, 2, 0, 0),
    ]
    assert [event.transaction_order for event in found] == [1, 2, 1, 1, 2]
    assert all(event.in_successful_call for event in found)
    native = StrKey.encode_contract(manual.chain._network.native_contract)
    assert {event.contract_id for event in found} == {native}
    names = [scval.from_symbol(event.topics[0]) for event in found]
    assert names == ["fee", "fee", "transfer", "transfer", "transfer"]


def test_a_refund_stands_behind_all_transactions(lab: Lab, alice: Keypair) -> None:
    row = lab.put(alice, 1, 2)
    found = lab.events(row.ledger)
    assert [event.position for event in found] == [
        (row.ledger, 0, 0, 0),
        (row.ledger, 1, 0, 0),
        (row.ledger, 0xFFFFF, 0, 0),
    ]
    stored_event = found[1]
    assert stored_event.contract_id == lab.contract_id
    assert stored_event.tx_hash == row.hash
    assert stored_event.close_time == row.close_time
    assert scval.from_uint64(stored_event.value) == 2
    (event,) = meta_of(row).operations[0].events
    assert event.body.v0 is not None
    assert stored_event.topics == tuple(topic.to_xdr_bytes() for topic in event.body.v0.topics)


def test_events_of_some_contracts_only(lab: Lab, alice: Keypair) -> None:
    row = lab.put(alice, 1, 2)
    native = StrKey.encode_contract(lab.chain._network.native_contract)
    with lab.chain.read() as view:

        def count(*contracts: str) -> int:
            found = view.events(
                after=(row.ledger, -1, 0, 0), end_ledger=row.ledger + 1, contract_ids=contracts
            )
            return len(list(found))

        assert (count(lab.contract_id), count(native), count(lab.contract_id, native)) == (1, 2, 3)
        assert count() == 3
        behind = view.events(after=(row.ledger, 1, 0, 0), end_ledger=1 << 31)
        assert [event.tx_index for event in behind] == [0xFFFFF]


def test_a_failed_transaction_has_its_fee_event_only(lab: Lab, bob: Keypair) -> None:
    row = lab.apply(lab.build(bob, create("one"), create("one"), fee=200))
    (event,) = lab.events(row.ledger)
    assert event.position == (row.ledger, 0, 0, 0)
    assert not event.in_successful_call


def test_transactions_are_listed_in_order(lab: Lab, bob: Keypair) -> None:
    hashes = [lab.succeed(lab.build(bob, create(str(number)))).hash for number in range(5)]
    with lab.chain.read() as view:
        rows = view.transactions((2, 1), 3)
        assert [row.hash for row in rows] == hashes[:3]
        last = (rows[-1].ledger, rows[-1].application_order)
        assert [row.hash for row in view.transactions(last, 10)] == hashes[3:]
