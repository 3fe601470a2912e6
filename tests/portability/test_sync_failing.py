"""A sync that does not come to anchor: what it merged counts as written, and it ends in time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mycelium_sdk.errors import (
    ChainUnavailable,
    VersionConflict,
)

if TYPE_CHECKING:
    from tests.memory.conftest import World


def test_writes_that_a_sync_did_not_anchor_are_counted_each(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = world.machine("a"), world.machine("b")
    a.remember("base")
    a.anchor()
    b.rehydrate()
    b.remember("by b")
    b.anchor()
    for number in range(10):
        a.remember(f"memory {number}")

    def refuse(*_: object, **__: object) -> None:
        raise ChainUnavailable("gone")

    with monkeypatch.context() as patch:
        patch.setattr(a._commitment, "anchor", refuse)
        with pytest.raises(ChainUnavailable):
            a.sync()
    newest = a._basis.newest(a.context.network.passphrase, a.contract_id)
    assert newest is not None
    assert a._basis.writes_since(*newest) == 10


def test_a_sync_ends_when_its_patience_does(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mycelium_sdk.memory.portability._PATIENCE_SECONDS", 0.0)
    memory = world.machine("a")
    memory.remember("one")
    tries: list[int] = []

    def conflict(*_: object, **__: object) -> None:
        tries.append(1)
        raise VersionConflict("another", expected=1, actual=2)

    monkeypatch.setattr(memory._commitment, "anchor", conflict)
    with pytest.raises(VersionConflict):
        memory.sync()
    assert len(tries) == 1
