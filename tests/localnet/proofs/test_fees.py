"""Fees equal the published formulas to the stroop, for every kind of transaction; reports say the same."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from stellar_sdk import scval, xdr
from stellar_sdk.auth import authorize_entry
from stellar_sdk.operation import InvokeHostFunction

from mycelium_localnet import Chain
from mycelium_localnet import view as view_module
from mycelium_localnet.simulation import simulate
from tests.localnet.ledger.lab import (
    Lab,
    change_call,
    create,
    keypair,
    meta_of,
    result_of,
    return_value,
)
from tests.localnet.proofs.door import result, rpc
from tests.localnet.proofs.formulas import Formulas, Held

if TYPE_CHECKING:
    from collections.abc import Callable

    from stellar_sdk import TransactionEnvelope

    from mycelium_localnet.ledger import TransactionRow
    from mycelium_localnet.report import TransactionReport

FORMULAS = Formulas.load()
BASE_FEE = 100
OWNER = keypair("owner")


def held(lab: Lab, keys: list[bytes]) -> list[Held | None]:
    """Entries of the last closed ledger."""
    with lab.chain.read() as view:
        found = [view.entry(key) for key in keys]
    return [None if one is None else Held(*one) for one in found]


@dataclass
class Applied:
    """A transaction that was applied, what it should have paid, and the balance before and after it."""

    row: TransactionRow
    bid: int
    resource_fee: int
    parts: dict[str, int]
    rent: int
    events: int
    paid: int

    @property
    def charged(self) -> int:
        return BASE_FEE + sum(self.parts.values()) + self.rent + self.events


def apply(lab: Lab, envelope: TransactionEnvelope) -> Applied:
    """Send a Soroban transaction, and compute what it should pay."""
    data = envelope.transaction.soroban_data
    assert data is not None
    footprint = data.resources.footprint
    keys = [key.to_xdr_bytes() for key in (*footprint.read_only, *footprint.read_write)]
    before, balance = held(lab, keys), lab.balance(OWNER)
    row = lab.apply(envelope)
    after, paid = held(lab, keys), balance - lab.balance(OWNER)
    # An entry whose time was over was archived, and nobody paid for the ledgers since.
    live = [
        None if one is None or (one.live_until is not None and one.live_until < row.ledger) else one
        for one in before
    ]
    rent = events = 0
    if row.successful:
        # What is still archived was passed over.
        now = [
            None if one is not None and one == old and was is None else one
            for old, was, one in zip(before, live, after, strict=True)
        ]
        rent = FORMULAS.rent(list(zip(keys, live, now, strict=True)), row.ledger)
        value = return_value(row)
        size = sum(map(len, row.contract_events[0])) + (0 if value is None else len(value.to_xdr_bytes()))
        events = FORMULAS.events(size)
    parts = FORMULAS.parts(row.envelope)
    return Applied(row, envelope.transaction.fee, data.resource_fee.int64, parts, rent, events, paid)


def check(lab: Lab, applied: Applied) -> TransactionReport:
    """What was charged, told and reported is what the formulas say."""
    row = applied.row
    assert result_of(row.result).fee_charged.int64 == applied.charged
    assert applied.paid == applied.charged
    meta = meta_of(row).soroban_meta
    assert meta is not None
    assert meta.ext.v1 is not None
    told = meta.ext.v1
    assert told.total_non_refundable_resource_fee_charged.int64 == sum(applied.parts.values())
    assert told.rent_fee_charged.int64 == applied.rent
    assert told.total_refundable_resource_fee_charged.int64 == applied.rent + applied.events
    refund = applied.resource_fee + BASE_FEE - applied.charged
    assert fee_events(row) == [applied.resource_fee + BASE_FEE, *([-refund] if refund else [])]
    report = lab.chain.report(row.hash)
    assert dict(report.parts) == applied.parts
    assert (report.bid, report.resource_fee) == (applied.bid, applied.resource_fee)
    assert report.non_refundable == sum(applied.parts.values())
    assert (report.inclusion, report.rent, report.events) == (BASE_FEE, applied.rent, applied.events)
    assert (report.charged, report.refund) == (applied.charged, refund)
    return report


def fee_events(row: TransactionRow) -> list[int]:
    amounts = []
    for data in row.transaction_events:
        body = xdr.TransactionEvent.from_xdr_bytes(data).event.body.v0
        assert body is not None
        amounts.append(scval.from_int128(body.data))
    return amounts


def upload(lab: Lab, wasm: bytes) -> TransactionEnvelope:
    kind = xdr.HostFunctionType.HOST_FUNCTION_TYPE_UPLOAD_CONTRACT_WASM
    return lab.prepare(OWNER, InvokeHostFunction(xdr.HostFunction(kind, wasm=wasm), []))


def put_bytes(lab: Lab, size: int) -> TransactionEnvelope:
    value = scval.to_bytes(bytes(size))
    return lab.prepare(OWNER, lab.call("put_bytes", scval.to_uint32(1), value))


def guarded_by_another(lab: Lab) -> TransactionEnvelope:
    """Somebody else's signature: an account is read from disk, and a nonce is written for some time."""
    other = lab.account("other")
    call = lab.call("guarded", scval.to_address(other.public_key))
    (entry,) = lab.simulate(OWNER, call).auth
    recorded = xdr.SorobanAuthorizationEntry.from_xdr_bytes(entry)
    signed = authorize_entry(recorded, other, lab.latest().sequence + 100, lab.chain.passphrase)
    call.auth = [signed]
    v1 = lab.build(OWNER, call).to_xdr_object().v1
    assert v1 is not None
    with lab.chain.read() as view:
        found = simulate(view, lab.chain.ledger_info(view.latest()), v1.tx)
    assert found.transaction_data is not None
    data = xdr.SorobanTransactionData.from_xdr_bytes(found.transaction_data)
    return lab.build(OWNER, call, soroban=data, fee=BASE_FEE + data.resource_fee.int64)


