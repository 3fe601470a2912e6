"""Only the owner moves an anchor: every other way is tried on the network's own host."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from stellar_sdk import scval, xdr
from stellar_sdk.auth import authorization_payload_hash, authorize_entry
from stellar_sdk.operation import InvokeHostFunction

from mycelium_sdk.chain import operations
from mycelium_sdk.chain.base import TransactionStatus
from mycelium_sdk.chain.diagnostics import host_failure
from mycelium_sdk.errors import ChainError

if TYPE_CHECKING:
    from stellar_sdk import Keypair, TransactionEnvelope

    from tests.contract.conftest import Host

ROOT = bytes([7]) * 32


def test_the_client_of_another_key_is_refused(host: Host) -> None:
    work = operations.invoke(host.client.contract_id, "set_anchor", host.arguments(ROOT))
    announced: list[str] = []
    with pytest.raises(ChainError, match="authorisation of another account"):
        host.chain.submit(work, host.other, before_send=lambda tx: announced.append(tx.hash))
    assert announced == []
    assert host.client.get_version(host.owner.public_key) == 0


def test_the_owners_transaction_signed_by_another_key(host: Host) -> None:
    envelope = host.prepared("set_anchor", host.arguments(ROOT), host.owner)
    envelope.sign(host.other)
    answer = host.server.send_transaction(envelope)
    assert answer.status.value == "ERROR"
    assert answer.error_result_xdr is not None
    result = xdr.TransactionResult.from_xdr(answer.error_result_xdr)
    assert result.result.code is xdr.TransactionResultCode.txBAD_AUTH
    assert host.client.get_version(host.owner.public_key) == 0


def test_another_accounts_transaction_with_the_owners_credentials_copied(host: Host) -> None:
    """Source-account credentials are the sender's own, whatever the call was simulated for."""
    genuine = host.prepared("set_anchor", host.arguments(ROOT), host.owner)
    envelope = host.prepared("get_version", [scval.to_address(host.owner.public_key)], host.other)
    envelope.transaction.operations = genuine.transaction.operations
    envelope.transaction.soroban_data = genuine.transaction.soroban_data
    envelope.transaction.fee = genuine.transaction.fee + 1_000_000
    envelope.sign(host.other)
    assert refused_for(host, envelope) == "AUTH"
    assert host.client.get_version(host.owner.public_key) == 0


@pytest.mark.parametrize("forger_signs", [True, False], ids=["signed by another key", "not signed"])
def test_another_account_with_a_forged_authorisation_of_the_owner(host: Host, *, forger_signs: bool) -> None:
    envelope = host.prepared("set_anchor", host.arguments(ROOT), host.other)
    operation = envelope.transaction.operations[0]
    assert isinstance(operation, InvokeHostFunction)
    if forger_signs:
        operation.auth = [signed_for_owner(host, entry, host.other) for entry in operation.auth]
    envelope.transaction.fee += 1_000_000
    assert envelope.transaction.soroban_data is not None
    enlarge(envelope.transaction.soroban_data)
    envelope.sign(host.other)
    assert refused_for(host, envelope) == "AUTH"
    assert host.client.get_version(host.owner.public_key) == 0


def test_another_account_may_pay_for_what_the_owner_authorised(host: Host) -> None:
    envelope = authorised(host, "set_anchor", host.arguments(ROOT))
    assert sent(host, envelope) is TransactionStatus.SUCCESS
    anchor = host.client.get_anchor(host.owner.public_key)
    assert anchor is not None
    assert (anchor.version, anchor.root) == (1, ROOT)


def test_an_authorisation_holds_once(host: Host) -> None:
    """The nonce is used up: the same signed authorisation cannot anchor a second time."""
    first = authorised(host, "set_anchor", host.arguments(ROOT))
    assert sent(host, first) is TransactionStatus.SUCCESS
    again = authorised(host, "set_anchor", host.arguments(ROOT))
    again.transaction.operations = first.transaction.operations
    again.transaction.soroban_data = first.transaction.soroban_data
    again.transaction.fee = first.transaction.fee
    again.signatures = []
    again.sign(host.other)
    assert refused_for(host, again) == "AUTH"
    assert host.client.get_version(host.owner.public_key) == 1


