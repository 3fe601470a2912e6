"""simulateTransaction: what its quotes are worth, authorisation, and what it answers when something is
wrong."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from stellar_sdk import Account, Keypair, MuxedAccount, TransactionBuilder, scval
from stellar_sdk import xdr as stellar_xdr
from stellar_sdk.operation import ExtendFootprintTTL, RestoreFootprint

if TYPE_CHECKING:
    from pathlib import Path

    from stellar_sdk import TransactionEnvelope
    from stellar_sdk.operation import Operation

    from tests.localnet.rpc.conftest import Net, Probe

OTHER = Keypair.from_raw_ed25519_seed(b"other".ljust(32, b"."))


def simulate(net: Net, transaction: TransactionEnvelope, **options: object) -> dict[str, Any]:
    return net.result("simulateTransaction", {"transaction": transaction.to_xdr()} | options)


def guarded(probe: Probe, owner: Keypair) -> TransactionEnvelope:
    return probe.build("guarded", scval.to_address(owner.public_key))


def test_the_quote_is_enough_to_apply(probe: Probe) -> None:
    for function, arguments in (("put", (1, 2)), ("put", (1, 3)), ("emit", (1, 2, 3)), ("drop", (1,))):
        probe.invoke(function, *arguments)


def test_equal_questions_get_equal_answers(probe: Probe) -> None:
    transaction = probe.build("emit", *(scval.to_uint32(value) for value in (1, 2, 3)))
    assert simulate(probe.net, transaction) == simulate(probe.net, transaction)


def test_a_simulation_changes_nothing(probe: Probe) -> None:
    before = probe.net.result("getLatestLedger")
    simulate(probe.net, probe.build("put", scval.to_uint32(1), scval.to_uint64(2)))
    assert probe.net.result("getLatestLedger") == before
    assert probe.net.result("getLedgerEntries", {"keys": [probe.entry_key(1)]})["entries"] == []


def test_the_result_is_the_value_of_the_function(probe: Probe) -> None:
    probe.invoke("put", 1, 77)
    (result,) = simulate(probe.net, probe.build("get", scval.to_uint32(1)))["results"]
    assert scval.from_uint64(result["xdr"]) == 77
    assert result["auth"] == []


def test_the_owner_as_source_authorises_with_the_transaction(probe: Probe) -> None:
    (result,) = simulate(probe.net, guarded(probe, probe.owner))["results"]
    (entry,) = [stellar_xdr.SorobanAuthorizationEntry.from_xdr(item) for item in result["auth"]]
    assert entry.credentials.type == stellar_xdr.SorobanCredentialsType.SOROBAN_CREDENTIALS_SOURCE_ACCOUNT


@pytest.mark.parametrize(
    ("upgraded", "kind"),
    [
        (None, "SOROBAN_CREDENTIALS_ADDRESS"),
        (False, "SOROBAN_CREDENTIALS_ADDRESS"),
        (True, "SOROBAN_CREDENTIALS_ADDRESS_V2"),
    ],
)
def test_somebody_elses_authorisation_is_recorded(probe: Probe, upgraded: bool | None, kind: str) -> None:
    probe.net.chain.fund(OTHER.public_key)
    (result,) = simulate(probe.net, guarded(probe, OTHER), useUpgradedAuth=upgraded)["results"]
    (entry,) = [stellar_xdr.SorobanAuthorizationEntry.from_xdr(item) for item in result["auth"]]
    assert entry.credentials.type.name == kind


def test_the_modes_of_authorisation(probe: Probe) -> None:
    transaction = guarded(probe, OTHER)
    assert "error" in simulate(probe.net, transaction, authMode="enforce")
    for mode in ("record", "record_allow_nonroot", "", None):
        recorded = simulate(probe.net, transaction, authMode=mode)
        assert "error" not in recorded
        assert len(recorded["results"][0]["auth"]) == 1
    assert "authMode" in simulate(probe.net, transaction, authMode="guess")["error"]
    with_auth = transaction.to_xdr_object()
    assert with_auth.v1 is not None
    operation = with_auth.v1.tx.operations[0].body.invoke_host_function_op
    assert operation is not None
    operation.auth = [stellar_xdr.SorobanAuthorizationEntry.from_xdr(recorded["results"][0]["auth"][0])]
    envelope = with_auth.to_xdr()
    for mode in ("record", "record_allow_nonroot"):
        refused = probe.net.result("simulateTransaction", {"transaction": envelope, "authMode": mode})
        assert refused["error"] == f"cannot set authMode to '{mode}' with an auth footprint"
    # Unsigned, and with an authorisation in it, the default is to enforce.
    assert "error" in probe.net.result("simulateTransaction", {"transaction": envelope})


def test_leeway_raises_the_quote(probe: Probe) -> None:
    transaction = probe.build("emit", *(scval.to_uint32(value) for value in (1, 2, 3)))
    plain = simulate(probe.net, transaction)
    generous = simulate(probe.net, transaction, resourceConfig={"instructionLeeway": 5_000_000})

    def instructions(answer: dict[str, Any]) -> int:
        return stellar_xdr.SorobanTransactionData.from_xdr(
            answer["transactionData"]
        ).resources.instructions.uint32

    assert instructions(generous) >= 5_000_000 > instructions(plain)
    assert int(generous["minResourceFee"]) > int(plain["minResourceFee"])


def test_the_fee_is_in_the_transaction_data(probe: Probe) -> None:
    answer = simulate(probe.net, probe.build("put", scval.to_uint32(1), scval.to_uint64(2)))
    data = stellar_xdr.SorobanTransactionData.from_xdr(answer["transactionData"])
    assert str(data.resource_fee.int64) == answer["minResourceFee"]


def test_the_operations_own_source_counts(probe: Probe) -> None:
    probe.net.chain.fund(OTHER.public_key)
    account = probe.server.load_account(OTHER.public_key)
    transaction = (
        TransactionBuilder(account, probe.net.chain.passphrase, 100)
        .append_invoke_contract_function_op(
            probe.contract_id,
            "guarded",
            [scval.to_address(probe.owner.public_key)],
            source=MuxedAccount(probe.owner.public_key, 9),
        )
        .set_timeout(300)
        .build()
    )
    (result,) = simulate(probe.net, transaction)["results"]
    (entry,) = [stellar_xdr.SorobanAuthorizationEntry.from_xdr(item) for item in result["auth"]]
    assert entry.credentials.type == stellar_xdr.SorobanCredentialsType.SOROBAN_CREDENTIALS_SOURCE_ACCOUNT


def test_what_cannot_be_simulated(probe: Probe) -> None:
    net = probe.net
    account = probe.server.load_account(probe.owner.public_key)

    def builder() -> TransactionBuilder:
        return TransactionBuilder(account, net.chain.passphrase, 100).set_timeout(300)

    payment = builder().append_bump_sequence_op(5).build()
    two = builder()
    for _ in range(2):
        two.append_invoke_contract_function_op(probe.contract_id, "boom", [])
    empty = payment.to_xdr_object()
    assert empty.v1 is not None
    empty.v1.tx.operations = []
    bare_restore = builder().append_restore_footprint_op().build()
    bump = TransactionBuilder.build_fee_bump_transaction(OTHER, 1000, payment, net.chain.passphrase)
    cases = [
        ({"transaction": "AAAA"}, "Could not unmarshal transaction"),
        ({"transaction": "not base64"}, "Could not unmarshal transaction"),
        ({"transaction": ""}, "Could not unmarshal transaction"),
        ({}, "Could not unmarshal transaction"),
        ({"transaction": payment.to_xdr(), "xdrFormat": "yaml"}, "xdrFormat"),
        ({"transaction": payment.to_xdr()}, "unsupported operation type: BUMP_SEQUENCE"),
        ({"transaction": two.build().to_xdr()}, "exactly one operation"),
        ({"transaction": empty.to_xdr()}, "exactly one operation"),
        ({"transaction": bump.to_xdr()}, "ENVELOPE_TYPE_TX_FEE_BUMP"),
        ({"transaction": bare_restore.to_xdr()}, "SorobanTransactionData must be provided"),
        (
            {"transaction": probe.build_ttl(9, [probe.entry_key(1)]).to_xdr(), "authMode": "record"},
            "authMode",
        ),
        ({"transaction": probe.build("nowhere").to_xdr()}, "non-existent contract function"),
    ]
    for params, words in cases:
        answer = net.result("simulateTransaction", params)
        assert words in answer["error"]
        assert answer["latestLedger"] == net.result("getHealth")["latestLedger"]
        assert set(answer) <= {"error", "events", "latestLedger"}


def test_the_footprints_of_extensions_and_restorations(probe: Probe) -> None:
    probe.invoke("put", 1, 5)
    key = stellar_xdr.LedgerKey.from_xdr(probe.entry_key(1))
    for transaction in (
        probe.build_ttl(9, [probe.entry_key(1)]),
        probe.build_ttl(None, [probe.entry_key(1)]),
    ):
        swapped = transaction.to_xdr_object()
        assert swapped.v1 is not None
        assert swapped.v1.tx.ext.soroban_data is not None
        footprint = swapped.v1.tx.ext.soroban_data.resources.footprint
        footprint.read_only, footprint.read_write = footprint.read_write, footprint.read_only
        assert key in (footprint.read_only + footprint.read_write)
        assert (
            "footprint" in probe.net.result("simulateTransaction", {"transaction": swapped.to_xdr()})["error"]
        )


def ttl(
    probe: Probe, operation: Operation, *keys: stellar_xdr.LedgerKey, written: bool
) -> TransactionEnvelope:
    footprint = (
        stellar_xdr.LedgerFootprint([], list(keys))
        if written
        else stellar_xdr.LedgerFootprint(list(keys), [])
    )
    account = Account(probe.owner.public_key, 1)
    envelope = (
        TransactionBuilder(account, probe.net.chain.passphrase, 100)
        .append_operation(operation)
        .set_timeout(0)
        .build()
    )
    zero = stellar_xdr.Uint32(0)
    envelope.transaction.soroban_data = stellar_xdr.SorobanTransactionData(
        stellar_xdr.SorobanTransactionDataExt(0),
        stellar_xdr.SorobanResources(footprint, zero, zero, zero),
        stellar_xdr.Int64(0),
    )
    return envelope


def code(wasm_hash: bytes) -> stellar_xdr.LedgerKey:
    key = stellar_xdr.LedgerKeyContractCode(stellar_xdr.Hash(wasm_hash))
    return stellar_xdr.LedgerKey(stellar_xdr.LedgerEntryType.CONTRACT_CODE, contract_code=key)


def test_what_went_wrong_is_said_without_a_backtrace(probe: Probe, tmp_path: Path) -> None:
    """Whatever the environment asks for: in another process, since it is looked at once."""
    transaction = ttl(probe, RestoreFootprint(), code(bytes(32)), written=True)
    found = simulate(probe.net, transaction)["error"]
    assert found.startswith("Missing entry to restore")
    assert "\n" not in found
    (tmp_path / "dump").write_bytes(probe.net.chain.dump())
    program = (
        "import json, sys; from mycelium_localnet import Chain, Dispatcher\n"
        "with Chain.open(':memory:') as chain:\n"
        "    chain.load(sys.argv[1])\n"
        "    print(json.loads(Dispatcher(chain).handle(sys.argv[2].encode()))['result']['error'])"
    )
    request = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "simulateTransaction",
        "params": {"transaction": transaction.to_xdr()},
    }
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "dump"), json.dumps(request)],
        capture_output=True,
        check=True,
        text=True,
        env={**os.environ, "RUST_BACKTRACE": "1"},
    )
    assert done.stdout == f"{found}\n"


def test_an_extension_beyond_all_ledgers_is_refused_in_words(probe: Probe) -> None:
    latest = probe.net.result("getHealth")["latestLedger"]
    key = code(probe.wasm_hash)
    for extend_to in (2**32 - latest, 2**32 - 1):
        answer = simulate(probe.net, ttl(probe, ExtendFootprintTTL(extend_to), key, written=False))
        assert "ledgers are counted in 32 bits" in answer["error"]
        assert "panicked" not in answer["error"]
        assert set(answer) == {"error", "latestLedger"}
    assert "error" not in simulate(probe.net, ttl(probe, ExtendFootprintTTL(200_000), key, written=False))
