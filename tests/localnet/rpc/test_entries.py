"""getLedgerEntries: order, TTLs, and telling archived entries from absent ones."""

from __future__ import annotations

from base64 import b64encode
from typing import TYPE_CHECKING

import pytest
from stellar_sdk import Address, scval
from stellar_sdk import xdr as stellar_xdr
from stellar_sdk.exceptions import PrepareTransactionException

if TYPE_CHECKING:
    from typing import Any

    from tests.localnet.rpc.conftest import Net, Probe

TEMPORARY = stellar_xdr.ContractDataDurability.TEMPORARY


def entries(net: Net, *keys: str) -> dict[str, Any]:
    answer = net.result("getLedgerEntries", {"keys": list(keys)})
    return {entry["key"]: entry for entry in answer["entries"]}


def code_key(wasm_hash: bytes) -> str:
    key = stellar_xdr.LedgerKeyContractCode(stellar_xdr.Hash(wasm_hash))
    return stellar_xdr.LedgerKey(stellar_xdr.LedgerEntryType.CONTRACT_CODE, contract_code=key).to_xdr()


def instance_key(contract_id: str) -> str:
    return stellar_xdr.LedgerKey(
        stellar_xdr.LedgerEntryType.CONTRACT_DATA,
        contract_data=stellar_xdr.LedgerKeyContractData(
            Address(contract_id).to_xdr_sc_address(),
            stellar_xdr.SCVal(stellar_xdr.SCValType.SCV_LEDGER_KEY_CONTRACT_INSTANCE),
            stellar_xdr.ContractDataDurability.PERSISTENT,
        ),
    ).to_xdr()


def test_answers_come_in_the_order_of_the_keys_without_what_is_missing(probe: Probe) -> None:
    for number in (1, 2, 3):
        probe.invoke("put", number, number)
    keys = [probe.entry_key(number) for number in (3, 9, 1, 2, 8)]
    answer = probe.net.result("getLedgerEntries", {"keys": keys})
    assert [entry["key"] for entry in answer["entries"]] == [keys[0], keys[2], keys[3]]
    values = [stellar_xdr.LedgerEntryData.from_xdr(entry["xdr"]).contract_data for entry in answer["entries"]]
    assert [value and scval.from_uint64(value.val) for value in values] == [3, 1, 2]


def test_a_key_asked_for_twice_is_answered_once(probe: Probe) -> None:
    probe.invoke("put", 1, 1)
    answer = probe.net.result("getLedgerEntries", {"keys": [probe.entry_key(1)] * 3})
    assert len(answer["entries"]) == 1


def test_a_second_spelling_of_a_key_is_refused(probe: Probe) -> None:
    key = stellar_xdr.LedgerKey(
        stellar_xdr.LedgerEntryType.CONTRACT_DATA,
        contract_data=stellar_xdr.LedgerKeyContractData(
            Address(probe.contract_id).to_xdr_sc_address(),
            scval.to_symbol("x"),
            stellar_xdr.ContractDataDurability.PERSISTENT,
        ),
    ).to_xdr_bytes()
    assert key[-8:-4] == b"x\0\0\0"
    padded = b64encode(key[:-5] + b"\1" + key[-4:]).decode()
    assert probe.net.error("getLedgerEntries", {"keys": [padded]})[0] == -32602


def test_config_settings_and_code_can_be_read(probe: Probe, probe_wasm: bytes) -> None:
    setting = stellar_xdr.LedgerKey(
        stellar_xdr.LedgerEntryType.CONFIG_SETTING,
        config_setting=stellar_xdr.LedgerKeyConfigSetting(
            stellar_xdr.ConfigSettingID.CONFIG_SETTING_STATE_ARCHIVAL
        ),
    ).to_xdr()
    found = entries(probe.net, setting, code_key(probe.wasm_hash), instance_key(probe.contract_id))
    assert len(found) == 3
    assert "liveUntilLedgerSeq" not in found[setting]
    code = stellar_xdr.LedgerEntryData.from_xdr(found[code_key(probe.wasm_hash)]["xdr"])
    assert code.contract_code is not None
    assert code.contract_code.code == probe_wasm


def test_the_life_of_an_entry(short_probe: Probe) -> None:
    probe, net = short_probe, short_probe.net
    probe.invoke("put", 1, 5)
    key, absent = probe.entry_key(1), probe.entry_key(2)
    live_until = entries(net, key)[key]["liveUntilLedgerSeq"]
    net.chain.skip_ledgers(live_until - net.result("getHealth")["latestLedger"])
    assert entries(net, key)[key]["liveUntilLedgerSeq"] == live_until  # its last ledger
    net.chain.close_ledger()
    archived = entries(net, key, absent)
    assert list(archived) == [key]
    assert archived[key]["liveUntilLedgerSeq"] == 0
    value = stellar_xdr.LedgerEntryData.from_xdr(archived[key]["xdr"]).contract_data
    assert value is not None
    assert scval.from_uint64(value.val) == 5
    probe.submit(probe.build_ttl(None, [key]))
    latest, shortest = net.result("getHealth")["latestLedger"], net.chain.settings.min_persistent_entry_ttl
    assert entries(net, key)[key]["liveUntilLedgerSeq"] == latest + shortest - 1
    probe.submit(probe.build_ttl(30, [key]))
    assert entries(net, key)[key]["liveUntilLedgerSeq"] == net.result("getHealth")["latestLedger"] + 30


def test_a_temporary_entry_is_gone_when_its_time_is_over(short_probe: Probe) -> None:
    probe = short_probe
    probe.invoke("put_temporary", 1, 5)
    key = probe.entry_key(1, TEMPORARY)
    live_until = entries(probe.net, key)[key]["liveUntilLedgerSeq"]
    probe.net.chain.skip_ledgers(live_until - probe.net.result("getHealth")["latestLedger"] + 1)
    assert entries(probe.net, key) == {}


def test_instance_and_code_are_archived_and_come_back_by_being_used(short_probe: Probe) -> None:
    probe, net = short_probe, short_probe.net
    probe.invoke("put", 1, 5)
    keys = [instance_key(probe.contract_id), code_key(probe.wasm_hash), probe.entry_key(1)]
    net.chain.skip_ledgers(100)
    assert [entry["liveUntilLedgerSeq"] for entry in entries(net, *keys).values()] == [0, 0, 0]
    simulation = net.result(
        "simulateTransaction", {"transaction": probe.build("get", scval.to_uint32(1)).to_xdr()}
    )
    assert scval.from_uint64(simulation["results"][0]["xdr"]) == 5  # reading works on archived entries
    assert "restorePreamble" not in simulation
    data = stellar_xdr.SorobanTransactionData.from_xdr(simulation["transactionData"])
    assert data.ext.resource_ext is not None
    assert len(data.ext.resource_ext.archived_soroban_entries) == 3
    probe.invoke("get", 1)
    latest = net.result("getHealth")["latestLedger"]
    assert all(entry["liveUntilLedgerSeq"] > latest for entry in entries(net, *keys).values())


def test_what_cannot_be_restored_says_so(short_probe: Probe) -> None:
    with pytest.raises(PrepareTransactionException):
        short_probe.submit(short_probe.build_ttl(None, [short_probe.entry_key(7)]))
