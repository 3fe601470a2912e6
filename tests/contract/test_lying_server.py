"""Servers that leave out or alter what a contract or its code says: noticed, and what was made stays made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from stellar_sdk import StrKey, scval, xdr

from mycelium_localnet import IN_PROCESS_URL
from mycelium_sdk.chain import operations
from mycelium_sdk.chain.anchor_client import MemoryAnchorClient
from mycelium_sdk.chain.artifact import memory_anchor_wasm
from mycelium_sdk.chain.build import build_contract
from mycelium_sdk.chain.contracts import code_hash, function_names
from mycelium_sdk.chain.deployment import deploy
from mycelium_sdk.chain.rpc import RpcChain
from mycelium_sdk.errors import ChainError, ChainUnavailable, ContractNotFound, Unsettled
from mycelium_sdk.networks import STANDALONE_PASSPHRASE
from mycelium_sdk.retry import Pace, RetryPolicy
from tests.contract.altered import AlteredClient

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from mycelium_sdk.chain.anchors import Anchor
    from tests.contract.conftest import Host

ROOTS = [bytes([number]) * 32 for number in range(1, 5)]


@pytest.fixture
def client(host: Host) -> AlteredClient:
    made = AlteredClient(host.chain.localnet)
    made.alter = {}
    return made


@pytest.fixture
def chain(client: AlteredClient) -> Iterator[RpcChain]:
    """The host's chain behind that client; waiting takes no time."""
    policy = RetryPolicy(pace=Pace(sleep=lambda _: None, monotonic=lambda: 0.0))
    made = RpcChain(IN_PROCESS_URL, STANDALONE_PASSPHRASE, client=client, policy=policy)
    yield made
    made.close()


@pytest.fixture
def anchors(host: Host, chain: RpcChain) -> MemoryAnchorClient:
    return MemoryAnchorClient(chain, host.client.contract_id)


def without_meta(result: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in result.items() if name != "resultMetaXdr"}


def with_another_value(result: dict[str, Any]) -> dict[str, Any]:
    """A call that returned nothing of the kind that it does."""
    meta = xdr.TransactionMeta.from_xdr(result["resultMetaXdr"])
    assert meta.v4 is not None
    assert meta.v4.soroban_meta is not None
    meta.v4.soroban_meta.return_value = scval.to_bool(True)
    return result | {"resultMetaXdr": meta.to_xdr()}


@pytest.mark.parametrize("alter", [without_meta, with_another_value])
def test_the_version_of_an_anchor_is_read_where_the_call_does_not_tell_it(
    host: Host,
    client: AlteredClient,
    anchors: MemoryAnchorClient,
    alter: Callable[[dict[str, Any]], dict[str, Any]],
) -> None:
    client.alter["getTransaction"] = alter
    assert anchors.set_anchor_if(host.owner, 0, ROOTS[0], b"uri").version == 1
    receipt = anchors.set_anchor(host.owner, ROOTS[1], b"", b"acl")
    assert (receipt.version, receipt.compared) == (2, False)
    assert host.client.get_version(host.owner.public_key) == 2


def test_an_anchor_that_was_overtaken_meanwhile_is_unsettled(
    host: Host, client: AlteredClient, anchors: MemoryAnchorClient
) -> None:
    def overtaken(owner: str) -> Anchor | None:
        host.client.set_anchor(host.owner, ROOTS[3])
        return host.client.get_anchor(owner)

    client.alter["getTransaction"] = without_meta
    anchors.get_anchor = overtaken  # type: ignore[method-assign]
    with pytest.raises(Unsettled, match="was made") as caught:
        anchors.set_anchor(host.owner, ROOTS[0])
    assert host.chain.transaction(caught.value.hash).status == "SUCCESS"
    assert host.client.get_version(host.owner.public_key) == 2


def test_an_anchor_that_cannot_be_read_afterwards_is_unsettled(
    host: Host, client: AlteredClient, anchors: MemoryAnchorClient
) -> None:
    def nothing_after_that(result: dict[str, Any]) -> dict[str, Any]:
        client.alter["simulateTransaction"] = lambda _: {}
        return without_meta(result)

    client.alter["getTransaction"] = nothing_after_that
    with pytest.raises(Unsettled):
        anchors.set_anchor_if(host.owner, 0, ROOTS[0])
    assert host.client.get_version(host.owner.public_key) == 1