def failing(lab: Lab) -> TransactionEnvelope:
    envelope = lab.prepare(OWNER, lab.put_call(), signers=[])
    change_call(envelope, "boom")
    envelope.sign(OWNER)
    return envelope


def generous(lab: Lab) -> TransactionEnvelope:
    def more(data: xdr.SorobanTransactionData) -> None:
        data.resource_fee = xdr.Int64(data.resource_fee.int64 + 1_234_567)

    envelope = lab.prepare(OWNER, lab.put_call(), change_data=more, signers=[])
    envelope.transaction.fee += 777
    envelope.sign(OWNER)
    return envelope


def one(lab: Lab, function: str, *arguments: xdr.SCVal) -> TransactionEnvelope:
    return lab.prepare(OWNER, lab.call(function, scval.to_uint32(1), *arguments))


CALLS: dict[str, Callable[[Lab, bytes], TransactionEnvelope]] = {
    "an upload": upload,
    "an upload of what is there": lambda lab, _: upload(lab, lab.wasm),
    "a first write": lambda lab, _: lab.prepare(OWNER, lab.put_call(2, 2)),
    "an update": lambda lab, _: lab.prepare(OWNER, lab.put_call(1, 3)),
    "an update that grows": lambda lab, _: put_bytes(lab, 5_000),
    "a temporary entry": lambda lab, _: one(lab, "put_temporary", scval.to_uint64(1)),
    "a removal": lambda lab, _: one(lab, "drop"),
    "a read": lambda lab, _: one(lab, "get"),
    "events": lambda lab, _: lab.prepare(OWNER, lab.call("shout", scval.to_bytes(bytes(3_000)))),
    "a large return value": lambda lab, _: lab.prepare(OWNER, lab.call("echo", scval.to_bytes(bytes(999)))),
    "somebody else's signature": lambda lab, _: guarded_by_another(lab),
    "a call that fails": lambda lab, _: failing(lab),
    "a higher bid": lambda lab, _: generous(lab),
}


@pytest.mark.parametrize("name", CALLS)
def test_calls(lab: Lab, relay_wasm: bytes, name: str) -> None:
    lab.account("owner")
    lab.deploy(OWNER).put(OWNER, 1, 7)
    applied = apply(lab, CALLS[name](lab, relay_wasm))
    assert applied.row.successful is (name != "a call that fails")
    report = check(lab, applied)
    disk = {resource.name: resource.declared for resource in report.resources}["entries read from disk"]
    assert disk == (name == "somebody else's signature")


def test_creating_a_contract(lab: Lab) -> None:
    """The two transactions of `deploy`."""
    lab.account("owner")
    prepared: list[TransactionEnvelope] = []
    prepare = lab.prepare

    def keep(*arguments: Any, **options: Any) -> TransactionEnvelope:
        prepared.append(prepare(*arguments, **options))
        return prepared[-1]

    results: list[TransactionRow] = []

    def send(envelope: TransactionEnvelope) -> TransactionRow:
        applied = apply(lab, envelope)
        check(lab, applied)
        results.append(applied.row)
        return applied.row

    lab.prepare, lab.succeed = keep, send  # type: ignore[method-assign]
    lab.deploy(OWNER)
    assert [row.successful for row in results] == [True, True]
    assert len(prepared) == 2


