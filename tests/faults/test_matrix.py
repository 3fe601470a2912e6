"""Each fault of the local chain against each call that asks a chain: the right error, or success all the
same, and never two transactions for one anchor.

A new fault, a new method of `AgentMemory` or a new command has to be entered in the tables here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
import pytest

from mycelium_cli.root import cli
from mycelium_localnet.faults import kinds
from mycelium_localnet.faults.kinds import KINDS
from mycelium_sdk.errors import Fork, UnanchoredWrites, VersionConflict
from mycelium_sdk.memory import AgentMemory
from mycelium_sdk.verdicts import Verdict
from tests.faults.scenes import CALLS, Scene

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import TypeAlias

    from mycelium_localnet.faults.kinds import FaultKind

    Stage: TypeAlias = Callable[..., Scene]
    Row: TypeAlias = dict[str, tuple[str, str]]

ONLINE = {
    "anchor": ["anchor", "first anchor", "witnessed anchor"],
    "anchor_with_receipt": ["memory anchor"],
    "on_job_complete": ["on_job_complete"],
    "heartbeat": ["heartbeat"],
    "verify": ["verify", "witnessed verify"],
    "get_anchor": ["get_anchor"],
    "rehydrate": ["rehydrate"],
    "rehydrate_with_report": ["memory rehydrate"],
    "trust_chain_anew": ["trust_chain_anew"],
    "sync": ["sync"],
    "history": ["history"],
    "diff": ["diff"],
    "keep_alive": ["keep_alive"],
    "purge": ["history"],  # which is all that it asks of the chain
}
OFFLINE = {
    "remember", "recall", "forget", "memory_root", "is_dirty", "last_anchor", "owner", "backend", "context",
    "contract_id", "count", "close", "versions_holding",
}  # fmt: skip
ONLINE_COMMANDS = {
    "memory anchor", "memory verify", "memory status", "memory rehydrate", "memory inspect",
    "contract deploy", "doctor",
}  # fmt: skip
BY_THEIR_METHODS = {
    "memory sync", "memory history", "memory diff", "memory keep-alive", "memory purge",
}  # fmt: skip
OFFLINE_COMMANDS = {
    "memory remember", "memory recall", "memory import", "memory export", "memory forget",
    "memory repair",
    "wallet new", "wallet show", "contract build", "localnet", "demo",
    "indexer run", "indexer serve", "indexer repair",  # tests/indexer has their faults
}  # fmt: skip

PASSING = 3
"""So many requests are seen through."""
LASTING = 1_000_000


def row(well: str, lost: str, **others: str | tuple[str, str]) -> Row:
    """What a call comes to when its next three requests are hit, and when all are.

    `well` where it succeeds all the same, `lost` where no request is answered. The faults of answers are
    given one by one.
    """
    named = {kind: (each, each) if isinstance(each, str) else each for kind, each in others.items()}
    return {
        **dict.fromkeys(("http_503", "http_504", "html", "drop"), (well, lost)),
        "slow": (well, well),
        **named,
    }


def writes(well: str, unavailable: str, unsettled: str, **others: str | tuple[str, str]) -> Row:
    """The row of a call that sends a transaction."""
    return row(
        well,
        unavailable,
        try_again_later=(well, unavailable),
        not_found=(well, unsettled),
        never_closes=unsettled,
        retention=well,
        **others,
    )


def reads(well: str, lost: str, **others: str | tuple[str, str]) -> Row:
    """The row of a call that only asks: what befalls transactions and history is nothing to it."""
    unconcerned = dict.fromkeys(("try_again_later", "never_closes", "not_found", "retention"), well)
    return row(well, lost, **unconcerned, **others)


EXPECTED: dict[str, Row] = {
    "anchor": writes("3", "ChainUnavailable", "Unsettled", archive="3", stale="ChainReset", fork="Fork"),
    "first anchor": writes(
        "1", "ChainUnavailable", "Unsettled", archive="1", stale=("1", "ChainError"), fork=("1", "Unsettled")
    ),
    "on_job_complete": writes(
        "3", "ChainUnavailable", "Unsettled", archive="3", stale="ChainReset", fork="Fork"
    ),
    "heartbeat": writes("3", "ChainUnavailable", "Unsettled", archive="3", stale="ChainReset", fork="Fork"),
    "verify": reads("AHEAD", "ChainUnavailable", archive="ARCHIVED", stale="CHAIN_RESET", fork="FORK"),
    "get_anchor": reads("2", "ChainUnavailable", archive="2", stale="ChainReset", fork="Fork"),
    # A machine that has not seen version 2 cannot tell that a server lags; that version 2 does not come after
    # the version 1 that it has seen, it can.
    "rehydrate": reads("2", "ChainUnavailable", archive="2", stale="1", fork="Fork"),
    "trust_chain_anew": reads("False", "ChainUnavailable", archive="False", stale="True", fork="True"),
    "sync": writes("3", "ChainUnavailable", "Unsettled", archive="3", stale="ChainReset", fork="Fork"),
    "history": reads("done", "ChainUnavailable", archive="done", stale="ChainReset", fork="Fork"),
    # A version that the server has forgotten is none of the history that can be compared.
    "diff": reads("done", "ChainUnavailable", archive="done", stale="ChainReset", fork="Fork")
    | {"retention": ("InputError", "InputError")},
    # There is nothing to extend; what is archived again as soon as it is restored stays so.
    "keep_alive": reads(
        "done", "ChainUnavailable", archive=("done", "ChainError"), stale="done", fork="done"
    ),
    "witnessed anchor": row(
        "3", "ChainUnavailable", try_again_later="3", not_found="3", never_closes="3", retention="3",
        archive="3", stale="3", fork="Fork",
    ),
    "witnessed verify": reads("AHEAD", "ChainUnavailable", archive="AHEAD", stale="AHEAD", fork="FORK"),
    "memory anchor": writes(
        "0 3", "6 ChainUnavailable", "6 Unsettled", archive="0 3", stale="6 ChainReset", fork="7 Fork"
    ),
    "memory verify": reads(
        "7 AHEAD", "6 ChainUnavailable", archive="7 ARCHIVED", stale="7 CHAIN_RESET", fork="7 FORK"
    ),
    "memory status": reads(
        "0 AHEAD", "6 ChainUnavailable", archive="0 ARCHIVED", stale="0 CHAIN_RESET", fork="0 FORK"
    ),
    "memory rehydrate": reads("0 2", "6 ChainUnavailable", archive="0 2", stale="0 1", fork="7 Fork"),
    # Only the chain is asked: the blob lies in the home folder's own blobs/.
    "memory inspect": reads(
        "0 2", "6 ChainUnavailable", archive="0 2", stale="6 ChainReset", fork="7 Fork"
    ),
    # A server that always shows the sequence number of yesterday gets no transaction through.
    "contract deploy": writes(
        "0 done", "6 ChainUnavailable", "6 Unsettled", archive="0 done",
        stale=("0 done", "6 TransactionFailed"), fork="0 done",
    ),
    # What it asks first may lag; the faults are spent when it comes to the verdict.
    "doctor": reads(
        "0", "6 chain", archive="6 anchor", stale=("0", "7 verdict"), fork=("0", "8 blob verdict")
    ),
}  # fmt: skip

ANCHORING = {
    "sync", "anchor", "first anchor", "on_job_complete", "heartbeat", "witnessed anchor", "memory anchor",
}  # fmt: skip

SENDS, POLLS = ["sendTransaction"], ["getTransaction"]
ON_THE_WAY: dict[str, tuple[FaultKind, dict[str, Any]]] = {
    "503 for each send": ("http_503", {"methods": SENDS}),
    "504 for each send, nothing arrives": ("http_504", {"methods": SENDS, "carried_out": False}),
    "504 for each send, all arrive": ("http_504", {"methods": SENDS, "carried_out": True}),
    "a page for each send, nothing arrives": ("html", {"methods": SENDS, "carried_out": False}),
    "a page for each send, all arrive": ("html", {"methods": SENDS, "carried_out": True}),
    "no send arrives": ("drop", {"methods": SENDS, "carried_out": False}),
    "all sends arrive, no answer does": ("drop", {"methods": SENDS, "carried_out": True}),
    "the entry is archived before each send": ("archive", {"methods": SENDS}),
    "slow sends": ("slow", {"methods": SENDS}),
    "503 for each poll": ("http_503", {"methods": POLLS}),
    "504 for each poll": ("http_504", {"methods": POLLS}),
    "a page for each poll": ("html", {"methods": POLLS}),
    "no poll is answered": ("drop", {"methods": POLLS}),
    "slow polls": ("slow", {"methods": POLLS}),
    "polls that lag": ("stale", {"methods": POLLS}),
    "polls of another branch": ("fork", {"methods": POLLS}),
    "polls of a server that keeps one ledger": ("retention", {"methods": POLLS}),
    "sequence numbers that lag": ("stale", {"methods": ["getLedgerEntries"]}),
    "no funds, and nothing arrives": ("drop", {"methods": ["friendbot"], "carried_out": False}),
    "no funds, 503": ("http_503", {"methods": ["friendbot"]}),
    "funds, and no answer": ("drop", {"methods": ["friendbot"], "carried_out": True}),
    "funds, and a page": ("html", {"methods": ["friendbot"], "carried_out": True}),
}
"""What may befall the requests that a transaction takes, each of them for good."""

LOST = {
    "503 for each send", "504 for each send, nothing arrives", "a page for each send, nothing arrives",
    "no send arrives", "503 for each poll", "504 for each poll", "a page for each poll",
    "no poll is answered", "polls that lag",
}  # fmt: skip
"""Where whoever sends cannot know what became of it."""

HARMLESS = {
    "504 for each send, all arrive", "a page for each send, all arrive", "all sends arrive, no answer does",
    "the entry is archived before each send", "slow sends", "slow polls", "polls of another branch",
    "polls of a server that keeps one ledger", "funds, and no answer", "funds, and a page",
}  # fmt: skip

SENDING: dict[str, dict[str, str]] = {
    "anchor": {
        **dict.fromkeys(LOST, "Unsettled"),
        **dict.fromkeys(HARMLESS, "3"),
        "sequence numbers that lag": "TransactionFailed",
        "no funds, and nothing arrives": "3",
        "no funds, 503": "3",
    },
    "first anchor": {
        **dict.fromkeys(LOST, "Unsettled"),
        **dict.fromkeys(HARMLESS, "1"),
        "sequence numbers that lag": "ChainError",
        "no funds, and nothing arrives": "ChainUnavailable",
        "no funds, 503": "ChainUnavailable",
    },
    "contract deploy": {
        **dict.fromkeys(LOST, "6 Unsettled"),
        **dict.fromkeys(HARMLESS, "0 done"),
        "sequence numbers that lag": "6 TransactionFailed",
        "no funds, and nothing arrives": "0 done",
        "no funds, 503": "0 done",
    },
}


def stage_for(stage: Stage, call: str) -> Scene:
    return stage("new.db" if call == "first anchor" else "chain.db")


def machine_of(call: str) -> str:
    return {"first anchor": "new", "rehydrate": "b", "memory rehydrate": "b"}.get(call, "a")


def hurt(scene: Scene, call: str, kind: FaultKind, options: dict[str, Any]) -> None:
    """Set a fault where the call will meet it."""
    if kind == "slow":
        options = {**options, "seconds": 0.0 if call.startswith("witnessed") else 0.001}
    if call.startswith("witnessed"):
        scene.hurt_witness(kind, **options)
    else:
        scene.truth.chain.fault(kind, **options)


def carry_out(scene: Scene, call: str, expected: str) -> None:
    """Make the call, and check that it comes to what is expected, and what it left on the chain."""
    before = scene.truth.applied()
    version = scene.truth.version()
    assert CALLS[call](scene) == expected
    after = scene.truth.applied()
    made = scene.truth.version() - version
    assert after[: len(before)] == before
    assert set(after[len(before) :]) <= set(scene.traffic.sent)
    if call in ANCHORING:
        assert len(after) - len(before) == made
        succeeded = expected[-1].isdigit()
        assert made == 1 if succeeded else made <= ("Unsettled" in expected)
    else:
        assert made == 0
    if call not in ANCHORING | {"contract deploy", "keep_alive"}:
        assert scene.traffic.sent == []
    if call in ANCHORING:
        # What was sent and did not take effect is still on record, and nothing else is.
        lost = "Unsettled" in expected and scene.own_sent() != []
        assert (scene.recorded(machine_of(call)) is not None) == lost


def go_on(scene: Scene, call: str, *, forged: bool) -> None:
    """Once the trouble is over the next run settles what is open, and nothing was lost or made twice."""
    scene.truth.chain.clear_faults()
    name, before = machine_of(call), scene.truth.applied()
    held = {"a": {"one", "two", "three"}, "b": {"one", "two"}, "new": {"first"}}[name]
    in_flight = [each for each in scene.own_sent() if each not in before]
    resumed = in_flight if scene.recorded(name) is not None else []
    memory = scene.machine(name)
    memory.remember("later")
    try:
        memory.get_anchor()
    except Fork:
        assert forged, "nobody lied"
        assert memory.trust_chain_anew()
    try:
        version = memory.anchor()
    except (VersionConflict, UnanchoredWrites):
        assert name == "b" or call == "trust_chain_anew", "what it made itself is no conflict"
        assert memory.rehydrate(on_conflict="merge")["version"] == scene.truth.version()
        version = memory.anchor()
    assert version == scene.truth.version()
    assert memory.verify().verdict is Verdict.IN_SYNC
    assert scene.held(name) == {*held, "later"}
    settled = [each for each in scene.truth.applied() if each not in before]
    assert settled[:-1] == resumed, "the very same transaction is brought to its end"
    assert settled[-1] not in in_flight, "an anchor is a transaction of its own"
    made = [each for each, _ in scene.truth.anchorings()]
    assert len(made) == len(set(made)) == version


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("call", EXPECTED)
@pytest.mark.parametrize(("place", "count"), [(0, PASSING), (1, LASTING)], ids=["passing", "lasting"])
def test_a_fault(stage: Stage, call: str, kind: FaultKind, place: int, count: int) -> None:
    scene = stage_for(stage, call)
    hurt(scene, call, kind, {"count": count})
    carry_out(scene, call, EXPECTED[call][kind][place])
    if count == LASTING or scene.traffic.sent:
        go_on(scene, call, forged=kind == "fork")


@pytest.mark.parametrize("trouble", ON_THE_WAY)
@pytest.mark.parametrize("call", SENDING)
def test_trouble_on_the_way_of_a_transaction(stage: Stage, call: str, trouble: str) -> None:
    scene = stage_for(stage, call)
    kind, options = ON_THE_WAY[trouble]
    hurt(scene, call, kind, {"count": LASTING, **options})
    carry_out(scene, call, SENDING[call][trouble])
    go_on(scene, call, forged=False)


def commands(group: click.Group, path: tuple[str, ...] = ()) -> Iterator[str]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))
        else:
            yield " ".join((*path, name))


def test_every_fault_and_every_call_has_its_entry() -> None:
    assert EXPECTED.keys() == CALLS.keys()
    for call, expected in EXPECTED.items():
        assert expected.keys() == set(KINDS), call
    public = {name for name in dir(AgentMemory) if not name.startswith("_")}
    assert public == ONLINE.keys() | OFFLINE
    assert {call for calls in ONLINE.values() for call in calls} | ONLINE_COMMANDS == CALLS.keys()
    assert set(commands(cli)) == ONLINE_COMMANDS | BY_THEIR_METHODS | OFFLINE_COMMANDS
    for call, troubles in SENDING.items():
        assert troubles.keys() == ON_THE_WAY.keys(), call
    for method in (*SENDS, *POLLS):
        every = {kind for kind in KINDS if method in kinds._CONCERNS[kind] and len(kinds._CONCERNS[kind]) > 1}
        assert {kind for kind, options in ON_THE_WAY.values() if options["methods"] == [method]} == every
