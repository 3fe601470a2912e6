"""An ingester between a server of made-up anchors and a store in a file, with a clock that waiting moves."""

from __future__ import annotations

import dataclasses
import threading
from typing import TYPE_CHECKING, Any

import pytest

from mycelium_indexer.ingest import Ingester
from mycelium_indexer.store import open_store
from mycelium_sdk.chain.anchor_client import MemoryAnchorClient
from mycelium_sdk.chain.rpc import RpcChain
from mycelium_sdk.retry import Pace, RetryPolicy
from mycelium_sdk.testing.event_server import EventServer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from stellar_sdk.client.base_sync_client import BaseSyncClient

    from mycelium_indexer.store.base import IndexStore
    from mycelium_indexer.values import Source


@dataclasses.dataclass
class Clock:
    """Time that only waiting moves."""

    seconds: float = 1_900_000_000.0
    waits: list[float] = dataclasses.field(default_factory=list)
    luck: float = 0.0

    def wait(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.seconds += seconds

    def pace(self) -> Pace:
        return Pace(
            now=lambda: self.seconds,
            monotonic=lambda: self.seconds,
            sleep=self.wait,
            chance=lambda: self.luck,
        )


class Stop(threading.Event):
    """Set when it has been waited for so many times, each by the clock."""

    def __init__(self, clock: Clock, waits: int) -> None:
        super().__init__()
        self._clock = clock
        self._left = waits

    def wait(self, timeout: float | None = None) -> bool:
        self._clock.wait(timeout or 0.0)
        self._left -= 1
        if self._left <= 0:
            self.set()
        return self.is_set()


@dataclasses.dataclass
class Follower:
    """An ingester and what it writes into. `ingester` is made anew by `restart`, as by a new process."""

    store: IndexStore
    transport: BaseSyncClient
    clock: Clock
    options: dict[str, Any]

    def __post_init__(self) -> None:
        self.restart()

    def restart(self, **options: Any) -> None:
        policy = RetryPolicy(attempts=1, pace=self.clock.pace())
        chain = RpcChain(EventServer.URL, EventServer.PASSPHRASE, client=self.transport, policy=policy)
        self.ingester = Ingester(
            MemoryAnchorClient(chain, EventServer.CONTRACT),
            self.store,
            policy=RetryPolicy(first_delay=1.0, max_delay=16.0, pace=self.clock.pace()),
            **self.options | options,
        )

    def follow(self) -> None:
        """Until there is nothing more to be had at once."""
        while self.ingester.poll_once():
            pass

    def run(self, waits: int) -> None:
        """Run for so many waits."""
        self.ingester.run(Stop(self.clock, waits))

    @property
    def source(self) -> Source:
        found = self.store.find_source(EventServer.PASSPHRASE, EventServer.CONTRACT)
        assert found is not None
        return found

    def versions(self, owner: str) -> list[int]:
        found = self.store.history(self.source, owner, below=None, limit=100_000)
        return [one.anchor.version for one in found]

    def gaps(self, owner: str | None = None) -> list[tuple[int, int]]:
        return [(gap.first, gap.last) for gap in self.store.gaps(self.source, owner)]


@pytest.fixture
def server() -> EventServer:
    return EventServer()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[IndexStore]:
    store = open_store(str(tmp_path / "index.db"))
    yield store
    store.close()


@pytest.fixture
def follower(server: EventServer, store: IndexStore, clock: Clock) -> Follower:
    return Follower(store, server, clock, {"page": 10})
