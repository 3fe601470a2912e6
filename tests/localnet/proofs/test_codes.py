"""Every result code and status that the README promises is reached, through the JSON-RPC door."""

from __future__ import annotations

import re
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from stellar_sdk import Asset, FeeBumpTransactionEnvelope, scval, xdr
from stellar_sdk.fee_bump_transaction import FeeBumpTransaction
from stellar_sdk.operation import InvokeHostFunction, Payment

from mycelium_localnet import Chain
from mycelium_localnet.clock import FROZEN_START
from mycelium_localnet.readable import result_codes
from tests.localnet.ledger.lab import Lab, change_call, create, keypair
from tests.localnet.proofs.door import result
from tests.localnet.proofs.formulas import Formulas

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from stellar_sdk import TransactionBuilder, TransactionEnvelope
    from stellar_sdk.operation import Operation

README = (Path(__file__).parents[3] / "localnet" / "README.md").read_text(encoding="utf-8")
OWNER, OTHER = keypair("owner"), keypair("other")
HOUR = 3_600


@pytest.fixture
def stage(wasm: bytes) -> Iterator[Lab]:
    """A chain whose entries expire soon, with the contract, an entry, and two accounts."""
    with Chain.open(":memory:", seed=b"codes", clock="frozen", profile="short-ttl") as chain:
        lab = Lab(chain, wasm)
        lab.account("owner")
        lab.account("other")
        yield lab.deploy(OWNER)


@pytest.fixture
def queue(wasm: bytes) -> Iterator[Lab]:
    """A chain that closes ledgers when it is told to, with two accounts."""
    with Chain.open(":memory:", seed=b"codes", clock="frozen", closing="manual") as chain:
        lab = Lab(chain, wasm)
        lab.account("owner")
        lab.account("other")
        chain.close_ledger()
        yield lab


def outcome(lab: Lab, envelope: TransactionEnvelope | FeeBumpTransactionEnvelope | str) -> set[str]:
    """What a client is told of a transaction: statuses, and the names of its result's codes."""
    text = envelope if isinstance(envelope, str) else envelope.to_xdr()
    sent = result(lab.chain, "sendTransaction", {"transaction": text})
    if sent["status"] == "ERROR":
        return {"ERROR", *_codes(sent["errorResultXdr"])}
    if sent["status"] != "PENDING":
        return {sent["status"]}
    found = result(lab.chain, "getTransaction", {"hash": sent["hash"]})
    return {"PENDING", found["status"], *(_codes(found["resultXdr"]) if "resultXdr" in found else ())}


def _codes(text: str) -> list[str]:
    code, operations = result_codes(xdr.TransactionResult.from_xdr(text).to_xdr_bytes())
    return [code, *operations]


# Ways to spoil a transaction


def classic(lab: Lab, *operations: Operation, **options: object) -> set[str]:
    options.setdefault("fee", 100 * max(1, len(operations)))
    return outcome(lab, lab.build(OWNER, *operations, **options))  # type: ignore[arg-type]


def bounded(lab: Lab, change: Callable[[TransactionBuilder], object]) -> set[str]:
    return classic(lab, create(), change=change)


def tight(lab: Lab, name: str) -> set[str]:
    """A call that declares 10 of something."""

    def change(data: xdr.SorobanTransactionData) -> None:
        setattr(data.resources, name, xdr.Uint32(10))

    return outcome(lab, lab.prepare(OWNER, lab.put_call(), change_data=change))


def priced(lab: Lab, envelope: TransactionEnvelope, off: int) -> set[str]:
    """A Soroban transaction with the least resource fee, what is declared and nothing else, and `off` more.
    Neither fee nor signature changes the size of the envelope."""
    needed = sum(Formulas.load().parts(envelope.to_xdr_object().to_xdr_bytes()).values()) + off
    data = envelope.transaction.soroban_data
    assert data is not None
    data.resource_fee, envelope.transaction.fee = xdr.Int64(needed), needed + 100
    envelope.signatures.clear()
    envelope.sign(OWNER)
    return outcome(lab, envelope)


