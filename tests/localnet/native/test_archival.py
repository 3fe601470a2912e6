"""Archived entries on the native module: restoring, restoring along the way, and extending."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from stellar_sdk import scval, xdr

from mycelium_localnet import _native

if TYPE_CHECKING:
    from tests.localnet.native.conftest import MiniLedger

PERSISTENT = xdr.ContractDataDurability.PERSISTENT
TEMPORARY = xdr.ContractDataDurability.TEMPORARY


def quote(simulation: _native.Simulation) -> xdr.SorobanTransactionData:
    assert simulation.error is None
    assert simulation.transaction_data is not None
    data = xdr.SorobanTransactionData.from_xdr_bytes(simulation.transaction_data)
    assert simulation.min_resource_fee == data.resource_fee.int64
    return data


def archived_indices(data: xdr.SorobanTransactionData) -> list[int]:
    extension = data.ext.resource_ext
    return [] if extension is None else [index.uint32 for index in extension.archived_soroban_entries]


def keys_of(keys: list[xdr.LedgerKey]) -> list[bytes]:
    return [key.to_xdr_bytes() for key in keys]


def expire(ledger: MiniLedger, *keys: bytes) -> None:
    for key in keys:
        ledger.entries[key] = (ledger.entries[key][0], ledger.sequence - 1)


def fresh(ledger: MiniLedger) -> int:
    """Where a new or restored persistent entry's life ends."""
    return ledger.sequence + ledger.settings.min_persistent_entry_ttl - 1


@pytest.fixture
def stored(ledger: MiniLedger) -> MiniLedger:
    """A ledger on which the probe keeps 1 for the owner."""
    ledger.run(ledger.put(1))
    return ledger


class TestRestore:
    def test_archived_entries_are_quoted(self, stored: MiniLedger) -> None:
        key, code = stored.data_key(PERSISTENT), stored.code_key()
        expire(stored, key, code)
        simulation = _native.simulate_restore(
            ledger=stored.info, get=stored.get, keys=[key, code, stored.instance_key()]
        )
        data = quote(simulation)
        size = len(stored.entries[key][0]) + len(stored.entries[code][0])
        assert sorted(keys_of(data.resources.footprint.read_write)) == sorted([key, code])
        assert data.resources.footprint.read_only == []
        assert data.resources.disk_read_bytes.uint32 == data.resources.write_bytes.uint32 == size
        assert data.resources.instructions.uint32 == 0
        assert simulation.result is None
        rent = _native.rent_fee(
            stored.settings,
            changes=[
                (True, is_code, 0, _native.entry_size_for_rent(stored.settings, entry), 0, fresh(stored))
                for is_code, entry in ((False, stored.entries[key][0]), (True, stored.entries[code][0]))
            ],
            ledger_sequence=stored.sequence,
        )
        assert simulation.min_resource_fee > rent

    def test_only_persistent_entries_that_exist_can_be(self, stored: MiniLedger) -> None:
        stored.run(stored.call("put_short", scval.to_address(stored.owner.public_key), scval.to_uint64(1)))
        missing = stored.data_key(PERSISTENT, contract=stored.deploy(salt=b"\x01" * 32))
        for key, why in ((stored.data_key(TEMPORARY), "persistent"), (missing, "Missing entry")):
            simulation = _native.simulate_restore(ledger=stored.info, get=stored.get, keys=[key])
            assert simulation.error is not None
            assert why in simulation.error
            assert simulation.transaction_data is None


