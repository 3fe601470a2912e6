"""An indexer that cannot be used: the client says so in time, and the memory goes on with the chain."""

from __future__ import annotations

import json
import threading
import time
import traceback
from typing import TYPE_CHECKING, Any

import pytest

from mycelium_sdk.chain.indexer import IndexerClient
from mycelium_sdk.errors import ChainError, ChainUnavailable, InputError, WrongDomain
from tests.chain.sockets import Listening, Visit, http_answer

from .conftest import VERSIONS, Ground, at_once

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SECONDS = 0.5
"""What a request of these tests has; what must not decide a test is given a hundred times as much."""

NOWHERE = "http://127.0.0.1:1"


def answering(body: bytes, status: str = "200 OK", *headers: str) -> Callable[[Visit], None]:
    def answer(visit: Visit) -> None:
        while visit.request() is not None:
            visit.send(http_answer(body, status, *headers))

    return answer


def dripping(visit: Visit) -> None:
    """An answer without an end, a byte at a time."""
    visit.request()
    visit.send(b"HTTP/1.1 200 OK\r\nContent-Length: 9999999\r\n\r\n")
    visit.drip(b" ")


def flooding(visit: Visit) -> None:
    """An answer without an end, as fast as it goes."""
    visit.request()
    visit.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    while True:
        visit.send(b"100000\r\n" + b" " * 0x100000 + b"\r\n")


def silent(visit: Visit) -> None:
    visit.request()
    visit.silence()


def hanging_up(visit: Visit) -> None:
    visit.request()


def _anchor(**changes: object) -> dict[str, object]:
    return {"as_of_ledger": 1, "lag": 0, "gaps": [], "items": [], "next": None, **changes}


BAD: dict[str, tuple[Callable[[Visit], None], type[ChainError], str]] = {
    "slow": (silent, ChainUnavailable, "did not answer in time"),
    "a byte at a time": (dripping, ChainUnavailable, "did not answer in time"),
    "endless": (flooding, ChainError, "its answer is too large"),
    "hangs up": (hanging_up, ChainUnavailable, "cannot be reached"),
    "HTML": (answering(b"<html>Welcome</html>"), ChainError, "its answer is not JSON"),
    "500": (answering(b"oops", "500 Oops"), ChainUnavailable, "answered with status 500"),
    "502": (answering(b"<html>", "502 Bad Gateway"), ChainUnavailable, "answered with status 502"),
    "404": (answering(b"{}", "404 Not Found"), ChainError, "it answered with status 404"),
    "a redirect": (answering(b"{}", "301 Moved", f"Location: {NOWHERE}"), ChainError, "status 301"),
    "a list": (answering(b"[]"), ChainError, "its answer is no object"),
    "deep": (answering(b"[" * 100_000), ChainError, "its answer is not JSON"),
    "a huge number": (answering(b'{"lag":' + b"9" * 100_000 + b"}"), ChainError, "its answer is not JSON"),
    "nothing of ours": (answering(b'{"a": 1}'), WrongDomain, "another network or contract"),
    "no bytes": (answering(b""), ChainError, "its answer is not JSON"),
    "no UTF-8": (answering(b'{"a": "\xff"}'), ChainError, "its answer is not JSON"),
}