def fee_bump(lab: Lab) -> set[str]:
    bump = FeeBumpTransaction(OTHER.public_key, 400, lab.build(OWNER, create()))
    envelope = FeeBumpTransactionEnvelope(bump, lab.chain.passphrase)
    envelope.sign(OTHER)
    return outcome(lab, envelope)


def poor(lab: Lab) -> set[str]:
    pauper = lab.account("pauper", 10_000_050)
    return outcome(lab, lab.build(pauper, create()))


def twice(lab: Lab) -> set[str]:
    prepared = lab.prepare(OWNER, lab.put_call())
    operation = prepared.transaction.operations[0]
    return classic(
        lab, operation, operation, soroban=prepared.transaction.soroban_data, fee=prepared.transaction.fee
    )


def boom(lab: Lab) -> set[str]:
    envelope = lab.prepare(OWNER, lab.put_call(), signers=[])
    change_call(envelope, "boom")
    envelope.sign(OWNER)
    return outcome(lab, envelope)


def expired(lab: Lab) -> set[str]:
    """Simulated while everything was alive, and sent when it no longer was."""
    lab.put(OWNER, 1, 1)
    envelope = lab.prepare(OWNER, lab.put_call())
    lab.chain.skip_ledgers(60)
    return outcome(lab, envelope)


def oversized(lab: Lab) -> set[str]:
    kind = xdr.HostFunctionType.HOST_FUNCTION_TYPE_UPLOAD_CONTRACT_WASM
    wasm = bytes(lab.chain.settings.max_contract_size_bytes + 1)
    upload = InvokeHostFunction(xdr.HostFunction(kind, wasm=wasm), [])
    zero = xdr.Uint32(0)
    data = xdr.SorobanTransactionData(
        xdr.SorobanTransactionDataExt(0),
        xdr.SorobanResources(xdr.LedgerFootprint([], []), zero, zero, zero),
        xdr.Int64(10**8),
    )
    return classic(lab, upload, soroban=data, fee=10**8 + 100)


def restore(lab: Lab, **limits: int) -> TransactionEnvelope:
    """A RestoreFootprint of an archived entry."""
    lab.put(OWNER, 1, 1)
    lab.chain.skip_ledgers(60)
    envelope = lab.prepare_ttl(OWNER, [lab.data_key(1)], signers=[])
    data = envelope.transaction.soroban_data
    assert data is not None
    for name, value in limits.items():
        setattr(data.resources, name, xdr.Uint32(value))
    envelope.sign(OWNER)
    return envelope


def extend(lab: Lab, to: int) -> TransactionEnvelope:
    lab.put(OWNER, 1, 1)
    return lab.prepare_ttl(OWNER, [lab.data_key(1)], extend_to=to)


def temporary_restored(lab: Lab) -> set[str]:
    key = lab.data_key(1, xdr.ContractDataDurability.TEMPORARY)
    return outcome(lab, lab.prepare_ttl(OWNER, [key]))


def to_itself(lab: Lab) -> set[str]:
    return classic(lab, create("owner"))


def applied_before(lab: Lab) -> set[str]:
    envelope = lab.build(OWNER, create())
    lab.succeed(envelope)
    return outcome(lab, envelope)


def after_ten_ledgers(lab: Lab) -> set[str]:
    envelope = lab.build(OWNER, create())
    lab.succeed(envelope)
    lab.chain.skip_ledgers(10)
    return outcome(lab, envelope)


