"""Every field of every method: present, of its type, and no other field."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest
from stellar_sdk import Keypair, StrKey, TransactionBuilder, scval
from stellar_sdk import xdr as stellar_xdr

if TYPE_CHECKING:
    from tests.localnet.rpc.conftest import Net, Probe

Check: TypeAlias = Callable[[Any], object]


def number(value: Any) -> None:
    assert type(value) is int, value
    assert value >= 0


def digits(value: Any) -> None:
    """An integer as a string."""
    assert isinstance(value, str), value
    assert re.fullmatch(r"0|[1-9][0-9]*", value), value


def string(value: Any) -> None:
    assert isinstance(value, str), value


def boolean(value: Any) -> None:
    assert isinstance(value, bool), value


def hash256(value: Any) -> None:
    assert isinstance(value, str), value
    assert re.fullmatch(r"[0-9a-f]{64}", value), value


def moment(value: Any) -> None:
    assert re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z", value), value
    datetime.fromisoformat(value)


def contract(value: Any) -> None:
    assert StrKey.is_valid_contract(value), value


def url(value: Any) -> None:
    assert re.match(r"https?://[^/]+/", value), value


def event_id(value: Any) -> None:
    assert re.fullmatch(r"[0-9]{19}-[0-9]{10}", value), value


def one_of(*values: object) -> Check:
    def check(value: Any) -> None:
        assert value in values, value

    return check


def xdr(kind: Any) -> Check:
    def check(value: Any) -> None:
        assert isinstance(value, str), value
        assert kind.from_xdr(value).to_xdr() == value

    return check


def nullable(inner: Check) -> Check:
    def check(value: Any) -> None:
        if value is not None:
            inner(value)

    return check


def many(inner: Check, at_least: int = 0) -> Check:
    def check(value: Any) -> None:
        assert isinstance(value, list), value
        assert len(value) >= at_least, value
        for item in value:
            inner(item)

    return check


def record(**fields: Check) -> Check:
    """An object with exactly these fields; a name that ends in `__` may be absent."""
    required = {name for name in fields if not name.endswith("__")}
    known = {name.removesuffix("__"): check for name, check in fields.items()}

    def check(value: Any) -> None:
        assert isinstance(value, dict), value
        assert required <= set(value), required - set(value)
        assert set(value) <= set(known), set(value) - set(known)
        for name, item in value.items():
            known[name](item)

    return check


HEALTH = record(
    status=one_of("healthy"),
    latestLedger=number,
    latestLedgerCloseTime=digits,
    oldestLedger=number,
    oldestLedgerCloseTime=digits,
    ledgerRetentionWindow=one_of(120_960),
)
NETWORK = record(friendbotUrl=url, passphrase=string, protocolVersion=one_of(28), chainId=hash256)
VERSION = record(
    version=string,
    commitHash=string,
    buildTimestamp=moment,
    captiveCoreVersion=string,
    protocolVersion=one_of(28),
)
LATEST_LEDGER = record(
    id=hash256,
    protocolVersion=one_of(28),
    sequence=number,
    closeTime=digits,
    headerXdr=xdr(stellar_xdr.LedgerHeader),
    metadataXdr=xdr(stellar_xdr.LedgerCloseMeta),
)
LEDGERS = record(
    ledgers=many(
        record(
            hash=hash256,
            sequence=number,
            ledgerCloseTime=digits,
            headerXdr=xdr(stellar_xdr.LedgerHeaderHistoryEntry),
            metadataXdr=xdr(stellar_xdr.LedgerCloseMeta),
        )
    ),
    latestLedger=number,
    latestLedgerCloseTime=number,
    oldestLedger=number,
    oldestLedgerCloseTime=number,
    cursor=digits,
)
ENTRIES = record(
    entries=many(
        record(
            key=xdr(stellar_xdr.LedgerKey),
            xdr=xdr(stellar_xdr.LedgerEntryData),
            extXdr=xdr(stellar_xdr.LedgerEntryExt),
            lastModifiedLedgerSeq=number,
            liveUntilLedgerSeq__=number,
        )
    ),
    latestLedger=number,
)
DIAGNOSTICS = many(xdr(stellar_xdr.DiagnosticEvent))
SIMULATED = {
    "transactionData": xdr(stellar_xdr.SorobanTransactionData),
    "minResourceFee": digits,
    "events": DIAGNOSTICS,
    "stateChanges": many(
        record(
            type=one_of("created", "updated", "deleted"),
            key=xdr(stellar_xdr.LedgerKey),
            before=nullable(xdr(stellar_xdr.LedgerEntry)),
            after=nullable(xdr(stellar_xdr.LedgerEntry)),
        )
    ),
    "latestLedger": number,
}
SIMULATED_CALL = record(
    **SIMULATED,
    results=many(
        record(auth=many(xdr(stellar_xdr.SorobanAuthorizationEntry)), xdr=xdr(stellar_xdr.SCVal)), at_least=1
    ),
)
SIMULATED_TTL = record(**SIMULATED)
SIMULATION_FAILED = record(error=string, events=DIAGNOSTICS, latestLedger=number)
SIMULATION_REFUSED = record(error=string, latestLedger=number)
SENT = {
    "hash": hash256,
    "latestLedger": number,
    "latestLedgerCloseTime": digits,
}
ACCEPTED = record(status=one_of("PENDING"), **SENT)
REFUSED = record(
    status=one_of("ERROR"),
    errorResultXdr=xdr(stellar_xdr.TransactionResult),
    diagnosticEventsXdr__=DIAGNOSTICS,
    **SENT,
)
TIP = {
    "latestLedger": number,
    "latestLedgerCloseTime": digits,
    "oldestLedger": number,
    "oldestLedgerCloseTime": digits,
}
DETAILS = {
    "status": one_of("SUCCESS", "FAILED"),
    "txHash": hash256,
    "ledger": number,
    "applicationOrder": number,
    "feeBump": boolean,
    "envelopeXdr": xdr(stellar_xdr.TransactionEnvelope),
    "resultXdr": xdr(stellar_xdr.TransactionResult),
    "resultMetaXdr": xdr(stellar_xdr.TransactionMeta),
    "events": record(
        transactionEventsXdr=many(xdr(stellar_xdr.TransactionEvent), at_least=1),
        contractEventsXdr=many(many(xdr(stellar_xdr.ContractEvent))),
    ),
    "diagnosticEventsXdr": DIAGNOSTICS,
}
FOUND = record(**DETAILS, **TIP, createdAt=digits)
NOT_FOUND = record(status=one_of("NOT_FOUND"), txHash=hash256, **TIP)
TRANSACTIONS = record(
    transactions=many(record(**DETAILS, createdAt=number)),
    latestLedger=number,
    latestLedgerCloseTimestamp=number,
    oldestLedger=number,
    oldestLedgerCloseTimestamp=number,
    cursor=digits,
)
EVENTS = record(
    events=many(
        record(
            type=one_of("contract", "system"),
            ledger=number,
            ledgerClosedAt=moment,
            contractId=contract,
            id=event_id,
            operationIndex=number,
            transactionIndex=number,
            inSuccessfulContractCall=boolean,
            txHash=hash256,
            topic=many(xdr(stellar_xdr.SCVal), at_least=1),
            value=xdr(stellar_xdr.SCVal),
        )
    ),
    cursor=event_id,
    **TIP,
)
FEES = record(
    **dict.fromkeys(("max", "min", "mode", "p10", "p20", "p30", "p40", "p50", "p60", "p70"), digits),
    **dict.fromkeys(("p80", "p90", "p95", "p99", "transactionCount"), digits),
    ledgerCount=number,
)
FEE_STATS = record(sorobanInclusionFee=FEES, inclusionFee=FEES, latestLedger=number)


@pytest.mark.parametrize(
    ("method", "shape"),
    [
        ("getHealth", HEALTH),
        ("getNetwork", NETWORK),
        ("getVersionInfo", VERSION),
        ("getLatestLedger", LATEST_LEDGER),
        ("getFeeStats", FEE_STATS),
    ],
)
def test_methods_without_parameters(net: Net, method: str, shape: Check) -> None:
    shape(net.result(method))


def test_get_ledgers(probe: Probe) -> None:
    probe.net.chain.skip_ledgers(3)
    answer = probe.net.result("getLedgers", {"startLedger": probe.net.result("getHealth")["oldestLedger"]})
    LEDGERS(answer)
    assert len(answer["ledgers"]) == answer["latestLedger"] - answer["oldestLedger"] + 1


def test_get_ledger_entries(probe: Probe) -> None:
    probe.invoke("put", 1, 5)
    account = Keypair.from_public_key(probe.owner.public_key).xdr_account_id()
    account_key = stellar_xdr.LedgerKey(
        stellar_xdr.LedgerEntryType.ACCOUNT, account=stellar_xdr.LedgerKeyAccount(account)
    ).to_xdr()
    wanted = [probe.entry_key(1), probe.entry_key(2), account_key]
    answer = probe.net.result("getLedgerEntries", {"keys": wanted})
    ENTRIES(answer)
    data, classic = answer["entries"]
    assert data["key"] == probe.entry_key(1)
    assert data["lastModifiedLedgerSeq"] == answer["latestLedger"]
    assert data["liveUntilLedgerSeq"] > answer["latestLedger"]
    assert classic["key"] == account_key
    assert "liveUntilLedgerSeq" not in classic


def test_a_simulated_call(probe: Probe) -> None:
    probe.invoke("put", 1, 5)
    for function, arguments, kinds in (
        ("put", [scval.to_uint32(1), scval.to_uint64(6)], ["updated"]),
        ("put", [scval.to_uint32(2), scval.to_uint64(6)], ["created"]),
        ("drop", [scval.to_uint32(1)], ["deleted"]),
        ("get", [scval.to_uint32(1)], []),
    ):
        transaction = probe.build(function, *arguments).to_xdr()
        answer = probe.net.result("simulateTransaction", {"transaction": transaction})
        SIMULATED_CALL(answer)
        assert [change["type"] for change in answer["stateChanges"]] == kinds
        for change in answer["stateChanges"]:
            assert (change["before"] is None) == (change["type"] == "created")
            assert (change["after"] is None) == (change["type"] == "deleted")


def test_a_simulated_upload(probe: Probe, probe_wasm: bytes) -> None:
    envelope = (
        TransactionBuilder(probe.server.load_account(probe.owner.public_key), probe.net.chain.passphrase, 100)
        .append_upload_contract_wasm_op(probe_wasm)
        .set_timeout(300)
        .build()
    )
    SIMULATED_CALL(probe.net.result("simulateTransaction", {"transaction": envelope.to_xdr()}))


def test_a_simulation_that_fails_in_the_contract(probe: Probe) -> None:
    answer = probe.net.result("simulateTransaction", {"transaction": probe.build("boom").to_xdr()})
    SIMULATION_FAILED(answer)
    assert "Error(Contract, #7)" in answer["error"]
    assert answer["events"]


def test_simulated_extensions_and_restorations(short_probe: Probe) -> None:
    probe = short_probe
    probe.invoke("put", 1, 5)
    extension = probe.build_ttl(30, [probe.entry_key(1)]).to_xdr()
    answer = probe.net.result("simulateTransaction", {"transaction": extension})
    SIMULATED_TTL(answer)
    assert int(answer["minResourceFee"]) > 0

    probe.net.chain.skip_ledgers(60)
    restoration = probe.build_ttl(None, [probe.entry_key(1)]).to_xdr()
    answer = probe.net.result("simulateTransaction", {"transaction": restoration})
    SIMULATED_TTL(answer)
    assert int(answer["minResourceFee"]) > 0


def test_a_refused_simulation(net: Net) -> None:
    SIMULATION_REFUSED(net.result("simulateTransaction", {"transaction": "AAAA"}))


def test_send_transaction(probe: Probe) -> None:
    prepared = probe.server.prepare_transaction(probe.build("put", scval.to_uint32(1), scval.to_uint64(2)))
    unsigned = probe.net.result("sendTransaction", {"transaction": prepared.to_xdr()})
    REFUSED(unsigned)
    prepared.sign(probe.owner)
    accepted = probe.net.result("sendTransaction", {"transaction": prepared.to_xdr()})
    ACCEPTED(accepted)
    assert accepted["hash"] == unsigned["hash"] == prepared.hash_hex()


def test_get_transaction(probe: Probe) -> None:
    found = probe.net.result("getTransaction", {"hash": probe.invoke("emit", 1, 2, 3)})
    FOUND(found)
    assert [len(operation) for operation in found["events"]["contractEventsXdr"]] == [4]
    assert found["feeBump"] is False
    NOT_FOUND(probe.net.result("getTransaction", {"hash": "ab" * 32}))


def test_get_transaction_of_a_failed_one(probe: Probe) -> None:
    first = probe.server.prepare_transaction(probe.build("drop", scval.to_uint32(1)))
    failing = probe.build("put", scval.to_uint32(1), scval.to_uint64(2))
    failing.transaction.soroban_data = first.transaction.soroban_data
    failing.transaction.fee = first.transaction.fee + 100_000
    assert failing.transaction.soroban_data is not None
    failing.transaction.soroban_data.resources.instructions.uint32 //= 3
    failing.sign(probe.owner)
    sent = probe.net.result("sendTransaction", {"transaction": failing.to_xdr()})
    ACCEPTED(sent)
    found = probe.net.result("getTransaction", {"hash": sent["hash"]})
    FOUND(found)
    assert found["status"] == "FAILED"


def test_get_transactions(probe: Probe) -> None:
    probe.invoke("emit", 1, 2, 3)
    start = probe.net.result("getHealth")["oldestLedger"]
    answer = probe.net.result("getTransactions", {"startLedger": start})
    TRANSACTIONS(answer)
    assert len(answer["transactions"]) == 4  # funding, upload, create, emit


def test_get_events(probe: Probe) -> None:
    probe.invoke("emit", 1, 2, 3)
    start = probe.net.result("getHealth")["oldestLedger"]
    answer = probe.net.result("getEvents", {"startLedger": start, "filters": []})
    EVENTS(answer)
    ours = [event for event in answer["events"] if event["contractId"] == probe.contract_id]
    assert [len(event["topic"]) for event in ours] == [1, 2, 3, 4]
    EVENTS(
        probe.net.result(
            "getEvents", {"startLedger": answer["latestLedger"], "filters": [{"type": "system"}]}
        )
    )


def test_get_fee_stats_counts_what_was_paid(probe: Probe) -> None:
    probe.invoke("put", 1, 5)
    answer = probe.net.result("getFeeStats")
    FEE_STATS(answer)
    soroban, classic = answer["sorobanInclusionFee"], answer["inclusionFee"]
    assert (soroban["transactionCount"], soroban["min"], soroban["max"]) == ("3", "100", "100")
    assert (classic["transactionCount"], classic["min"], classic["max"]) == ("1", "100", "100")
