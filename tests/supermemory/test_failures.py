"""Whatever the service answers, the error says what it means; nothing is lost, doubled or told."""

from __future__ import annotations

import logging
import traceback
from typing import TYPE_CHECKING, Any

import pytest

from mycelium_sdk.errors import BackendError, LimitExceeded, MyceliumError, StoreUnavailable
from mycelium_sdk.testing.supermemory_server import Fault, SupermemoryServer
from tests.supermemory.conftest import KEY

if TYPE_CHECKING:
    from collections.abc import Callable

    from mycelium_sdk.backends.supermemory import SupermemoryBackend
    from tests.supermemory.conftest import Clock, Open

SECRET = "the text that nobody may see"

CALLS: dict[str, Callable[[SupermemoryBackend], object]] = {
    "remember": lambda store: store.remember(SECRET, ["tag"]),
    "remember_many": lambda store: store.remember_many([SECRET, "two", "three", "four", "five"]),
    "recall": lambda store: store.recall(SECRET),
    "count": lambda store: store.count(),
    "export": lambda store: store.export_blob(),
    "forget": lambda store: store.forget(tag="old"),
    "clear": lambda store: store.clear(),
}


def contents(opened: Open) -> list[str]:
    with opened() as store:
        return sorted(one.record.content for one in store.iter_records())


def doubled(server: SupermemoryServer) -> list[str]:
    """Documents that were appended to."""
    return [doc.sent for doc in server.shelf(KEY).docs.values() if "\n" in doc.sent]


@pytest.mark.parametrize(
    ("status", "meaning"),
    [
        (400, (BackendError, "refused")),
        (401, (BackendError, "key")),
        (402, (BackendError, "credits")),
        (403, (BackendError, "key")),
        (404, (BackendError, "address")),
        (408, (StoreUnavailable, "failed")),
        (409, (StoreUnavailable, "busy")),
        (413, (LimitExceeded, "larger")),
        (422, (BackendError, "refused")),
        (429, (StoreUnavailable, "fewer requests")),
        (500, (StoreUnavailable, "failed")),
        (502, (StoreUnavailable, "failed")),
        (503, (StoreUnavailable, "failed")),
        (529, (StoreUnavailable, "failed")),
        (302, (BackendError, "refused")),
    ],
)
def test_every_refusal_is_the_right_error(
    opened: Open,
    server: SupermemoryServer,
    clock: Clock,
    status: int,
    meaning: tuple[type[MyceliumError], str],
) -> None:
    kind, words = meaning
    store = opened()
    server.faults = [Fault(status=status, times=99, headers={"Location": "/elsewhere"})]
    with pytest.raises(kind, match=words) as caught:
        store.recall("a question")
    assert caught.value.hint
    assert caught.value.retryable == (kind is StoreUnavailable)
    assert len(clock.slept) == (3 if caught.value.retryable else 0)
    server.faults = []
    assert store.recall("a question") == []


LOST = [
    *((call, "drop", executed) for call in CALLS for executed in (False, True)),
    *((call, kind, True) for call in ("remember", "forget", "export") for kind in ("status", "cut", "html")),
    *((call, "hang", executed) for call in ("remember", "recall") for executed in (False, True)),
]


@pytest.mark.parametrize(("call", "kind", "executed"), LOST)
def test_a_lost_answer_is_asked_for_again_and_nothing_is_doubled(
    opened: Open, server: SupermemoryServer, call: str, kind: Any, *, executed: bool
) -> None:
    opened().remember_many([("kept", ["kept"]), ("old one", ["old"]), ("old two", ["old"])])
    for warm in (False, True):
        store = opened(timeout=0.3 if kind == "hang" else 5.0, ranking="service" if warm else "words")
        if warm:
            store.count()
        before = len(server.requests)
        CALLS[call](opened()) if call == "recall" else CALLS[call](store)
        asked = len(server.requests) - before
        for after in range(min(asked, 4)):
            server.faults = [Fault(kind, executed=executed, after=after)]
            CALLS[call](store)
        server.faults = []
    expected = {
        "remember": ["kept", "old one", "old two", SECRET],
        "remember_many": sorted(["kept", "old one", "old two", SECRET, "two", "three", "four", "five"]),
        "forget": ["kept"],
        "clear": [],
    }.get(call, ["kept", "old one", "old two"])
    assert contents(opened) == expected
    assert doubled(server) == []


