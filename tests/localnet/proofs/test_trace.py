"""The trace of a call: nested calls, names from specifications, causes, and what ran out."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from stellar_sdk import Address, scval, xdr
from stellar_sdk.operation import InvokeHostFunction

from mycelium_localnet import Chain
from mycelium_localnet.calls import Call, Note
from mycelium_localnet.errors import InvalidRequestError, MalformedEnvelopeError, UnknownTransactionError
from mycelium_localnet.explanations import HOST_ERRORS, RESULTS
from tests.localnet.ledger.lab import Lab, change_call, create, keypair
from tests.localnet.proofs.conftest import compile_contract
from tests.localnet.proofs.door import result, rpc

if TYPE_CHECKING:
    from collections.abc import Callable

    from stellar_sdk import Keypair

    from mycelium_localnet.trace import Trace


def simulated(lab: Lab, call: InvokeHostFunction) -> Trace:
    return lab.chain.trace_simulation(lab.build(keypair("carol"), call).to_xdr())


def failing(relay: Lab, call: InvokeHostFunction, function: str, *arguments: xdr.SCVal) -> Trace:
    """The trace of a transaction that was simulated as `call` and sent as another one."""
    carol = keypair("carol")
    envelope = relay.prepare(carol, call, signers=[])
    change_call(envelope, function, *arguments)
    envelope.sign(carol)
    row = relay.apply(envelope)
    assert not row.successful
    return relay.chain.trace(row.hash)


def the_call(trace: Trace) -> Call:
    """The outermost call."""
    found = next(step for step in trace.steps if isinstance(step, Call))
    assert isinstance(found, Call)
    return found


def text_of(trace: Trace, lab: Lab, relay: Lab) -> str:
    """What is printed, with the contracts by their names."""
    text = str(trace)
    for contract, name in ((lab.contract_id, "probe"), (relay.contract_id, "relay")):
        text = text.replace(f"{contract[:4]}..{contract[-4:]}", name).replace(contract, name.upper())
    return text


def test_nested_calls_are_indented_and_errors_named_by_whoever_raised_them(lab: Lab, relay: Lab) -> None:
    """Both contracts have an error 7: it is the inner one's that is told, all the way out."""
    target = scval.to_address(lab.contract_id)
    put = relay.call("put", target, scval.to_uint32(1), scval.to_uint64(2))
    trace = failing(relay, put, "boom", target)
    failure = "ProbeError.BOOM (contract error 7)"
    lines = text_of(trace, lab, relay).splitlines()
    assert lines[:-2] == [
        f"{trace.subject} failed: txFAILED, INVOKE_HOST_FUNCTION_TRAPPED",
        f"cause: probe.boom: {failure}: failing with contract error (7), in fail_with_error",
        "",
        "relay.boom(target: probe)",
        "  probe.boom()",
        f"    {failure}: failing with contract error (7), in fail_with_error",
        f"    failed with {failure}",
        f"  failed with {failure}",
        "",
    ]
    assert set(lines[-2:]) == {"probe  PROBE", "relay  RELAY"}
    assert re.fullmatch(r"transaction [0-9a-f]{64} in ledger \d+", trace.subject)


def test_a_simulation_tells_the_same_as_the_transaction(lab: Lab, relay: Lab) -> None:
    target = scval.to_address(lab.contract_id)
    put = relay.call("put", target, scval.to_uint32(1), scval.to_uint64(2))
    applied = failing(relay, put, "boom", target)
    trace = simulated(relay, relay.call("boom", target))
    assert not trace.successful
    assert trace.outcome == "Error(Contract, #7)"
    assert (trace.cause, trace.hint, trace.steps) == (applied.cause, applied.hint, applied.steps)


def test_what_was_done_before_a_failure_is_told_as_undone(lab: Lab, relay: Lab) -> None:
    trace = simulated(relay, relay.call("tire", scval.to_address(lab.contract_id), scval.to_uint32(4)))
    call = the_call(trace)
    assert call.failure == "RelayError.TIRED (contract error 7)"
    inner, event, log, error = call.steps
    assert isinstance(inner, Call)
    assert (inner.function, inner.arguments) == ("put", (("key", "4"), ("value", "1")))
    assert (inner.returned, inner.failure) == ("1", None)
    assert inner.steps == (Note("event", "stored, 4: 1 (undone)"),)
    assert event == Note("event", "passed, 4: 1 (undone)")
    assert log == Note("log", "that is enough")
    assert isinstance(error, Note)
    assert error.error == "Error(Contract, #7)"


