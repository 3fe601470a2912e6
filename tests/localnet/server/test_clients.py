"""Unmodified clients of `stellar_sdk`, synchronous and asynchronous, over HTTP, from the first account on."""

from __future__ import annotations

import asyncio
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import pytest
from stellar_sdk import Keypair, SorobanServer, TransactionBuilder, scval, xdr
from stellar_sdk.client.aiohttp_client import AiohttpClient
from stellar_sdk.client.requests_client import RequestsClient
from stellar_sdk.contract import ContractClient, ContractClientAsync
from stellar_sdk.contract.exceptions import SimulationFailedError
from stellar_sdk.exceptions import SorobanRpcErrorResponse
from stellar_sdk.soroban_rpc import EventFilter, EventFilterType, GetTransactionStatus, SendTransactionStatus
from stellar_sdk.soroban_server_async import SorobanServerAsync

from mycelium_sdk.chain.artifact import memory_anchor_wasm
from tests.localnet.server.process import serving

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stellar_sdk import Account, TransactionEnvelope
    from stellar_sdk.contract import AssembledTransactionAsync
    from stellar_sdk.soroban_rpc import EventInfo

    from tests.localnet.server.process import ServerProcess

NULL_ACCOUNT = "GAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAWHF"
CLIENTS = 6
CONTENT = (sha256(b"memory").digest(), b"file:///memory.json", b"")


@pytest.fixture(scope="module", params=[(), ("--interval", "0.1")], ids=["instant", "interval"])
def server(request: pytest.FixtureRequest) -> Iterator[ServerProcess]:
    """A server for this module, once with each way to close ledgers."""
    with serving(*request.param) as started:
        yield started
        assert started.complaints() == ""


def arguments(owner: Keypair, *content: bytes) -> list[xdr.SCVal]:
    return [scval.to_address(owner.public_key), *map(scval.to_bytes, content)]


def call(account: Account, passphrase: str, contract_id: str, values: list[xdr.SCVal]) -> TransactionEnvelope:
    builder = TransactionBuilder(account, passphrase, 100).set_timeout(300)
    return builder.append_invoke_contract_function_op(contract_id, "set_anchor", values).build()


def at_once(_attempt: int) -> int:
    """How long to wait between two polls."""
    return 0


def check_anchor(found: Any, version: int) -> None:
    assert isinstance(found, dict)
    assert (found["root"], found["uri"], found["acl"], found["version"]) == (*CONTENT, version)


def check_events(events: list[EventInfo], owner: Keypair) -> None:
    """One for each anchor, in order, about this owner."""
    assert [event.id for event in events] == sorted({event.id for event in events})
    assert len(events) == 2
    for event in events:
        assert event.event_type == "contract"
        topics = [scval.to_native(topic) for topic in event.topic]
        assert owner.public_key in [getattr(topic, "address", None) for topic in topics]


def test_the_synchronous_client(server: ServerProcess) -> None:
    owner = Keypair.random()
    http = RequestsClient()
    with SorobanServer(server.url, http) as rpc:
        assert rpc.get_health().status == "healthy"
        network = rpc.get_network()
        assert network.friendbot_url == f"{server.origin}/friendbot"
        start = rpc.get_latest_ledger().sequence
        funded = http.get(network.friendbot_url, {"addr": owner.public_key})
        assert funded.status_code == 200
        assert rpc.get_transaction(funded.json()["hash"]).status is GetTransactionStatus.SUCCESS
        assert http.get(network.friendbot_url, {"addr": owner.public_key}).status_code == 400

        wasm_hash = ContractClient.upload_contract_wasm(memory_anchor_wasm(), owner.public_key, owner, rpc)
        contract_id = ContractClient.create_contract(wasm_hash, owner.public_key, owner, rpc)
        assert rpc.get_contract_wasm(contract_id) == memory_anchor_wasm()
        assert rpc.get_contract_spec(contract_id)

        with ContractClient(contract_id, server.url, network.passphrase) as contract:
            with pytest.raises(SimulationFailedError, match=r"Error\(Contract, #1\)"):
                contract.invoke("get_anchor", arguments(owner))
            made = contract.invoke("set_anchor", arguments(owner, *CONTENT), owner.public_key, owner)
            assert scval.to_native(made.sign_and_submit()) == 1
            read = contract.invoke("get_anchor", arguments(owner), parse_result_xdr_fn=scval.to_native)
            check_anchor(read.result(), 1)

        account = rpc.load_account(owner.public_key)
        prepared = rpc.prepare_transaction(
            call(account, network.passphrase, contract_id, arguments(owner, *CONTENT))
        )
        prepared.sign(owner)
        sent = rpc.send_transaction(prepared)
        assert sent.status is SendTransactionStatus.PENDING
        found = rpc.poll_transaction(sent.hash, 100_000, at_once)
        assert (found.status, found.transaction_hash) == (GetTransactionStatus.SUCCESS, prepared.hash_hex())
        assert rpc.load_account(owner.public_key).sequence == account.sequence

        filters = [EventFilter(type=EventFilterType.CONTRACT, contractIds=[contract_id])]
        check_events(rpc.get_events(start_ledger=start, filters=filters).events, owner)
        assert rpc.get_transactions(start_ledger=start).transactions
        assert rpc.get_ledgers(start_ledger=start, limit=2).ledgers[0].sequence == start
        assert rpc.get_fee_stats().latest_ledger >= start
        assert rpc.get_version_info().protocol_version == 28
        assert rpc.load_account(NULL_ACCOUNT).account.account_id == NULL_ACCOUNT
        with pytest.raises(SorobanRpcErrorResponse) as caught:
            rpc.get_events(start_ledger=10**9)
        assert caught.value.code == -32600


