"""The PostgreSQL backend does what every backend must do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mycelium_sdk.backends.postgres import PostgresBackend
from mycelium_sdk.testing.backend_conformance import BackendConformance
from tests.external.postgres.conftest import OWNER

if TYPE_CHECKING:
    from collections.abc import Callable

    from mycelium_sdk.backends.base import BaseBackend
    from tests.external.postgres.server import Server


class TestPostgres(BackendConformance):
    @pytest.fixture
    def open_backend(self, server: Server, schema: str) -> Callable[[str], BaseBackend]:
        def open_backend(name: str) -> BaseBackend:
            return PostgresBackend(OWNER, server.dsn, schema=f"{schema}_{name.replace(' ', '_')}")

        return open_backend