def test_a_failure_that_was_caught(lab: Lab, relay: Lab) -> None:
    """The inner call failed, and the outer one went on."""
    trace = simulated(relay, relay.call("try_boom", scval.to_address(lab.contract_id)))
    assert trace.successful
    assert (trace.cause, trace.hint, trace.resources) == (None, None, ())
    call = the_call(trace)
    assert (call.returned, call.failure) == ("1", None)
    (inner,) = call.steps
    assert isinstance(inner, Call)
    assert inner.failure == "ProbeError.BOOM (contract error 7)"


def test_a_transaction_that_succeeded(lab: Lab, alice: Keypair) -> None:
    trace = lab.chain.trace(lab.put(alice, 1, 2).hash.hex())
    assert trace.successful
    assert trace.outcome == "txSUCCESS, INVOKE_HOST_FUNCTION_SUCCESS"
    assert the_call(trace).returned == "2"
    assert the_call(trace).steps == (Note("event", "stored, 1: 2"),)


def overrun(lab: Lab, alice: Keypair) -> Trace:
    def tight(data: xdr.SorobanTransactionData) -> None:
        data.resources.instructions = xdr.Uint32(50_000)

    return lab.chain.trace(lab.apply(lab.prepare(alice, lab.put_call(), change_data=tight)).hash)


def test_a_budget_that_ran_out_is_shown(lab: Lab, alice: Keypair) -> None:
    trace = overrun(lab, alice)
    assert trace.outcome == "txFAILED, INVOKE_HOST_FUNCTION_RESOURCE_LIMIT_EXCEEDED"
    assert trace.hint == RESULTS["INVOKE_HOST_FUNCTION_RESOURCE_LIMIT_EXCEEDED"]
    first = trace.resources[0]
    assert (first.name, first.declared, first.limit) == (
        "instructions",
        50_000,
        lab.chain.settings.tx_max_instructions,
    )
    assert first.used is not None
    assert first.used > 50_000
    assert trace.cause == (
        f"Error(Budget, ExceededLimit): operation instructions exceeds amount specified ({first.used}, 50000)"
    )
    assert re.search(rf"instructions +50,000 +{first.used:,} +100,000,000  exceeded", str(trace))
    assert the_call(trace).failure == "Error(Budget, ExceededLimit)"


