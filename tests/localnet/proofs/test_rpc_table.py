"""Shapes of answers that need a special moment: two transactions at once, archives, no history, no names.

The other shapes are in `tests/localnet/rpc/test_shapes.py`, with the checks that are used here.
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING

import pytest
from stellar_sdk import scval, xdr

from mycelium_localnet import Chain
from mycelium_localnet.results import Outcome, first_operation_type, operation_refusal, operation_result
from mycelium_localnet.rows import EventRow
from mycelium_localnet.rpc import events
from mycelium_localnet.rpc.dispatcher import METHODS
from tests.localnet.ledger.lab import CODES, Lab, create, keypair
from tests.localnet.proofs.door import result, rpc
from tests.localnet.rpc import test_shapes as shapes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stellar_sdk import Keypair

KINDS = xdr.OperationType
UNDECIDED = {name: shapes.record(status=shapes.one_of(name), **shapes.SENT) for name in (
    "DUPLICATE", "TRY_AGAIN_LATER", "PENDING",
)}  # fmt: skip
REFUSED_WITH_REASON = shapes.record(
    status=shapes.one_of("ERROR"),
    errorResultXdr=shapes.xdr(xdr.TransactionResult),
    diagnosticEventsXdr=shapes.many(shapes.xdr(xdr.DiagnosticEvent), at_least=1),
    **shapes.SENT,
)
WITH_PREAMBLE = shapes.record(
    **shapes.SIMULATED,
    restorePreamble=shapes.record(
        transactionData=shapes.xdr(xdr.SorobanTransactionData), minResourceFee=shapes.digits
    ),
)


@pytest.fixture
def queue(wasm: bytes) -> Iterator[Lab]:
    """A chain that closes ledgers when it is told to."""
    with Chain.open(":memory:", seed=b"table", clock="frozen", closing="manual") as chain:
        lab = Lab(chain, wasm)
        lab.account("owner")
        chain.close_ledger()
        yield lab


def test_every_answer_of_send_transaction(queue: Lab) -> None:
    owner = keypair("owner")
    first = queue.build(owner, create())
    second = queue.build(owner, create("other"), sequence=queue.sequence(owner) + 2)
    for envelope, status in ((first, "PENDING"), (first, "DUPLICATE"), (second, "TRY_AGAIN_LATER")):
        answer = result(queue.chain, "sendTransaction", {"transaction": envelope.to_xdr()})
        UNDECIDED[status](answer)
        assert answer["hash"] == envelope.hash_hex()
        shapes.NOT_FOUND(result(queue.chain, "getTransaction", {"hash": answer["hash"]}))
    queue.chain.close_ledger()
    shapes.FOUND(result(queue.chain, "getTransaction", {"hash": first.hash_hex()}))


def test_a_refusal_that_has_a_reason(lab: Lab, alice: Keypair) -> None:
    def cheap(data: xdr.SorobanTransactionData) -> None:
        data.resource_fee = xdr.Int64(1)

    envelope = lab.prepare(alice, lab.put_call(), change_data=cheap)
    REFUSED_WITH_REASON(result(lab.chain, "sendTransaction", {"transaction": envelope.to_xdr()}))


def test_a_simulated_extension_of_what_is_archived(short: Lab) -> None:
    owner = short.account("owner")
    short.deploy(owner).put(owner, 1, 7)
    envelope = short.prepare_ttl(owner, [short.data_key(1)], extend_to=30).to_xdr()
    shapes.SIMULATED_TTL(result(short.chain, "simulateTransaction", {"transaction": envelope}))
    short.chain.skip_ledgers(60)
    WITH_PREAMBLE(result(short.chain, "simulateTransaction", {"transaction": envelope}))
    found = result(short.chain, "getLedgerEntries", {"keys": [short.data_key(1).to_xdr()]})
    shapes.ENTRIES(found)
    assert found["entries"][0]["liveUntilLedgerSeq"] == 0


def test_an_event_without_contract_and_topics_has_them_empty() -> None:
    row = EventRow(
        ledger=5,
        tx_index=1,
        op_index=0,
        event_index=2,
        close_time=1_767_225_600,
        tx_hash=bytes(32),
        type="contract",
        contract_id=None,
        topics=(),
        value=scval.to_void().to_xdr_bytes(),
        in_successful_call=True,
        transaction_order=1,
    )
    told = events._event(row)
    assert (told["contractId"], told["topic"]) == ("", [])
    assert told["id"] == f"{(5 << 32) | (1 << 12):019d}-{2:010d}"
    assert told["ledgerClosedAt"] == "2026-01-01T00:00:00Z"


def test_a_chain_that_has_nothing_yet() -> None:
    """Its first ledger is its last."""
    with Chain.open(":memory:") as chain:
        health = result(chain, "getHealth")
        shapes.HEALTH(health)
        assert health["latestLedger"] == health["oldestLedger"] == 1
        shapes.FEE_STATS(result(chain, "getFeeStats"))
        for method, shape, field in (
            ("getLedgers", shapes.LEDGERS, "ledgers"),
            ("getTransactions", shapes.TRANSACTIONS, "transactions"),
            ("getEvents", shapes.EVENTS, "events"),
        ):
            answer = result(chain, method, {"startLedger": 1})
            shape(answer)
            assert len(answer[field]) == (field == "ledgers")
        latest = result(chain, "getLatestLedger")
        shapes.LATEST_LEDGER(latest)
        header = xdr.LedgerHeader.from_xdr(latest["headerXdr"])
        assert latest["id"] == sha256(header.to_xdr_bytes()).hexdigest()
        meta = xdr.LedgerCloseMeta.from_xdr(latest["metadataXdr"]).v2
        assert meta is not None
        assert meta.ledger_header.header == header


@pytest.mark.parametrize(
    ("outcome", "kind"),
    [
        (Outcome(CODES.txSUCCESS, [operation_result(KINDS.INVOKE_HOST_FUNCTION, 0, bytes(32))]), 24),
        (Outcome(CODES.txFAILED, [operation_result(KINDS.CREATE_ACCOUNT, -4)]), 0),
        (Outcome(CODES.txFAILED, [operation_refusal(xdr.OperationResultCode.opNO_ACCOUNT)]), None),
        (Outcome(CODES.txBAD_AUTH), None),
    ],
)
def test_what_a_result_tells_of_its_kind(outcome: Outcome, kind: int | None) -> None:
    """For the statistics of fees, which look no further where this tells it."""
    assert first_operation_type(outcome.result(100)[:24]) == kind


def test_no_method_goes_unnoticed(lab: Lab) -> None:
    """A method that is added needs a shape: these are all that a client can call."""
    stellar = {
        *("getHealth", "getNetwork", "getVersionInfo", "getLatestLedger", "getLedgerEntries"),
        *("simulateTransaction", "sendTransaction", "getTransaction", "getTransactions", "getLedgers"),
        *("getEvents", "getFeeStats"),
    }
    assert {name for name in METHODS if not name.startswith("localnet_")} == stellar
    for name in stellar:
        answer = rpc(lab.chain, name, {})
        assert ("error" in answer) != ("result" in answer)
        if "error" in answer:
            assert answer["error"]["code"] in (-32600, -32602)
