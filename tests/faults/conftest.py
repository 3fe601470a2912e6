"""One world for all tests of this folder, copied for each."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mycelium_sdk.networks import STANDALONE_PASSPHRASE
from tests.faults import ground, scenes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("template")
    scenes.build(folder)
    return folder


@pytest.fixture
def stage(
    template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., scenes.Scene]]:
    """Makes the scene; nothing waits in it."""
    clock = ground.without_waiting(monkeypatch)
    traffic = ground.with_traffic(monkeypatch, STANDALONE_PASSPHRASE)
    ground.unlocked_once(monkeypatch)
    made: list[scenes.Scene] = []

    def make(chain: str = "chain.db") -> scenes.Scene:
        scene = scenes.Scene(scenes.copy(template, tmp_path), monkeypatch, clock, traffic, chain)
        made.append(scene)
        return scene

    yield make
    for scene in made:
        scene.close()
