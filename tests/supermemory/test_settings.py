"""What a backend is told: the key, the address, the API; and that making one asks nothing of the network."""

from __future__ import annotations

import builtins
import pickle
from typing import TYPE_CHECKING, Any

import pytest

from mycelium_sdk.backends.supermemory import SupermemoryBackend
from mycelium_sdk.errors import BackendError, ConfigError, InputError, StoreUnavailable
from mycelium_sdk.testing.supermemory_server import Fault, SupermemoryServer
from tests.supermemory.conftest import KEY, OWNER, Clock

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("something asked the network")

    monkeypatch.setattr("socket.socket.connect", refuse)
    monkeypatch.setattr("socket.getaddrinfo", refuse)


@pytest.fixture(params=[["v5"], ["v3"], ["v5", "v3"]])
def served(request: pytest.FixtureRequest) -> Iterator[tuple[SupermemoryServer, list[str]]]:
    with SupermemoryServer(request.param, keys=[KEY]) as server:
        yield server, request.param


@pytest.mark.usefixtures("no_network")
@pytest.mark.parametrize("value", [None, "", "  ", "\n"])
def test_without_a_key_the_error_says_what_to_set(monkeypatch: pytest.MonkeyPatch, value: str | None) -> None:
    monkeypatch.delenv("SUPERMEMORY_API_KEY", raising=False)
    if value is not None:
        monkeypatch.setenv("SUPERMEMORY_API_KEY", value)
    for arguments in ({}, {"api_key": value}, {"api": "v3", "base_url": "https://memory.example.org"}):
        with pytest.raises(ConfigError, match="no key") as caught:
            SupermemoryBackend(OWNER, **arguments)
        assert "SUPERMEMORY_API_KEY" in str(caught.value.hint)
        assert caught.value.exit_code == 3


@pytest.mark.usefixtures("no_network")
def test_making_one_asks_nothing_and_tells_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUPERMEMORY_API_KEY", f" {KEY}\n")
    store = SupermemoryBackend(OWNER, base_url="https://memory.example.org/")
    assert repr(store) == f"SupermemoryBackend({OWNER!r}, base_url='https://memory.example.org')"
    assert store.place == "supermemory https://memory.example.org"
    assert SupermemoryBackend(OWNER).place == "supermemory https://api.supermemory.ai"
    monkeypatch.setenv("SUPERMEMORY_BASE_URL", "http://localhost:1234")
    assert SupermemoryBackend(OWNER).base_url == "http://localhost:1234"
    store.close()
    store.close()


@pytest.mark.usefixtures("no_network")
@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"owner": "G"}, InputError),
        ({"api_key": "a key"}, ConfigError),
        ({"api_key": "schlüssel"}, ConfigError),
        ({"api_key": "a\nb"}, ConfigError),
        ({"base_url": "ftp://x"}, ConfigError),
        ({"base_url": "memory.example.org"}, ConfigError),
        ({"base_url": "https://user:password@memory.example.org"}, ConfigError),
        ({"base_url": "https://memory.example.org/?key=1"}, ConfigError),
        ({"api": "v4"}, InputError),
        ({"ranking": "best"}, InputError),
    ],
)
def test_what_cannot_be_used_is_refused(arguments: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error) as caught:
        SupermemoryBackend(**({"owner": OWNER, "api_key": KEY} | arguments))
    assert "password" not in str(caught.value)


def test_the_api_is_found_out_once(served: tuple[SupermemoryServer, list[str]]) -> None:
    server, apis = served
    with SupermemoryBackend(OWNER, KEY, server.url) as store:
        assert store.api == apis[0]
        asked = len(server.requests)
        assert asked <= 2
        store.remember("one")
        assert store.count() == 1
        assert store.api == apis[0]
        assert all(("/v3/" in path) == (apis[0] == "v3") for _, path in server.requests[asked:])


def test_finding_out_is_no_guess(served: tuple[SupermemoryServer, list[str]]) -> None:
    server, apis = served
    clock = Clock()
    server.faults = [Fault(status=503, times=99)]
    with SupermemoryBackend(OWNER, KEY, server.url, retry=clock.policy()) as store:
        with pytest.raises(StoreUnavailable):
            store.count()
        server.faults = [Fault(status=503, times=2)]
        assert store.count() == 0
        assert store.api == apis[0]
    asked = len(server.requests)
    with (
        SupermemoryBackend(OWNER, "another_key", server.url) as store,
        pytest.raises(BackendError, match="does not accept the key"),
    ):
        store.count()
    assert len(server.requests) == asked + 1


def test_a_server_that_speaks_neither_is_named() -> None:
    with (
        SupermemoryServer([]) as server,
        SupermemoryBackend(OWNER, KEY, server.url) as store,
        pytest.raises(BackendError, match="no such address"),
    ):
        store.count()


def test_without_the_client_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    original = builtins.__import__

    def without(name: str, *rest: Any, **named: Any) -> Any:
        if name == "supermemory" or name.endswith("supermemory.v5"):
            raise ImportError(name)
        return original(name, *rest, **named)

    monkeypatch.setattr(builtins, "__import__", without)
    with (
        SupermemoryBackend(OWNER, KEY, api="v5") as store,
        pytest.raises(ConfigError, match="client is not installed") as caught,
    ):
        store.count()
    assert "pip install" in str(caught.value.hint)


def test_owners_are_apart() -> None:
    other = "GA7QYNF7SOWQ3GLR2BGMZEHXAVIRZA4KVWLTJJFC7MGXUA74P7UJVSGZ"
    with SupermemoryServer() as server:
        for api in ("v5", "v3"):
            with (
                SupermemoryBackend(OWNER, KEY, server.url, api=api) as mine,
                SupermemoryBackend(other, KEY, server.url, api=api) as theirs,
            ):
                mine.remember("mine")
                assert theirs.count() == 0
                assert theirs.recall("mine") == []
                assert theirs.clear() == 0
                assert mine.count() == 1


def test_errors_survive_the_way_back_from_a_worker() -> None:
    with SupermemoryServer() as server:
        server.faults = [Fault(status=429, times=99, headers={"Retry-After": "5"})]
        clock = Clock()
        with (
            SupermemoryBackend(OWNER, KEY, server.url, api="v5", retry=clock.policy(1)) as store,
            pytest.raises(StoreUnavailable) as caught,
        ):
            store.count()
    assert pickle.loads(pickle.dumps(caught.value)).retry_after == 5  # noqa: S301 - our own
