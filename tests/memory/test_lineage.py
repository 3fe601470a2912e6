"""What looks know of the past: servers that are behind, histories that come later, a person's word."""

from __future__ import annotations

import dataclasses
import time
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from mycelium_localnet import Chain
from mycelium_sdk.assembly import AnchorDesk
from mycelium_sdk.chain.anchors import Anchor, previous_of, previous_of_first
from mycelium_sdk.chain.base import ChainIdentity, EntryState, EntryStatus
from mycelium_sdk.chain.history import NamedSource, PastAnchor
from mycelium_sdk.errors import ChainUnavailable, Fork, NotAnchored, Rollback
from mycelium_sdk.facts import ChainKey, Intent, LastAnchor
from mycelium_sdk.memory import AgentMemory
from mycelium_sdk.memory.trust import TrustedChain
from mycelium_sdk.state import StateStore
from mycelium_sdk.verdicts import Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from tests.memory.conftest import World

NETWORK, CONTRACT, OWNER = (
    "a network",
    "C" + "A" * 55,
    "GAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAWHF",
)
KEY = ChainKey(NETWORK, CONTRACT, OWNER)


def line(length: int, branch: int = 0, after: Sequence[Anchor] = ()) -> list[Anchor]:
    """Anchors up to version `length`, going on from `after`, with roots of the branch."""
    anchors = list(after)
    while len(anchors) < length:
        version = len(anchors) + 1
        before = previous_of(anchors[-1]) if anchors else previous_of_first(OWNER)
        anchors.append(
            Anchor(OWNER, version, bytes([version, branch]) * 16, b"", b"", before, 1000 + version)
        )
    return anchors


@dataclasses.dataclass
class Server:
    """Of a public network: what it says is its latest ledger, and the ledger that its entries are of."""

    anchors: list[Anchor]
    written: dict[int, int] = dataclasses.field(default_factory=dict)
    said: int = 100
    at: int = 100
    sources: tuple[Any, ...] = ()
    contract_id: str = CONTRACT

    def identity(self) -> ChainIdentity:
        return ChainIdentity(NETWORK, None, 23, self.said, 5 * self.said)

    def get_anchor(self, owner: str) -> Anchor | None:
        del owner
        shown = [one for one in self.anchors if self.written.get(one.version, 0) <= self.at]
        return shown[-1] if shown else None

    def entry_state(self, owner: str) -> EntryState:
        anchor = self.get_anchor(owner)
        written = 1 if anchor is None else self.written.get(anchor.version, 1)
        return EntryState(EntryStatus.LIVE, self.at, 10**6, written)

    def history_sources(self) -> Sequence[Any]:
        return self.sources


def serving(anchors: Sequence[Anchor]) -> Callable[[PastAnchor], list[PastAnchor]]:
    return lambda _: [PastAnchor(one) for one in reversed(anchors)]


@pytest.fixture
def state(tmp_path: Path) -> Iterator[StateStore]:
    with StateStore(tmp_path / "state.db") as opened:
        yield opened


def test_a_ledger_that_closes_during_a_look_makes_no_honest_server_a_liar(state: StateStore) -> None:
    """The anchor that is read may be one ledger newer than the ledger that was read before it."""
    written = {1: 10, 2: 20, 3: 101}
    server, witness = Server(line(3), written), Server(line(3), written)
    trusted = TrustedChain(server, state, OWNER, NETWORK, lambda: (witness,))
    assert trusted.look().version == 2
    server.at = 101
    assert trusted.look().version == 3
    server.said = 101
    assert trusted.look().version == 3, "the witness is one ledger behind, and says the truth"
    assert state.evidence_count(KEY) == 0


def test_a_server_that_is_behind_what_a_memory_is_based_on_is_waited_for(state: StateStore) -> None:
    server = Server(line(2), {2: 105})
    based = LastAnchor(2, line(2)[1].root, None, 5, anchored_at=5.0 * 105)
    trusted = TrustedChain(server, state, OWNER, NETWORK, tuple, based_on=lambda: (KEY, based))
    with pytest.raises(ChainUnavailable, match="does not show version 2 yet"):
        trusted.look()
    assert state.evidence_count(KEY) == 0
    server.said = 110
    with pytest.raises(Rollback, match="based on version 2"):
        trusted.look()
    server.at = 110
    assert trusted.look().version == 2
    server.anchors = line(2, branch=1, after=line(1))
    with pytest.raises(Fork):
        trusted.look()


