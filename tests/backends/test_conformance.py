"""The local backend does what every backend must do, in a file and in memory; so does the least there is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mycelium_sdk.backends.local import LocalVectorBackend
from mycelium_sdk.testing.backend_conformance import BackendConformance
from tests.backends.minimal import ListBackend

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from mycelium_sdk.backends.base import BaseBackend

OWNER = "GBRPYHIL2CI3FNQ4BXLFMNDLFJUNPU2HY3ZMFSHONUCEOASW7QC7OX2H"


class TestFile(BackendConformance):
    @pytest.fixture
    def open_backend(self, tmp_path: Path) -> Callable[[str], BaseBackend]:
        return lambda name: LocalVectorBackend(OWNER, tmp_path / f"{name}.db")


class TestMemory(BackendConformance):
    persistent = False

    @pytest.fixture
    def open_backend(self) -> Callable[[str], BaseBackend]:
        return lambda _: LocalVectorBackend(OWNER, ":memory:")


class TestMinimal(BackendConformance):
    persistent = False

    @pytest.fixture
    def open_backend(self) -> Callable[[str], BaseBackend]:
        return lambda _: ListBackend(OWNER)