CASES: dict[str, Callable[[Lab], set[str]]] = {
    "txSUCCESS": lambda lab: classic(lab, create()),
    "txFAILED": boom,
    "txBAD_SEQ": after_ten_ledgers,
    "txBAD_AUTH": lambda lab: classic(lab, create(), signers=[]),
    "txBAD_AUTH_EXTRA": lambda lab: classic(lab, create(), signers=[OWNER, OTHER]),
    "txBAD_MIN_SEQ_AGE_OR_GAP": lambda lab: bounded(
        lab, lambda builder: builder.add_time_bounds(0, 0).set_min_sequence_ledger_gap(99)
    ),
    "txNO_ACCOUNT": lambda lab: outcome(lab, lab.build(keypair("nobody"), create(), sequence=1)),
    "txTOO_EARLY": lambda lab: bounded(lab, lambda b: b.add_time_bounds(FROZEN_START + HOUR, 0)),
    "txTOO_LATE": lambda lab: bounded(lab, lambda b: b.add_time_bounds(0, FROZEN_START - HOUR)),
    "txINSUFFICIENT_FEE": lambda lab: classic(lab, create(), fee=99),
    "txINSUFFICIENT_BALANCE": poor,
    "txMISSING_OPERATION": classic,
    "txNOT_SUPPORTED": fee_bump,
    "txMALFORMED": twice,
    "txSOROBAN_INVALID": lambda lab: priced(lab, lab.prepare(OWNER, lab.put_call()), -1),
    "opNOT_SUPPORTED": lambda lab: classic(lab, Payment(OTHER.public_key, Asset.native(), "1")),
    "opNO_ACCOUNT": lambda lab: classic(
        lab, create(source=keypair("nobody")), signers=[OWNER, keypair("nobody")]
    ),
    "opBAD_AUTH": lambda lab: classic(lab, create(source=OTHER)),
    "INVOKE_HOST_FUNCTION_SUCCESS": lambda lab: outcome(lab, lab.prepare(OWNER, lab.put_call())),
    "INVOKE_HOST_FUNCTION_MALFORMED": oversized,
    "INVOKE_HOST_FUNCTION_TRAPPED": boom,
    "INVOKE_HOST_FUNCTION_RESOURCE_LIMIT_EXCEEDED": lambda lab: tight(lab, "write_bytes"),
    "INVOKE_HOST_FUNCTION_ENTRY_ARCHIVED": expired,
    "INVOKE_HOST_FUNCTION_INSUFFICIENT_REFUNDABLE_FEE": lambda lab: priced(
        lab, lab.prepare(OWNER, lab.put_call()), 0
    ),
    "EXTEND_FOOTPRINT_TTL_SUCCESS": lambda lab: outcome(lab, extend(lab, 30)),
    "EXTEND_FOOTPRINT_TTL_MALFORMED": lambda lab: outcome(lab, extend(lab, 40)),
    "EXTEND_FOOTPRINT_TTL_INSUFFICIENT_REFUNDABLE_FEE": lambda lab: priced(lab, extend(lab, 30), 0),
    "RESTORE_FOOTPRINT_SUCCESS": lambda lab: outcome(lab, restore(lab)),
    "RESTORE_FOOTPRINT_MALFORMED": temporary_restored,
    "RESTORE_FOOTPRINT_RESOURCE_LIMIT_EXCEEDED": lambda lab: outcome(lab, restore(lab, write_bytes=10)),
    "RESTORE_FOOTPRINT_INSUFFICIENT_REFUNDABLE_FEE": lambda lab: priced(lab, restore(lab), 0),
    "CREATE_ACCOUNT_SUCCESS": lambda lab: classic(lab, create()),
    "CREATE_ACCOUNT_MALFORMED": to_itself,
    "CREATE_ACCOUNT_UNDERFUNDED": lambda lab: classic(lab, create(amount="99999")),
    "CREATE_ACCOUNT_LOW_RESERVE": lambda lab: classic(lab, create(amount="0.9999999")),
    "CREATE_ACCOUNT_ALREADY_EXIST": lambda lab: classic(lab, create("other")),
}

# What the network's design names for the operations that there are.
NAMED = """
txBAD_SEQ txBAD_AUTH txBAD_AUTH_EXTRA txNO_ACCOUNT txTOO_EARLY txTOO_LATE txINSUFFICIENT_FEE
txINSUFFICIENT_BALANCE txMISSING_OPERATION txNOT_SUPPORTED txSOROBAN_INVALID txMALFORMED opNOT_SUPPORTED
INVOKE_HOST_FUNCTION_TRAPPED INVOKE_HOST_FUNCTION_RESOURCE_LIMIT_EXCEEDED
INVOKE_HOST_FUNCTION_INSUFFICIENT_REFUNDABLE_FEE INVOKE_HOST_FUNCTION_ENTRY_ARCHIVED
"""