@pytest.fixture
def listening() -> Iterator[Callable[[Callable[[Visit], None]], str]]:
    servers: list[Listening] = []

    def start(handler: Callable[[Visit], None]) -> str:
        servers.append(Listening(handler))
        return servers[-1].url.replace("localhost", "127.0.0.1").removesuffix("/rpc")

    yield start
    for server in servers:
        server.close()


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Clients that memories make for themselves have little time, too."""
    made = IndexerClient.__init__

    def init(self: IndexerClient, *args: Any, **kwargs: Any) -> None:
        made(self, *args, **{"seconds": SECONDS, "retries": at_once(2), **kwargs})

    monkeypatch.setattr(IndexerClient, "__init__", init)


def through(ground: Ground, url: str, machine: str) -> Any:
    ground.url = url
    try:
        return ground.memory(machine)
    finally:
        ground.url = None


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("bad", BAD)
def test_what_is_no_use_is_said_and_the_chain_is_asked(
    anchored: Ground, listening: Callable[[Callable[[Visit], None]], str], bad: str
) -> None:
    handler, kind, said = BAD[bad]
    url = listening(handler)
    name, began = f"the indexer at {url.removeprefix('http://')}", time.monotonic()
    with pytest.raises(kind, match=said) as caught:
        anchored.client(url).latest(anchored.owner)
    assert caught.value.message.startswith(name)
    assert "[indexer] url" in (caught.value.hint or "")
    history = through(anchored, url, "fallen back").history()
    assert time.monotonic() - began < 100 * SECONDS
    assert (len(history.anchors), history.verified, history.complete) == (VERSIONS, True, True)
    (note,) = history.notes
    assert note.startswith(f"{name} was not used: ")
    assert said in note


@pytest.mark.usefixtures("impatient")
def test_one_that_cannot_be_reached(anchored: Ground) -> None:
    memory = through(anchored, NOWHERE, "nowhere")
    history = memory.history()
    assert history.complete
    assert history.notes == (
        "the indexer at 127.0.0.1:1 was not used: the indexer at 127.0.0.1:1 cannot be reached",
    )
    with pytest.raises(InputError, match="version 9") as caught:
        memory.rehydrate(version=9)
    assert "was not used" in (caught.value.hint or "")


def _spoil(name: str, value: object) -> Callable[[str, Any], object]:
    def change(_: str, document: Any) -> object:
        return document | {name: value}

    return change


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (_spoil("lag", None), "`lag` is not a number of seconds"),
        (_spoil("lag", -1), "`lag` is not a number of seconds"),
        (_spoil("lag", True), "`lag` is not a number of seconds"),
        (_spoil("lag", float("nan")), "`lag` is not a number of seconds"),
        (_spoil("as_of_ledger", "1"), "`as_of_ledger` is not a number"),
        (_spoil("as_of_ledger", None), "`as_of_ledger` is not a number"),
        (_spoil("as_of_ledger", 2**32), "`as_of_ledger` is not a ledger"),
        (_spoil("as_of_ledger", 10**30), "`as_of_ledger` is not a number"),
        (_spoil("contract", "C"), "another network or contract"),
        (_spoil("network", None), "another network or contract"),
    ],
)
def test_every_answer_must_say_what_it_is_about(
    anchored: Ground, honest: str, change: Callable[[str, Any], object], said: str
) -> None:
    client = anchored.client(anchored.mirror(honest, change))
    for ask in (lambda: client.latest(anchored.owner), lambda: client.history(anchored.latest())):
        with pytest.raises(ChainError, match=said):
            ask()


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("items", None, "`items` is no list"),
        ("items", [], "a history of nothing"),
        ("items", ["x"], "an anchor is no object"),
        ("items", [{"owner": "G"}], "`owner` is no address"),
        ("gaps", None, "`gaps` is no list"),
        ("gaps", ["x"], "`gaps` holds something else"),
        ("gaps", [{"first": 1}], "`last` is not a number"),
        *(("next", value, "its history does not go on") for value in (7, "", "\ud800", "a b", "x" * 1001)),
    ],
)
def test_a_history_that_is_none(anchored: Ground, honest: str, name: str, value: object, said: str) -> None:
    client = anchored.client(anchored.mirror(honest, _spoil(name, value)))
    with pytest.raises(ChainError, match=said):
        client.history(anchored.latest())


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("version", 0, "`version` is not a number from 1"),
        ("version", 2**63, "`version` is not a number from 0"),
        ("timestamp", 253_370_764_800, "`timestamp` is no time"),
        ("ledger", 2**32, "`ledger` is no ledger's number"),
        ("tx", "\ud800", "`tx` is not lower-case hexadecimal"),
    ],
)
def test_an_anchor_that_no_chain_can_have(
    anchored: Ground, honest: str, name: str, value: object, said: str
) -> None:
    def change(_: str, document: Any) -> object:
        for item in document.get("items", [document]):
            item[name] = value
        return document

    client = anchored.client(anchored.mirror(honest, change))
    for ask in (lambda: client.latest(anchored.owner), lambda: client.history(anchored.latest())):
        with pytest.raises(ChainError, match=said):
            ask()


def test_no_traceback_shows_the_path_of_its_address(
    anchored: Ground, listening: Callable[[Callable[[Visit], None]], str]
) -> None:
    """It may be a key. What is shown says what happened all the same."""
    for url, said in (
        (f"{NOWHERE}/open/sesame", "Connection refused"),
        (f"{listening(hanging_up)}/open/sesame", "RemoteDisconnected"),
        (f"{listening(silent)}/open/sesame", "ReadTimeout"),
        (f"http://{'a' * 70}.example/open/sesame", "LocationParseError"),
    ):
        with pytest.raises(ChainUnavailable) as caught:
            anchored.client(url, seconds=SECONDS).latest(anchored.owner)
        shown = "".join(traceback.format_exception(caught.value))
        assert said in shown
        assert "sesame" not in shown
        assert "sesame" not in repr(caught.value.__cause__)
        assert caught.value.__context__ is None, "nor does anything that looks further"


def test_a_history_without_an_end_is_not_read_to_its_end(anchored: Ground, honest: str) -> None:
    """Whatever the pages hold, the first anchor that nothing commits to ends it; a full page is no reason."""
    asked: list[str] = []

    def change(path: str, document: Any) -> object:
        asked.append(path)
        return document | {"next": "AAAA"}

    client = anchored.client(anchored.mirror(honest, change))
    with pytest.raises(ChainError):
        client.history(anchored.latest())
    assert len(asked) < 4


def test_a_history_has_a_time_limit_for_all_of_its_pages(
    anchored: Ground, honest: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mycelium_sdk.chain.indexer._PAGE", 1)
    asked: list[str] = []
    over = threading.Event()

    def change(path: str, document: Any) -> object:
        asked.append(path)
        if len(asked) > 1:
            over.wait(60)
        return document

    client = anchored.client(anchored.mirror(honest, change), seconds=60.0, history_seconds=1.0)
    with pytest.raises(ChainUnavailable, match="did not answer in time"):
        client.history(anchored.latest())
    over.set()
    assert len(asked) < 3
    client = anchored.client(honest, seconds=60.0, history_seconds=0.0)
    with pytest.raises(ChainUnavailable, match="did not answer in time"):
        client.history(anchored.latest())
    assert client.latest(anchored.owner) is not None


@pytest.mark.parametrize("status", ["429 Too Many Requests", "503 Service Unavailable"])
def test_what_a_busy_server_asks_for_is_waited_for(
    anchored: Ground, honest: str, listening: Callable[[Callable[[Visit], None]], str], status: str
) -> None:
    turn = threading.Lock()
    answers = [
        http_answer(b"{}", status, "Retry-After: 7"),
        http_answer(b"{}", status, "retry-after: Thu, 01 Jan 1970 00:00:00 GMT"),
        http_answer(b"{}", status),
    ]

    def busy(visit: Visit) -> None:
        while visit.request() is not None:
            with turn:
                visit.send(answers.pop(0))

    waits: list[float] = []
    with pytest.raises(ChainUnavailable) as caught:
        anchored.client(listening(busy), retries=at_once(3, waits)).latest(anchored.owner)
    assert waits == [7.0, 0.5]
    assert caught.value.retry_after is None


def test_a_long_wait_is_left_to_the_caller(
    anchored: Ground, listening: Callable[[Callable[[Visit], None]], str]
) -> None:
    waits: list[float] = []
    url = listening(answering(json.dumps(_anchor()).encode(), "429 Too Many", "Retry-After: 60"))
    with pytest.raises(ChainUnavailable) as caught:
        anchored.client(url, retries=at_once(3, waits)).latest(anchored.owner)
    assert (caught.value.retry_after, waits) == (60.0, [])
    assert caught.value.retryable


def test_no_secret_of_the_address_is_said(anchored: Ground) -> None:
    with pytest.raises(ChainUnavailable) as caught:
        anchored.client("http://user:hunter2@127.0.0.1:1/key-4711").latest(anchored.owner)
    said = f"{caught.value} {caught.value.hint} {caught.value.__notes__}"
    assert "hunter2" not in said
    assert "4711" not in said
