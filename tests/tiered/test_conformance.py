"""Two backends as one do what every backend must do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mycelium_sdk.backends.local import LocalVectorBackend
from mycelium_sdk.backends.tiered import TieredBackend
from mycelium_sdk.testing.backend_conformance import BackendConformance
from tests.backends.test_conformance import OWNER

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from mycelium_sdk.backends.base import BaseBackend


class TestTiered(BackendConformance):
    @pytest.fixture
    def open_backend(self, tmp_path: Path) -> Callable[[str], BaseBackend]:
        def opened(name: str) -> BaseBackend:
            first, second = (
                LocalVectorBackend(OWNER, tmp_path / f"{name}-{place}.db", durability="process")
                for place in ("first", "second")
            )
            return TieredBackend(first, second, queue=tmp_path / f"{name}-queue.db", patience=60.0)

        return opened
