"""A chain with something to lose, and its in-process door spoken to in plain JSON-RPC."""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pytest
from stellar_sdk import scval

from mycelium_localnet import IN_PROCESS_URL, Chain, InProcessClient
from tests.localnet.ledger.conftest import PROBE
from tests.localnet.ledger.lab import Lab

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stellar_sdk import TransactionEnvelope
    from stellar_sdk.client.response import Response

FRIENDBOT_URL = "http://localnet.invalid/friendbot"


@dataclass
class Door:
    """A client of the chain. `slept`: the seconds that it waited."""

    lab: Lab
    slept: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.client = InProcessClient(self.lab.chain, sleep=self.slept.append)

    @property
    def chain(self) -> Chain:
        return self.lab.chain

    def post(self, method: str, params: dict[str, Any] | None = None) -> Response:
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        return self.client.post(IN_PROCESS_URL, json_data=body)

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """The result of a call that works."""
        response = self.post(method, params)
        assert response.status_code == 200
        answer = response.json()
        assert "error" not in answer, answer
        result: dict[str, Any] = answer["result"]
        return result

    def send(self, envelope: TransactionEnvelope) -> str:
        """The status that sendTransaction gives."""
        answer = self.ask("sendTransaction", transaction=envelope.to_xdr())
        assert answer["hash"] == envelope.hash_hex()
        latest = self.lab.latest()
        assert answer["latestLedger"] == latest.sequence
        assert answer["latestLedgerCloseTime"] == str(latest.close_time)
        status: str = answer["status"]
        return status

    def status(self, envelope: TransactionEnvelope) -> str:
        """The status that getTransaction gives."""
        found: str = self.ask("getTransaction", hash=envelope.hash_hex())["status"]
        return found

    def applied(self, envelope: TransactionEnvelope) -> bool:
        """Whether a ledger holds the transaction, whatever the door says."""
        with self.chain.read() as view:
            return view.transaction(envelope.hash()) is not None


@pytest.fixture(scope="session")
def wasm() -> bytes:
    # Imported by name: the compiler has no types.
    compiled: bytes = import_module("pysoroban").compile_source(PROBE).wasm
    return compiled


@pytest.fixture
def door(wasm: bytes) -> Iterator[Door]:
    """The contract deployed by alice, and 32 bytes of hers stored in each of two ledgers."""
    with Chain.open(":memory:", seed=b"faults", clock="frozen", profile="short-ttl") as chain:
        lab = Lab(chain, wasm)
        alice = lab.account("alice")
        lab.deploy(alice)
        for value in (b"\x01" * 32, b"\x02" * 32):
            lab.invoke(alice, "put_bytes", scval.to_uint32(1), scval.to_bytes(value))
        yield Door(lab)
