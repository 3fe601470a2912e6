"""What misled servers answer: transactions not taken, not found or never closed, and entries archived."""

from __future__ import annotations

import pytest
from stellar_sdk import SorobanServer, scval, xdr
from stellar_sdk.soroban_rpc import GetTransactionStatus, SendTransactionStatus

from mycelium_localnet import IN_PROCESS_URL, Chain, InProcessClient
from mycelium_localnet.errors import MalformedEnvelopeError
from tests.localnet.faults.conftest import Door
from tests.localnet.ledger.lab import CODES, Lab, create, keypair, operation_result, result_of

ALICE = keypair("alice")


def test_try_again_later_takes_nothing(door: Door) -> None:
    envelope, before = door.lab.build(ALICE, create("new")), door.lab.latest()
    door.chain.fault("try_again_later", count=2)
    server = SorobanServer(IN_PROCESS_URL, door.client)
    assert server.send_transaction(envelope).status is SendTransactionStatus.TRY_AGAIN_LATER
    assert door.send(envelope) == "TRY_AGAIN_LATER"
    assert door.status(envelope) == "NOT_FOUND"
    assert door.lab.latest() == before
    assert door.send(envelope) == "PENDING"
    assert door.status(envelope) == "SUCCESS"


def test_a_transaction_that_is_refused_is_refused_under_any_fault(door: Door) -> None:
    before = door.lab.latest()
    door.chain.fault("try_again_later")
    door.chain.fault("never_closes")
    bad = door.lab.build(ALICE, create("new"), sequence=5)
    for _ in range(2):
        answer = door.ask("sendTransaction", transaction=bad.to_xdr())
        assert answer["status"] == "ERROR"
        result = xdr.TransactionResult.from_xdr(answer["errorResultXdr"])
        assert result.result.code is CODES.txBAD_SEQ
    assert door.chain.faults() == ()
    door.chain.fault("never_closes")
    with pytest.raises(MalformedEnvelopeError):
        door.chain.serving("sendTransaction").submit(b"no envelope")
    assert door.lab.latest() == before


def test_never_closes_takes_and_keeps(door: Door) -> None:
    envelope, before = door.lab.build(ALICE, create("new")), door.lab.latest()
    door.chain.fault("never_closes", count=3)
    assert door.send(envelope) == "PENDING"
    assert door.send(envelope) == "DUPLICATE"
    assert door.lab.latest() == before
    door.chain.close_ledger()
    door.chain.skip_ledgers(20)
    assert door.status(envelope) == "NOT_FOUND"
    other = door.lab.build(ALICE, create("other"))
    assert door.send(other) == "PENDING"
    assert door.chain.faults() == ()
    assert not door.applied(envelope)
    # The network forgot it: the very transaction is taken when it comes again.
    assert door.send(envelope) == "PENDING"
    assert door.status(envelope) == "SUCCESS"


def test_never_closes_holds_nothing_for_other_ways_of_closing(wasm: bytes) -> None:
    with Chain.open(":memory:", closing="manual") as chain:
        door = Door(Lab(chain, wasm))
        door.lab.account("bob")
        chain.close_ledger()
        envelope = door.lab.build(keypair("bob"), create("new"))
        chain.fault("never_closes")
        assert door.send(envelope) == "PENDING"
        chain.close_ledger()
        assert not door.applied(envelope)
        with chain.read() as view:
            assert not view.is_pending(envelope.hash())


def test_not_found_of_what_was_applied(door: Door) -> None:
    envelope = door.lab.build(ALICE, create("new"))
    door.chain.fault("not_found", count=3)
    assert door.send(envelope) == "PENDING"
    assert door.applied(envelope)
    server = SorobanServer(IN_PROCESS_URL, door.client)
    answer = server.get_transaction(envelope.hash_hex())
    assert answer.status is GetTransactionStatus.NOT_FOUND
    assert answer.latest_ledger == door.lab.latest().sequence
    assert door.ask("getTransaction", hash=envelope.hash_hex()) == {
        "status": "NOT_FOUND",
        "txHash": envelope.hash_hex(),
        "latestLedger": answer.latest_ledger,
        "latestLedgerCloseTime": str(answer.latest_ledger_close_time),
        "oldestLedger": 1,
        "oldestLedgerCloseTime": str(answer.oldest_ledger_close_time),
    }
    assert len(door.ask("getTransactions", startLedger=1)["transactions"]) == 6
    assert [door.status(envelope) for _ in range(2)] == ["NOT_FOUND", "SUCCESS"]