async def test_the_asynchronous_client(server: ServerProcess) -> None:
    owner = Keypair.random()
    http = AiohttpClient()
    async with SorobanServerAsync(server.url, http) as rpc:
        assert (await rpc.get_health()).status == "healthy"
        network = await rpc.get_network()
        assert network.friendbot_url == f"{server.origin}/friendbot"
        start = (await rpc.get_latest_ledger()).sequence
        funded = await http.get(network.friendbot_url, {"addr": owner.public_key})
        assert funded.status_code == 200
        assert (await rpc.get_transaction(funded.json()["hash"])).status is GetTransactionStatus.SUCCESS

        wasm_hash = await ContractClientAsync.upload_contract_wasm(
            memory_anchor_wasm(), owner.public_key, owner, rpc
        )
        contract_id = await ContractClientAsync.create_contract(wasm_hash, owner.public_key, owner, rpc)

        contract = ContractClientAsync(contract_id, server.url, network.passphrase, http)
        with pytest.raises(SimulationFailedError, match=r"Error\(Contract, #1\)"):
            await contract.invoke("get_anchor", arguments(owner))
        made: AssembledTransactionAsync[xdr.SCVal] = await contract.invoke(
            "set_anchor", arguments(owner, *CONTENT), owner.public_key, owner
        )
        assert scval.to_native(await made.sign_and_submit()) == 1
        read = await contract.invoke("get_anchor", arguments(owner), parse_result_xdr_fn=scval.to_native)
        check_anchor(read.result(), 1)

        account = await rpc.load_account(owner.public_key)
        prepared = await rpc.prepare_transaction(
            call(account, network.passphrase, contract_id, arguments(owner, *CONTENT))
        )
        prepared.sign(owner)
        sent = await rpc.send_transaction(prepared)
        assert sent.status is SendTransactionStatus.PENDING
        found = await rpc.poll_transaction(sent.hash, 100_000, at_once)
        assert (found.status, found.transaction_hash) == (GetTransactionStatus.SUCCESS, prepared.hash_hex())

        filters = [EventFilter(type=EventFilterType.CONTRACT, contractIds=[contract_id])]
        check_events((await rpc.get_events(start_ledger=start, filters=filters)).events, owner)
        with pytest.raises(SorobanRpcErrorResponse) as caught:
            await rpc.get_events(start_ledger=10**9)
        assert caught.value.code == -32600


async def test_many_clients_at_once(server: ServerProcess) -> None:
    """Each with an account of its own, all on one contract: everybody's anchors are made."""
    deployer = Keypair.random()
    assert server.fund(deployer.public_key).status == 200
    async with SorobanServerAsync(server.url, AiohttpClient()) as rpc:
        passphrase = (await rpc.get_network()).passphrase
        wasm_hash = await ContractClientAsync.upload_contract_wasm(
            memory_anchor_wasm(), deployer.public_key, deployer, rpc
        )
        contract_id = await ContractClientAsync.create_contract(wasm_hash, deployer.public_key, deployer, rpc)

    async def anchor(number: int) -> list[Any]:
        owner = Keypair.random()
        root = sha256(b"%d" % number).digest()
        async with AiohttpClient() as http:
            funded = await http.get(f"{server.origin}/friendbot", {"addr": owner.public_key})
            assert funded.status_code == 200
            contract = ContractClientAsync(contract_id, server.url, passphrase, http)
            for _ in range(2):
                made: AssembledTransactionAsync[xdr.SCVal] = await contract.invoke(
                    "set_anchor", arguments(owner, root, b"", b""), owner.public_key, owner
                )
                await made.sign_and_submit()
            read = await contract.invoke("get_anchor", arguments(owner), parse_result_xdr_fn=scval.to_native)
            found = read.result()
            assert isinstance(found, dict)
            return [found["root"] == root, found["version"]]

    assert await asyncio.gather(*map(anchor, range(CLIENTS))) == [[True, 2]] * CLIENTS