@pytest.mark.parametrize("executed", [False, True])
@pytest.mark.parametrize("number", [1, 5])
def test_every_request_of_a_write_may_fail(
    opened: Open, server: SupermemoryServer, number: int, *, executed: bool
) -> None:
    """One by one, each with a fresh text, cold and warm."""
    expected = []
    for warm in (False, True):
        for after in range(6):
            store = opened()
            if warm:
                store.count()
            texts = [f"{warm} {after} {place}" for place in range(number)]
            server.faults = [Fault("drop", executed=executed, after=after)]
            store.remember_many(texts)
            server.faults = []
            expected += texts
            assert store.count() == len(expected)
    assert contents(opened) == sorted(expected)
    assert doubled(server) == []
    assert opened().change_counter() == len(expected)


def test_a_service_that_is_gone_and_comes_back(
    store: SupermemoryBackend, opened: Open, server: SupermemoryServer, clock: Clock
) -> None:
    store.remember("before")
    server.stop()
    for call in CALLS.values():
        with pytest.raises(StoreUnavailable, match="cannot be reached"):
            call(store)
    server.start()
    assert contents(opened) == ["before"]
    store.remember("after")
    assert contents(opened) == ["after", "before"]


@pytest.mark.parametrize("text", ["7", "7.5", "Sun, 15 Jan 2090 08:00:07 GMT", "soon", "", "-3"])
def test_retry_after_is_honoured(opened: Open, server: SupermemoryServer, clock: Clock, text: str) -> None:
    store = opened()
    server.faults = [Fault(status=429, headers={"Retry-After": text})]
    if "2090" in text:
        with pytest.raises(StoreUnavailable) as caught:  # longer than calls go on
            store.recall("a question")
        assert caught.value.retry_after == 3600
        assert clock.slept == []
        return
    assert store.recall("a question") == []
    assert clock.slept == [7.0 if text == "7" else 0.25]


def test_out_of_credits_writes_nothing_and_leaves_everything_readable(
    opened: Open, server: SupermemoryServer
) -> None:
    store = opened()
    store.remember("before")
    server.conduct.credits = 3
    with pytest.raises(BackendError, match="credits"):
        store.remember_many([f"memory {number}" for number in range(9)])
    server.conduct.credits = 0
    with pytest.raises(BackendError, match="credits"):
        store.remember("one more")
    assert contents(opened) == ["before"]
    server.conduct.credits = None
    store.remember("one more")
    assert contents(opened) == ["before", "one more"]
    assert doubled(server) == []


def test_a_batch_that_is_taken_in_part_is_taken_back(opened: Open, server: SupermemoryServer) -> None:
    store = opened()
    ids = store.remember_many(["one", "two", "three", "four", "five"])
    store.clear()
    server.conduct.refused = {ids[2]}
    with pytest.raises(StoreUnavailable, match="busy"):
        opened().remember_many(["one", "two", "three", "four", "five"])
    assert contents(opened) == []
    server.conduct.refused = set()
    opened().remember_many(["one", "two", "three", "four", "five"])
    assert contents(opened) == ["five", "four", "one", "three", "two"]
    assert doubled(server) == []


def test_a_server_without_batches_is_served_one_by_one(opened: Open) -> None:
    with SupermemoryServer(batches=False) as plain:
        one = opened(base_url=plain.url)
        one.remember_many([f"memory {number}" for number in range(5)])
        assert one.clear() == 5
        assert one.count() == 0


@pytest.mark.parametrize("kind", ["status", "cut", "html", "drop"])
@pytest.mark.parametrize("status", [400, 402, 429])
def test_neither_key_nor_text_is_told(
    opened: Open, server: SupermemoryServer, caplog: pytest.LogCaptureFixture, kind: Any, status: int
) -> None:
    caplog.set_level(logging.DEBUG)
    store = opened()
    server.faults = [Fault(kind, status=status, times=99)]
    with pytest.raises(MyceliumError) as caught:
        store.remember(SECRET)
    told = "".join(traceback.format_exception(caught.value)) + repr(store) + caplog.text + store.place
    assert KEY not in told
    # The frames of this test show the name of the constant, not the text.
    assert SECRET not in told
