"""The Supermemory backend does what every backend must do, over both APIs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mycelium_sdk.backends.supermemory import SupermemoryBackend
from mycelium_sdk.testing.backend_conformance import BackendConformance
from mycelium_sdk.testing.recall_conformance import RecallConformance
from mycelium_sdk.testing.supermemory_server import SupermemoryServer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mycelium_sdk.backends.base import BaseBackend

OWNER = "GBRPYHIL2CI3FNQ4BXLFMNDLFJUNPU2HY3ZMFSHONUCEOASW7QC7OX2H"


class TestV5(BackendConformance):
    ids_of_content = True
    rounds = 60

    @pytest.fixture
    def open_backend(self) -> Iterator[Callable[[str], BaseBackend]]:
        with SupermemoryServer(["v5"]) as server:
            yield lambda name: SupermemoryBackend(
                OWNER, f"key-of-{name.replace(' ', '-')}", server.url, ranking="words"
            )


class TestV3(BackendConformance):
    ids_of_content = True
    rounds = 60

    @pytest.fixture
    def open_backend(self) -> Iterator[Callable[[str], BaseBackend]]:
        with SupermemoryServer(["v3"]) as server:
            yield lambda name: SupermemoryBackend(
                OWNER, f"key-of-{name.replace(' ', '-')}", server.url, api="v3", ranking="words"
            )


class TestServiceRecall(RecallConformance):
    """Recall by the service's own search."""

    finds_by_context = False
    rounds = 30

    @pytest.fixture
    def open_backend(self) -> Iterator[Callable[[str], BaseBackend]]:
        with SupermemoryServer(["v5"]) as server:
            yield lambda _: SupermemoryBackend(OWNER, "a-key", server.url)
