"""Threads and stacks of the native module: results do not depend on who calls from where."""

from __future__ import annotations

import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest
from stellar_sdk import scval, xdr

from mycelium_localnet import _native

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.localnet.native.conftest import MiniLedger


@pytest.fixture
def no_preemption() -> Iterator[None]:
    """Python threads switch only where one gives up the interpreter lock by itself."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1_000)
    yield
    sys.setswitchinterval(before)


@pytest.fixture
def small_stacks() -> Iterator[None]:
    before = threading.stack_size(128 * 1024)
    yield
    threading.stack_size(before)


def outcome(invocation: _native.Invocation) -> tuple[object, ...]:
    return (
        invocation.ok,
        invocation.result,
        invocation.instructions,
        invocation.memory,
        invocation.rent_fee,
        invocation.contract_events,
        invocation.diagnostic_events,
        [(change.key, change.new_value, change.new_live_until) for change in invocation.changes],
    )


def test_threads_share_one_cache(ledger: MiniLedger) -> None:
    puts = [ledger.put(value) for value in range(4)]
    simulations = [ledger.simulate(put) for put in puts]
    expected = [
        outcome(ledger.invoke(put, simulation)) for put, simulation in zip(puts, simulations, strict=True)
    ]
    assert len(set(map(repr, expected))) == len(puts)
    cache = _native.ModuleCache()

    def invoke(number: int) -> tuple[object, ...]:
        return outcome(ledger.invoke(puts[number % 4], simulations[number % 4], cache=cache))

    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(invoke, range(200)))
    assert results == expected * 50
    assert cache.module_count == 1


def test_threads_simulate_side_by_side(ledger: MiniLedger) -> None:
    puts = [ledger.put(value) for value in range(4)]
    expected = [ledger.simulate(put).transaction_data for put in puts]
    with ThreadPoolExecutor(8) as pool:
        results = list(
            pool.map(lambda number: ledger.simulate(puts[number % 4]).transaction_data, range(100))
        )
    assert results == expected * 25


@pytest.mark.usefixtures("no_preemption")
def test_the_interpreter_is_free_while_the_host_runs(ledger: MiniLedger) -> None:
    spin = ledger.call("spin", scval.to_int32(100_000))
    simulation = ledger.simulate(spin)
    turns = 0
    done = threading.Event()

    def count() -> None:
        nonlocal turns
        while not done.is_set():
            turns += 1
            time.sleep(0)  # gives up the lock, which nothing else here does

    counter = threading.Thread(target=count)
    counter.start()
    try:
        for _ in range(1_000):
            before = turns
            ledger.invoke(spin, simulation)
            if turns > before:
                break
        assert turns > before
    finally:
        done.set()
        counter.join()


@pytest.mark.usefixtures("small_stacks")
@pytest.mark.parametrize(("depth", "decodes"), [(50, True), (120, True), (150, False), (10_000, False)])
def test_deep_values_do_not_overflow_the_stack(ledger: MiniLedger, depth: int, decodes: bool) -> None:
    some_vector_of_one = b"\x00\x00\x00\x10\x00\x00\x00\x01\x00\x00\x00\x01"
    void = scval.to_void().to_xdr_bytes()
    flat = ledger.call("put", scval.to_address(ledger.owner.public_key), scval.to_void()).to_xdr_bytes()
    deep = flat.removesuffix(void) + some_vector_of_one * depth + void

    def simulate() -> _native.Simulation:
        return _native.simulate_invoke(
            ledger=ledger.info,
            get=ledger.get,
            host_function=deep,
            auth_mode="record",
            source_account=ledger.owner.xdr_account_id().to_xdr_bytes(),
            prng_seed=bytes(32),
        )

    results: list[_native.Simulation | _native.HostError] = []

    def run() -> None:
        try:
            results.append(simulate())
        except _native.HostError as error:
            results.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    [result] = results
    if isinstance(result, _native.HostError):
        assert not decodes
        assert "host_function (HostFunction) does not decode" in str(result)
    else:
        assert decodes
        assert result.error is not None


def test_a_lookup_may_simulate_itself(ledger: MiniLedger) -> None:
    inner: list[bytes | None] = []

    def get(key: bytes) -> tuple[bytes, int | None] | None:
        inner.append(ledger.simulate(ledger.put(1)).result)
        return ledger.entries.get(key)

    simulation = _native.simulate_restore(ledger=ledger.info, get=get, keys=[ledger.code_key()])
    assert simulation.error is None
    assert inner == [scval.to_uint64(1).to_xdr_bytes()]


def test_two_ledgers_run_alike(ledger: MiniLedger) -> None:
    twin = type(ledger)(ledger.settings, ledger.wasm)
    twin.contract = twin.deploy()
    assert twin.contract == ledger.contract
    assert [outcome(twin.run(twin.put(value))) for value in (1, 2)] == [
        outcome(ledger.run(ledger.put(value))) for value in (1, 2)
    ]
    assert twin.entries == ledger.entries


def test_what_was_decoded_is_what_was_meant(ledger: MiniLedger) -> None:
    # The entries that come back are canonical XDR of the same network's definitions.
    ledger.run(ledger.put(1))
    for key, (entry, _) in ledger.entries.items():
        assert xdr.LedgerKey.from_xdr_bytes(key).to_xdr_bytes() == key
        assert xdr.LedgerEntry.from_xdr_bytes(entry).to_xdr_bytes() == entry
