"""A memory with anchors on an embedded chain, an index of them, and its API on a real server."""

from __future__ import annotations

import contextlib
import json
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest

from mycelium_indexer.api.settings import ApiSettings
from mycelium_indexer.ingest import Ingester
from mycelium_indexer.store import open_store
from mycelium_localnet import Chain
from mycelium_sdk.chain.history import PastAnchor, latest_of
from mycelium_sdk.chain.indexer import IndexerClient
from mycelium_sdk.config import load_configuration
from mycelium_sdk.context import AgentContext
from mycelium_sdk.memory import AgentMemory
from mycelium_sdk.networks import STANDALONE_PASSPHRASE
from mycelium_sdk.retry import Pace, RetryPolicy
from mycelium_sdk.wallet import Wallet
from tests.canaries import PASSPHRASE
from tests.indexer.api.ground import Api, serving

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from mycelium_indexer.store.base import IndexStore
    from mycelium_sdk.chain.anchor_client import MemoryAnchorClient

    Change = Callable[[str, Any], object]

VERSIONS = 5


@dataclass
class Ground:
    """One wallet, one chain file, one index; machines by name."""

    folder: Path
    wallet: Wallet
    store: IndexStore
    opened: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)
    url: str | None = None
    """The indexer that machines are configured with."""

    @property
    def owner(self) -> str:
        return self.wallet.address

    @property
    def chain_file(self) -> Path:
        return self.folder / "chain.db"

    def context(self, machine: str = "here") -> AgentContext:
        overrides: dict[str, object] = {
            "onchain.chain_file": str(self.chain_file),
            "wallet.path": str(self.wallet.path),
        }
        configuration = load_configuration(
            start=self.folder,
            env={"MYCELIUM_HOME": str(self.folder / machine)},
            overrides=overrides if self.url is None else {**overrides, "indexer.url": self.url},
        )
        return self.opened.enter_context(AgentContext(configuration=configuration, passphrase=PASSPHRASE))

    def memory(self, machine: str = "here") -> AgentMemory:
        return self.opened.enter_context(contextlib.closing(AgentMemory(self.context(machine))))

    def anchor(self, memory: AgentMemory, *texts: str) -> None:
        """A version for each text."""
        for text in texts:
            memory.remember(text)
            memory.anchor()

    def contract(self) -> MemoryAnchorClient:
        """The contract as the chain has it, without an indexer."""
        return self.context().anchor_client()

    def latest(self) -> PastAnchor:
        return latest_of(self.contract(), self.owner)

    def follow(self) -> None:
        """Take everything in that the chain has."""
        ingester = Ingester(self.contract(), self.store)
        while ingester.poll_once():
            pass

    def serve(self) -> str:
        """The API over the index, and where it is."""
        settings = ApiSettings(STANDALONE_PASSPHRASE, self.contract().contract_id, standing_seconds=0.0)
        return f"http://127.0.0.1:{self.opened.enter_context(serving(self.store, settings)).port}"

    def skip(self, ledgers: int) -> None:
        with contextlib.closing(Chain.open(self.chain_file)) as chain:
            chain.skip_ledgers(ledgers)

    def clear_faults(self) -> None:
        with contextlib.closing(Chain.open(self.chain_file)) as chain:
            chain.clear_faults()

    def fault(self, kind: Any, **arguments: Any) -> None:
        with contextlib.closing(Chain.open(self.chain_file)) as chain:
            chain.fault(kind, count=1000, **arguments)

    def client(self, url: str, **arguments: Any) -> IndexerClient:
        contract = self.contract().contract_id
        return self.opened.enter_context(
            IndexerClient(url, STANDALONE_PASSPHRASE, contract, **{"retries": at_once(), **arguments})
        )

    def mirror(self, honest: str, change: Change) -> str:
        """A server that gives what the honest one gives, changed, and where it is."""
        return self.opened.enter_context(mirroring(honest, change))


def at_once(attempts: int = 1, waits: list[float] | None = None) -> RetryPolicy:
    """Tries so often, without waiting; what it would have waited is noted."""
    noted = [] if waits is None else waits
    return RetryPolicy(attempts=attempts, pace=Pace(sleep=noted.append, chance=lambda: 0.0))


@contextlib.contextmanager
def mirroring(honest: str, change: Change) -> Iterator[str]:
    """`change` is given path and document, and gives another document, bytes, or a status with either."""
    api = Api(int(honest.rpartition(":")[2]))

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answer = api.get(self.path)
            given = change(self.path.partition("?")[0], answer.json)
            status, given = given if isinstance(given, tuple) else (answer.status, given)
            body = given if isinstance(given, bytes) else json.dumps(given).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture(scope="session")
def wallet(tmp_path_factory: pytest.TempPathFactory) -> Wallet:
    return Wallet.create(tmp_path_factory.mktemp("wallet") / "private" / "wallet.json", PASSPHRASE)


@contextlib.contextmanager
def standing(folder: Path, wallet: Wallet) -> Iterator[Ground]:
    with contextlib.closing(open_store(str(folder / "index.db"))) as store:
        ground = Ground(folder, wallet, store)
        with ground.opened:
            yield ground


@pytest.fixture
def ground(tmp_path: Path, wallet: Wallet) -> Iterator[Ground]:
    """Nothing is anchored yet."""
    with standing(tmp_path, wallet) as made:
        yield made


@pytest.fixture(scope="module")
def anchored(tmp_path_factory: pytest.TempPathFactory, wallet: Wallet) -> Iterator[Ground]:
    """`VERSIONS` versions, all of them in the index. For tests that anchor nothing."""
    with standing(tmp_path_factory.mktemp("ground"), wallet) as made:
        made.anchor(made.memory(), *(f"memory {number}" for number in range(1, VERSIONS + 1)))
        made.follow()
        yield made


@pytest.fixture(scope="module")
def honest(anchored: Ground) -> str:
    """Where the API over that index is."""
    return anchored.serve()
