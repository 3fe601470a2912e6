"""A store of the test's own, and the server over it."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import pytest

from mycelium_indexer.store import open_store
from tests.indexer.api.ground import Api, serving, settings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from mycelium_indexer.store.base import IndexStore


@pytest.fixture
def store(tmp_path: Path) -> Iterator[IndexStore]:
    opened = open_store(str(tmp_path / "index.db"))
    yield opened
    opened.close()


@pytest.fixture
def serve() -> Iterator[Callable[..., Api]]:
    """Starts the server over a store, with changes to the settings."""
    with contextlib.ExitStack() as running:

        def start(over: IndexStore, **changes: Any) -> Api:
            return running.enter_context(serving(over, settings(**changes)))

        yield start
