"""A chain with a small contract on it, and ways to ask it questions through the JSON-RPC door."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from importlib import import_module
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest
from stellar_sdk import Address, Keypair, SorobanServer, TransactionBuilder, scval
from stellar_sdk import xdr as stellar_xdr
from stellar_sdk.contract import ContractClient

from mycelium_localnet import IN_PROCESS_URL, Chain, Dispatcher, InProcessClient

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from stellar_sdk import TransactionEnvelope

PROBE = """
from pysoroban import Address, Symbol, Topic, contract, error, event, events, fail, public, storage, u32, u64


@error
class ProbeError:
    MISSING = 1
    BOOM = 7


@event
class One:
    first: Topic[u32]
    value: u64


@event
class Two:
    first: Topic[u32]
    second: Topic[u32]
    value: u64


@event
class Three:
    first: Topic[u32]
    second: Topic[u32]
    third: Topic[u32]
    value: u64


@contract
class Probe:
    @public
    def put(self, key: u32, value: u64) -> u64:
        storage.persistent.set(key, value)
        return value

    @public
    def get(self, key: u32) -> u64:
        if not storage.persistent.has(key):
            fail(ProbeError.MISSING)
        return storage.persistent.get(key, u64)

    @public
    def drop(self, key: u32) -> u32:
        storage.persistent.remove(key)
        return key

    @public
    def put_temporary(self, key: u32, value: u64) -> u64:
        storage.temporary.set(key, value)
        return value

    @public
    def guarded(self, owner: Address) -> u32:
        owner.require_auth()
        return u32(1)

    @public
    def boom(self) -> u32:
        fail(ProbeError.BOOM)

    @public
    def emit(self, first: u32, second: u32, third: u32) -> u32:
        events.publish(Symbol("zero"), u64(0))
        events.publish(One(first, u64(1)))
        events.publish(Two(first, second, u64(2)))
        events.publish(Three(first, second, third, u64(3)))
        return first
