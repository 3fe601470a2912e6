"""What restoring costs: the network charges for each entry it reads, and its simulation leaves that out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from stellar_sdk import Account, Keypair, TransactionBuilder, TransactionEnvelope, scval, xdr

from mycelium_sdk.chain import operations
from mycelium_sdk.chain.anchor_client import MemoryAnchorClient
from mycelium_sdk.chain.base import EntryStatus, Work
from mycelium_sdk.chain.build import build_contract
from mycelium_sdk.chain.contracts import code_hash
from mycelium_sdk.chain.deployment import deploy
from mycelium_sdk.networks import STANDALONE_PASSPHRASE

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from mycelium_localnet.profiles import ProfileName
    from mycelium_sdk.chain.base import SignedTransaction
    from tests.contract.conftest import Host

EACH = 6_250  # stroops for an entry read from disk, in protocol 28's settings
ROOT = bytes(31) + b"\x01"


@pytest.fixture
def host(make_host: Callable[[ProfileName], Host]) -> Host:
    return make_host("short-ttl")


def quote_of_the_server(host: Host, work: Work) -> int:
    """The resource fee that the server itself names, in stroops."""
    builder = TransactionBuilder(Account(host.owner.public_key, 0), STANDALONE_PASSPHRASE, base_fee=100)
    assert work.data is not None
    envelope = (
        builder.append_operation(work.operation).add_time_bounds(0, 0).set_soroban_data(work.data).build()
    )
    answer = host.server.simulate_transaction(envelope)
    assert answer.min_resource_fee is not None
    return answer.min_resource_fee


def declared(signed: SignedTransaction) -> tuple[int, int]:
    """The fee and the resource fee of a signed transaction."""
    transaction = TransactionEnvelope.from_xdr(signed.envelope, STANDALONE_PASSPHRASE).transaction
    assert transaction.soroban_data is not None
    return transaction.fee, transaction.soroban_data.resource_fee.int64


def restore(host: Host, keys: list[xdr.LedgerKey]) -> tuple[int, int, int]:
    """Restore all keys at once: the server's quote, this package's, and what was charged."""
    work = operations.restore(keys)
    announced: list[SignedTransaction] = []
    quotes = quote_of_the_server(host, work), host.chain.simulate(work).resource_fee
    receipt = host.chain.submit(work, host.other, before_send=announced.append)
    assert declared(announced[0]) == (quotes[1] + 100, quotes[1])
    states = host.chain.entries(keys, expiring_within=1)
    assert {state.status for state in states} == {EntryStatus.LIVE}
    return *quotes, receipt.fee_charged


def test_a_contract_and_its_code(host: Host) -> None:
    contract_id = host.client.contract_id
    keys = [operations.instance_key(contract_id), operations.code_key(code_hash(host.chain, contract_id))]
    host.skip(200)
    quoted, ours, charged = restore(host, keys)
    assert ours == quoted + 2 * EACH
    assert (quoted, ours, charged) == (107_172, 119_672, 78_251)


def test_the_five_entries_of_an_older_deployment(host: Host, request: pytest.FixtureRequest) -> None:
    source: Path = request.path.parent / "legacy_anchor.py"
    client = MemoryAnchorClient(
        host.chain, deploy(host.chain, build_contract(source).wasm, host.other).contract_id
    )
    client.set_anchor(host.owner, ROOT)
    host.skip(200)
    keys = client.entry_keys(host.owner.public_key)
    quoted = quote_of_the_server(host, operations.restore(keys))
    assert host.chain.simulate(operations.restore(keys)).resource_fee == quoted + 5 * EACH
    receipt = client.restore(host.owner.public_key, host.other)
    assert receipt is not None
    assert client.entry_state(host.owner.public_key, expiring_within=1).status is EntryStatus.LIVE
    assert (quoted, receipt.fee_charged) == (168_659, 153_946)


def test_many_entries(host: Host) -> None:
    """More than the margin of the simulation carries: the network refuses what the server quotes."""
    owners = [Keypair.from_raw_ed25519_seed(bytes([number]) * 32) for number in range(1, 31)]
    for owner in owners:
        host.chain.fund(owner.public_key)
        host.client.set_anchor(owner, ROOT)
    keys = [operations.data_key(host.client.contract_id, scval.to_address(o.public_key)) for o in owners]
    host.skip(200)
    quoted, ours, _ = restore(host, keys)
    assert ours == quoted + len(keys) * EACH


def test_what_is_not_archived_costs_nothing_more(host: Host) -> None:
    """Keys that need no restoring are not in what the simulation finds."""
    host.client.set_anchor(host.owner, ROOT)
    host.skip(200)
    host.client.set_anchor(host.other, ROOT)
    keys = [host.entry_key(person.public_key) for person in (host.owner, host.other)]
    quoted, ours, _ = restore(host, keys)
    assert ours == quoted + EACH


def test_calls_are_quoted_as_the_server_does(host: Host) -> None:
    work = operations.invoke(host.client.contract_id, "set_anchor", host.arguments())
    announced: list[SignedTransaction] = []
    quoted = host.chain.simulate(work, source=host.owner.public_key).resource_fee
    host.chain.submit(work, host.owner, before_send=announced.append)
    assert declared(announced[0]) == (quoted + 100, quoted)
