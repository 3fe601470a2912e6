"""Simulating invocations on the native module: quotes, records, failures, and the ledger lookup."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest
from stellar_sdk import Keypair, scval, xdr

from mycelium_localnet import _native

if TYPE_CHECKING:
    from tests.localnet.native.conftest import MiniLedger

STRANGER = Keypair.from_raw_ed25519_seed(bytes(32))
PERSISTENT = xdr.ContractDataDurability.PERSISTENT
TEMPORARY = xdr.ContractDataDurability.TEMPORARY


def data_of(simulation: _native.Simulation) -> xdr.SorobanTransactionData:
    assert simulation.error is None
    assert simulation.transaction_data is not None
    return xdr.SorobanTransactionData.from_xdr_bytes(simulation.transaction_data)


def test_a_call_is_quoted(ledger: MiniLedger) -> None:
    simulation = ledger.simulate(ledger.put(41))
    data = data_of(simulation)
    assert simulation.result == scval.to_uint64(41).to_xdr_bytes()
    assert simulation.min_resource_fee == data.resource_fee.int64 > 0
    assert simulation.restore_preamble is None
    assert {key.to_xdr_bytes() for key in data.resources.footprint.read_only} == {
        ledger.instance_key(),
        ledger.code_key(),
    }
    assert [key.to_xdr_bytes() for key in data.resources.footprint.read_write] == [
        ledger.data_key(PERSISTENT)
    ]
    assert data.ext.v == 0
    assert data.resources.instructions.uint32 == simulation.instructions + 50_000
    assert simulation.memory > 0


def test_leeway_counts_when_it_is_more_than_the_default(ledger: MiniLedger) -> None:
    plain = ledger.simulate(ledger.put(1))
    small = ledger.simulate(ledger.put(1), instruction_leeway=49_999)
    large = ledger.simulate(ledger.put(1), instruction_leeway=2_000_000)
    assert small.transaction_data == plain.transaction_data
    assert data_of(large).resources.instructions.uint32 == plain.instructions + 2_000_000
    # 25 stroops for each 10,000 instructions.
    assert abs(large.min_resource_fee - plain.min_resource_fee - 1_950_000 * 25 // 10_000) <= 1


def test_the_same_call_is_quoted_alike(ledger: MiniLedger) -> None:
    def everything(simulation: _native.Simulation) -> tuple[object, ...]:
        return (
            simulation.transaction_data,
            simulation.result,
            simulation.auth,
            simulation.events,
            simulation.instructions,
            simulation.memory,
            [(change.key, change.before, change.after) for change in simulation.modified],
        )

    assert everything(ledger.simulate(ledger.put(1))) == everything(ledger.simulate(ledger.put(1)))


def test_the_seed_decides_what_is_random(ledger: MiniLedger) -> None:
    roll = ledger.call("roll", scval.to_uint64(2**60))
    first = ledger.simulate(roll, prng_seed=bytes(32)).result
    assert first == ledger.simulate(roll, prng_seed=bytes(32)).result
    assert first != ledger.simulate(roll, prng_seed=b"\x01" * 32).result


def test_changes_are_reported_before_and_after(ledger: MiniLedger) -> None:
    key = ledger.data_key(PERSISTENT)
    [created] = ledger.simulate(ledger.put(1)).modified
    assert (created.key, created.before) == (key, None)
    ledger.run(ledger.put(1))
    [updated] = ledger.simulate(ledger.put(2)).modified
    assert (updated.key, updated.before) == (key, ledger.entries[key][0])
    assert updated.after is not None
    entry = xdr.LedgerEntry.from_xdr_bytes(updated.after).data.contract_data
    assert entry is not None
    assert entry.val == scval.to_uint64(2)
    [deleted] = ledger.simulate(ledger.about_owner("remove")).modified
    assert (deleted.key, deleted.before, deleted.after) == (key, ledger.entries[key][0], None)


def test_removing_what_is_not_there_is_no_change(ledger: MiniLedger) -> None:
    simulation = ledger.simulate(ledger.about_owner("remove"))
    assert data_of(simulation).resources.footprint.read_write != []
    assert simulation.modified == []


def test_events_come_in_order(ledger: MiniLedger) -> None:
    events = [xdr.DiagnosticEvent.from_xdr_bytes(raw) for raw in ledger.simulate(ledger.put(1)).events]
    kinds = xdr.ContractEventType
    assert [event.event.type for event in events] == [kinds.DIAGNOSTIC, kinds.CONTRACT, kinds.DIAGNOSTIC]
    topics = [event.event.body.v0.topics[0] for event in events if event.event.body.v0]
    assert topics[0] == scval.to_symbol("fn_call")
    assert topics[2] == scval.to_symbol("fn_return")


def test_a_contracts_error_is_told_with_its_event_log(ledger: MiniLedger) -> None:
    simulation = ledger.simulate(ledger.about_owner("get"))
    assert simulation.error is not None
    head, _, log = simulation.error.partition("\n\nEvent log (newest first):\n")
    assert head == "HostError: Error(Contract, #7)"
    lines = log.splitlines()
    assert lines[0].startswith("   0: [Diagnostic Event] ")
    assert lines[-1].startswith(
        f"   {len(lines) - 1}: [Diagnostic Event] topics:[fn_call, {ledger.contract}, get]"
    )
    assert len(simulation.events) == len(lines)
    assert simulation.transaction_data is None
    assert simulation.result is None
    assert simulation.min_resource_fee == 0
    assert simulation.auth == []
    assert simulation.modified == []
    assert simulation.instructions > 0


def test_the_networks_instructions_are_the_limit(ledger: MiniLedger) -> None:
    simulation = ledger.simulate(ledger.call("spin", scval.to_int32(2**31 - 1)))
    assert simulation.error is not None
    assert simulation.error.startswith("HostError: Error(Budget, ExceededLimit)\n")


def test_wasm_of_a_newer_protocol_is_refused(ledger: MiniLedger) -> None:
    marker = b"contractenvmetav0" + (0).to_bytes(4) + (25).to_bytes(4)
    assert ledger.wasm.count(marker) == 1
    newer = ledger.wasm.replace(marker, marker[:-4] + (_native.PROTOCOL_VERSION + 1).to_bytes(4))
    upload = xdr.HostFunction(xdr.HostFunctionType.HOST_FUNCTION_TYPE_UPLOAD_CONTRACT_WASM, wasm=newer)
    simulation = ledger.simulate(upload)
    assert simulation.error is not None
    assert "protocol" in simulation.error


class TestAuthorization:
    def test_the_sources_own_is_recorded(self, ledger: MiniLedger) -> None:
        [recorded] = ledger.simulate(ledger.put(1)).auth
        entry = xdr.SorobanAuthorizationEntry.from_xdr_bytes(recorded)
        assert entry.credentials.type == xdr.SorobanCredentialsType.SOROBAN_CREDENTIALS_SOURCE_ACCOUNT

    @pytest.mark.parametrize(
        ("upgraded", "kind"),
        [
            (False, xdr.SorobanCredentialsType.SOROBAN_CREDENTIALS_ADDRESS),
            (True, xdr.SorobanCredentialsType.SOROBAN_CREDENTIALS_ADDRESS_V2),
        ],
    )
    def test_anothers_is_recorded_for_signing(
        self, ledger: MiniLedger, upgraded: bool, kind: xdr.SorobanCredentialsType
    ) -> None:
        ledger.add_account(ledger.owner)
        simulation = ledger.simulate(ledger.put(1), source=STRANGER, upgraded_auth=upgraded)
        assert simulation.error is None
        [recorded] = simulation.auth
        assert xdr.SorobanAuthorizationEntry.from_xdr_bytes(recorded).credentials.type == kind

    def test_enforcing_wants_the_entries(self, ledger: MiniLedger) -> None:
        recorded = ledger.simulate(ledger.put(1)).auth
        enforced = ledger.simulate(ledger.put(1), auth=recorded, auth_mode="enforce")
        assert enforced.error is None
        assert enforced.auth == recorded
        without = ledger.simulate(ledger.put(1), auth_mode="enforce")
        assert without.error is not None
        assert without.error.startswith("HostError: Error(Auth, InvalidAction)\n")

    def test_below_the_root_it_must_be_allowed(self, ledger: MiniLedger) -> None:
        other = ledger.deploy(salt=b"\x01" * 32)
        forward = ledger.call(
            "forward",
            scval.to_address(other),
            scval.to_address(ledger.owner.public_key),
            scval.to_uint64(5),
        )
        refused = ledger.simulate(forward, auth_mode="record")
        assert refused.error is not None
        assert refused.error.startswith("HostError: Error(Auth, InvalidAction)\n")
        allowed = ledger.simulate(forward, auth_mode="record_allow_nonroot")
        assert allowed.error is None
        assert allowed.result == scval.to_uint64(5).to_xdr_bytes()

    def test_an_unknown_mode_is_refused(self, ledger: MiniLedger) -> None:
        with pytest.raises(ValueError, match="record_allow_nonroot"):
            ledger.simulate(ledger.put(1), auth_mode="recording")  # type: ignore[arg-type]


class TestLookup:
    def test_each_key_is_asked_for_once(self, ledger: MiniLedger) -> None:
        ledger.lookups.clear()
        ledger.simulate(ledger.put(1))
        assert sorted(ledger.lookups) == sorted(
            [ledger.instance_key(), ledger.code_key(), ledger.data_key(PERSISTENT)]
        )

    def test_it_runs_on_the_callers_thread(self, ledger: MiniLedger) -> None:
        threads: set[int] = set()

        def get(key: bytes) -> tuple[bytes, int | None] | None:
            threads.add(threading.get_ident())
            return ledger.entries.get(key)

        _native.simulate_restore(ledger=ledger.info, get=get, keys=[ledger.code_key()])
        assert threads == {threading.get_ident()}

    @pytest.mark.parametrize("error", [RuntimeError("disk on fire"), KeyboardInterrupt()])
    def test_what_it_raises_comes_out(self, ledger: MiniLedger, error: BaseException) -> None:
        asked: list[bytes] = []

        def get(key: bytes) -> tuple[bytes, int | None] | None:
            asked.append(key)
            raise error

        keys = [ledger.code_key(), ledger.instance_key()]
        with pytest.raises(type(error)) as caught:
            _native.simulate_restore(ledger=ledger.info, get=get, keys=keys)
        assert caught.value is error
        assert len(asked) == 1

    def test_answers_that_cannot_be_right_are_refused(self, ledger: MiniLedger) -> None:
        key = ledger.code_key()
        entry, live_until = ledger.entries[key]
        other, _ = ledger.entries[ledger.instance_key()]

        def restore(answer: object) -> None:
            _native.simulate_restore(
                ledger=ledger.info,
                get=lambda _key: answer,  # type: ignore[arg-type, return-value]
                keys=[key],
            )

        with pytest.raises(_native.HostError, match="does not decode"):
            restore((entry[:-4], live_until))
        with pytest.raises(_native.HostError, match="another key"):
            restore((other, live_until))
        with pytest.raises(_native.HostError, match="live-until"):
            restore((entry, None))
        with pytest.raises(TypeError):
            restore(entry)
        with pytest.raises(OverflowError):
            restore((entry, -1))

    def test_an_expired_temporary_entry_is_missing(self, ledger: MiniLedger) -> None:
        ledger.run(ledger.call("put_short", scval.to_address(ledger.owner.public_key), scval.to_uint64(1)))
        key = ledger.data_key(TEMPORARY)
        entry, live_until = ledger.entries[key]
        assert live_until == ledger.sequence + ledger.settings.min_temporary_entry_ttl - 1
        has = ledger.about_owner("has_short")
        assert ledger.simulate(has).result == scval.to_bool(True).to_xdr_bytes()
        ledger.entries[key] = (entry, ledger.sequence - 1)
        expired = ledger.simulate(has)
        assert expired.result == scval.to_bool(False).to_xdr_bytes()
        assert data_of(expired).ext.v == 0
