"""One real PostgreSQL server for these tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.external.postgres.server import Server, running_server

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """The server. Fails where PostgreSQL is not installed."""
    with running_server() as server:
        yield server