def live_until(door: Door, key: xdr.LedgerKey) -> int:
    """What getLedgerEntries says: 0 of an archived entry."""
    (entry,) = door.ask("getLedgerEntries", keys=[key.to_xdr()])["entries"]
    found: int = entry["liveUntilLedgerSeq"]
    return found


def test_an_entry_is_archived_really_and_can_be_restored(door: Door) -> None:
    lab, key = door.lab, door.lab.data_key(1)
    sequence = lab.latest().sequence
    assert live_until(door, key) > sequence
    door.chain.fault("archive", key=key.to_xdr())
    assert live_until(door, key) == 0
    assert lab.latest().sequence == sequence + 1
    assert door.chain.faults() == ()
    assert live_until(door, key) == 0  # it is no lie
    assert live_until(door, lab.instance_key) > 0
    lab.succeed(lab.prepare_ttl(ALICE, [key]))
    assert live_until(door, key) > lab.latest().sequence
    assert lab.invoke(ALICE, "put_bytes", scval.to_uint32(1), scval.to_bytes(b"x"))


def test_a_call_restores_what_was_archived_before_it(door: Door) -> None:
    door.chain.fault("archive", key=door.lab.data_key(1).to_xdr_bytes(), methods=["getLedgerEntries"])
    live_until(door, door.lab.data_key(1))
    put = door.lab.call("put_bytes", scval.to_uint32(1), scval.to_bytes(b"new"))
    row = door.lab.succeed(door.lab.prepare(ALICE, put))
    assert row.successful
    assert live_until(door, door.lab.data_key(1)) > 0


def test_archived_between_simulation_and_sending(door: Door) -> None:
    """The race that clients lose: what was simulated as alive is archived when it is applied."""
    put = door.lab.call("put_bytes", scval.to_uint32(1), scval.to_bytes(b"new"))
    envelope = door.lab.prepare(ALICE, put)
    door.chain.fault("archive", key=door.lab.data_key(1).to_xdr(), methods=["sendTransaction"])
    assert door.send(envelope) == "PENDING"
    result = operation_result(result_of(door.lab.transaction(envelope.hash()).result))
    assert result.tr is not None
    assert result.tr.invoke_host_function_result is not None
    code = result.tr.invoke_host_function_result.code
    assert code is xdr.InvokeHostFunctionResultCode.INVOKE_HOST_FUNCTION_ENTRY_ARCHIVED


def test_all_contract_data_is_archived_but_instances_and_code(door: Door) -> None:
    lab = door.lab
    lab.put(ALICE, 2, 5)
    lab.invoke(ALICE, "put_temporary", scval.to_uint32(1), scval.to_uint64(1))
    temporary = lab.data_key(1, xdr.ContractDataDurability.TEMPORARY)
    door.chain.fault("archive")
    assert live_until(door, lab.data_key(1)) == 0
    assert live_until(door, lab.data_key(2)) == 0
    assert live_until(door, temporary) > 0
    assert live_until(door, lab.instance_key) > 0
    assert live_until(door, lab.code_key) > 0
    for key in (lab.instance_key, lab.code_key):
        door.chain.fault("archive", key=key.to_xdr())
        assert live_until(door, key) == 0


def test_what_is_not_there_or_archived_already_closes_no_ledger(door: Door) -> None:
    missing = door.lab.data_key(99)
    door.chain.fault("archive", key=missing.to_xdr(), count=2)
    before = door.lab.latest()
    assert door.ask("getLedgerEntries", keys=[missing.to_xdr()])["entries"] == []
    assert door.lab.latest() == before
    door.chain.clear_faults()
    door.chain.fault("archive", key=door.lab.data_key(1).to_xdr(), count=3)
    for _ in range(3):
        assert live_until(door, door.lab.data_key(1)) == 0
    assert door.lab.latest().sequence == before.sequence + 1


def test_an_entry_at_its_last_ledger_is_archived_as_well(door: Door) -> None:
    key = door.lab.data_key(1)
    last = door.lab.live_until(key)
    assert last is not None
    door.chain.skip_ledgers(last - door.lab.latest().sequence)
    assert live_until(door, key) == last == door.lab.latest().sequence
    door.chain.fault("archive", key=key.to_xdr())
    assert live_until(door, key) == 0


def test_two_doors_share_the_faults_of_a_chain(door: Door) -> None:
    envelope = door.lab.build(ALICE, create("new"))
    door.chain.fault("never_closes", count=2)
    other = SorobanServer(IN_PROCESS_URL, InProcessClient(door.chain))
    assert door.send(envelope) == "PENDING"
    assert other.send_transaction(envelope).status is SendTransactionStatus.DUPLICATE
    assert door.chain.faults() == ()
