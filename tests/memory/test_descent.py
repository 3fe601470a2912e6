"""A newer anchor must lead back to the one that was verified before: one that does not is a fork."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import pytest

from mycelium_localnet import Chain
from mycelium_sdk.errors import (
    Fork,
    UnanchoredWrites,
    VersionConflict,
)
from mycelium_sdk.steps import Step
from mycelium_sdk.verdicts import Verdict
from tests.crashing import killed_at

if TYPE_CHECKING:
    from collections.abc import Callable

    from mycelium_sdk.memory import AgentMemory
    from tests.memory.conftest import World


def texts(memory: AgentMemory) -> set[str]:
    return {one.record.content for one in memory.backend.iter_records()}


def forget(memory: AgentMemory, text: str) -> None:
    (doomed,) = (one.id for one in memory.backend.iter_records() if one.record.content == text)
    memory.forget(doomed)


def proved_from(memory: AgentMemory) -> int:
    return memory._commitment.look().proved_from


@pytest.fixture
def gone_back(world: World) -> Callable[[int], tuple[AgentMemory, AgentMemory]]:
    """Two machines: the first anchored version 2, the chain went back to version 1, and the second one has
    anchored so many versions since."""

    def make(versions: int) -> tuple[AgentMemory, AgentMemory]:
        a, b = world.machine("a"), world.machine("b")
        a.remember("base")
        a.anchor()
        b.rehydrate()
        chain = Chain.open(world.chain_file)
        snapshot = chain.snapshot()
        a.remember("anchored in version 2 by a")
        a.anchor()
        chain.revert(snapshot)
        for number in range(versions):
            b.remember(f"by b {number}")
            b.anchor()
        chain.skip_ledgers(50)
        chain.close()
        return a, b

    return make


@pytest.mark.parametrize("versions", [1, 2, 3])
def test_a_fork_is_noticed_however_far_it_went_and_nothing_is_removed(
    gone_back: Callable[[int], tuple[AgentMemory, AgentMemory]], versions: int
) -> None:
    a, _ = gone_back(versions)
    assert a.verify().verdict is Verdict.FORK
    for act in (a.sync, a.anchor, a.rehydrate, a.history, a.get_anchor):
        with pytest.raises(Fork):
            act()
    assert texts(a) == {"base", "anchored in version 2 by a"}
    assert len(a._state.conflicts(a.context.network.passphrase, a.contract_id, a.owner)) == 1
    assert a.trust_chain_anew()
    assert a.last_anchor is None
    for act in (a.anchor, a.rehydrate):
        with pytest.raises(UnanchoredWrites):
            act()
    a.sync()
    assert texts(a) == {
        "base",
        "anchored in version 2 by a",
        *(f"by b {number}" for number in range(versions)),
    }


def test_where_nobody_serves_the_history_a_sync_removes_nothing_and_verify_says_why(
    gone_back: Callable[[int], tuple[AgentMemory, AgentMemory]], monkeypatch: pytest.MonkeyPatch
) -> None:
    a, _ = gone_back(3)
    monkeypatch.setattr("mycelium_sdk.assembly.AnchorDesk.history_sources", lambda _self: ())
    answer = a.verify()
    assert answer.verdict is Verdict.DIVERGED
    assert [text for text in answer.warnings if "is not proved" in text]
    assert proved_from(a) == 4
    assert a.sync().merged
    assert texts(a) == {"base", "anchored in version 2 by a", "by b 0", "by b 1", "by b 2"}


def test_a_history_that_can_be_had_later_proves_it_then(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = world.machine("a"), world.machine("b")
    a.remember("kept")
    a.remember("forgotten by b")
    a.anchor()
    b.rehydrate()
    forget(b, "forgotten by b")
    b.anchor()
    b.remember("by b")
    b.anchor()
    with monkeypatch.context() as patch:
        patch.setattr("mycelium_sdk.assembly.AnchorDesk.history_sources", lambda _self: ())
        assert a.verify().verdict is Verdict.DIVERGED
        assert proved_from(a) == 3
    assert a.sync().merged
    assert texts(a) == {"kept", "by b"}
    assert proved_from(a) == 1


def test_versions_that_others_made_are_proved_one_by_one_and_at_once(world: World) -> None:
    a, b = world.machine("a"), world.machine("b")
    a.remember("base")
    a.anchor()
    b.rehydrate()
    for number in range(3):
        b.remember(f"by b {number}")
        b.anchor()
        if number == 0:
            assert proved_from(a) == 1
    assert proved_from(a) == 1
    assert proved_from(b) == 1
    c = world.machine("c")
    c.rehydrate()
    assert proved_from(c) == 4
    assert c.history().complete
    assert proved_from(c) == 1


def test_a_forged_history_proves_nothing(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = world.machine("a"), world.machine("b")
    a.remember("base")
    a.anchor()
    b.rehydrate()
    for number in range(2):
        b.remember(f"by b {number}")
        b.anchor()
    true = b.history()
    forged = [
        dataclasses.replace(one, anchor=dataclasses.replace(one.anchor, acl=b"x")) for one in true.anchors
    ]
    monkeypatch.setattr(
        "mycelium_sdk.assembly.AnchorDesk.history_sources", lambda _self: (lambda _owner: forged[1:],)
    )
    assert proved_from(a) == 3


def test_another_anchor_with_the_same_root_is_a_fork(world: World) -> None:
    memory = world.machine("a")
    memory.remember("one")
    memory.anchor()
    chain = Chain.open(world.chain_file)
    snapshot = chain.snapshot()
    assert memory.anchor(uri="https://example.org/one") == 2
    chain.revert(snapshot)
    other = world.machine("b")
    other.rehydrate()
    assert other.anchor(uri="https://example.org/other") == 2
    chain.skip_ledgers(50)
    chain.close()
    assert memory.verify().verdict is Verdict.FORK


# -- an anchoring whose end nobody recorded


def test_what_was_forgotten_on_top_of_an_unrecorded_anchor_does_not_come_back(world: World) -> None:
    a, b = world.machine("a"), world.machine("b")
    a.remember("base")
    a.anchor()
    a.remember("secret")
    with killed_at(Step.SENT):
        a.anchor()
    b.rehydrate()
    forget(b, "secret")
    assert b.anchor() == 3
    a = world.machine("a")
    a.sync()
    assert texts(a) == {"base"}
    assert a.verify()


def test_an_anchor_that_was_overtaken_is_recorded_as_made(world: World) -> None:
    a, b = world.machine("a"), world.machine("b")
    a.remember("base")
    with killed_at(Step.SENT):
        a.anchor()
    b.rehydrate()
    b.remember("by b")
    b.anchor()
    a = world.machine("a")
    with pytest.raises(VersionConflict) as caught:
        a.anchor()
    assert (caught.value.expected, caught.value.actual) == (1, 2)
    assert (a.last_anchor and a.last_anchor.version) == 1


def test_an_anchor_that_another_machine_made_instead_is_given_up(world: World) -> None:
    a, b = world.machine("a"), world.machine("b")
    a.remember("base")
    a.anchor()
    b.rehydrate()
    a.remember("never anchored")
    with killed_at(Step.SIGNED):
        a.anchor()
    b.remember("by b")
    b.anchor()
    b.anchor()
    a = world.machine("a")
    a.sync()
    assert texts(a) == {"base", "never anchored", "by b"}
    assert a.verify()


def test_a_memory_is_dirty_while_its_anchoring_is_in_flight(world: World) -> None:
    memory = world.machine("a")
    memory.remember("one")
    memory.anchor()
    oops = memory.remember("oops")
    with killed_at(Step.SENT):
        memory.anchor()
    memory = world.machine("a")
    memory.forget(oops)
    assert memory.is_dirty, "the chain may hold what was taken back"
    assert memory.on_job_complete() == 3
    assert memory.verify()
    assert not memory.is_dirty
