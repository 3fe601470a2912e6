"""A service of our own, stores in it, and a clock that only sleeping moves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Protocol

import pytest

from mycelium_sdk.backends.supermemory import SupermemoryBackend
from mycelium_sdk.retry import Pace, RetryPolicy
from mycelium_sdk.testing.supermemory_server import SupermemoryServer

if TYPE_CHECKING:
    from collections.abc import Iterator

OWNER = "GBRPYHIL2CI3FNQ4BXLFMNDLFJUNPU2HY3ZMFSHONUCEOASW7QC7OX2H"
KEY = "sm_key_that_nobody_may_see"


class Clock:
    """Time that only sleeping moves; `on_sleep` is what happens meanwhile."""

    def __init__(self) -> None:
        self.seconds = 1_800_000_000.0
        self.slept: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.seconds += seconds

    def policy(self, attempts: int = 4) -> RetryPolicy:
        pace = Pace(lambda: self.seconds, lambda: self.seconds, self.sleep, lambda: 0.0)
        return RetryPolicy(attempts=attempts, pace=pace)


class Open(Protocol):
    """Opens a store as another process would; closed at the end of the test."""

    def __call__(self, **arguments: Any) -> SupermemoryBackend: ...


@pytest.fixture(params=["v5", "v3"])
def api(request: pytest.FixtureRequest) -> Literal["v5", "v3"]:
    return "v3" if request.param == "v3" else "v5"


@pytest.fixture
def server() -> Iterator[SupermemoryServer]:
    with SupermemoryServer() as running:
        yield running


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def opened(server: SupermemoryServer, api: Literal["v5", "v3"], clock: Clock) -> Iterator[Open]:
    stores = []

    def opener(**arguments: Any) -> SupermemoryBackend:
        store = SupermemoryBackend(
            OWNER,
            KEY,
            arguments.pop("base_url", server.url),
            **({"api": api, "retry": clock.policy(), "timeout": 5.0} | arguments),
        )
        stores.append(store)
        return store

    yield opener
    for store in stores:
        store.close()


@pytest.fixture
def store(opened: Open) -> SupermemoryBackend:
    """A store that finds by words."""
    return opened(ranking="words")
