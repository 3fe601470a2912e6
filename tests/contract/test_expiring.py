"""Entries whose time to live ends between simulation and ledger: one more transaction restores them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mycelium_sdk.chain import operations
from mycelium_sdk.chain.artifact import memory_anchor_wasm
from mycelium_sdk.chain.base import TransactionStatus
from mycelium_sdk.chain.deployment import deploy

if TYPE_CHECKING:
    from collections.abc import Callable

    from stellar_sdk import xdr

    from mycelium_localnet.profiles import ProfileName
    from mycelium_sdk.chain.base import SignedTransaction
    from tests.contract.conftest import Host

ROOTS = [bytes([number]) * 32 for number in range(1, 3)]
EXPIRED = "INVOKE_HOST_FUNCTION_ENTRY_ARCHIVED"


@pytest.fixture
def host(make_host: Callable[[ProfileName], Host]) -> Host:
    return make_host("short-ttl")


def go_to_the_last_ledger_of(host: Host, key: xdr.LedgerKey) -> None:
    (state,) = host.chain.entries([key])
    assert state.remaining is not None
    host.skip(state.remaining)
    (state,) = host.chain.entries([key])
    assert state.remaining == 0, "live for a simulation, archived for the next ledger"


def outcomes(host: Host, announced: list[SignedTransaction]) -> list[tuple[TransactionStatus, str | None]]:
    states = [host.chain.transaction(signed.hash) for signed in announced]
    return [(state.status, state.result_code) for state in states]


def test_an_anchor_whose_entry_expires_on_the_way(host: Host) -> None:
    host.client.set_anchor(host.owner, ROOTS[0])
    go_to_the_last_ledger_of(host, host.entry_key(host.owner.public_key))
    announced: list[SignedTransaction] = []
    receipt = host.client.set_anchor_if(host.owner, 1, ROOTS[1], before_send=announced.append)
    assert outcomes(host, announced) == [
        (TransactionStatus.FAILED, EXPIRED),
        (TransactionStatus.SUCCESS, "txSUCCESS"),
    ]
    assert (receipt.version, receipt.hash) == (2, announced[1].hash)
    assert len({signed.hash for signed in announced}) == 2
    anchor = host.client.get_anchor(host.owner.public_key)
    assert anchor is not None
    assert (anchor.version, anchor.root) == (2, ROOTS[1])


def test_a_deployment_whose_code_expires_on_the_way(host: Host) -> None:
    first = deploy(host.chain, memory_anchor_wasm(), host.other)
    go_to_the_last_ledger_of(host, operations.code_key(first.code_hash))
    second = deploy(host.chain, memory_anchor_wasm(), host.other)
    assert second.contract_id != first.contract_id
    assert second.uploaded is None, "the code was there when it was looked for"
    (instance,) = host.chain.entries([operations.instance_key(second.contract_id)])
    assert instance.data is not None
    assert host.client.get_version(host.owner.public_key) == 0
