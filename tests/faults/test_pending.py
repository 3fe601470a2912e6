"""An anchor that no ledger takes up yet: said so as often as it is asked, and made once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mycelium_sdk.errors import ChainUnavailable, Unsettled, VersionConflict
from mycelium_sdk.steps import Step
from mycelium_sdk.verdicts import Verdict
from tests.crashing import killed_at

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.faults.scenes import Scene


@pytest.fixture
def scene(stage: Callable[..., Scene]) -> Scene:
    """Its chain closes no ledgers by itself."""
    made = stage()
    made.truth.chain.set_interval(closing="manual")
    return made


def test_what_is_pending_is_waited_for_and_never_sent_beside_another(scene: Scene) -> None:
    hashes = []
    for _ in range(2):
        with pytest.raises(Unsettled) as caught:
            scene.machine("a").anchor()
        hashes.append(caught.value.hash)
    assert hashes[0] == hashes[1] == scene.own_sent()[0]
    assert len(scene.own_sent()) == 1
    assert scene.machine("a").verify().verdict is Verdict.AHEAD
    scene.truth.chain.close_ledger()
    assert scene.truth.applied()[2:] == hashes[:1]
    assert scene.machine("a").verify()
    scene.truth.chain.set_interval(closing="instant")
    assert scene.machine("a").anchor() == 4
    assert scene.truth.version() == len(scene.truth.applied()) == 4


def test_another_machine_waits_behind_what_is_pending(scene: Scene) -> None:
    scene.machine("b").rehydrate()
    with pytest.raises(Unsettled):
        scene.machine("a").anchor()
    b = scene.machine("b")
    b.remember("of b")
    with pytest.raises(ChainUnavailable, match="busy"):
        b.anchor()
    assert scene.recorded("b") is None
    scene.truth.chain.set_interval(closing="instant")
    assert scene.truth.version() == 3
    assert b.rehydrate(on_conflict="merge")["version"] == 3
    assert b.anchor() == 4
    assert scene.held("b") == {"one", "two", "three", "of b"}


def test_what_was_pending_too_long_is_forgotten(scene: Scene) -> None:
    with pytest.raises(Unsettled) as caught:
        scene.machine("a").anchor()
    scene.truth.let_pass()
    scene.truth.chain.set_interval(closing="instant")
    assert scene.truth.version() == 2, "too late for the ledger"
    assert scene.machine("a").anchor() == 3
    assert caught.value.hash not in [name for name, _ in scene.truth.anchorings()]
    assert scene.recorded("a") is None


def test_what_another_machine_overtook_is_forgotten_soon(stage: Callable[..., Scene]) -> None:
    scene = stage()
    memory = scene.machine("a")

    with killed_at(Step.SIGNED):
        memory.anchor()
    b = scene.machine("b")
    b.rehydrate()
    assert b.anchor() == 3
    before = scene.clock.seconds
    # Its sequence number is used up, so no ledger has to close for it to be over.
    with pytest.raises(VersionConflict):
        scene.machine("a").anchor()
    assert scene.clock.seconds - before < 20
    assert scene.recorded("a") is None
    assert scene.machine("a").rehydrate(on_conflict="merge")["version"] == 3
    assert scene.machine("a").anchor() == 4
    assert scene.truth.version() == len(scene.truth.applied()) == 4


@pytest.mark.parametrize("conflict", ["merge", "replace"])
def test_a_memory_that_was_loaded_while_its_anchor_was_pending_is_not_taken_for_an_old_copy(
    scene: Scene, conflict: str
) -> None:
    memory = scene.machine("a")
    with pytest.raises(Unsettled):
        memory.anchor()
    assert memory.rehydrate(on_conflict=conflict)["version"] == 2
    scene.truth.chain.set_interval(closing="instant")
    assert scene.truth.version() == 3
    assert memory.anchor() == 4
    assert memory.verify()