def test_an_authorisation_is_for_its_arguments(host: Host) -> None:
    envelope = authorised(host, "set_anchor", host.arguments(ROOT))
    operation = envelope.transaction.operations[0]
    assert isinstance(operation, InvokeHostFunction)
    assert operation.host_function.invoke_contract is not None
    operation.host_function.invoke_contract.args[1] = scval.to_bytes(bytes([8]) * 32)
    envelope.signatures = []
    envelope.sign(host.other)
    assert refused_for(host, envelope) == "AUTH"
    assert host.client.get_version(host.owner.public_key) == 0


def test_a_conflict_that_appears_only_in_the_ledger_carries_its_code(host: Host) -> None:
    """Simulated at version 0, applied at version 1: the contract compares, not the simulation."""
    arguments = host.arguments(ROOT)
    arguments.insert(1, scval.to_uint64(0))
    envelope = authorised(host, "set_anchor_if", arguments)
    host.client.set_anchor(host.owner, bytes([9]) * 32)
    assert sent(host, envelope) is TransactionStatus.FAILED
    state = host.chain.transaction(envelope.hash_hex())
    assert state.contract_error == 2
    assert state.result_code == "INVOKE_HOST_FUNCTION_TRAPPED"
    anchor = host.client.get_anchor(host.owner.public_key)
    assert anchor is not None
    assert (anchor.version, anchor.root) == (1, bytes([9]) * 32)


def authorised(host: Host, function: str, arguments: list[xdr.SCVal]) -> TransactionEnvelope:
    """A call that `other` sends and pays for, and the owner has authorised."""
    envelope = host.prepared(function, arguments, host.other)
    operation = envelope.transaction.operations[0]
    assert isinstance(operation, InvokeHostFunction)
    operation.auth = [signed_for_owner(host, entry, host.owner) for entry in operation.auth]
    assert envelope.transaction.soroban_data is not None
    enlarge(envelope.transaction.soroban_data)
    envelope.transaction.fee += 1_000_000
    envelope.sign(host.other)
    return envelope


def signed_for_owner(
    host: Host, entry: xdr.SorobanAuthorizationEntry, signer: Keypair
) -> xdr.SorobanAuthorizationEntry:
    def sign(preimage: xdr.HashIDPreimage) -> xdr.SCVal:
        signature = {
            scval.to_symbol("public_key"): scval.to_bytes(signer.raw_public_key()),
            scval.to_symbol("signature"): scval.to_bytes(signer.sign(authorization_payload_hash(preimage))),
        }
        return scval.to_vec([scval.to_map(signature)])

    return authorize_entry(entry, sign, host.chain.identity().latest_ledger + 100, host.chain.passphrase)


def enlarge(data: xdr.SorobanTransactionData) -> None:
    """Room for checking a signature, which simulation did not see."""
    data.resources.instructions = xdr.Uint32(data.resources.instructions.uint32 + 2_000_000)
    data.resources.write_bytes = xdr.Uint32(data.resources.write_bytes.uint32 + 500)
    data.resource_fee = xdr.Int64(data.resource_fee.int64 + 900_000)


def sent(host: Host, envelope: TransactionEnvelope) -> TransactionStatus:
    answer = host.server.send_transaction(envelope)
    assert answer.status.value == "PENDING", answer
    return host.chain.transaction(answer.hash).status


def refused_for(host: Host, envelope: TransactionEnvelope) -> str:
    """Send what must fail in the ledger; what the host failed it for."""
    assert sent(host, envelope) is TransactionStatus.FAILED
    failure = host_failure(host.server.get_transaction(envelope.hash_hex()).diagnostic_events_xdr)
    assert failure is not None
    return failure.kind
