"""Machines on one chain, and servers that hold what they publish."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mycelium_sdk.fetching import FetchPolicy
from mycelium_sdk.wallet import Wallet
from tests.chain.sockets import Listening, Visit, http_answer, make_certificate
from tests.memory.conftest import PASSPHRASE, World

if TYPE_CHECKING:
    import ssl
    from collections.abc import Iterator
    from pathlib import Path


class Web:
    """An https server: what lies at a path, and what it does instead of serving it."""

    def __init__(self, tls: ssl.SSLContext) -> None:
        self.files: dict[str, bytes] = {}
        self.server = Listening(self._serve, tls)

    def url(self, path: str) -> str:
        return self.server.url.replace("/rpc", path)

    def publish(self, blob: bytes) -> str:
        path = f"/{len(self.files)}.json"
        self.files[path] = blob
        return self.url(path)

    def _serve(self, visit: Visit) -> None:
        request = visit.request()
        if request is None:
            return
        path = request.split(b" ")[1].decode()
        if path in self.files:
            visit.send(http_answer(self.files[path]))
        else:
            visit.send(http_answer(b"", "404 Not Found"))


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[ssl.SSLContext, Path]:
    return make_certificate(tmp_path_factory.mktemp("tls"))


@pytest.fixture
def web(certificate: tuple[ssl.SSLContext, Path]) -> Iterator[Web]:
    made = Web(certificate[0])
    yield made
    made.server.close()


@pytest.fixture
def policy(certificate: tuple[ssl.SSLContext, Path]) -> FetchPolicy:
    """A stranger's, but for the one host that tests can have."""
    return FetchPolicy(ports=None, allow_networks=("127.0.0.0/8",), ca_file=certificate[1])


@pytest.fixture(scope="session")
def wallet(tmp_path_factory: pytest.TempPathFactory) -> Wallet:
    return Wallet.create(tmp_path_factory.mktemp("wallet") / "private" / "wallet.json", PASSPHRASE)


@pytest.fixture
def world(tmp_path: Path, wallet: Wallet) -> Iterator[World]:
    made = World(tmp_path, wallet)
    yield made
    made.close()
