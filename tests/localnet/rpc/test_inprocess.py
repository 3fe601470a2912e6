"""Unmodified clients of `stellar_sdk` on the in-process door."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
import stellar_sdk.exceptions
from stellar_sdk import Keypair, SorobanServer, scval
from stellar_sdk.contract import ContractClient, ContractClientAsync
from stellar_sdk.contract.exceptions import SimulationFailedError
from stellar_sdk.exceptions import SorobanRpcErrorResponse
from stellar_sdk.soroban_rpc import EventFilter, GetTransactionStatus, SendTransactionStatus
from stellar_sdk.soroban_server_async import SorobanServerAsync

from mycelium_localnet import IN_PROCESS_URL, AsyncInProcessClient, Chain, Dispatcher, InProcessClient, errors
from mycelium_localnet.rpc.context import IN_PROCESS_FRIENDBOT

if TYPE_CHECKING:
    from pathlib import Path

    from tests.localnet.rpc.conftest import Net, Probe

SOMEBODY = Keypair.from_raw_ed25519_seed(b"somebody".ljust(32, b"."))
HEALTH = b'{"jsonrpc": "2.0", "id": 1, "method": "getHealth"}'
NULL_ACCOUNT = "GAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAWHF"


def test_every_read_of_the_synchronous_server(probe: Probe) -> None:
    probe.invoke("emit", 1, 2, 3)
    server = probe.server
    assert server.get_health().status == "healthy"
    assert server.get_network().passphrase == probe.net.chain.passphrase
    assert server.get_version_info().protocol_version == 28
    latest = server.get_latest_ledger()
    assert latest.sequence == probe.net.result("getHealth")["latestLedger"]
    assert server.get_fee_stats().latest_ledger == latest.sequence
    assert len(server.get_transactions(start_ledger=2).transactions) == 4
    assert server.get_ledgers(start_ledger=2, limit=1).ledgers[0].sequence == 2
    filters = [EventFilter(contractIds=[probe.contract_id])]
    assert len(server.get_events(start_ledger=2, filters=filters).events) == 4
    assert server.load_account(NULL_ACCOUNT).account.account_id == NULL_ACCOUNT
    assert server.get_contract_wasm_by_hash(probe.wasm_hash)
    assert server.get_contract_spec(probe.contract_id)
    with pytest.raises(SorobanRpcErrorResponse) as caught:
        server.get_events(start_ledger=999)
    assert caught.value.code == -32600


def test_sending_and_polling(probe: Probe) -> None:
    prepared = probe.server.prepare_transaction(probe.build("put", scval.to_uint32(1), scval.to_uint64(2)))
    prepared.sign(probe.owner)
    sent = probe.server.send_transaction(prepared)
    assert sent.status == SendTransactionStatus.PENDING
    # The first poll must find it: with instant closing there is nothing to wait for.
    assert probe.server.get_transaction(sent.hash).status == GetTransactionStatus.SUCCESS
    assert probe.server.get_transaction("00" * 32).status == GetTransactionStatus.NOT_FOUND


def test_the_contract_client(probe: Probe) -> None:
    client, key = probe.client, scval.to_uint32(1)
    owner = probe.owner
    put = client.invoke(
        "put", [key, scval.to_uint64(9)], owner.public_key, owner, parse_result_xdr_fn=scval.from_uint64
    )
    assert put.sign_and_submit() == 9
    get = client.invoke("get", [key], parse_result_xdr_fn=scval.from_uint64)
    assert get.result() == 9
    with pytest.raises(SimulationFailedError, match=r"Error\(Contract, #7\)"):
        client.invoke("boom", [], owner.public_key, owner)
    with pytest.raises(SimulationFailedError, match=r"Error\(Contract, #1\)"):
        client.invoke("get", [scval.to_uint32(5)])


def test_the_contract_client_signs_for_others(probe: Probe) -> None:
    probe.net.chain.fund(SOMEBODY.public_key)
    call = probe.client.invoke(
        "guarded",
        [scval.to_address(SOMEBODY.public_key)],
        probe.owner.public_key,
        probe.owner,
        parse_result_xdr_fn=scval.from_uint32,
    )
    call.sign_auth_entries(SOMEBODY)
    call.prepare()
    assert call.sign_and_submit() == 1


def test_a_read_of_an_archived_entry_by_the_null_account(short_probe: Probe) -> None:
    short_probe.invoke("put", 1, 5)
    short_probe.net.chain.skip_ledgers(100)
    get = short_probe.client.invoke(
        "get", [scval.to_uint32(1)], restore=False, parse_result_xdr_fn=scval.from_uint64
    )
    assert get.result() == 5


def test_a_write_restores_what_it_touches(short_probe: Probe) -> None:
    short_probe.invoke("put", 1, 5)
    short_probe.net.chain.skip_ledgers(100)
    short_probe.invoke("put", 1, 6)
    get = short_probe.client.invoke("get", [scval.to_uint32(1)], parse_result_xdr_fn=scval.from_uint64)
    assert get.result() == 6


async def test_the_asynchronous_server_and_contract_client(net: Net, probe_wasm: bytes) -> None:
    net.chain.fund(SOMEBODY.public_key)
    transport = AsyncInProcessClient(net.chain)
    async with SorobanServerAsync(IN_PROCESS_URL, transport) as server:
        wasm_hash = await ContractClientAsync.upload_contract_wasm(
            probe_wasm, SOMEBODY.public_key, SOMEBODY, server
        )
        contract_id = await ContractClientAsync.create_contract(
            wasm_hash, SOMEBODY.public_key, SOMEBODY, server
        )
        client = ContractClientAsync(contract_id, IN_PROCESS_URL, net.chain.passphrase, transport)
        arguments = [scval.to_uint32(1), scval.to_uint64(4)]
        put = await client.invoke(
            "put", arguments, SOMEBODY.public_key, SOMEBODY, parse_result_xdr_fn=scval.from_uint64
        )
        assert await put.sign_and_submit() == 4
        reads = [
            client.invoke("get", [scval.to_uint32(1)], parse_result_xdr_fn=scval.from_uint64)
            for _ in range(8)
        ]
        assert [call.result() for call in await asyncio.gather(*reads)] == [4] * 8
        assert (await server.get_health()).latest_ledger == net.result("getHealth")["latestLedger"]


async def test_several_accounts_write_at_once(probe: Probe) -> None:
    transport = AsyncInProcessClient(probe.net.chain)
    client = ContractClientAsync(probe.contract_id, IN_PROCESS_URL, probe.net.chain.passphrase, transport)
    accounts = [Keypair.from_raw_ed25519_seed(bytes([number]) * 32) for number in range(1, 6)]

    async def write(number: int, account: Keypair) -> int:
        paid = await transport.get(IN_PROCESS_FRIENDBOT, params={"addr": account.public_key})
        assert paid.status_code == 200
        arguments = [scval.to_uint32(number), scval.to_uint64(number)]
        put = await client.invoke(
            "put", arguments, account.public_key, account, parse_result_xdr_fn=scval.from_uint64
        )
        value = await put.sign_and_submit()
        assert isinstance(value, int)
        return value

    written = await asyncio.gather(*(write(number, account) for number, account in enumerate(accounts)))
    assert written == [0, 1, 2, 3, 4]
    page = probe.net.result("getTransactions", {"startLedger": 5})
    assert len({item["ledger"] for item in page["transactions"]}) == 10


def test_closing_a_server_leaves_the_chain_open(net: Net) -> None:
    with SorobanServer(IN_PROCESS_URL, InProcessClient(net.chain)) as server:
        server.get_health()
    net.result("getHealth")


@pytest.mark.parametrize(
    "url", ["http://localnet.invalid/rpc", "http://localnet.invalid/", "http://localnet.invalid"]
)
def test_the_paths_of_the_rpc(net: Net, url: str) -> None:
    client = InProcessClient(net.chain)
    answer = client.post(url, json_data={"jsonrpc": "2.0", "id": 1, "method": "getHealth"})
    assert (answer.status_code, answer.headers["Content-Type"]) == (200, "application/json")
    assert answer.json()["result"]["status"] == "healthy"
    assert client.get(url).status_code == 405
    assert client.post(url, json_data={"jsonrpc": "2.0", "method": "getHealth"}).status_code == 204


def test_other_paths_and_too_much(net: Net) -> None:
    client = InProcessClient(net.chain)
    assert client.get("http://localnet.invalid/accounts").status_code == 404
    assert client.post("http://localnet.invalid/transactions", data={"tx": "AAAA"}).status_code == 404
    huge = {"jsonrpc": "2.0", "id": 1, "method": "sendTransaction", "params": {"transaction": "A" * 524_288}}
    assert client.post(IN_PROCESS_URL, json_data=huge).status_code == 413
    with pytest.raises(NotImplementedError, match="getEvents"):
        client.stream(IN_PROCESS_URL)


def check_raised(chain: Chain, kind: type[errors.LocalnetError]) -> None:
    """Every way in raises this of a chain that cannot be used any more."""
    client = InProcessClient(chain)
    with pytest.raises(kind) as caught:
        SorobanServer(IN_PROCESS_URL, client).get_health()
    assert caught.value.hint
    with pytest.raises(kind):
        client.get(IN_PROCESS_FRIENDBOT, params={"addr": SOMEBODY.public_key})
    with pytest.raises(kind):
        asyncio.run(SorobanServerAsync(IN_PROCESS_URL, AsyncInProcessClient(chain)).get_health())


def test_a_closed_chain_is_said_to_be_closed() -> None:
    chain = Chain.open(":memory:")
    chain.close()
    check_raised(chain, errors.ChainClosedError)


def test_a_chain_file_that_was_taken_away_is_no_answer_but_an_exception(tmp_path: Path) -> None:
    with Chain.open(tmp_path / "chain.db") as chain:
        (tmp_path / "chain.db").rename(tmp_path / "away.db")
        check_raised(chain, errors.ChainReplacedError)
        # Over a wire there are only answers.
        answer = json.loads(Dispatcher(chain).handle(HEALTH) or b"")
    assert answer["error"]["code"] == -32603
    assert "open the file again" in answer["error"]["data"]


def test_a_full_disk_is_said_to_be_full_and_nothing_is_lost(net: Net) -> None:
    server = SorobanServer(IN_PROCESS_URL, InProcessClient(net.chain))
    connection = net.chain._storage._writer
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    connection.execute(f"PRAGMA max_page_count = {pages}")
    skip = {"jsonrpc": "2.0", "id": 1, "method": "localnet_skipLedgers", "params": {"count": 100_000}}
    before = server.get_health().latest_ledger
    with pytest.raises(errors.ChainFileError, match="full") as caught:
        InProcessClient(net.chain).post(IN_PROCESS_URL, json_data=skip)
    assert caught.value.hint == "make room on its disk"
    assert server.get_health().latest_ledger == before
    connection.execute("PRAGMA max_page_count = 1000000")
    assert InProcessClient(net.chain).post(IN_PROCESS_URL, json_data=skip).json()["result"]
    assert server.get_health().latest_ledger == before + 100_000


def test_a_busy_chain_is_an_answer() -> None:
    """It may pass, so it is for a client to ask again."""
    with Chain.open(":memory:") as chain, pytest.MonkeyPatch.context() as patch:

        def busy() -> None:
            raise errors.ChainBusyError("another process holds the chain")

        patch.setattr(chain, "read", busy)
        with pytest.raises(SorobanRpcErrorResponse) as caught:
            SorobanServer(IN_PROCESS_URL, InProcessClient(chain)).get_health()
    assert caught.value.code == -32603


def test_an_answer_may_be_limited_in_size(net: Net) -> None:
    client = InProcessClient(net.chain)
    with pytest.raises(stellar_sdk.exceptions.ContentSizeLimitExceededError):
        client.get(IN_PROCESS_FRIENDBOT, params={"addr": "nobody"}, max_content_size=10)
    assert (
        client.get(IN_PROCESS_FRIENDBOT, params={"addr": "nobody"}, max_content_size=1000).status_code == 400
    )


def test_the_friendbot_behind_both_clients(net: Net) -> None:
    client = InProcessClient(net.chain)
    url = SorobanServer(IN_PROCESS_URL, client).get_network().friendbot_url
    assert url is not None
    paid = client.get(url, params={"addr": SOMEBODY.public_key})
    assert (paid.status_code, len(paid.json()["hash"])) == (200, 64)
    again = client.post(f"{url}?addr={SOMEBODY.public_key}")
    assert again.status_code == 400
    assert "createAccountAlreadyExist" in again.json()["detail"]
    other = Keypair.from_raw_ed25519_seed(b"other".ljust(32, b"."))
    assert client.post(url, data={"addr": other.public_key}).status_code == 200
    asynchronous = AsyncInProcessClient(net.chain)
    assert asyncio.run(asynchronous.get(f"{url}?addr={other.public_key}")).status_code == 400


def test_two_clients_of_one_chain_see_each_other(probe: Probe) -> None:
    other = ContractClient(
        probe.contract_id, IN_PROCESS_URL, probe.net.chain.passphrase, InProcessClient(probe.net.chain)
    )
    probe.invoke("put", 1, 3)
    assert other.invoke("get", [scval.to_uint32(1)], parse_result_xdr_fn=scval.from_uint64).result() == 3


def test_the_package_alone_loads_nothing_heavy() -> None:
    program = (
        "import json, sys, mycelium_localnet; mycelium_localnet.errors;"
        "heavy = {'stellar_sdk', 'mycelium_localnet._native'};"
        "print(json.dumps(sorted(heavy & set(sys.modules))))"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, text=True)
    assert json.loads(found.stdout) == []


def test_the_door_loads_no_http_server() -> None:
    program = (
        "import json, sys; from mycelium_localnet import InProcessClient;"
        "print(json.dumps(sorted({'starlette', 'uvicorn', 'http.server'} & set(sys.modules))))"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, text=True)
    assert json.loads(found.stdout) == []


def test_a_chain_opened_twice_is_one_chain(tmp_path: object) -> None:
    path = f"{tmp_path}/chain.sqlite"
    with Chain.open(path, seed=b"x") as one, Chain.open(path) as other:
        one.fund(SOMEBODY.public_key)
        server = SorobanServer(IN_PROCESS_URL, InProcessClient(other))
        assert server.load_account(SOMEBODY.public_key).sequence == 2 << 32
