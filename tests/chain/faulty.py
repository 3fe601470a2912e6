"""A network in trouble: the embedded chain with its own faults, or behind the transport that has the same."""

from __future__ import annotations

import contextlib
import dataclasses
import time
from typing import TYPE_CHECKING

from stellar_sdk import Keypair

from mycelium_localnet import IN_PROCESS_URL, Chain, InProcessClient
from mycelium_sdk.chain.anchor_client import MemoryAnchorClient
from mycelium_sdk.chain.deployment import ensure_local_contract
from mycelium_sdk.chain.rpc import RpcChain
from mycelium_sdk.retry import Pace, RetryPolicy
from mycelium_sdk.testing.faults import FaultyClient

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stellar_sdk.client.base_sync_client import BaseSyncClient

SIGNER = Keypair.from_raw_ed25519_seed(bytes(range(32)))
OWNER = SIGNER.public_key


def root(number: int) -> bytes:
    return number.to_bytes(32, "big")


@dataclasses.dataclass
class Scene:
    """A network in trouble, an anchor client on it, and the truth."""

    localnet: Chain
    trouble: Chain | FaultyClient
    client: BaseSyncClient
    slept: list[float]
    hashes: list[str] = dataclasses.field(default_factory=list)

    def __post_init__(self) -> None:
        waited = 0.0

        def sleep(seconds: float) -> None:
            nonlocal waited
            waited += seconds

        pace = Pace(now=time.time, monotonic=lambda: waited, sleep=sleep, chance=lambda: 0.0)
        self.chain = RpcChain(
            IN_PROCESS_URL, self.localnet.passphrase, client=self.client, policy=RetryPolicy(pace=pace)
        )
        self.anchors = MemoryAnchorClient(self.chain, ensure_local_contract(self.chain, None))
        self.chain.fund(OWNER)
        self.anchors.set_anchor(SIGNER, root(1))
        self.honest = MemoryAnchorClient(
            RpcChain(IN_PROCESS_URL, self.localnet.passphrase, client=InProcessClient(self.localnet)),
            self.anchors.contract_id,
        )

    def anchor(self, number: int) -> int:
        """Anchor, remembering every transaction that may be sent. Returns the version."""
        receipt = self.anchors.set_anchor(
            SIGNER, root(number), before_send=lambda signed: self.hashes.append(signed.hash)
        )
        return receipt.version

    def applied(self) -> list[str]:
        """The signer's transactions that took place."""
        with self.localnet.read() as view:
            rows = view.transactions((0, 0), 100_000)
        return [row.hash.hex() for row in rows if row.source == OWNER and row.successful]

    def version(self) -> int:
        """The true one."""
        with self.untroubled():
            return self.honest.get_version(OWNER)

    @contextlib.contextmanager
    def untroubled(self) -> Iterator[None]:
        """Without the faults of the chain, which would hit any client."""
        if self.trouble is self.localnet:
            self.localnet.clear_faults()
        yield


@contextlib.contextmanager
def open_scene(where: str) -> Iterator[Scene]:
    """`where`: "chain" or "transport"."""
    slept: list[float] = []
    with Chain.open(":memory:") as localnet:
        localnet.freeze_time()  # so that answers do not differ by a second
        inner = InProcessClient(localnet, sleep=slept.append)
        if where == "chain":
            yield Scene(localnet, localnet, inner, slept)
        else:
            faulty = FaultyClient(inner, sleep=slept.append)
            yield Scene(localnet, faulty, faulty, slept)
