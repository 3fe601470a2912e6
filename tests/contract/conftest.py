"""The contract on the network's own host: a chain in memory, the contract on it, and people with keys."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import pytest
from stellar_sdk import Account, Keypair, SorobanServer, TransactionBuilder, TransactionEnvelope, scval, xdr

from mycelium_localnet import IN_PROCESS_URL, Chain, InProcessClient
from mycelium_sdk.chain import operations
from mycelium_sdk.chain.anchor_client import MemoryAnchorClient
from mycelium_sdk.chain.deployment import ensure_local_contract
from mycelium_sdk.chain.embedded import EmbeddedChain
from mycelium_sdk.networks import STANDALONE_PASSPHRASE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from mycelium_localnet.profiles import ProfileName

OWNER = Keypair.from_raw_ed25519_seed(b"owner of a memory in these tests")
OTHER = Keypair.from_raw_ed25519_seed(b"somebody else within these tests")


@dataclasses.dataclass
class Host:
    """A chain with the contract on it."""

    chain: EmbeddedChain
    client: MemoryAnchorClient
    owner: Keypair = OWNER
    other: Keypair = OTHER

    def __post_init__(self) -> None:
        self.server = SorobanServer(IN_PROCESS_URL, InProcessClient(self.chain.localnet))

    def call(self, function: str, *arguments: xdr.SCVal) -> xdr.SCVal | None:
        """Call past the client's own checks, as the owner."""
        work = operations.invoke(self.client.contract_id, function, arguments)
        return self.chain.submit(work, self.owner).value

    def arguments(
        self, root: bytes = bytes(31) + b"\x01", uri: bytes = b"", acl: bytes = b""
    ) -> list[xdr.SCVal]:
        """What `set_anchor` takes, for the owner."""
        return [scval.to_address(self.owner.public_key), *map(scval.to_bytes, (root, uri, acl))]

    def entry_key(self, owner: str) -> xdr.LedgerKey:
        return operations.data_key(self.client.contract_id, scval.to_address(owner))

    def prepared(self, function: str, arguments: Sequence[xdr.SCVal], source: Keypair) -> TransactionEnvelope:
        """A simulated transaction, unsigned, with whatever authorisation the host recorded."""
        sequence = self.server.load_account(source.public_key).sequence
        builder = (
            TransactionBuilder(Account(source.public_key, sequence), STANDALONE_PASSPHRASE, base_fee=100)
            .append_invoke_contract_function_op(self.client.contract_id, function, arguments)
            .set_timeout(300)
        )
        return self.server.prepare_transaction(builder.build())

    def send(self, envelope: TransactionEnvelope) -> str:
        """Hand in; the status of sendTransaction."""
        return self.server.send_transaction(envelope).status.value

    def skip(self, ledgers: int) -> None:
        self.chain.localnet.skip_ledgers(ledgers)


@pytest.fixture
def make_host() -> Iterator[Callable[[ProfileName], Host]]:
    made: list[EmbeddedChain] = []

    def make(profile: ProfileName) -> Host:
        localnet = Chain.open(":memory:", profile=profile, seed=b"contract tests")
        chain = EmbeddedChain(localnet, STANDALONE_PASSPHRASE)
        made.append(chain)
        contract_id = ensure_local_contract(chain, None)
        for person in (OWNER, OTHER):
            chain.fund(person.public_key)
        return Host(chain, MemoryAnchorClient(chain, contract_id))

    yield make
    for chain in made:
        chain.close()


@pytest.fixture
def host(make_host: Callable[[ProfileName], Host]) -> Host:
    return make_host("testnet")
