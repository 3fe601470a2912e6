"""The pages over the test's own store."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from mycelium_indexer.store.base import IndexStore
    from tests.indexer.api.ground import Api


@pytest.fixture
def site(store: IndexStore, serve: Callable[..., Api]) -> Api:
    """The server over the test's store."""
    return serve(store)