def test_a_budget_that_ran_out_inside_a_loop_is_shown(lab: Lab, alice: Keypair) -> None:
    """The machine stops at the limit, not behind it."""

    def tight(data: xdr.SorobanTransactionData) -> None:
        data.resources.instructions = xdr.Uint32(data.resources.instructions.uint32 // 2)

    call = lab.call("spin", scval.to_int32(10_000))
    trace = lab.chain.trace(lab.apply(lab.prepare(alice, call, change_data=tight)).hash)
    assert trace.outcome == "txFAILED, INVOKE_HOST_FUNCTION_TRAPPED"
    assert trace.hint == HOST_ERRORS["Error(Budget, ExceededLimit)"]
    first = trace.resources[0]
    assert first.used is not None
    assert first.declared is not None
    assert 0 <= first.declared - first.used < 1_000


def test_a_simulation_beyond_the_network_limit(lab: Lab, alice: Keypair) -> None:
    trace = lab.chain.trace_simulation(
        lab.build(alice, lab.call("spin", scval.to_int32(9_000_000))).to_xdr_object().to_xdr_bytes()
    )
    assert trace.outcome == "Error(Budget, ExceededLimit)"
    assert [(one.name, one.declared, one.exceeded) for one in trace.resources] == [
        ("instructions", None, True),
        ("bytes of memory", None, False),
    ]


def test_what_else_was_too_little(lab: Lab, alice: Keypair) -> None:
    """The ledger's own reason is the cause, although the contract had succeeded."""

    def tight(data: xdr.SorobanTransactionData) -> None:
        data.resources.write_bytes = xdr.Uint32(10)

    trace = lab.chain.trace(lab.apply(lab.prepare(alice, lab.put_call(), change_data=tight)).hash)
    assert the_call(trace).returned == "2"
    assert trace.cause == (
        "Error(Budget, ExceededLimit): operation byte-write resources exceeds amount specified (76, 10)"
    )
    exceeded = [one for one in trace.resources if one.exceeded]
    assert [(one.name, one.declared, one.used) for one in exceeded] == [("bytes written", 10, 76)]


HOST_FAILURES: dict[str, tuple[Callable[[Lab, Lab], InvokeHostFunction], str, str]] = {
    "Error(Storage, MissingValue)": (
        lambda lab, _: lab.call("get", scval.to_uint32(9)),
        "probe.get",
        "trying to get non-existing value for contract data key (9), in get_contract_data",
    ),
    "Error(WasmVm, MissingValue)": (
        lambda lab, relay: relay.call("missing", scval.to_address(lab.contract_id)),
        "probe.nothing",
        "trying to invoke non-existent contract function (nothing)",
    ),
    "Error(WasmVm, UnexpectedSize)": (
        lambda lab, _: lab.call("put", scval.to_uint32(9)),
        "probe.put",
        "VM call failed: Func(MismatchingParameterLen) (put)",
    ),
    "Error(Context, InvalidAction)": (
        lambda lab, relay: relay.call(
            "again", scval.to_address(relay.contract_id), scval.to_address(lab.contract_id)
        ),
        "relay.again",
        "Contract re-entry is not allowed, in call",
    ),
    "Error(Object, InvalidInput)": (
        lambda _, relay: relay.call("boom", scval.to_address(keypair("alice").public_key)),
        "relay.boom",
        "not a contract address, in call",
    ),
}


@pytest.mark.parametrize("error", HOST_FAILURES)
def test_errors_of_the_host_are_explained(lab: Lab, relay: Lab, error: str) -> None:
    call, where, message = HOST_FAILURES[error]
    trace = simulated(relay, call(lab, relay))
    assert trace.outcome == error
    names = where.replace("probe", lab.contract_id).replace("relay", relay.contract_id)
    assert trace.cause == f"{names}: {error}: {message}"
    assert trace.hint == HOST_ERRORS[error]


def test_an_authorization_that_is_missing(lab: Lab, alice: Keypair) -> None:
    envelope = lab.prepare(alice, lab.call("guarded", scval.to_address(alice.public_key)), signers=[])
    bob = lab.account("bob")
    change_call(envelope, "guarded", scval.to_address(bob.public_key))
    envelope.signatures.clear()
    envelope.sign(alice)
    trace = lab.chain.trace(lab.apply(envelope).hash)
    assert trace.cause is not None
    assert trace.cause.startswith(f"{lab.contract_id}.guarded: Error(Auth, InvalidAction): ")
    assert trace.hint == HOST_ERRORS["Error(Auth, InvalidAction)"]
    assert the_call(trace).arguments == (("owner", bob.public_key),)


def test_archived_entries(short: Lab) -> None:
    owner = short.account("owner")
    short.deploy(owner)
    short.put(owner, 1, 7)
    envelope = short.prepare(owner, short.put_call())
    short.chain.skip_ledgers(60)
    trace = short.chain.trace(short.apply(envelope).hash)
    assert trace.outcome == "txFAILED, INVOKE_HOST_FUNCTION_ENTRY_ARCHIVED"
    assert trace.cause is not None
    assert "trying to access an archived contract" in trace.cause
    assert trace.hint == RESULTS["INVOKE_HOST_FUNCTION_ENTRY_ARCHIVED"]
    assert trace.resources == ()


def test_a_constructor_that_fails_has_the_names_of_its_code(lab: Lab, alice: Keypair) -> None:
    """No contract is in the state, so its code is the one it was being created with."""
    made = simulated_creation(lab, alice)
    assert not made.successful
    call = the_call(made)
    assert (call.function, call.arguments) == ("__constructor", (("limit", "0"),))
    assert call.failure == "LimitError.ZERO (contract error 3)"


LIMITED = """
from pysoroban import contract, error, fail, public, storage, u32


@error
class LimitError:
    ZERO = 3


@contract
class Limited:
    @public
    def __constructor(self, limit: u32) -> None:
        if limit == u32(0):
            fail(LimitError.ZERO)
        storage.instance.set(u32(0), limit)

    @public
    def limit(self) -> u32:
        return storage.instance.get_u32(u32(0))
"""


def simulated_creation(lab: Lab, alice: Keypair) -> Trace:
    wasm = compile_contract(LIMITED)
    kinds = xdr.HostFunctionType
    upload = xdr.HostFunction(kinds.HOST_FUNCTION_TYPE_UPLOAD_CONTRACT_WASM, wasm=wasm)
    row = lab.succeed(lab.prepare(alice, InvokeHostFunction(upload, [])))
    meta = xdr.TransactionMeta.from_xdr_bytes(row.meta).v4
    assert meta is not None
    assert meta.soroban_meta is not None
    assert meta.soroban_meta.return_value is not None
    create_args = xdr.CreateContractArgsV2(
        xdr.ContractIDPreimage(
            xdr.ContractIDPreimageType.CONTRACT_ID_PREIMAGE_FROM_ADDRESS,
            from_address=xdr.ContractIDPreimageFromAddress(
                Address(alice.public_key).to_xdr_sc_address(), xdr.Uint256(bytes(31) + b"\1")
            ),
        ),
        xdr.ContractExecutable(
            xdr.ContractExecutableType.CONTRACT_EXECUTABLE_WASM,
            wasm_hash=xdr.Hash(scval.from_bytes(meta.soroban_meta.return_value)),
        ),
        [scval.to_uint32(0)],
    )
    function = xdr.HostFunction(kinds.HOST_FUNCTION_TYPE_CREATE_CONTRACT_V2, create_contract_v2=create_args)
    return lab.chain.trace_simulation(lab.build(alice, InvokeHostFunction(function, [])).to_xdr())


def test_operations_that_call_nothing(lab: Lab) -> None:
    bob = lab.account("bob")
    row = lab.apply(lab.build(bob, create("one"), create("one"), fee=200))
    trace = lab.chain.trace(row.hash)
    assert (trace.steps, trace.resources) == ((), ())
    assert trace.outcome == "txFAILED, CREATE_ACCOUNT_SUCCESS, CREATE_ACCOUNT_ALREADY_EXIST"
    assert trace.hint == RESULTS["CREATE_ACCOUNT_ALREADY_EXIST"]


def test_what_has_no_trace(lab: Lab, alice: Keypair) -> None:
    chain = lab.chain
    with pytest.raises(UnknownTransactionError, match="no ledger that is kept"):
        chain.trace("ab" * 32)
    with pytest.raises(InvalidRequestError, match="64 hex digits"):
        chain.trace("xyz")
    with pytest.raises(MalformedEnvelopeError):
        chain.trace_simulation("not base64!")
    with pytest.raises(MalformedEnvelopeError):
        chain.trace_simulation("AAAA")
    with pytest.raises(InvalidRequestError, match="unsupported operation type: CREATE_ACCOUNT"):
        chain.trace_simulation(lab.build(alice, create()).to_xdr())


def test_a_waiting_transaction_has_no_trace_yet(wasm: bytes) -> None:
    with Chain.open(":memory:", closing="manual") as chain:
        waiting = chain.fund(keypair("bob").public_key)
        with pytest.raises(UnknownTransactionError, match="yet"):
            chain.trace(waiting)
        chain.close_ledger()
        assert chain.trace(waiting).successful


def test_traces_over_json_rpc(lab: Lab, alice: Keypair) -> None:
    trace = overrun(lab, alice)
    transaction_hash = trace.subject.split()[1]
    answer = result(lab.chain, "localnet_trace", {"hash": transaction_hash})
    assert answer["text"] == str(trace)
    assert (answer["outcome"], answer["cause"], answer["hint"]) == (trace.outcome, trace.cause, trace.hint)
    call, error = answer["steps"]
    assert call == {
        "type": "call",
        "contract": lab.contract_id,
        "function": "put",
        "arguments": [{"name": "key", "value": "1"}, {"name": "value", "value": "2"}],
        "steps": [],
        "returned": None,
        "failure": "Error(Budget, ExceededLimit)",
        "error": "Error(Budget, ExceededLimit)",
    }
    assert error["type"] == "error"
    assert answer["resources"][0] == {
        "name": "instructions",
        "declared": 50_000,
        "used": trace.resources[0].used,
        "limit": 100_000_000,
        "exceeded": True,
    }
    envelope = lab.build(alice, lab.call("boom")).to_xdr()
    answer = result(lab.chain, "localnet_trace", {"transaction": envelope})
    assert answer["successful"] is False
    assert answer["text"] == str(lab.chain.trace_simulation(envelope))
    for params in (
        {},
        {"hash": "ab" * 32},
        {"hash": "zz"},
        {"transaction": "AAAA"},
        {"hash": transaction_hash, "transaction": envelope},
    ):
        error = rpc(lab.chain, "localnet_trace", params)["error"]
        assert error["code"] == -32602
        assert isinstance(error.get("data", ""), str)
