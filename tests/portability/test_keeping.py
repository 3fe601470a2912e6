"""An anchor that nobody changes is kept alive by heartbeats, and by the command."""

from __future__ import annotations

import contextlib
import io
import json
from typing import TYPE_CHECKING

import pytest

from mycelium_cli.commands.machines import _line
from mycelium_cli.main import run
from mycelium_cli.reference import RESULTS
from mycelium_localnet import Chain
from mycelium_sdk.chain.base import EntryStatus
from mycelium_sdk.chain.keeping import Kept, Part
from mycelium_sdk.context import AgentContext
from mycelium_sdk.errors import ChainUnavailable, InputError, PassphraseRequired
from mycelium_sdk.memory import AgentMemory, AnchoringPolicy
from tests.memory.conftest import PASSPHRASE, World

if TYPE_CHECKING:
    from mycelium_sdk.chain.base import EntryState


@pytest.fixture
def brief(world: World) -> World:
    """One on a chain whose entries live for a few ledgers."""
    Chain.open(world.chain_file, profile="short-ttl").close()
    return world


def _skip(world: World, ledgers: int) -> None:
    with contextlib.closing(Chain.open(world.chain_file)) as chain:
        chain.skip_ledgers(ledgers)


def _state(memory: AgentMemory) -> EntryState:
    return memory.context.anchor_client().entry_state(memory.owner, expiring_within=5)


def _left(memory: AgentMemory) -> int:
    remaining = _state(memory).remaining
    assert remaining is not None
    return remaining


@pytest.mark.parametrize("late", [-2, 3])
def test_a_heartbeat_extends_or_restores(brief: World, late: int) -> None:
    memory = brief.machine("a")
    memory.remember("one")
    memory.anchor()
    _skip(brief, _left(memory) + late)
    assert _state(memory).status is (EntryStatus.EXPIRING if late < 0 else EntryStatus.ARCHIVED)
    assert memory.heartbeat() is None
    assert _state(memory).status is EntryStatus.LIVE
    before = _left(memory)
    _skip(brief, 3)
    assert memory.heartbeat() is None
    assert _left(memory) == before - 3  # it looks once an hour


def test_a_policy_may_leave_it_alone(brief: World) -> None:
    memory = brief.machine("a", policy=AnchoringPolicy(keep_alive=False))
    memory.remember("one")
    memory.anchor()
    _skip(brief, _left(memory) - 2)
    assert memory.heartbeat() is None
    assert _left(memory) == 2
    with pytest.raises(InputError):
        AnchoringPolicy(keep_alive="yes")  # type: ignore[arg-type]


def test_a_chain_that_cannot_be_asked_does_not_stop_a_heartbeat(
    brief: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = brief.machine("a")
    memory.remember("one")
    memory.anchor()
    _skip(brief, _left(memory) - 2)

    def unreachable(*_: object, **__: object) -> object:
        raise ChainUnavailable("no network")

    with monkeypatch.context() as patched:
        patched.setattr(type(memory.context.chain), "entries", unreachable)
        assert memory.heartbeat() is None
    assert memory.heartbeat() is None
    assert _left(memory) > 2


def test_a_memory_that_was_never_anchored_asks_nobody(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    memory = world.machine("a")
    assert memory.heartbeat() is None
    assert not world.chain_file.exists()


def test_the_command_shows_the_price_first(brief: World, monkeypatch: pytest.MonkeyPatch) -> None:
    memory = brief.machine("a")
    memory.remember("one")
    memory.anchor()
    monkeypatch.setenv("MYCELIUM_HOME", str(brief.folder / "a"))
    monkeypatch.setenv("MYCELIUM_CHAIN_FILE", str(brief.chain_file))
    monkeypatch.setenv("MYCELIUM_WALLET", str(brief.wallet.path))
    monkeypatch.setenv("MYCELIUM_DECRYPT_KEY", PASSPHRASE)

    def command(*arguments: str) -> tuple[int, str, str]:
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = run(["memory", "keep-alive", *arguments])
        return code, out.getvalue(), err.getvalue()

    _skip(brief, _left(memory) - 2)
    code, out, err = command("--json")
    assert code == 0
    assert " ".join(json.loads(out)) == RESULTS["memory keep-alive"]
    assert "note: to extend anchor costs at most" in err
    code, out, err = command("--include-contract")
    assert code == 2
    assert "note: to restore contract and code costs at most" in err
    assert "hint: say --yes" in err
    code, out, err = command("--include-contract", "--yes")
    assert code == 0
    assert "contract  lives for" in out
    assert "restored now" in out


def test_nothing_to_keep_alive_needs_no_passphrase(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    memory = world.machine("a")
    memory.remember("one")
    memory.anchor()
    monkeypatch.delenv("MYCELIUM_DECRYPT_KEY", raising=False)
    with (
        AgentContext(configuration=memory.context.configuration) as locked,
        AgentMemory(locked) as again,
    ):
        assert again.heartbeat() is None
        assert again.keep_alive()
        again.remember("two")
        with pytest.raises(PassphraseRequired):
            again.anchor()


@pytest.mark.parametrize(
    ("before", "now", "said"),
    [(100, 99, "ledgers more (about 0 days)"), (100, 2000, "extended now"), (None, 2000, "restored now")],
)
def test_what_was_done_is_told_from_ledgers_that_closed(before: int | None, now: int, said: str) -> None:
    assert _line(Kept(Part.CODE, before, now)).endswith(said)