EXPIRED: dict[str, Callable[[Lab], TransactionEnvelope]] = {
    "a read that restores three": lambda lab: one(lab, "get"),
    "a write that restores": lambda lab: lab.prepare(OWNER, lab.put_call(1, 9)),
    "a larger write that restores": lambda lab: put_bytes(lab, 700),
    "a removal that restores": lambda lab: one(lab, "drop"),
    "RestoreFootprint": lambda lab: lab.prepare_ttl(OWNER, [lab.data_key(1), lab.instance_key, lab.code_key]),
    "RestoreFootprint of data": lambda lab: lab.prepare_ttl(OWNER, [lab.data_key(1)]),
    "ExtendFootprintTTL of what is archived": lambda lab: lab.prepare_ttl(
        OWNER, [lab.data_key(1)], extend_to=30
    ),
}
ALIVE: dict[str, Callable[[Lab], TransactionEnvelope]] = {
    "ExtendFootprintTTL": lambda lab: lab.prepare_ttl(
        OWNER, [lab.data_key(1), lab.instance_key, lab.code_key], extend_to=33
    ),
    "ExtendFootprintTTL of code": lambda lab: lab.prepare_ttl(OWNER, [lab.code_key], extend_to=30),
    "ExtendFootprintTTL of nothing": lambda lab: lab.prepare_ttl(OWNER, [lab.data_key(9)], extend_to=30),
    "RestoreFootprint of what lives": lambda lab: lab.prepare_ttl(OWNER, [lab.data_key(1)]),
}


@pytest.mark.parametrize("name", [*EXPIRED, *ALIVE])
def test_times_to_live(short: Lab, name: str) -> None:
    short.account("owner")
    short.deploy(OWNER).put(OWNER, 1, 7)
    if name in EXPIRED:
        short.chain.skip_ledgers(60)
    applied = apply(short, (EXPIRED | ALIVE)[name](short))
    assert applied.row.successful
    report = check(short, applied)
    idle = {
        "ExtendFootprintTTL of what is archived",
        "ExtendFootprintTTL of nothing",
        "RestoreFootprint of what lives",
    }
    assert (applied.rent == 0) == (name in idle)
    used = {resource.name: resource.used for resource in report.resources}
    if name.startswith("RestoreFootprint"):
        count = {"RestoreFootprint": 3, "RestoreFootprint of data": 1}.get(name, 0)
        assert (used["entries read from disk"], used["entries written"]) == (count, count)
        assert (used["bytes written"] == 0) == (count == 0)