"""

FRIENDBOT_URL = "http://node.invalid/friendbot"


@dataclass
class Net:
    """A chain, and its door spoken to in plain JSON-RPC."""

    chain: Chain
    dispatcher: Dispatcher
    ids: Iterator[int] = field(default_factory=lambda: count(1))

    def call(self, method: str, params: object = None) -> dict[str, Any]:
        """The whole answer, after the checks that hold for every answer."""
        number = next(self.ids)
        body = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        raw = self.dispatcher.handle(json.dumps(body).encode())
        assert raw is not None
        answer: dict[str, Any] = json.loads(raw)
        assert answer["jsonrpc"] == "2.0"
        assert answer["id"] == number
        assert set(answer) == {"jsonrpc", "id", "error" if "error" in answer else "result"}
        return answer

    def result(self, method: str, params: object = None) -> dict[str, Any]:
        answer = self.call(method, params)
        assert "error" not in answer, answer
        result: dict[str, Any] = answer["result"]
        return result

    def error(self, method: str, params: object = None) -> tuple[int, str]:
        """Code and message."""
        answer = self.call(method, params)
        assert "result" not in answer, answer
        error = answer["error"]
        assert set(error) <= {"code", "message", "data"}
        assert isinstance(error.get("data", ""), str)
        return error["code"], error["message"]


@dataclass
class Probe:
    """The test contract on a chain, and an account that can pay."""

    net: Net
    server: SorobanServer
    owner: Keypair
    contract_id: str
    wasm_hash: bytes

    @property
    def client(self) -> ContractClient:
        return ContractClient(
            self.contract_id, IN_PROCESS_URL, self.net.chain.passphrase, InProcessClient(self.net.chain)
        )

    def build(
        self, function: str, *arguments: stellar_xdr.SCVal, source: Keypair | None = None
    ) -> TransactionEnvelope:
        """An unsigned, not yet simulated invocation."""
        keypair = source or self.owner
        return (
            TransactionBuilder(self.server.load_account(keypair.public_key), self.net.chain.passphrase, 100)
            .append_invoke_contract_function_op(self.contract_id, function, arguments)
            .set_timeout(300)
            .build()
        )

    def build_ttl(self, extend_to: int | None, keys: list[str]) -> TransactionEnvelope:
        """An extension of keys (base64), or without `extend_to` a restoration of them."""
        decoded = [stellar_xdr.LedgerKey.from_xdr(key) for key in keys]
        footprint = (
            stellar_xdr.LedgerFootprint(decoded, [])
            if extend_to
            else stellar_xdr.LedgerFootprint([], decoded)
        )
        zero = stellar_xdr.Uint32(0)
        data = stellar_xdr.SorobanTransactionData(
            stellar_xdr.SorobanTransactionDataExt(0),
            stellar_xdr.SorobanResources(footprint, zero, zero, zero),
            stellar_xdr.Int64(0),
        )
        account = self.server.load_account(self.owner.public_key)
        builder = TransactionBuilder(account, self.net.chain.passphrase, 100).set_timeout(300)
        if extend_to:
            builder.append_extend_footprint_ttl_op(extend_to)
        else:
            builder.append_restore_footprint_op()
        return builder.set_soroban_data(data).build()

    def invoke(self, function: str, *arguments: int) -> str:
        """Simulate, sign, send: the hash of an applied and successful transaction. Arguments are u32, a
        last one of `put` and `put_temporary` u64."""
        values = [scval.to_uint32(argument) for argument in arguments]
        if function.startswith("put"):
            values[-1] = scval.to_uint64(arguments[-1])
        return self.submit(self.build(function, *values))

    def submit(self, transaction: TransactionEnvelope) -> str:
        """Simulate, sign, send: the hash of an applied and successful transaction."""
        prepared = self.server.prepare_transaction(transaction)
        prepared.sign(self.owner)
        answer = self.net.result("sendTransaction", {"transaction": prepared.to_xdr()})
        assert answer["status"] == "PENDING", answer
        transaction_hash: str = answer["hash"]
        assert self.net.result("getTransaction", {"hash": transaction_hash})["status"] == "SUCCESS"
        return transaction_hash

    def entry_key(
        self,
        key: int,
        durability: stellar_xdr.ContractDataDurability = stellar_xdr.ContractDataDurability.PERSISTENT,
    ) -> str:
        """The LedgerKey of an entry of `put`, as base64."""
        return stellar_xdr.LedgerKey(
            stellar_xdr.LedgerEntryType.CONTRACT_DATA,
            contract_data=stellar_xdr.LedgerKeyContractData(
                Address(self.contract_id).to_xdr_sc_address(),
                scval.to_uint32(key),
                durability,
            ),
        ).to_xdr()


@pytest.fixture(scope="session")
def probe_wasm() -> bytes:
    # Imported by name: the compiler has no types.
    wasm: bytes = import_module("pysoroban").compile_source(PROBE).wasm
    return wasm


def _net(chain: Chain) -> Net:
    return Net(chain, Dispatcher(chain, friendbot_url=FRIENDBOT_URL))


@pytest.fixture(scope="session")
def make_probe(probe_wasm: bytes) -> Callable[[Chain], Probe]:
    """Deploys the test contract on a chain: ledgers 2 to 4 hold the funding, the upload and the creation."""

    def make(chain: Chain) -> Probe:
        server = SorobanServer(IN_PROCESS_URL, InProcessClient(chain))
        owner = Keypair.from_raw_ed25519_seed(b"owner".ljust(32, b"."))
        chain.fund(owner.public_key)
        wasm_hash = ContractClient.upload_contract_wasm(probe_wasm, owner.public_key, owner, server)
        contract_id = ContractClient.create_contract(
            wasm_hash, owner.public_key, owner, server, salt=bytes(32)
        )
        return Probe(_net(chain), server, owner, contract_id, wasm_hash)

    return make


@pytest.fixture
def net() -> Iterator[Net]:
    """A new testnet-like chain with nothing on it."""
    with Chain.open(":memory:", seed=b"rpc") as chain:
        yield _net(chain)


@pytest.fixture
def probe(net: Net, make_probe: Callable[[Chain], Probe]) -> Probe:
    """The test contract on a new testnet-like chain."""
    return make_probe(net.chain)


@pytest.fixture
def short_probe(make_probe: Callable[[Chain], Probe]) -> Iterator[Probe]:
    """The test contract on a chain whose entries expire soon."""
    with Chain.open(":memory:", seed=b"rpc", profile="short-ttl") as chain:
        yield make_probe(chain)
