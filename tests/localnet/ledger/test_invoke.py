"""Host functions: results, what they leave behind, and every way they fail."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING

from stellar_sdk import scval, xdr
from stellar_sdk.operation import InvokeHostFunction

from mycelium_localnet import Chain, _native
from mycelium_localnet.apply import invoke
from tests.localnet.ledger.lab import CODES, Lab, change_call, meta_of, result_of, return_value

if TYPE_CHECKING:
    import pytest
    from stellar_sdk import Keypair

    from mycelium_localnet.ledger import TransactionRow

_Code = xdr.InvokeHostFunctionResultCode


def code(row: TransactionRow) -> xdr.InvokeHostFunctionResultCode:
    """The result code of a failed invocation, which leaves only its diagnostics."""
    assert not row.successful
    assert row.contract_events == ()
    assert meta_of(row).operations == []
    assert return_value(row) is None
    result = result_of(row.result).result
    assert result.code == CODES.txFAILED
    assert result.results is not None
    inner = result.results[0].tr
    assert inner is not None
    assert inner.invoke_host_function_result is not None
    return inner.invoke_host_function_result.code


def words(row: TransactionRow) -> list[str]:
    """The `error` diagnostics' messages."""
    found = []
    for data in row.diagnostic_events:
        body = xdr.DiagnosticEvent.from_xdr_bytes(data).event.body.v0
        assert body is not None
        if scval.from_symbol(body.topics[0]) == "error":
            text = body.data if body.data.str is not None else scval.from_vec(body.data)[0]
            found.append(scval.from_string(text).decode())
    return found


def test_a_call_that_succeeds(lab: Lab, alice: Keypair) -> None:
    row = lab.put(alice, 1, 2)
    value = return_value(row)
    assert value is not None
    assert scval.from_uint64(value) == 2
    (operation,) = meta_of(row).operations
    preimage = xdr.InvokeHostFunctionSuccessPreImage(value, operation.events)
    result = result_of(row.result).result
    assert result.results is not None
    inner = result.results[0].tr
    assert inner is not None
    assert inner.invoke_host_function_result is not None
    assert inner.invoke_host_function_result.code == _Code.INVOKE_HOST_FUNCTION_SUCCESS
    assert inner.invoke_host_function_result.success is not None
    assert inner.invoke_host_function_result.success.hash == sha256(preimage.to_xdr_bytes()).digest()
    assert row.contract_events == (tuple(event.to_xdr_bytes() for event in operation.events),)


def test_an_update_and_a_removal(lab: Lab, alice: Keypair) -> None:
    lab.put(alice, 1, 2)
    lab.put(alice, 1, 3)
    found = lab.entry(lab.data_key(1))
    assert found is not None
    assert found[0].last_modified_ledger_seq.uint32 == lab.latest().sequence
    assert found[0].data.contract_data is not None
    assert scval.from_uint64(found[0].data.contract_data.val) == 3
    lab.invoke(alice, "drop", scval.to_uint32(1))
    assert lab.entry(lab.data_key(1)) is None


def test_what_a_call_used_is_told(lab: Lab, alice: Keypair) -> None:
    row = lab.put(alice, 1, 2)
    metrics = {}
    for data in row.diagnostic_events:
        body = xdr.DiagnosticEvent.from_xdr_bytes(data).event.body.v0
        assert body is not None
        if scval.from_symbol(body.topics[0]) == "core_metrics":
            metrics[scval.from_symbol(body.topics[1])] = scval.from_uint64(body.data)
    entry = lab.entry(lab.data_key(1))
    assert entry is not None
    assert metrics["read_entry"] == 3
    assert metrics["write_entry"] == 1
    assert metrics["ledger_write_byte"] == len(entry[0].to_xdr_bytes())
    assert metrics["ledger_read_byte"] == 0  # Soroban's live state is kept in memory
    assert metrics["emit_event"] == 1
    assert 0 < metrics["cpu_insn"] < 1_000_000
    assert [event.to_xdr_bytes() for event in meta_of(row).diagnostic_events] == list(row.diagnostic_events)


def test_a_contract_that_fails(lab: Lab, alice: Keypair) -> None:
    envelope = lab.prepare(alice, lab.call("echo", scval.to_bytes(b"x")), signers=[])
    change_call(envelope, "boom")
    envelope.sign(alice)
    row = lab.apply(envelope)
    assert code(row) == _Code.INVOKE_HOST_FUNCTION_TRAPPED
    assert words(row)


def test_too_few_instructions(lab: Lab, alice: Keypair) -> None:
    def tight(data: xdr.SorobanTransactionData) -> None:
        data.resources.instructions = xdr.Uint32(50_000)

    row = lab.apply(lab.prepare(alice, lab.put_call(), change_data=tight))
    assert code(row) == _Code.INVOKE_HOST_FUNCTION_RESOURCE_LIMIT_EXCEEDED
    assert "operation instructions exceeds amount specified" in words(row)


