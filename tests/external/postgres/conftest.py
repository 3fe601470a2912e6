"""One real PostgreSQL server for these tests, and stores in it."""

from __future__ import annotations

import contextlib
import itertools
from typing import TYPE_CHECKING, Any

import pytest

from mycelium_sdk.backends.postgres import PostgresBackend
from tests.external.postgres.server import Server, running_server

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

OWNER = "GBRPYHIL2CI3FNQ4BXLFMNDLFJUNPU2HY3ZMFSHONUCEOASW7QC7OX2H"
OTHER_OWNER = "GA7QYNF7SOWQ3GLR2BGMZEHXAVIRZA4KVWLTJJFC7MGXUA74P7UJVSGZ"

_numbers = itertools.count()


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """The server. Fails where PostgreSQL is not installed."""
    with running_server() as server:
        yield server


@pytest.fixture
def schema() -> str:
    """The name of a schema that is not there yet."""
    return f"test_{next(_numbers)}"


@pytest.fixture
def opened(server: Server, schema: str) -> Iterator[Callable[..., PostgresBackend]]:
    """Opens stores, by default all in the same schema, and closes them."""
    with contextlib.ExitStack() as stack:

        def opener(owner: str = OWNER, **arguments: Any) -> PostgresBackend:
            arguments = {"dsn": server.dsn, "schema": schema, **arguments}
            return stack.enter_context(PostgresBackend(owner, **arguments))

        yield opener


@pytest.fixture
def store(opened: Callable[..., PostgresBackend]) -> PostgresBackend:
    """An empty store."""
    return opened()