class TestAlongTheWay:
    def test_a_read_becomes_a_restoring_write(self, stored: MiniLedger) -> None:
        key = stored.data_key(PERSISTENT)
        expire(stored, key)
        get = stored.about_owner("get")
        simulation = stored.simulate(get)
        data = quote(simulation)
        assert simulation.result == scval.to_uint64(1).to_xdr_bytes()
        assert simulation.restore_preamble is None
        assert keys_of(data.resources.footprint.read_write) == [key]
        assert archived_indices(data) == [0]
        assert data.resources.disk_read_bytes.uint32 == len(stored.entries[key][0])
        [change] = simulation.modified
        assert (change.key, change.before) == (key, None)

        invocation = stored.invoke(get, simulation)
        assert invocation.result == simulation.result
        [restored] = [change for change in invocation.changes if not change.read_only]
        assert restored.new_value == stored.entries[key][0]
        assert (restored.old_size_for_rent, restored.old_live_until) == (0, 0)
        assert restored.new_live_until == fresh(stored)
        stored.apply(invocation)
        assert archived_indices(quote(stored.simulate(get))) == []

    def test_instance_and_code_are_restored_too(self, stored: MiniLedger) -> None:
        expire(stored, stored.instance_key(), stored.code_key())
        put = stored.put(2)
        simulation = stored.simulate(put)
        data = quote(simulation)
        restored = [keys_of(data.resources.footprint.read_write)[index] for index in archived_indices(data)]
        assert sorted(restored) == sorted([stored.instance_key(), stored.code_key()])
        invocation = stored.invoke(put, simulation)
        assert invocation.ok, invocation.error
        stored.apply(invocation)
        assert (
            stored.entries[stored.code_key()][1] == stored.entries[stored.instance_key()][1] == fresh(stored)
        )

    def test_restored_code_is_compiled_at_the_transactions_cost(self, stored: MiniLedger) -> None:
        put = stored.put(2)
        live = stored.invoke(put, stored.simulate(put))
        expire(stored, stored.code_key())
        simulation = stored.simulate(put)
        # The same whether or not the cache knows the code from before.
        known = stored.invoke(put, simulation)
        unknown = stored.invoke(put, simulation, cache=_native.ModuleCache())
        assert known.ok, known.error
        assert known.instructions == unknown.instructions > live.instructions + 100_000
        assert quote(simulation).resources.instructions.uint32 >= known.instructions

    def test_an_archived_entry_that_is_not_listed_is_an_error(self, stored: MiniLedger) -> None:
        get = stored.about_owner("get")
        simulation = stored.simulate(get)
        data = quote(simulation)
        expire(stored, stored.data_key(PERSISTENT))
        footprint = [*data.resources.footprint.read_only, *data.resources.footprint.read_write]
        with pytest.raises(_native.HostError, match="expired"):
            _native.invoke(
                ledger=stored.info,
                cache=stored.cache,
                host_function=get.to_xdr_bytes(),
                resources=data.resources.to_xdr_bytes(),
                auth=[],
                source_account=stored.owner.xdr_account_id().to_xdr_bytes(),
                entries=[stored.entries[key.to_xdr_bytes()] for key in footprint],
                prng_seed=bytes(32),
            )

    def test_indices_beyond_the_footprint_are_refused(self, stored: MiniLedger) -> None:
        get = stored.about_owner("get")
        data = quote(stored.simulate(get))
        with pytest.raises(_native.HostError, match="restored index 1"):
            _native.invoke(
                ledger=stored.info,
                cache=stored.cache,
                host_function=get.to_xdr_bytes(),
                resources=data.resources.to_xdr_bytes(),
                restored_rw_indices=[1],
                auth=[],
                source_account=stored.owner.xdr_account_id().to_xdr_bytes(),
                entries=stored.footprint_entries(data.resources.footprint, []),
                prng_seed=bytes(32),
            )


class TestExtend:
    def test_live_entries_are_quoted(self, stored: MiniLedger) -> None:
        keys = [stored.data_key(PERSISTENT), stored.code_key()]
        simulation = _native.simulate_extend_ttl(
            ledger=stored.info, get=stored.get, keys=keys, extend_to=1_000
        )
        data = quote(simulation)
        assert sorted(keys_of(data.resources.footprint.read_only)) == sorted(keys)
        assert data.resources.footprint.read_write == []
        assert simulation.restore_preamble is None
        longer = _native.simulate_extend_ttl(ledger=stored.info, get=stored.get, keys=keys, extend_to=100_000)
        assert longer.min_resource_fee > simulation.min_resource_fee

    def test_what_needs_no_extension_is_left_out(self, stored: MiniLedger) -> None:
        missing = stored.data_key(TEMPORARY)
        simulation = _native.simulate_extend_ttl(
            ledger=stored.info, get=stored.get, keys=[missing, stored.code_key()], extend_to=1
        )
        assert quote(simulation).resources.footprint.read_only == []

    def test_archived_entries_must_be_restored_first(self, stored: MiniLedger) -> None:
        key = stored.data_key(PERSISTENT)
        expire(stored, key)
        simulation = _native.simulate_extend_ttl(
            ledger=stored.info, get=stored.get, keys=[key], extend_to=1_000
        )
        restore = _native.simulate_restore(ledger=stored.info, get=stored.get, keys=[key])
        assert keys_of(quote(simulation).resources.footprint.read_only) == [key]
        assert simulation.restore_preamble == (restore.transaction_data, restore.min_resource_fee)

    def test_classic_entries_cannot_be(self, stored: MiniLedger) -> None:
        stored.add_account(stored.owner)
        account = xdr.LedgerKey(
            xdr.LedgerEntryType.ACCOUNT, account=xdr.LedgerKeyAccount(stored.owner.xdr_account_id())
        )
        simulation = _native.simulate_extend_ttl(
            ledger=stored.info, get=stored.get, keys=[account.to_xdr_bytes()], extend_to=1_000
        )
        assert simulation.error is not None
        assert "Can't extend TTL" in simulation.error

    def test_a_panic_of_the_host_is_an_exception(
        self, stored: MiniLedger, capfd: pytest.CaptureFixture[str]
    ) -> None:
        with pytest.raises(_native.HostError, match=r"the host panicked: .*overflow \(resources\.rs:\d+\)$"):
            _native.simulate_extend_ttl(
                ledger=stored.info, get=stored.get, keys=[stored.code_key()], extend_to=2**32 - 1
            )
        assert capfd.readouterr() == ("", "")
        assert stored.simulate(stored.put(2)).error is None