def test_the_rent_rate_follows_the_size_of_the_state() -> None:
    """The published curve at its corners; the chain counts its state as empty."""

    def rate(state_size: int) -> int:
        return Formulas(FORMULAS.settings, state_size).rent_per_kb()

    target = 3_000_000_000
    assert (rate(0), rate(target * 2 // 3), rate(target)) == (1_000, 1_000, 10_000)
    assert rate(target + target // 1_000) == 10_000 + 27_000 * 5


@pytest.mark.parametrize(("operations", "fee"), [(1, 100), (3, 5_000)])
def test_classic_transactions(lab: Lab, operations: int, fee: int) -> None:
    lab.account("owner")
    before = lab.balance(OWNER)
    envelope = lab.build(OWNER, *(create(str(number)) for number in range(operations)), fee=fee)
    row = lab.succeed(envelope)
    charged = BASE_FEE * operations
    assert before - lab.balance(OWNER) == charged + operations * 5 * 10**7
    report = lab.chain.report(row.hash)
    assert (report.charged, report.inclusion, report.bid, report.refund) == (charged, charged, fee, 0)
    assert (report.parts, report.resources, report.resource_fee) == ((), (), 0)
    assert fee_events(row) == [charged]


def test_what_was_used_and_declared(lab: Lab) -> None:
    lab.account("owner")
    lab.deploy(OWNER)
    envelope = lab.prepare(OWNER, lab.put_call())
    row = lab.succeed(envelope)
    entry = lab.entry(lab.data_key(1))
    assert entry is not None
    data = envelope.transaction.soroban_data
    assert data is not None
    found = {
        resource.name: (resource.declared, resource.used, resource.exceeded)
        for resource in lab.chain.report(row.hash).resources
    }
    instructions, used, _ = found.pop("instructions")
    memory = found.pop("bytes of memory")
    assert instructions == data.resources.instructions.uint32
    assert used is not None
    assert instructions - 60_000 < used < instructions
    assert memory[0] is None
    value = return_value(row)
    assert value is not None
    size = len(entry[0].to_xdr_bytes())
    emitted = sum(map(len, row.contract_events[0])) + len(value.to_xdr_bytes())
    assert found == {
        "bytes read from disk": (0, 0, False),
        "bytes written": (data.resources.write_bytes.uint32, size, False),
        "entries in the footprint": (3, 3, False),
        "entries read from disk": (0, None, False),
        "entries written": (1, 1, False),
        "bytes of events and return value": (None, emitted, False),
        "bytes of the transaction": (None, len(row.envelope), False),
    }


def test_the_printed_report(lab: Lab) -> None:
    lab.account("owner")
    lab.deploy(OWNER)
    report = lab.chain.report(lab.put(OWNER, 1, 2).hash)
    lines = str(report).splitlines()
    assert lines[0] == f"transaction {report.hash}"
    assert lines[1] == f"ledger {report.ledger}, txSUCCESS, INVOKE_HOST_FUNCTION_SUCCESS"
    cells = {line[:27].strip(): line[27:].split() for line in lines[3:16]}
    assert cells["charged"] == [f"{report.charged:,}"]
    assert cells["inclusion"] == ["100"]
    assert cells["rent"] == [f"{report.rent:,}"]
    assert cells["refund"] == [f"{report.refund:,}"]
    assert len({len(line) for line in lines[4:15]}) == 1
    assert any(line.split()[:2] == ["bytes", "written"] for line in lines[16:])


def test_reports_over_json_rpc(lab: Lab) -> None:
    lab.account("owner")
    lab.deploy(OWNER)
    report = lab.chain.report(lab.put(OWNER, 1, 2).hash)
    answer = result(lab.chain, "localnet_report", {"hash": report.hash})
    assert answer.pop("text") == str(report)
    resources = answer.pop("resources")
    assert [one["name"] for one in resources] == [one.name for one in report.resources]
    assert resources[0]["declared"] == report.resources[0].declared
    assert answer.pop("nonRefundableParts") == [
        {"name": name, "amount": str(amount)} for name, amount in report.parts
    ]
    assert answer == {
        "hash": report.hash,
        "ledger": report.ledger,
        "source": OWNER.public_key,
        "successful": True,
        "code": "txSUCCESS",
        "operationCodes": ["INVOKE_HOST_FUNCTION_SUCCESS"],
        "bid": str(report.bid),
        "resourceFee": str(report.resource_fee),
        "charged": str(report.charged),
        "inclusion": "100",
        "nonRefundable": str(report.non_refundable),
        "rent": str(report.rent),
        "events": str(report.events),
        "refund": str(report.refund),
    }
    for params in ({}, {"hash": "ab" * 32}, {"hash": "zz"}):
        assert rpc(lab.chain, "localnet_report", params)["error"]["code"] == -32602


def test_fee_statistics_are_what_was_charged(wasm: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted without reading metas, and equal to what the metas say."""
    with Chain.open(":memory:") as chain:
        lab = Lab(chain, wasm)
        lab.account("owner")
        lab.deploy(OWNER).put(OWNER, 1, 7)
        lab.apply(failing(lab))
        lab.apply(lab.build(OWNER, create("x"), create("x"), fee=900))
        with chain.read() as view:
            rows = view.transactions((0, 0), 100)
            kinds = view.kinds(0)
        reports = [chain.report(row.hash) for row in rows]
        assert kinds == [(report.ledger, bool(report.resources)) for report in reports]
        with monkeypatch.context() as patch, chain.read() as view:
            # Where the result does not tell the kind, the envelope does.
            patch.setattr(view_module, "first_operation_type", lambda _: None)
            assert view.kinds(0) == kinds
        paid = [report.inclusion // len(report.operation_codes) for report in reports]
        assert set(paid) == {100}
        answer = result(lab.chain, "getFeeStats", {})
        for name, soroban in (("sorobanInclusionFee", True), ("inclusionFee", False)):
            fees = [fee for fee, (_, kind) in zip(paid, kinds, strict=True) if kind is soroban]
            assert answer[name]["transactionCount"] == str(len(fees))
            assert (answer[name]["min"], answer[name]["max"]) == ("100", "100")
