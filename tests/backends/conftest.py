"""Stores for the tests of the local backend."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mycelium_sdk.backends.local import LocalVectorBackend
from tests.backends.tampering import fill

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder of the test's own, for the keys that vouch for its stores."""
    folder = tmp_path_factory.mktemp("home")
    folder.chmod(0o700)
    monkeypatch.setenv("MYCELIUM_HOME", str(folder))
    return folder


@pytest.fixture
def owner() -> str:
    return "GBRPYHIL2CI3FNQ4BXLFMNDLFJUNPU2HY3ZMFSHONUCEOASW7QC7OX2H"


@pytest.fixture
def other_owner() -> str:
    return "GA7QYNF7SOWQ3GLR2BGMZEHXAVIRZA4KVWLTJJFC7MGXUA74P7UJVSGZ"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    folder = tmp_path / "a folder ü?#%"
    folder.mkdir(mode=0o700)
    return folder / "memory.db"


@pytest.fixture
def store(owner: str, path: Path) -> Iterator[LocalVectorBackend]:
    with LocalVectorBackend(owner, path) as backend:
        yield backend


@pytest.fixture
def filled(owner: str, path: Path) -> Path:
    """A closed memory file."""
    with LocalVectorBackend(owner, path) as store:
        fill(store)
    return path