def test_an_indexer_that_serves_what_is_not_so_hides_no_fork(state: StateStore) -> None:
    old, new = line(3, 1, after=line(1)), line(5, 2, after=line(1))
    server = Server(old)
    trusted = TrustedChain(server, state, OWNER, NETWORK, tuple)
    assert trusted.look().version == 3
    stale = NamedSource("the indexer", serving(line(5, 1, after=old)), "")
    server.anchors, server.sources = new, (stale, serving(new))
    with pytest.raises(Fork):
        trusted.look()


def test_a_history_that_cannot_be_asked_for_now_is_no_answer(state: StateStore) -> None:
    def hiccup(_: PastAnchor) -> list[PastAnchor]:
        raise ChainUnavailable("a hiccup")

    server = Server(line(2), sources=(hiccup,))
    trusted = TrustedChain(server, state, OWNER, NETWORK, tuple)
    trusted.look()
    server.anchors = line(5)
    with pytest.raises(ChainUnavailable, match="hiccup"):
        trusted.look()
    server.sources = (serving(line(5)),)
    assert trusted.look().proved_from == 2


def test_the_same_root_on_another_line_is_another_anchor(state: StateStore) -> None:
    server = Server(line(3))
    trusted = TrustedChain(server, state, OWNER, NETWORK, tuple)
    trusted.look()
    same_root = dataclasses.replace(line(3)[2], acl=b"another")
    other = line(5, 1, after=[*line(2), same_root])
    server.anchors, server.sources = other, (serving(other),)
    with pytest.raises(Fork, match="another version 3"):
        trusted.look()


# -- with memories


def texts(memory: AgentMemory) -> set[str]:
    return {one.record.content for one in memory.backend.iter_records()}


def set_back(world: World, memory: AgentMemory, *texts_after: str) -> AgentMemory:
    """`memory` has anchored on; the chain went back to before that, and another machine anchored instead. Who
    goes on is that other one."""
    other = world.machine("other")
    other.rehydrate()
    with closing(Chain.open(world.chain_file)) as chain:
        snapshot = chain.snapshot()
        memory.remember("on the line that is gone")
        memory.anchor()
        chain.revert(snapshot)
        for text in texts_after:
            other.remember(text)
            other.anchor()
        chain.skip_ledgers(50)
    return other


