"""Network settings, ledger info and the fee arithmetic of the native module."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pytest
from stellar_sdk import xdr

from mycelium_localnet import _native

if TYPE_CHECKING:
    from tests.localnet.native.conftest import MiniLedger

SIZE_WINDOW = xdr.ConfigSettingID.CONFIG_SETTING_LIVE_SOROBAN_STATE_SIZE_WINDOW


def test_settings_are_those_of_the_entries(
    settings: _native.NetworkSettings, config_entries: list[bytes]
) -> None:
    entries = {
        entry.config_setting_id: entry for entry in map(xdr.ConfigSettingEntry.from_xdr_bytes, config_entries)
    }
    ids = xdr.ConfigSettingID
    compute = entries[ids.CONFIG_SETTING_CONTRACT_COMPUTE_V0].contract_compute
    cost = entries[ids.CONFIG_SETTING_CONTRACT_LEDGER_COST_V0].contract_ledger_cost
    cost_ext = entries[ids.CONFIG_SETTING_CONTRACT_LEDGER_COST_EXT_V0].contract_ledger_cost_ext
    history = entries[ids.CONFIG_SETTING_CONTRACT_HISTORICAL_DATA_V0].contract_historical_data
    events = entries[ids.CONFIG_SETTING_CONTRACT_EVENTS_V0].contract_events
    bandwidth = entries[ids.CONFIG_SETTING_CONTRACT_BANDWIDTH_V0].contract_bandwidth
    lanes = entries[ids.CONFIG_SETTING_CONTRACT_EXECUTION_LANES].contract_execution_lanes
    archival = entries[ids.CONFIG_SETTING_STATE_ARCHIVAL].state_archival_settings
    assert compute is not None
    assert cost is not None
    assert cost_ext is not None
    assert history is not None
    assert events is not None
    assert bandwidth is not None
    assert archival is not None
    assert lanes is not None
    sizes = [
        entries[ids.CONFIG_SETTING_CONTRACT_MAX_SIZE_BYTES].contract_max_size_bytes,
        entries[ids.CONFIG_SETTING_CONTRACT_DATA_KEY_SIZE_BYTES].contract_data_key_size_bytes,
        entries[ids.CONFIG_SETTING_CONTRACT_DATA_ENTRY_SIZE_BYTES].contract_data_entry_size_bytes,
    ]
    expected = {
        "min_persistent_entry_ttl": archival.min_persistent_ttl.uint32,
        "min_temporary_entry_ttl": archival.min_temporary_ttl.uint32,
        "max_entry_ttl": archival.max_entry_ttl.uint32,
        "tx_max_instructions": compute.tx_max_instructions.int64,
        "tx_memory_limit": compute.tx_memory_limit.uint32,
        "tx_max_size_bytes": bandwidth.tx_max_size_bytes.uint32,
        "tx_max_disk_read_entries": cost.tx_max_disk_read_entries.uint32,
        "tx_max_disk_read_bytes": cost.tx_max_disk_read_bytes.uint32,
        "tx_max_write_entries": cost.tx_max_write_ledger_entries.uint32,
        "tx_max_write_bytes": cost.tx_max_write_bytes.uint32,
        "tx_max_footprint_entries": cost_ext.tx_max_footprint_entries.uint32,
        "tx_max_contract_events_size_bytes": events.tx_max_contract_events_size_bytes.uint32,
        "ledger_max_tx_count": lanes.ledger_max_tx_count.uint32,
        "ledger_max_instructions": compute.ledger_max_instructions.int64,
        "ledger_max_txs_size_bytes": bandwidth.ledger_max_txs_size_bytes.uint32,
        "ledger_max_disk_read_entries": cost.ledger_max_disk_read_entries.uint32,
        "ledger_max_disk_read_bytes": cost.ledger_max_disk_read_bytes.uint32,
        "ledger_max_write_entries": cost.ledger_max_write_ledger_entries.uint32,
        "ledger_max_write_bytes": cost.ledger_max_write_bytes.uint32,
        "max_contract_size_bytes": sizes[0].uint32 if sizes[0] else None,
        "max_contract_data_key_size_bytes": sizes[1].uint32 if sizes[1] else None,
        "max_contract_data_entry_size_bytes": sizes[2].uint32 if sizes[2] else None,
        "fee_per_10k_instructions": compute.fee_rate_per_instructions_increment.int64,
        "fee_per_disk_read_entry": cost.fee_disk_read_ledger_entry.int64,
        "fee_per_write_entry": cost.fee_write_ledger_entry.int64,
        "fee_per_disk_read_1kb": cost.fee_disk_read1_kb.int64,
        "fee_per_write_1kb": cost_ext.fee_write1_kb.int64,
        "fee_per_historical_1kb": history.fee_historical1_kb.int64,
        "fee_per_contract_event_1kb": events.fee_contract_events1_kb.int64,
        "fee_per_transaction_size_1kb": bandwidth.fee_tx_size1_kb.int64,
        "fee_per_rent_1kb": 1000,  # the floor: an empty ledger's rate would be negative
        "persistent_rent_rate_denominator": archival.persistent_rent_rate_denominator.int64,
        "temporary_rent_rate_denominator": archival.temp_rent_rate_denominator.int64,
    }
    names = [name for name in dir(settings) if not name.startswith("_")]
    assert {name: getattr(settings, name) for name in names} == expected


def test_rent_rate_follows_the_size_of_the_state(config_entries: list[bytes]) -> None:
    window = xdr.ConfigSettingEntry(
        SIZE_WINDOW,
        live_soroban_state_size_window=[xdr.Uint64(2_000_000_000), xdr.Uint64(3_000_000_000)],
    ).to_xdr_bytes()
    # -17,000 at no state to 10,000 at 3 GB, linearly.
    assert _native.NetworkSettings(config_entries, 2_500_000_000).fee_per_rent_1kb == 5_500
    assert _native.NetworkSettings([*config_entries, window]).fee_per_rent_1kb == 5_500
    assert _native.NetworkSettings([*config_entries, window], 3_000_000_000).fee_per_rent_1kb == 10_000


@pytest.mark.parametrize(
    "missing",
    [
        xdr.ConfigSettingID.CONFIG_SETTING_CONTRACT_MAX_SIZE_BYTES,
        xdr.ConfigSettingID.CONFIG_SETTING_CONTRACT_COMPUTE_V0,
        xdr.ConfigSettingID.CONFIG_SETTING_STATE_ARCHIVAL,
        xdr.ConfigSettingID.CONFIG_SETTING_CONTRACT_COST_PARAMS_CPU_INSTRUCTIONS,
    ],
)
def test_a_missing_setting_is_refused(config_entries: list[bytes], missing: xdr.ConfigSettingID) -> None:
    kept = [
        entry
        for entry in config_entries
        if xdr.ConfigSettingEntry.from_xdr_bytes(entry).config_setting_id != missing
    ]
    assert len(kept) == len(config_entries) - 1
    with pytest.raises(_native.HostError, match="setting"):
        _native.NetworkSettings(kept)


def test_settings_that_do_not_decode_are_refused(config_entries: list[bytes]) -> None:
    with pytest.raises(_native.HostError, match="config entry 0"):
        _native.NetworkSettings([b"\xff" * 8, *config_entries])
    with pytest.raises(_native.HostError, match=f"config entry {len(config_entries)}"):
        _native.NetworkSettings([*config_entries, config_entries[0] + bytes(4)])
    with pytest.raises(TypeError):
        _native.NetworkSettings(["text"])  # type: ignore[list-item]


def test_ledger_info_keeps_its_values(settings: _native.NetworkSettings) -> None:
    info = _native.LedgerInfo(
        sequence=7, close_time=1 << 40, network_id=bytes(range(32)), base_reserve=5, settings=settings
    )
    assert (info.sequence, info.close_time, info.network_id, info.base_reserve) == (
        7,
        1 << 40,
        bytes(range(32)),
        5,
    )
    assert info.settings is settings


def test_ledger_info_refuses_values_out_of_range(settings: _native.NetworkSettings) -> None:
    with pytest.raises(ValueError, match="32 bytes, not 31"):
        _native.LedgerInfo(sequence=7, close_time=0, network_id=bytes(31), base_reserve=5, settings=settings)
    for sequence in (-1, 1 << 32):
        with pytest.raises(OverflowError):
            _native.LedgerInfo(
                sequence=sequence, close_time=0, network_id=bytes(32), base_reserve=5, settings=settings
            )


def test_resource_fee_is_the_sum_of_its_parts(settings: _native.NetworkSettings) -> None:
    non_refundable, refundable = _native.transaction_resource_fee(
        settings,
        instructions=1_234_567,
        disk_read_entries=3,
        write_entries=2,
        disk_read_bytes=5_000,
        write_bytes=3_000,
        contract_events_size=700,
        transaction_size=1_500,
    )

    def per_kb(size: int, rate: int) -> int:
        return math.ceil(size * rate / 1024)

    assert refundable == per_kb(700, 10_000)
    assert non_refundable == (
        math.ceil(1_234_567 * 25 / 10_000)
        + 3 * 6_250
        + 2 * 10_000
        + per_kb(5_000, 1_786)
        + per_kb(3_000, 3_500)
        + per_kb(1_500 + 300, 16_235)  # 300 bytes are the network's estimate of a result
        + per_kb(1_500, 1_624)
    )


def test_rent_of_new_extended_and_grown_entries(settings: _native.NetworkSettings) -> None:
    def fee(change: tuple[bool, bool, int, int, int, int]) -> int:
        return _native.rent_fee(settings, changes=[change], ledger_sequence=100)

    def rent(size: int, ledgers: int, denominator: int) -> int:
        return math.ceil(size * 1000 * ledgers / (1024 * denominator))

    write_ttl = 10_000 + math.ceil(48 * 3_500 / 1024)
    assert fee((True, False, 0, 352, 0, 1_099)) == rent(352, 1_000, 1_215) + write_ttl
    assert fee((False, False, 0, 352, 0, 1_099)) == rent(352, 1_000, 2_430) + write_ttl
    assert fee((True, True, 0, 3_520, 0, 1_099)) == math.ceil(rent(3_520, 1_000, 1_215) / 3) + write_ttl
    assert fee((True, False, 352, 352, 1_099, 2_099)) == rent(352, 1_000, 1_215) + write_ttl
    assert fee((True, False, 352, 1_352, 1_099, 1_099)) == rent(1_000, 1_000, 1_215)
    assert fee((True, False, 352, 352, 1_099, 1_099)) == 0
    assert _native.rent_fee(settings, changes=[], ledger_sequence=100) == 0


def test_rent_of_code_counts_its_module(ledger: MiniLedger) -> None:
    data, _ = ledger.entries[ledger.instance_key()]
    code, _ = ledger.entries[ledger.code_key()]
    assert _native.entry_size_for_rent(ledger.settings, data) == len(data)
    assert _native.entry_size_for_rent(ledger.settings, code) > len(code) + 18_000
    with pytest.raises(_native.HostError, match="LedgerEntry"):
        _native.entry_size_for_rent(ledger.settings, data[:-1])