def test_a_contract_that_runs_out_of_instructions_by_itself(lab: Lab, alice: Keypair) -> None:
    """The virtual machine stops at the limit rather than behind it, which the network calls trapped."""

    def tight(data: xdr.SorobanTransactionData) -> None:
        data.resources.instructions = xdr.Uint32(data.resources.instructions.uint32 // 2)

    row = lab.apply(lab.prepare(alice, lab.call("spin", scval.to_int32(10_000)), change_data=tight))
    assert code(row) == _Code.INVOKE_HOST_FUNCTION_TRAPPED


def test_too_few_bytes_to_write(lab: Lab, alice: Keypair) -> None:
    def tight(data: xdr.SorobanTransactionData) -> None:
        data.resources.write_bytes = xdr.Uint32(10)

    row = lab.apply(lab.prepare(alice, lab.put_call(), change_data=tight))
    assert code(row) == _Code.INVOKE_HOST_FUNCTION_RESOURCE_LIMIT_EXCEEDED
    assert "operation byte-write resources exceeds amount specified" in words(row)
    assert lab.entry(lab.data_key(1)) is None


def test_a_key_that_is_not_in_the_footprint(lab: Lab, alice: Keypair) -> None:
    def narrow(data: xdr.SorobanTransactionData) -> None:
        data.resources.footprint.read_write = []

    row = lab.apply(lab.prepare(alice, lab.put_call(), change_data=narrow))
    assert code(row) == _Code.INVOKE_HOST_FUNCTION_TRAPPED


def test_events_beyond_the_network_limit(lab: Lab, alice: Keypair) -> None:
    """The simulation gives no such limit; the ledger does."""
    limit = lab.chain.settings.tx_max_contract_events_size_bytes
    row = lab.apply(lab.prepare(alice, lab.call("shout", scval.to_bytes(bytes(limit)))))
    assert code(row) == _Code.INVOKE_HOST_FUNCTION_RESOURCE_LIMIT_EXCEEDED
    assert "total events size exceeds network config maximum" in words(row)
    row = lab.apply(lab.prepare(alice, lab.call("echo", scval.to_bytes(bytes(limit)))))
    assert code(row) == _Code.INVOKE_HOST_FUNCTION_RESOURCE_LIMIT_EXCEEDED
    assert "return value pushes events size above network config maximum" in words(row)
    lab.invoke(alice, "echo", scval.to_bytes(bytes(limit - 8)))


def test_an_entry_beyond_the_network_limit(lab: Lab, alice: Keypair) -> None:
    limit = lab.chain.settings.max_contract_data_entry_size_bytes
    row = lab.apply(
        lab.prepare(alice, lab.call("put_bytes", scval.to_uint32(1), scval.to_bytes(bytes(limit))))
    )
    assert code(row) == _Code.INVOKE_HOST_FUNCTION_RESOURCE_LIMIT_EXCEEDED
    assert "ContractData size exceeds network config maximum size" in words(row)


def test_the_source_account_authorizes_by_signing(lab: Lab, alice: Keypair) -> None:
    lab.invoke(alice, "guarded", scval.to_address(alice.public_key))


def test_somebody_elses_authorization_is_missing(lab: Lab, alice: Keypair, bob: Keypair) -> None:
    envelope = lab.prepare(alice, lab.call("guarded", scval.to_address(alice.public_key)), signers=[])
    change_call(envelope, "guarded", scval.to_address(bob.public_key))
    envelope.sign(alice)
    assert code(lab.apply(envelope)) == _Code.INVOKE_HOST_FUNCTION_TRAPPED


def test_random_numbers_differ_within_a_run_and_repeat_between_runs(wasm: bytes) -> None:
    """Whatever the chain's seed: what a contract gets depends on the network, the ledger and the place in
    it."""
    runs = []
    for seed in (b"one", b"two"):
        with Chain.open(":memory:", seed=seed) as chain:
            lab = Lab(chain, wasm)
            alice = lab.account("alice")
            lab.deploy(alice)
            values = [return_value(lab.invoke(alice, "roll")) for _ in range(3)]
            runs.append([scval.from_uint64(value) for value in values if value is not None])
    assert len(set(runs[0])) == 3
    assert runs[0] == runs[1]


def test_a_failure_inside_the_host_is_an_internal_error(
    lab: Lab, alice: Keypair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It must not stop the chain: fee and sequence number are taken, and the next transaction goes on."""
    envelope = lab.prepare(alice, lab.put_call())

    class Broken:
        HostError = _native.HostError
        ModuleCache = _native.ModuleCache

        @staticmethod
        def invoke(**_: object) -> None:
            raise _native.HostError("a panic")

    number = lab.sequence(alice)
    with monkeypatch.context() as patch:
        patch.setattr(invoke, "_native", Broken)
        row = lab.apply(envelope)
    assert not row.successful
    assert result_of(row.result).result.code == CODES.txINTERNAL_ERROR
    assert words(row) == ["a panic"]
    assert lab.sequence(alice) == number + 1
    lab.put(alice, 1, 2)


def test_code_that_is_too_large(lab: Lab, bob: Keypair) -> None:
    kind = xdr.HostFunctionType.HOST_FUNCTION_TYPE_UPLOAD_CONTRACT_WASM
    # Larger than a contract may be, and smaller than a transaction may be.
    size = lab.chain.settings.max_contract_size_bytes + 1
    upload = InvokeHostFunction(xdr.HostFunction(kind, wasm=bytes(size)), [])
    zero = xdr.Uint32(0)
    data = xdr.SorobanTransactionData(
        xdr.SorobanTransactionDataExt(0),
        xdr.SorobanResources(xdr.LedgerFootprint([], []), zero, zero, zero),
        xdr.Int64(10**8),
    )
    result = lab.refuse(lab.build(bob, upload, soroban=data, fee=10**8 + 100))
    assert result.result.code == CODES.txFAILED
    assert result.result.results is not None
    inner = result.result.results[0].tr
    assert inner is not None
    assert inner.invoke_host_function_result is not None
    assert inner.invoke_host_function_result.code == _Code.INVOKE_HOST_FUNCTION_MALFORMED