def without_history(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(AnchorDesk, "history_sources", lambda _self: ())


@pytest.fixture
def based(world: World) -> AgentMemory:
    memory = world.machine("a")
    memory.remember("base")
    memory.anchor()
    return memory


def test_a_fork_that_shows_later_has_a_way_out(
    world: World, based: AgentMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_back(world, based, "one", "two", "three")
    with monkeypatch.context() as patch:
        without_history(patch)
        assert based.verify().verdict is Verdict.DIVERGED
    assert based.verify().verdict is Verdict.FORK
    for act in (based.history, based.sync, based.purge):
        with pytest.raises(Fork):
            act()
    assert based.trust_chain_anew()
    based.sync()
    assert texts(based) == {"base", "on the line that is gone", "one", "two", "three"}
    assert based.verify()
    assert based.history().complete


def test_verify_answers_also_where_the_past_is_asked_for(
    world: World, based: AgentMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_back(world, based, "one", "two", "three")
    with monkeypatch.context() as patch:
        without_history(patch)
        based.verify()
    key = based._commitment.look().key
    based._state.put_intent(key, Intent(b"r" * 32, "", 1, 5, "ab" * 32, "x", 5, 3))
    assert based.verify().verdict is Verdict.FORK


def test_nothing_is_said_of_a_history_that_is_served(world: World, based: AgentMemory) -> None:
    other = world.machine("other")
    other.rehydrate()
    for text in ("one", "two"):
        other.remember(text)
        other.anchor()
    key = based._commitment.look().key
    mark = based._state.mark(key)
    assert mark is not None
    based._state.start_anew(
        key, dataclasses.replace(mark, entry=None, proved_from=None), None, based.last_anchor
    )
    answer = based.verify()
    assert (answer.verdict, answer.warnings) == (Verdict.DIVERGED, ())


def test_a_hiccup_while_the_chain_is_trusted_anew_loses_no_base(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = world.machine("a")
    doomed = memory.remember("forgotten later")
    memory.remember("kept")
    memory.anchor()
    with closing(Chain.open(world.chain_file)) as chain:
        snapshot = chain.snapshot()
        memory.forget(doomed)
        memory.anchor()
        chain.revert(snapshot)
    looks = iter([True, False])
    look = TrustedChain.look

    def once(self: TrustedChain, **options: Any) -> object:
        if not next(looks):
            raise ChainUnavailable("a hiccup")
        return look(self, **options)

    with monkeypatch.context() as patch:
        patch.setattr(TrustedChain, "look", once)
        assert memory.trust_chain_anew()
    assert memory.verify().verdict is Verdict.AHEAD
    memory.sync()
    assert texts(memory) == {"kept"}


def test_a_place_without_a_chain_is_not_trusted_by_mistake(world: World, based: AgentMemory) -> None:
    """The configuration names another file, by mistake."""
    mistyped = world.context("a")
    mistyped.close()
    place = world.chain_file
    away = place.rename(world.folder / "away.db")
    based.close()
    based.context.close()
    memory = world.machine("a")
    with pytest.raises(NotAnchored):
        memory.trust_chain_anew(to_load=True)
    memory.close()
    memory.context.close()
    away.rename(place)
    assert world.machine("a").verify()


def test_a_running_program_goes_on_with_a_chain_that_is_made_anew(world: World, based: AgentMemory) -> None:
    for file in world.folder.glob("chain.db*"):
        file.unlink()
    assert based.verify().verdict is Verdict.CHAIN_RESET
    assert based.trust_chain_anew()
    assert based.anchor() == 1
    assert based.verify()


def test_a_memory_that_is_exactly_an_earlier_version_is_based_on_it(world: World, based: AgentMemory) -> None:
    """All that this machine knew of the chain is lost, and another one has forgotten something since."""
    based.remember("forgotten by the other")
    with closing(Chain.open(world.chain_file)) as chain:
        chain.set_time(int(time.time()) + 60)  # an anchor is later than what it holds
    based.anchor()
    other = world.machine("other")
    other.rehydrate()
    (doomed,) = (one.id for one in other.backend.iter_records() if "forgotten" in one.record.content)
    other.forget(doomed)
    other.anchor()
    based.close()
    (based.context.home.state_file).unlink()
    memory = world.machine("a")
    answer = memory.verify()
    assert answer.verdict is Verdict.DIVERGED
    assert "exactly version 2" in answer.message
    memory.sync()
    assert texts(memory) == {"base"}
    assert memory.verify()


def test_what_was_remembered_again_is_no_version_that_was_loaded(world: World) -> None:
    """Small memories may hold by chance what a version held."""
    other = world.machine("other")
    doomed = other.remember("likes tea")
    other.anchor()
    other.forget(doomed)
    other.remember("likes coffee")
    other.anchor()
    memory = world.machine("a")
    memory.remember("likes tea")
    memory.sync()
    assert texts(memory) == {"likes tea", "likes coffee"}


def test_where_the_past_cannot_be_asked_for_nothing_is_known_of_it(
    world: World, based: AgentMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    def hiccup(_: PastAnchor) -> list[PastAnchor]:
        raise ChainUnavailable("a hiccup")

    based.anchor()
    memory = world.machine("new")
    memory.remember("of the new machine")
    monkeypatch.setattr(AnchorDesk, "history_sources", lambda _self: (hiccup,))
    assert memory.verify().verdict is Verdict.DIVERGED
    memory.sync()
    assert texts(memory) == {"base", "of the new machine"}


def test_what_is_trusted_anew_is_known(world: World, based: AgentMemory) -> None:
    set_back(world, based, "secret")
    assert based.verify().verdict is Verdict.FORK
    assert based.trust_chain_anew()
    key = based._commitment.look().key
    mark = based._state.mark(key)
    assert mark is not None
    assert based._state.known_anchor(key, mark.root) is not None


def test_memories_of_one_context_go_on_once_the_chain_is_back(world: World, based: AgentMemory) -> None:
    first, second = AgentMemory(based.context), AgentMemory(based.context)
    assert first.verify()
    assert second.verify()
    away = world.chain_file.rename(world.folder / "away.db")
    assert first.verify().verdict is Verdict.CHAIN_RESET
    away.rename(world.chain_file)
    assert first.verify()
    assert second.verify()
    first.close()
    second.close()