STATUSES = {"PENDING", "DUPLICATE", "TRY_AGAIN_LATER", "ERROR", "SUCCESS", "FAILED", "NOT_FOUND"}


def test_no_code_is_missing() -> None:
    assert set(NAMED.split()) <= set(CASES)
    _, section = README.split("## Result codes\n")
    promised = set(re.findall(r"`(\w+)`", section.split("\n## ")[0]))
    assert promised == set(CASES) | STATUSES


@pytest.mark.parametrize("code", CASES)
def test_a_code_is_reached(stage: Lab, code: str) -> None:
    assert code in CASES[code](stage)


def test_the_statuses(queue: Lab) -> None:
    first, second = queue.build(OWNER, create()), queue.build(OTHER, create("owner"))
    after = queue.build(OWNER, create("later"), sequence=queue.sequence(OWNER) + 2)
    assert outcome(queue, first) == {"PENDING", "NOT_FOUND"}
    assert outcome(queue, first) == {"DUPLICATE"}
    assert outcome(queue, after) == {"TRY_AGAIN_LATER"}
    assert outcome(queue, second) == {"PENDING", "NOT_FOUND"}
    queue.chain.close_ledger()
    statuses = [
        result(queue.chain, "getTransaction", {"hash": envelope.hash_hex()})["status"]
        for envelope in (first, second)
    ]
    assert statuses == ["SUCCESS", "FAILED"]
    assert outcome(queue, after) == {"PENDING", "NOT_FOUND"}
    assert outcome(queue, queue.build(OTHER, signers=[])) == {"ERROR", "txMISSING_OPERATION"}


def test_a_transaction_comes_again(stage: Lab) -> None:
    assert applied_before(stage) == {"TRY_AGAIN_LATER"}


def test_a_resource_fee_above_the_whole_fee(stage: Lab) -> None:
    envelope = stage.prepare(OWNER, stage.put_call(), signers=[])
    data = envelope.transaction.soroban_data
    assert data is not None
    envelope.transaction.fee = data.resource_fee.int64 - 1
    envelope.sign(OWNER)
    assert "txSOROBAN_INVALID" in outcome(stage, envelope)


# Hashes


def test_a_transactions_hash_is_the_sdks(stage: Lab) -> None:
    """Of every kind of envelope, accepted or refused; and it is what the protocol says it is."""

    def remember(builder: TransactionBuilder) -> None:
        builder.add_time_bounds(0, 0).add_text_memo("memo").set_min_sequence_age(0)

    def old_form() -> TransactionEnvelope:
        envelope = stage.build(OWNER, create("v0"), signers=[])
        envelope.transaction.v1 = False
        envelope.sign(OWNER)
        return envelope

    network = sha256(stage.chain.passphrase.encode()).digest()
    kinds: list[Callable[[], TransactionEnvelope]] = [
        lambda: stage.build(OWNER, create()),
        lambda: stage.build(OWNER, create("m"), change=remember),
        lambda: stage.prepare(OWNER, stage.put_call()),
        lambda: stage.prepare(OWNER, stage.call("echo", scval.to_bytes(b"x"))),
        lambda: extend(stage, 30),
        old_form,
        lambda: stage.build(OWNER, create(), signers=[]),
    ]
    for build in kinds:
        envelope = build()
        sent = result(stage.chain, "sendTransaction", {"transaction": envelope.to_xdr()})
        assert sent["hash"] == envelope.hash_hex()
        if sent["status"] == "PENDING":
            found = result(stage.chain, "getTransaction", {"hash": sent["hash"]})
            assert found["status"] == "SUCCESS"
            v1 = xdr.TransactionEnvelope.from_xdr(found["envelopeXdr"]).v1
            assert v1 is not None
            payload = network + b"\0\0\0\2" + v1.tx.to_xdr_bytes()
            assert sha256(payload).hexdigest() == sent["hash"]
    bump = FeeBumpTransaction(OTHER.public_key, 400, stage.build(OWNER, create()))
    outer = FeeBumpTransactionEnvelope(bump, stage.chain.passphrase)
    outer.sign(OTHER)
    assert result(stage.chain, "sendTransaction", {"transaction": outer.to_xdr()})["hash"] == outer.hash_hex()
