"""What the tests of the foundation share: the frozen vectors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

_VECTORS: dict[str, Any] = json.loads(
    (Path(__file__).parent.parent / "vectors" / "canonical_v1.json").read_text("utf-8")
)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give `accepted` and `rejected` each vector in turn, named after it."""
    for fixture, kind in (("accepted", "accept"), ("rejected", "reject")):
        if fixture in metafunc.fixturenames:
            vectors = _VECTORS[kind]
            metafunc.parametrize(fixture, vectors, ids=[vector["name"] for vector in vectors])


@pytest.fixture(scope="session")
def owner() -> str:
    """An account address."""
    return str(_VECTORS["accept"][0]["owner"])
