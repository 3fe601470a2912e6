"""The life of a TTL: entries expire, are archived, come back by themselves or are restored, and are kept
alive."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from stellar_sdk import scval, xdr

from mycelium_localnet import _native
from tests.localnet.ledger.lab import meta_of, operation_result, result_of, return_value

if TYPE_CHECKING:
    from stellar_sdk import Keypair

    from mycelium_localnet.ledger import TransactionRow
    from tests.localnet.ledger.lab import Lab

_Change = xdr.LedgerEntryChangeType
_Code = xdr.InvokeHostFunctionResultCode
MINIMUM, MAXIMUM = 10, 40


@pytest.fixture
def owner(short: Lab) -> Keypair:
    """An account of `short`, with the contract deployed and one entry: key 1."""
    found = short.account("owner")
    short.deploy(found)
    short.put(found, 1, 7)
    return found


def expire(short: Lab) -> None:
    """Let everything that nobody extended pass away."""
    short.chain.skip_ledgers(MAXIMUM)


def is_archived(short: Lab, key: xdr.LedgerKey) -> bool:
    live_until = short.live_until(key)
    assert live_until is not None
    return live_until < short.latest().sequence


def value(row: TransactionRow) -> int:
    found = return_value(row)
    assert found is not None
    return scval.from_uint64(found)


def test_a_new_entry_lives_for_the_minimum(short: Lab, owner: Keypair) -> None:
    created = short.latest().sequence
    assert short.live_until(short.data_key(1)) == created + MINIMUM - 1
    short.chain.skip_ledgers(MINIMUM - 1)
    assert not is_archived(short, short.data_key(1))
    short.chain.close_ledger()
    assert is_archived(short, short.data_key(1))


def test_an_archived_entry_is_found_but_a_temporary_one_is_gone(short: Lab, owner: Keypair) -> None:
    temporary = short.data_key(2, xdr.ContractDataDurability.TEMPORARY)
    short.invoke(owner, "put_temporary", scval.to_uint32(2), scval.to_uint64(3))
    assert short.entry(temporary) is not None
    before = short.entry(short.data_key(1))
    expire(short)
    assert short.entry(short.data_key(1)) == before
    assert short.entry(temporary) is None
    short.invoke(owner, "put_temporary", scval.to_uint32(2), scval.to_uint64(4))
    found = short.entry(temporary)
    assert found is not None
    assert found[0].data.contract_data is not None
    assert scval.from_uint64(found[0].data.contract_data.val) == 4


def test_a_call_restores_what_it_needs(short: Lab, owner: Keypair) -> None:
    """Data, instance and code, each listed in archivedSorobanEntries by the simulation."""
    keys = [short.data_key(1), short.instance_key, short.code_key]
    expire(short)
    assert all(is_archived(short, key) for key in keys)
    envelope = short.prepare(owner, short.call("get", scval.to_uint32(1)))
    data = envelope.transaction.soroban_data
    assert data is not None
    assert data.ext.resource_ext is not None
    assert len(data.ext.resource_ext.archived_soroban_entries) == 3
    row = short.succeed(envelope)
    assert value(row) == 7
    for key in keys:
        found = short.entry(key)
        assert found is not None
        assert found[1] == row.ledger + MINIMUM - 1
        assert found[0].last_modified_ledger_seq.uint32 == row.ledger
    (operation,) = meta_of(row).operations
    kinds = [change.type for change in operation.changes.ledger_entry_changes]
    assert kinds == [_Change.LEDGER_ENTRY_RESTORED] * 6


def test_a_restored_entry_that_changes(short: Lab, owner: Keypair) -> None:
    expire(short)
    row = short.put(owner, 1, 8)
    (operation,) = meta_of(row).operations
    mine = [
        change
        for change in operation.changes.ledger_entry_changes
        for entry in (change.restored or change.updated,)
        if entry is not None and entry.data.contract_data is not None
        if entry.data.contract_data.key == scval.to_uint32(1)
    ]
    assert [change.type for change in mine] == [_Change.LEDGER_ENTRY_RESTORED, _Change.LEDGER_ENTRY_UPDATED]
    assert mine[0].restored is not None
    assert mine[0].restored.data.contract_data is not None
    assert scval.from_uint64(mine[0].restored.data.contract_data.val) == 7


def test_a_restored_entry_that_is_removed(short: Lab, owner: Keypair) -> None:
    expire(short)
    row = short.invoke(owner, "drop", scval.to_uint32(1))
    assert short.entry(short.data_key(1)) is None
    (operation,) = meta_of(row).operations
    kinds = [change.type for change in operation.changes.ledger_entry_changes]
    assert kinds.count(_Change.LEDGER_ENTRY_REMOVED) == 2
    assert _Change.LEDGER_ENTRY_STATE not in kinds


def _archived_code(row: TransactionRow) -> xdr.InvokeHostFunctionResultCode:
    assert not row.successful
    inner = operation_result(result_of(row.result)).tr
    assert inner is not None
    assert inner.invoke_host_function_result is not None
    return inner.invoke_host_function_result.code


@pytest.mark.parametrize("place", ["nowhere", "read-only"])
def test_an_archived_entry_that_is_not_listed(short: Lab, owner: Keypair, place: str) -> None:
    """Simulated while everything was alive, and applied when it no longer was."""

    def move(data: xdr.SorobanTransactionData) -> None:
        footprint = data.resources.footprint
        if place == "read-only":
            footprint.read_only, footprint.read_write = footprint.read_only + footprint.read_write, []

    envelope = short.prepare(owner, short.put_call(), change_data=move)
    expire(short)
    row = short.apply(envelope)
    assert _archived_code(row) == _Code.INVOKE_HOST_FUNCTION_ENTRY_ARCHIVED
    assert is_archived(short, short.data_key(1))
    text = b"trying to access an archived contract"
    assert any(text in event for event in row.diagnostic_events)


def test_what_is_listed_but_alive_is_not_paid_for_again(short: Lab, owner: Keypair) -> None:
    """Two callers saw the entry archived. The second finds it restored, and pays no rent."""
    other = short.account("other")
    expire(short)
    call = short.call("get", scval.to_uint32(1))
    first = short.prepare(owner, call)
    second = short.prepare(other, short.call("get", scval.to_uint32(1)))
    rents = []
    for envelope in (first, second):
        meta = meta_of(short.succeed(envelope)).soroban_meta
        assert meta is not None
        assert meta.ext.v1 is not None
        rents.append(meta.ext.v1.rent_fee_charged.int64)
    assert rents[0] > 0
    assert rents[1] == 0


def test_restoring_needs_the_declared_reads(short: Lab, owner: Keypair) -> None:
    def blind(data: xdr.SorobanTransactionData) -> None:
        data.resources.disk_read_bytes = xdr.Uint32(10)

    expire(short)
    row = short.apply(short.prepare(owner, short.call("get", scval.to_uint32(1)), change_data=blind))
    assert _archived_code(row) == _Code.INVOKE_HOST_FUNCTION_RESOURCE_LIMIT_EXCEEDED


# RestoreFootprint


def test_restore_footprint_brings_back_everything(short: Lab, owner: Keypair) -> None:
    keys = [short.data_key(1), short.instance_key, short.code_key]
    expire(short)
    before = [short.entry(key) for key in keys]
    row = short.succeed(short.prepare_ttl(owner, keys))
    for key, old in zip(keys, before, strict=True):
        found = short.entry(key)
        assert found is not None
        assert old is not None
        assert found[0].data == old[0].data
        assert found[1] == row.ledger + MINIMUM - 1
    (operation,) = meta_of(row).operations
    kinds = [change.type for change in operation.changes.ledger_entry_changes]
    assert kinds == [_Change.LEDGER_ENTRY_RESTORED] * 6
    envelope = short.prepare(owner, short.call("get", scval.to_uint32(1)))
    assert envelope.transaction.soroban_data is not None
    assert envelope.transaction.soroban_data.ext.resource_ext is None
    assert value(short.succeed(envelope)) == 7


def test_restoring_what_is_alive_or_missing_changes_nothing(short: Lab, owner: Keypair) -> None:
    keys = [short.data_key(1), short.data_key(99)]
    before = short.entry(short.data_key(1))
    row = short.succeed(short.prepare_ttl(owner, keys))
    assert short.entry(short.data_key(1)) == before
    assert short.entry(short.data_key(99)) is None
    (operation,) = meta_of(row).operations
    assert operation.changes.ledger_entry_changes == []


def test_the_rent_of_a_restored_entry(short: Lab, owner: Keypair) -> None:
    expire(short)
    found = short.entry(short.data_key(1))
    assert found is not None
    size = len(found[0].to_xdr_bytes())
    row = short.succeed(short.prepare_ttl(owner, [short.data_key(1)]))
    change = (True, False, 0, size, 0, row.ledger + MINIMUM - 1)
    expected = _native.rent_fee(short.chain.settings, changes=[change], ledger_sequence=row.ledger)
    meta = meta_of(row).soroban_meta
    assert meta is not None
    assert meta.ext.v1 is not None
    assert meta.ext.v1.rent_fee_charged.int64 == expected > 0


@pytest.mark.parametrize(
    ("declared", "rent_paid", "code"),
    [((10, 100_000), True, -2), ((100_000, 10), True, -2), ((100_000, 100_000), False, -3)],
)
def test_restoring_within_what_is_declared(
    short: Lab, owner: Keypair, declared: tuple[int, int], code: int, *, rent_paid: bool
) -> None:
    expire(short)
    envelope = short.prepare_ttl(owner, [short.data_key(1)], signers=[])
    data = envelope.transaction.soroban_data
    assert data is not None
    data.resources.disk_read_bytes, data.resources.write_bytes = map(xdr.Uint32, declared)
    envelope.sign(owner)
    if not rent_paid:
        # What the declared resources cost, and nothing for rent.
        _set_minimum_fee(short, envelope.to_xdr_object(), data)
        envelope.signatures.clear()
        envelope.sign(owner)
    row = short.apply(envelope)
    assert not row.successful
    inner = operation_result(result_of(row.result)).tr
    assert inner is not None
    assert inner.restore_footprint_result is not None
    assert inner.restore_footprint_result.code == code
    assert is_archived(short, short.data_key(1))


def _set_minimum_fee(short: Lab, envelope: xdr.TransactionEnvelope, data: xdr.SorobanTransactionData) -> None:
    footprint = data.resources.footprint
    fixed, _ = _native.transaction_resource_fee(
        short.chain.settings,
        instructions=data.resources.instructions.uint32,
        disk_read_entries=len(footprint.read_write),
        write_entries=len(footprint.read_write),
        disk_read_bytes=data.resources.disk_read_bytes.uint32,
        write_bytes=data.resources.write_bytes.uint32,
        contract_events_size=0,
        transaction_size=len(envelope.to_xdr_bytes()),
    )
    data.resource_fee = xdr.Int64(fixed)


# ExtendFootprintTTL


def test_extending_keeps_alive(short: Lab, owner: Keypair) -> None:
    keys = [short.data_key(1), short.instance_key, short.code_key]
    row = short.succeed(short.prepare_ttl(owner, keys, extend_to=30))
    assert [short.live_until(key) for key in keys] == [row.ledger + 30] * 3
    (operation,) = meta_of(row).operations
    kinds = [change.type for change in operation.changes.ledger_entry_changes]
    assert kinds == [_Change.LEDGER_ENTRY_STATE, _Change.LEDGER_ENTRY_UPDATED] * 3
    for change in operation.changes.ledger_entry_changes:
        entry = change.state or change.updated
        assert entry is not None
        assert entry.data.ttl is not None
    short.chain.skip_ledgers(29)  # the last ledger in which it lives is the next one
    assert value(short.invoke(owner, "get", scval.to_uint32(1))) == 7


def test_extending_never_shortens(short: Lab, owner: Keypair) -> None:
    key = short.data_key(1)
    short.succeed(short.prepare_ttl(owner, [key], extend_to=30))
    before = short.live_until(key)
    row = short.succeed(short.prepare_ttl(owner, [key], extend_to=20))
    assert short.live_until(key) == before
    (operation,) = meta_of(row).operations
    assert operation.changes.ledger_entry_changes == []


def test_extending_what_is_archived_or_missing_changes_nothing(short: Lab, owner: Keypair) -> None:
    """It succeeds all the same, so a client has to look again."""
    expire(short)
    before = short.entry(short.data_key(1))
    row = short.succeed(short.prepare_ttl(owner, [short.data_key(1), short.data_key(99)], extend_to=30))
    assert short.entry(short.data_key(1)) == before
    (operation,) = meta_of(row).operations
    assert operation.changes.ledger_entry_changes == []


def test_the_rent_of_an_extension(short: Lab, owner: Keypair) -> None:
    found = short.entry(short.code_key)
    assert found is not None
    assert found[1] is not None
    size = _native.entry_size_for_rent(short.chain.settings, found[0].to_xdr_bytes())
    row = short.succeed(short.prepare_ttl(owner, [short.code_key], extend_to=35))
    change = (True, True, size, size, found[1], row.ledger + 35)
    expected = _native.rent_fee(short.chain.settings, changes=[change], ledger_sequence=row.ledger)
    meta = meta_of(row).soroban_meta
    assert meta is not None
    assert meta.ext.v1 is not None
    assert meta.ext.v1.rent_fee_charged.int64 == expected > 0


def test_an_extension_that_is_not_paid_for(short: Lab, owner: Keypair) -> None:
    envelope = short.prepare_ttl(owner, [short.code_key], extend_to=35)
    assert envelope.transaction.soroban_data is not None
    _set_minimum_fee(short, envelope.to_xdr_object(), envelope.transaction.soroban_data)
    envelope.signatures.clear()
    envelope.sign(owner)
    row = short.apply(envelope)
    inner = operation_result(result_of(row.result)).tr
    assert inner is not None
    assert inner.extend_footprint_ttl_result is not None
    assert inner.extend_footprint_ttl_result.code == -3


def test_anybody_may_keep_an_entry_alive(short: Lab, owner: Keypair) -> None:
    stranger = short.account("stranger")
    row = short.succeed(short.prepare_ttl(stranger, [short.data_key(1)], extend_to=30))
    assert short.live_until(short.data_key(1)) == row.ledger + 30
