"""Every failure is a problem in the form of RFC 9457, and says nothing that it should not."""

from __future__ import annotations

import http.client
import io
import json
import logging
import socket
import threading
from typing import TYPE_CHECKING, Any

import pytest

from mycelium_indexer.api.logs import JsonFormatter
from mycelium_sdk.errors import StoreUnavailable

from .ground import CONTRACT, NETWORK, anchors_of, fill, owner_number, serving, settings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mycelium_indexer.store.base import IndexStore

    from .ground import Api

OWNER = owner_number(1)
STANDING = {"contract": CONTRACT, "network": NETWORK, "as_of_ledger": 5000, "lag": 7.5}
MEMBERS = {"type", "title", "status", "detail", *STANDING}
SECRET = "what an owner wrote into an anchor"


class Failing:
    """A store whose `latest` fails when it is told to."""

    def __init__(self, store: IndexStore) -> None:
        self._store = store
        self.failure: Exception | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def latest(self, *args: Any) -> Any:
        if self.failure is not None:
            raise self.failure
        return self._store.latest(*args)


@pytest.fixture
def failing(store: IndexStore) -> Failing:
    fill(store, anchors_of(OWNER, [b""]))
    return Failing(store)


@pytest.fixture
def lines() -> Iterator[io.StringIO]:
    """What is logged, as it is written."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonFormatter())
    logger = logging.getLogger("mycelium_indexer")
    logger.addHandler(handler)
    yield stream
    logger.removeHandler(handler)


def test_no_such_resource(store: IndexStore, api: Api) -> None:
    fill(store, [])
    assert api.get("/readyz").status == 200
    for path in (
        "/nothing",
        "/memory/",
        f"/memory/{OWNER}/",
        f"/memory/{OWNER}/history/1",
        "/%00",
        "//memory",
    ):
        answer = api.get(path)
        assert (answer.status, answer.problem) == (404, "not-found")
        assert set(answer.json) == MEMBERS
        assert {key: answer.json[key] for key in STANDING} == STANDING
        assert answer.headers["X-Content-Type-Options"] == "nosniff"


def test_nothing_can_be_written(store: IndexStore, api: Api) -> None:
    fill(store, [])
    for method in ("POST", "PUT", "PATCH", "DELETE", "TRACE", "OPTIONS", "PROPFIND"):
        for path in ("/memory", f"/memory/{OWNER}", f"/memory/{OWNER}/history", "/healthz", "/openapi.json"):
            answer = api.get(path, method=method, Content_Length="0")
            assert (answer.status, answer.problem) == (405, "method-not-allowed")
            assert set(answer.headers["Allow"].split(", ")) == {"GET", "HEAD"}
            assert set(answer.json) == MEMBERS


@pytest.mark.parametrize(
    "sent",
    [b"nonsense\r\n\r\n", b"GET /memory/\xff\xfe HTTP/1.1\r\nHost: a\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n"],
)
def test_what_is_no_http(store: IndexStore, api: Api, sent: bytes) -> None:
    fill(store, [])
    with socket.create_connection(("127.0.0.1", api.port), 60) as connection:
        connection.sendall(sent)
        answer = http.client.HTTPResponse(connection)
        answer.begin()
        problem = json.loads(answer.read())
    assert (answer.status, answer.headers["Content-Type"]) == (400, "application/problem+json")
    assert set(problem) == MEMBERS
    assert problem["type"] == "urn:mycelium:problem:malformed-request"


def test_a_database_that_does_not_answer(failing: Failing, lines: io.StringIO) -> None:
    with serving(failing, settings()) as api:
        assert api.get(f"/memory/{OWNER}").status == 200
        failing.failure = StoreUnavailable("the server is away", hint="start it")
        answer = api.get(f"/memory/{OWNER}")
        assert (answer.status, answer.problem) == (503, "database-unavailable")
        assert int(answer.headers["Retry-After"]) > 0
        assert {key: answer.json[key] for key in STANDING} == STANDING
        failing.failure = None
        assert api.get(f"/memory/{OWNER}").status == 200
    logged = [json.loads(line) for line in lines.getvalue().splitlines()]
    assert [line["problem"] for line in logged if "problem" in line] == ["the server is away"]


def test_a_bug_is_answered_and_logged_without_what_it_says(failing: Failing, lines: io.StringIO) -> None:
    with serving(failing, settings()) as api:
        failing.failure = ValueError(SECRET)
        answer = api.get(f"/memory/{OWNER}", Origin="https://elsewhere.example")
        assert (answer.status, answer.problem) == (500, "internal")
        assert answer.headers["Access-Control-Allow-Origin"] == "*"
        assert api.get("/healthz").status == 200
    assert SECRET not in answer.body.decode() + lines.getvalue()
    logged = [json.loads(line) for line in lines.getvalue().splitlines()]
    (bug,) = [line for line in logged if "exception" in line]
    assert bug["exception"] == "ValueError"
    assert "test_failures.py" in bug["raised_at"][-1]
    assert [line["status"] for line in logged if "status" in line] == [500, 200]


def test_a_log_line_names_the_route_and_nothing_of_the_request(store: IndexStore, lines: io.StringIO) -> None:
    fill(store, anchors_of(OWNER, [SECRET.encode()]))
    with serving(store, settings()) as api:
        api.get(f"/memory/{OWNER}/history?limit=7", User_Agent="somebody")
        api.get("/elsewhere")
    logged = [json.loads(line) for line in lines.getvalue().splitlines()]
    assert [(line["route"], line["status"]) for line in logged] == [
        ("/memory/{owner}/history", 200),
        ("unmatched", 404),
    ]
    assert set(logged[0]) == {"time", "level", "logger", "event", "route", "status", "ms"}
    for hidden in (OWNER, SECRET, "limit", "somebody", "elsewhere"):
        assert hidden not in lines.getvalue()


def test_more_than_can_wait_are_sent_away_at_once(failing: Failing, serve: Any) -> None:
    """One reader that hangs and nobody who may wait: the next is refused, and health is still answered."""
    entered, leave = threading.Event(), threading.Event()

    class Hanging(Failing):
        def latest(self, *args: Any) -> Any:
            entered.set()
            assert leave.wait(60)
            return super().latest(*args)

    api = serve(Hanging(failing._store), readers=1, most_waiting=0)
    answers: list[int] = []
    first = threading.Thread(target=lambda: answers.append(api.get(f"/memory/{OWNER}").status))
    first.start()
    try:
        assert entered.wait(60)
        refused = api.get(f"/memory/{OWNER}")
        assert (refused.status, refused.problem) == (503, "overloaded")
        assert refused.headers["Retry-After"] == "1"
        assert api.get("/healthz").status == 200
    finally:
        leave.set()
        first.join(60)
    assert answers == [200]
    assert api.get(f"/memory/{OWNER}").status == 200
