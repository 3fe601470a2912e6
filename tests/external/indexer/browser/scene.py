"""Agents that anchor on the embedded chain, an index that follows them, and the page over it."""

from __future__ import annotations

import hashlib
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mycelium_indexer.api.settings import ApiSettings
from mycelium_indexer.ingest import Ingester
from mycelium_indexer.store import open_store
from mycelium_indexer.values import Batch, IndexedAnchor, Progress
from mycelium_sdk.chain.anchors import Anchor, previous_of, previous_of_first
from mycelium_sdk.wallet import Wallet
from tests.indexer.api.ground import CONTRACT, NETWORK, serving
from tests.memory.conftest import PASSPHRASE, World

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from mycelium_indexer.store.base import IndexStore
    from mycelium_sdk.memory import AgentMemory

__all__ = ["Agent", "Scene", "Site", "made_up_site", "play", "site_of"]


@dataclass
class Site:
    """The page: where it is, and the store behind it."""

    port: int
    store: IndexStore

    @property
    def origin(self) -> str:
        return f"http://localhost:{self.port}"

    @property
    def ledger(self) -> int:
        """Up to where its one contract was followed."""
        (source,) = self.store.sources()
        progress = self.store.progress(source)
        assert progress is not None
        return progress.ledger


@dataclass
class Agent:
    """One who remembers and anchors; `blobs` are what was published, the oldest first."""

    memory: AgentMemory
    blobs: list[bytes] = field(default_factory=list)

    @property
    def address(self) -> str:
        return self.memory.context.address

    def anchor(self, text: str) -> bytes:
        """Remember one more thing and anchor everything."""
        self.memory.remember(text)
        self.memory.anchor(publish=self._publish)
        return self.blobs[-1]

    def anchor_raw(self, uri: bytes, acl: bytes = b"") -> None:
        """An anchor of whatever one likes, by the contract's own function."""
        context = self.memory.context
        root = hashlib.sha256(uri).digest()
        context.anchor_client().set_anchor(context.keypair(), root, uri, acl)

    def _publish(self, blob: bytes) -> str:
        self.blobs.append(blob)
        return f"https://blobs.example.org/{hashlib.sha256(blob).hexdigest()}.json"


@dataclass
class Scene:
    """Two agents, the page, and the ingester between them, which looks when it is told to."""

    alice: Agent
    bob: Agent
    site: Site
    ingester: Ingester

    def follow(self) -> None:
        """Take in all there is."""
        while self.ingester.poll_once():
            pass


@contextmanager
def site_of(store: IndexStore) -> Iterator[Site]:
    """The page over a store with one contract in it."""
    with serving(store, ApiSettings(access_log=False, standing_seconds=0.0)) as api:
        yield Site(api.port, store)


@contextmanager
def play(folder: Path) -> Iterator[Scene]:
    """Alice has anchored three versions, Bob two; everything is indexed."""
    with ExitStack() as stack:
        agents = []
        for name in ("alice", "bob"):
            wallet = Wallet.create(folder / name / "wallet" / "wallet.json", PASSPHRASE)
            world = World(folder, wallet)
            stack.callback(world.close)
            agents.append(Agent(world.machine(name)))
        alice, bob = agents
        for number in range(3):
            alice.anchor(f"what alice learned, {number}")
        for number in range(2):
            bob.anchor(f"what bob learned, {number}")
        store = open_store(str(folder / "index.db"))
        stack.callback(store.close)
        ingester = Ingester(alice.memory.context.anchor_client(), store)
        scene = Scene(alice, bob, stack.enter_context(site_of(store)), ingester)
        scene.follow()
        yield scene


@contextmanager
def made_up_site(
    folder: Path, owner: str, roots: Sequence[bytes], *, missing: Sequence[int] = ()
) -> Iterator[Site]:
    """The page over one owner's anchors with these roots, one an hour, without the `missing` versions."""
    anchors: list[IndexedAnchor] = []
    previous, now = previous_of_first(owner), int(time.time())
    for version, root in enumerate(roots, 1):
        at = now - 3600 * (len(roots) - version) - 60
        anchor = Anchor(owner, version, root, b"https://blobs.example.org/made-up", b"", previous, at)
        previous = previous_of(anchor)
        if version not in missing:
            transaction = hashlib.sha256(root).hexdigest()
            anchors.append(IndexedAnchor(anchor, 1000 + version, transaction, f"{version:08}"))
    store = open_store(str(folder / "made-up.db"))
    try:
        ledger = 1000 + len(roots)
        progress = Progress("end", ledger, now - 5, None, ledger, now, 1000)
        source = store.source(NETWORK, CONTRACT, "")
        assert store.apply(source, Batch(tuple(anchors), (), progress), after=None)
        with site_of(store) as site:
            yield site
    finally:
        store.close()