def test_a_deployment_needs_no_return_value(host: Host, client: AlteredClient, chain: RpcChain) -> None:
    client.alter["getTransaction"] = without_meta
    made = deploy(chain, memory_anchor_wasm(), host.other, salt=bytes(32))
    expected = operations.contract_id_of(STANDALONE_PASSPHRASE, host.other.public_key, bytes(32))
    assert made.contract_id == expected
    assert code_hash(host.chain, expected) == made.code_hash


def with_code(wasm: bytes) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Serve other code under the hash that was asked for."""

    def alter(result: dict[str, Any]) -> dict[str, Any]:
        for entry in result["entries"]:
            data = xdr.LedgerEntryData.from_xdr(entry["xdr"])
            if data.contract_code is not None:
                data.contract_code.code = wasm
                entry["xdr"] = data.to_xdr()
        return result

    return alter


def test_code_is_compared_with_its_hash(
    host: Host, client: AlteredClient, chain: RpcChain, request: pytest.FixtureRequest
) -> None:
    """The older contract, for which the server serves code with compare-and-set: it has none."""
    source: Path = request.path.parent / "legacy_anchor.py"
    contract_id = deploy(chain, build_contract(source).wasm, host.other).contract_id
    assert "set_anchor_if" not in function_names(chain, contract_id)
    client.alter["getLedgerEntries"] = with_code(memory_anchor_wasm())
    with pytest.raises(ChainError, match="other code") as caught:
        _ = MemoryAnchorClient(chain, contract_id).is_legacy
    assert type(caught.value) is ChainError
    assert "do not trust this server" in str(caught.value.hint)


def with_data(data: xdr.LedgerEntryData) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Serve this for whatever was asked for."""
    return lambda result: (
        result | {"entries": [entry | {"xdr": data.to_xdr()} for entry in result["entries"]]}
    )


def test_an_entry_is_compared_with_its_key(host: Host, client: AlteredClient, chain: RpcChain) -> None:
    """For each kind of entry, the server serves the entry of another key."""
    host.client.set_anchor(host.owner, ROOTS[0])
    host.client.set_anchor(host.other, ROOTS[1])
    setting = xdr.ConfigSettingID
    pairs = [
        (host.entry_key(host.owner.public_key), host.entry_key(host.other.public_key)),
        (operations.account_key(host.owner.public_key), operations.account_key(host.other.public_key)),
        (
            operations.setting_key(setting.CONFIG_SETTING_CONTRACT_LEDGER_COST_V0),
            operations.setting_key(setting.CONFIG_SETTING_STATE_ARCHIVAL),
        ),
        (operations.instance_key(host.client.contract_id), host.entry_key(host.owner.public_key)),
    ]
    for key, other in pairs:
        client.alter.clear()
        states = chain.entries([key, other])
        assert all(state.data is not None for state in states)
        foreign = states[1].data
        assert foreign is not None
        client.alter["getLedgerEntries"] = with_data(foreign)
        with pytest.raises(ChainUnavailable, match="cannot be understood"):
            chain.entries([key])


def test_code_of_another_hash_is_another_keys(host: Host, client: AlteredClient, chain: RpcChain) -> None:
    wasm_hash = code_hash(chain, host.client.contract_id)

    def renamed(result: dict[str, Any]) -> dict[str, Any]:
        for entry in result["entries"]:
            data = xdr.LedgerEntryData.from_xdr(entry["xdr"])
            assert data.contract_code is not None
            data.contract_code.hash = xdr.Hash(bytes(32))
            entry["xdr"] = data.to_xdr()
        return result

    client.alter["getLedgerEntries"] = renamed
    with pytest.raises(ChainUnavailable, match="cannot be understood"):
        chain.entries([operations.code_key(wasm_hash)])


def test_a_contract_that_is_not_there_stays_not_found(chain: RpcChain) -> None:
    with pytest.raises(ContractNotFound):
        function_names(chain, StrKey.encode_contract(bytes(32)))
