"""Networks that fail below or beside JSON-RPC: each has its own error, for programs and people, in time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from mycelium_sdk.errors import ChainError, ChainUnavailable, MyceliumError, Unsettled
from mycelium_sdk.memory import AgentMemory
from mycelium_sdk.verdicts import Verdict
from tests.chain.sockets import make_certificate
from tests.faults.relay import ALL, Relay, hang_up, impatient_about, page, silence

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.faults.relay import Manner
    from tests.faults.scenes import Scene

QUESTION_SECONDS = 50
SENDING_SECONDS = 100
WAITING_SECONDS = 140
"""What `RpcChain` promises."""

TROUBLES: dict[str, tuple[type[ChainError], str, dict[str, Manner]]] = {
    "unplugged": (ChainUnavailable, "cannot be reached", {}),
    "hung up": (ChainUnavailable, "cannot be reached", {ALL: hang_up}),
    "page": (ChainUnavailable, "something else than JSON-RPC", {ALL: page("200 OK")}),
    "page of a proxy": (ChainUnavailable, "HTTP status 502", {ALL: page("502 Bad Gateway")}),
    "sign-in page": (ChainError, "HTTP status 302", {ALL: page("302 Found")}),
    "untrusted certificate": (ChainError, "no secure connection", {}),
    "silent": (ChainUnavailable, "did not answer in time", {ALL: silence}),
}
METHODS: dict[str, Callable[[AgentMemory], object]] = {
    "anchor": AgentMemory.anchor,
    "verify": AgentMemory.verify,
    "get_anchor": AgentMemory.get_anchor,
    "rehydrate": AgentMemory.rehydrate,
    "on_job_complete": AgentMemory.on_job_complete,
    "heartbeat": AgentMemory.heartbeat,
    "trust_chain_anew": AgentMemory.trust_chain_anew,
}
COMMANDS = [
    ("memory", "anchor"), ("memory", "verify"), ("memory", "status"), ("memory", "rehydrate"),
    ("contract", "deploy"),
]  # fmt: skip


@pytest.fixture
def scene(stage: Callable[..., Scene]) -> Scene:
    return stage()


@pytest.fixture
def connect(scene: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], str]]:
    """Puts a server in trouble in front of the scene's chain; its URL."""
    relays: list[Relay] = []

    def start(trouble: str, manners: dict[str, Manner] | None = None) -> str:
        wanted = TROUBLES[trouble][2] if manners is None else manners
        impatient_about(
            monkeypatch, scene.clock, [name for name, manner in wanted.items() if manner is silence]
        )
        tls = make_certificate(tmp_path)[0] if trouble == "untrusted certificate" else None
        relay = Relay(scene.truth.chain, wanted, tls)
        relays.append(relay)
        if trouble == "unplugged":
            relay.close()
        return relay.url

    yield start
    for relay in relays:
        relay.close()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("trouble", TROUBLES)
def test_a_memory_says_what_is_wrong_with_the_network(
    scene: Scene, connect: Callable[[str], str], trouble: str, method: str
) -> None:
    kind, words, _ = TROUBLES[trouble]
    memory = scene.behind(connect(trouble), "a")
    with pytest.raises(ChainError, match=words) as caught:
        METHODS[method](memory)
    _expect(caught.value, kind)
    assert scene.clock.seconds <= QUESTION_SECONDS
    assert scene.truth.version() == 2
    assert scene.held("a") == {"one", "two", "three"}


@pytest.mark.parametrize("trouble", TROUBLES)
def test_a_witness_in_trouble_is_no_witness(
    scene: Scene, connect: Callable[[str], str], trouble: str
) -> None:
    kind, words, _ = TROUBLES[trouble]
    memory = scene.machine("a", cross_check=[connect(trouble)])
    for call in (AgentMemory.verify, AgentMemory.anchor):
        with pytest.raises(ChainError, match=words) as caught:
            call(memory)
        _expect(caught.value, kind)
    assert scene.truth.version() == 2


def _expect(error: MyceliumError, kind: type[ChainError]) -> None:
    assert type(error) is kind
    assert error.verdict is Verdict.UNAVAILABLE
    assert error.hint


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
@pytest.mark.parametrize("trouble", TROUBLES)
def test_a_command_says_what_is_wrong_with_the_network(
    scene: Scene, connect: Callable[[str], str], trouble: str, command: tuple[str, ...]
) -> None:
    kind, words, _ = TROUBLES[trouble]
    code, document = scene.command("a", *command, *scene.options_for(connect(trouble)))
    assert code == ChainError.exit_code
    error = document["error"]
    assert error["type"] == kind.__name__
    assert words in error["message"]
    assert (error["verdict"], error["exit_code"]) == (Verdict.UNAVAILABLE, code)
    assert error["hint"]
    assert scene.clock.seconds <= QUESTION_SECONDS
    assert scene.truth.version() == 2


@pytest.mark.parametrize("trouble", TROUBLES)
def test_the_doctor_names_it_and_goes_home(scene: Scene, connect: Callable[[str], str], trouble: str) -> None:
    code, document = scene.command("a", "doctor", *scene.options_for(connect(trouble)))
    (finding,) = [check for check in document["checks"] if check["state"] == "fault"]
    assert (code, finding["name"]) == (ChainError.exit_code, "chain")
    assert TROUBLES[trouble][1] in finding["message"]
    assert finding["fix"]
    assert scene.clock.seconds <= QUESTION_SECONDS


UNKNOWN: dict[str, tuple[dict[str, Manner], int, int]] = {
    "no poll is answered": ({"getTransaction": silence}, WAITING_SECONDS, 1),
    "each poll gets a page": ({"getTransaction": page("200 OK")}, WAITING_SECONDS, 1),
    "each poll is hung up on": ({"getTransaction": hang_up}, WAITING_SECONDS, 1),
    "nothing is said to what is sent": ({"sendTransaction": silence}, SENDING_SECONDS, 0),
    "what is sent gets a page": ({"sendTransaction": page("200 OK")}, SENDING_SECONDS, 0),
}
"""Manners, the time limit, and how many transactions take effect."""


@pytest.mark.parametrize("by", ["method", "command"])
@pytest.mark.parametrize("trouble", UNKNOWN)
def test_an_unknown_outcome_is_said_in_time_and_settled_by_the_next_run(
    scene: Scene, connect: Callable[..., str], trouble: str, by: str
) -> None:
    manners, limit, made = UNKNOWN[trouble]
    url = connect(trouble, manners)
    if by == "method":
        with pytest.raises(Unsettled) as caught:
            scene.behind(url, "a").anchor()
        named: Any = caught.value.hash
    else:
        code, document = scene.command("a", "memory", "anchor", *scene.options_for(url))
        assert (code, document["error"]["type"]) == (ChainError.exit_code, "Unsettled")
        assert "run the command again" in document["error"]["hint"]
        named = document["error"]["message"].split()[4]
    assert set(scene.traffic.sent) == {named}
    assert scene.clock.seconds <= limit
    assert scene.truth.version() == 2 + made
    # The server is well again: what was in flight is finished, the very same transaction.
    memory = scene.machine("a")
    assert memory.anchor() == 4
    assert scene.truth.version() == 4
    assert [name for name, _ in scene.truth.anchorings()].count(named) == 1
    assert memory.verify()
