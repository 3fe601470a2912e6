"""Enforcing invocations on the native module: changes, events, failures, limits and the module cache."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from stellar_sdk import Keypair, scval, xdr

from mycelium_localnet import _native

if TYPE_CHECKING:
    from tests.localnet.native.conftest import MiniLedger

STRANGER = Keypair.from_raw_ed25519_seed(bytes(32))
PERSISTENT = xdr.ContractDataDurability.PERSISTENT
TEMPORARY = xdr.ContractDataDurability.TEMPORARY


def last_event(invocation: _native.Invocation) -> xdr.ContractEvent:
    return xdr.DiagnosticEvent.from_xdr_bytes(invocation.diagnostic_events[-1]).event


def test_what_was_simulated_happens(ledger: MiniLedger) -> None:
    simulation = ledger.simulate(ledger.put(41))
    invocation = ledger.invoke(ledger.put(41), simulation)
    assert invocation.ok
    assert invocation.error is None
    assert invocation.error_kind is None
    assert invocation.result == simulation.result == scval.to_uint64(41).to_xdr_bytes()
    assert 0 < invocation.instructions <= simulation.instructions + 50_000
    assert invocation.memory > 0
    [simulated] = simulation.modified
    [written] = [change for change in invocation.changes if not change.read_only]
    assert (written.key, written.new_value) == (simulated.key, simulated.after)


def test_every_key_of_the_footprint_is_listed(ledger: MiniLedger) -> None:
    key = ledger.data_key(PERSISTENT)
    live_until = ledger.sequence + ledger.settings.min_persistent_entry_ttl - 1
    simulation = ledger.simulate(ledger.put(1))
    first = ledger.invoke(ledger.put(1), simulation)
    footprint = xdr.SorobanTransactionData.from_xdr_bytes(
        simulation.transaction_data or b""
    ).resources.footprint
    assert [change.key for change in first.changes] == [
        listed.to_xdr_bytes() for listed in [*footprint.read_only, *footprint.read_write]
    ]
    assert [change.read_only for change in first.changes] == [True, True, False]
    for change in first.changes[:2]:
        entry, entry_live_until = ledger.entries[change.key]
        assert change.new_value is None
        assert change.old_size_for_rent == _native.entry_size_for_rent(ledger.settings, entry)
        assert change.old_live_until == change.new_live_until == entry_live_until
    created = first.changes[2]
    assert created.key == key
    assert (created.old_size_for_rent, created.old_live_until) == (0, 0)
    assert created.new_size_for_rent == len(created.new_value or b"")
    assert created.new_live_until == live_until
    assert first.rent_fee == _native.rent_fee(
        ledger.settings,
        changes=[(True, False, 0, created.new_size_for_rent, 0, live_until)],
        ledger_sequence=ledger.sequence,
    )
    ledger.apply(first)
    updated = ledger.run(ledger.put(2))
    assert updated.changes[2].old_size_for_rent == created.new_size_for_rent
    assert updated.changes[2].old_live_until == live_until
    assert updated.rent_fee == 0


def test_a_removed_entry_comes_back_without_a_value(ledger: MiniLedger) -> None:
    ledger.run(ledger.put(1))
    key = ledger.data_key(PERSISTENT)
    removed = ledger.run(ledger.about_owner("remove"))
    [change] = [change for change in removed.changes if change.key == key]
    assert (change.read_only, change.new_value, change.new_size_for_rent) == (False, None, 0)
    assert key not in ledger.entries
    assert ledger.simulate(ledger.about_owner("get")).error is not None


def test_temporary_entries_live_as_long_as_the_network_says(ledger: MiniLedger) -> None:
    owner = scval.to_address(ledger.owner.public_key)
    ledger.run(ledger.call("put_short", owner, scval.to_uint64(1)))
    _, live_until = ledger.entries[ledger.data_key(TEMPORARY)]
    assert live_until == ledger.sequence + ledger.settings.min_temporary_entry_ttl - 1


def test_contract_events_are_those_of_the_contract(ledger: MiniLedger) -> None:
    [raw] = ledger.run(ledger.put(3)).contract_events
    event = xdr.ContractEvent.from_xdr_bytes(raw)
    assert event.type == xdr.ContractEventType.CONTRACT
    assert event.body.v0 is not None
    assert event.body.v0.topics == [
        scval.to_symbol("stored"),
        scval.to_address(ledger.owner.public_key),
    ]


def test_diagnostics_can_be_left_out(ledger: MiniLedger) -> None:
    simulation = ledger.simulate(ledger.put(1))
    silent = ledger.invoke(ledger.put(1), simulation, diagnostics=False)
    loud = ledger.invoke(ledger.put(1), simulation)
    assert silent.diagnostic_events == []
    assert len(loud.diagnostic_events) == 3
    assert silent.contract_events == loud.contract_events
    assert silent.instructions == loud.instructions


def test_the_seed_decides_what_is_random(ledger: MiniLedger) -> None:
    roll = ledger.call("roll", scval.to_uint64(2**60))
    simulation = ledger.simulate(roll)
    one, again, other = (
        ledger.invoke(roll, simulation, prng_seed=seed).result
        for seed in (bytes(32), bytes(32), b"\x01" * 32)
    )
    assert one == again == simulation.result
    assert one != other
    with pytest.raises(ValueError, match="prng_seed must be 32 bytes, not 31"):
        ledger.invoke(roll, simulation, prng_seed=bytes(31))


class TestFailures:
    def test_a_contracts_error_traps(self, ledger: MiniLedger) -> None:
        # What is read was there when simulated and is gone when applied.
        ledger.run(ledger.put(1))
        simulation = ledger.simulate(ledger.about_owner("get"))
        ledger.run(ledger.about_owner("remove"))
        invocation = ledger.invoke(ledger.about_owner("get"), simulation)
        assert not invocation.ok
        assert (invocation.error, invocation.error_kind) == ("Error(Contract, #7)", "trapped")
        assert invocation.result is None
        assert invocation.changes == []
        assert invocation.contract_events == []
        assert invocation.rent_fee == 0
        assert invocation.instructions > 0
        body = last_event(invocation).body.v0
        assert body is not None
        assert body.topics == [
            scval.to_symbol("host_fn_failed"),
            xdr.SCVal(
                xdr.SCValType.SCV_ERROR,
                error=xdr.SCError(xdr.SCErrorType.SCE_CONTRACT, contract_code=xdr.Uint32(7)),
            ),
        ]

    def test_a_stranger_cannot_use_the_sources_authorization(self, ledger: MiniLedger) -> None:
        simulation = ledger.simulate(ledger.put(1))
        invocation = ledger.invoke(ledger.put(1), simulation, source=STRANGER)
        assert (invocation.error, invocation.error_kind) == ("Error(Auth, InvalidAction)", "trapped")
        without = ledger.invoke(ledger.put(1), simulation, auth=[])
        assert (without.error, without.error_kind) == ("Error(Auth, InvalidAction)", "trapped")

    def test_a_key_outside_of_the_footprint_traps(self, ledger: MiniLedger) -> None:
        narrow = ledger.simulate(ledger.about_owner("has_short"))
        auth = ledger.simulate(ledger.put(1)).auth
        invocation = ledger.invoke(ledger.put(1), narrow, auth=auth)
        assert (invocation.error, invocation.error_kind) == ("Error(Storage, ExceededLimit)", "trapped")

    @pytest.mark.parametrize("instructions", [0, 100, 10_000])
    def test_too_few_instructions_exceed_the_limit(self, ledger: MiniLedger, instructions: int) -> None:
        simulation = ledger.simulate(ledger.put(1))
        invocation = ledger.invoke(ledger.put(1), simulation, instructions=instructions)
        assert (invocation.error, invocation.error_kind) == (
            "Error(Budget, ExceededLimit)",
            "resource_limit",
        )
        assert invocation.instructions > instructions
        assert last_event(invocation).type == xdr.ContractEventType.DIAGNOSTIC

    def test_code_that_runs_out_inside_a_loop_traps_below_the_limit(self, ledger: MiniLedger) -> None:
        spin = ledger.call("spin", scval.to_int32(100_000))
        simulation = ledger.simulate(spin)
        limit = simulation.instructions // 2
        invocation = ledger.invoke(spin, simulation, instructions=limit)
        assert (invocation.error, invocation.error_kind) == ("Error(Budget, ExceededLimit)", "trapped")
        assert invocation.instructions <= limit


class TestModuleCache:
    def test_live_code_is_compiled_once(self, ledger: MiniLedger) -> None:
        simulation = ledger.simulate(ledger.put(1))
        cache = _native.ModuleCache()
        assert cache.module_count == 0
        cold = ledger.invoke(ledger.put(1), simulation, cache=cache)
        assert cache.module_count == 1
        warm = ledger.invoke(ledger.put(1), simulation, cache=cache)
        assert cache.module_count == 1
        # A transaction never pays for compiling live code, so a quote is enough either way.
        assert cold.ok
        assert warm.ok
        assert cold.instructions == warm.instructions

    def test_two_contracts_are_two_modules(self, ledger: MiniLedger) -> None:
        ledger.run(ledger.put(1))
        # Another module with another hash: the same code behind a custom section.
        ledger.wasm += bytes([0, 2, 1]) + b"x"
        ledger.contract = ledger.deploy(salt=b"\x02" * 32)
        ledger.run(ledger.put(1))
        assert ledger.cache.module_count == 2

    def test_it_does_not_grow_without_bound(self, ledger: MiniLedger) -> None:
        simulation = ledger.simulate(ledger.put(1))
        data = xdr.SorobanTransactionData.from_xdr_bytes(simulation.transaction_data or b"")
        read_only = data.resources.footprint.read_only
        wasm = ledger.wasm
        counts = []
        for batch in range(6):
            # Fifty more modules, each with another hash for another custom section.
            for number in range(batch * 50, batch * 50 + 50):
                ledger.wasm = wasm + bytes([0, 5, 1]) + b"x" + number.to_bytes(3)
                ledger.entries[ledger.code_key()] = (ledger.code_entry(), ledger.sequence)
                read_only.append(xdr.LedgerKey.from_xdr_bytes(ledger.code_key()))
            invocation = _native.invoke(
                ledger=ledger.info,
                cache=ledger.cache,
                host_function=ledger.put(1).to_xdr_bytes(),
                resources=data.resources.to_xdr_bytes(),
                auth=simulation.auth,
                source_account=ledger.owner.xdr_account_id().to_xdr_bytes(),
                entries=ledger.footprint_entries(data.resources.footprint, []),
                prng_seed=bytes(32),
            )
            assert invocation.instructions > 0
            del read_only[2:]
            counts.append(ledger.cache.module_count)
        assert counts == [51, 101, 151, 201, 251, 51]


class TestMisuse:
    def test_bytes_that_do_not_decode(self, ledger: MiniLedger) -> None:
        function = ledger.put(1)
        simulation = ledger.simulate(function)
        data = xdr.SorobanTransactionData.from_xdr_bytes(simulation.transaction_data or b"")
        good = {
            "host_function": function.to_xdr_bytes(),
            "resources": data.resources.to_xdr_bytes(),
            "source_account": ledger.owner.xdr_account_id().to_xdr_bytes(),
        }

        def invoke(auth: list[bytes], **changed: bytes) -> _native.Invocation:
            given = good | changed
            return _native.invoke(
                ledger=ledger.info,
                cache=ledger.cache,
                host_function=given["host_function"],
                resources=given["resources"],
                auth=auth,
                source_account=given["source_account"],
                entries=ledger.footprint_entries(data.resources.footprint, []),
                prng_seed=bytes(32),
            )

        assert invoke(simulation.auth).ok
        for name, value in good.items():
            for bad in (b"", b"\xff" * 64, value[:-4], value + bytes(4)):
                with pytest.raises(_native.HostError, match=name):
                    invoke(simulation.auth, **{name: bad})
        with pytest.raises(_native.HostError, match="auth entry"):
            invoke([simulation.auth[0][:-1]])

    def test_entries_that_do_not_fit_the_footprint(self, ledger: MiniLedger) -> None:
        simulation = ledger.simulate(ledger.put(1))
        data = xdr.SorobanTransactionData.from_xdr_bytes(simulation.transaction_data or b"")
        given = ledger.footprint_entries(data.resources.footprint, [])
        instance, code, _ = given
        assert instance is not None
        assert code is not None

        def refused(entries: list[tuple[bytes, int | None] | None], why: str) -> None:
            with pytest.raises(_native.HostError, match=why):
                _native.invoke(
                    ledger=ledger.info,
                    cache=ledger.cache,
                    host_function=ledger.put(1).to_xdr_bytes(),
                    resources=data.resources.to_xdr_bytes(),
                    auth=simulation.auth,
                    source_account=ledger.owner.xdr_account_id().to_xdr_bytes(),
                    entries=entries,
                    prng_seed=bytes(32),
                )

        refused(given[:2], "3 keys, but 2 entries")
        refused([(instance[0], None), code, None], "entry 0 .* needs a live-until ledger")
        refused([(instance[0], ledger.sequence - 1), code, None], "entry 0 expired at ledger 99")
        refused([instance, (code[0][:-4], code[1]), None], "entry 1 .* does not decode")
        refused([instance, (instance[0], code[1]), None], "entry 1 belongs to another key")

    def test_an_entry_with_a_ttl_that_has_none(self, ledger: MiniLedger) -> None:
        account = xdr.LedgerKey(
            xdr.LedgerEntryType.ACCOUNT, account=xdr.LedgerKeyAccount(ledger.owner.xdr_account_id())
        )
        resources = xdr.SorobanResources(
            footprint=xdr.LedgerFootprint([account], []),
            instructions=xdr.Uint32(1_000_000),
            disk_read_bytes=xdr.Uint32(0),
            write_bytes=xdr.Uint32(0),
        )
        ledger.add_account(ledger.owner)
        entry, _ = ledger.entries[account.to_xdr_bytes()]
        with pytest.raises(_native.HostError, match=r"entry 0 .* has no live-until ledger"):
            _native.invoke(
                ledger=ledger.info,
                cache=ledger.cache,
                host_function=ledger.put(1).to_xdr_bytes(),
                resources=resources.to_xdr_bytes(),
                auth=[],
                source_account=ledger.owner.xdr_account_id().to_xdr_bytes(),
                entries=[(entry, 1_000)],
                prng_seed=bytes(32),
            )

    def test_simulations_refuse_what_does_not_decode(self, ledger: MiniLedger) -> None:
        source = ledger.owner.xdr_account_id().to_xdr_bytes()
        function = ledger.put(1).to_xdr_bytes()

        def simulate(function: bytes, source: bytes, auth: list[bytes]) -> None:
            _native.simulate_invoke(
                ledger=ledger.info,
                get=ledger.get,
                host_function=function,
                auth=auth,
                auth_mode="enforce",
                source_account=source,
                prng_seed=bytes(32),
            )

        simulate(function, source, [])
        for bad in (b"", b"\xff" * 64, function[:-1]):
            with pytest.raises(_native.HostError, match="host_function"):
                simulate(bad, source, [])
        with pytest.raises(_native.HostError, match="source_account"):
            simulate(function, source[:-1], [])
        with pytest.raises(_native.HostError, match="auth entry"):
            simulate(function, source, [b"\x00"])
        with pytest.raises(_native.HostError, match="LedgerKey"):
            _native.simulate_restore(ledger=ledger.info, get=ledger.get, keys=[b"\x00\x00"])
        with pytest.raises(_native.HostError, match="LedgerKey"):
            _native.simulate_extend_ttl(ledger=ledger.info, get=ledger.get, keys=[b""], extend_to=1)
