"""Documents are processed after they are added: waiting for it, and what the service fails at."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mycelium_sdk.errors import BackendError, StoreUnavailable
from tests.supermemory.conftest import KEY, OWNER

if TYPE_CHECKING:
    from mycelium_sdk.testing.supermemory_server import SupermemoryServer
    from tests.supermemory.conftest import Clock, Open


def test_wait_returns_when_everything_is_processed(
    opened: Open, server: SupermemoryServer, clock: Clock
) -> None:
    server.conduct.looks = 5
    told: list[tuple[str, int, int | None]] = []
    store = opened(wait=True, progress=lambda *said: told.append(said))
    store.remember_many(["one", "two", "three", "four", "five"])
    assert {doc.status for doc in server.shelf(KEY).docs.values()} == {"done"}
    assert len(clock.slept) > 1
    assert told[0] == ("processing", 0, 5)
    assert told[-1] == ("processing", 5, 5)
    store.import_blob(b'{"owner":"%s","records":[{"content":"six","tags":[]}]}' % OWNER.encode())
    assert {doc.status for doc in server.shelf(KEY).docs.values() if "myc_digest" in doc.metadata} == {"done"}


def test_without_wait_nothing_is_waited_for_and_everything_is_there(
    opened: Open, server: SupermemoryServer, clock: Clock
) -> None:
    server.hold()
    store = opened()
    store.remember_many([("one", ["t"]), "two", "https://example.org"])
    assert store.recall("one")[0]["content"] == "one"
    other = opened()
    assert other.export_blob() == store.export_blob()
    assert other.forget(tag="t") == 1
    assert store.count() == 2
    assert clock.slept == []
    assert other.check().findings == (
        "2 memories are stored, but not processed yet: the service's search may not find them",
    )


def test_waiting_is_bounded_and_what_was_written_stays(
    opened: Open, server: SupermemoryServer, clock: Clock
) -> None:
    server.hold()
    store = opened(wait=True, wait_seconds=10)
    started = clock.seconds
    with pytest.raises(StoreUnavailable, match="they are stored"):
        store.remember("one")
    assert clock.seconds - started <= 10
    assert opened().count() == 1
    server.release()
    store.settle()
    store.remember("one")
    assert store.count() == 1


@pytest.mark.parametrize("vanished", [False, True])
@pytest.mark.parametrize("wait", [False, True])
def test_what_the_service_fails_to_process_is_written_again(
    opened: Open, server: SupermemoryServer, *, wait: bool, vanished: bool
) -> None:
    server.conduct.looks = 1
    server.conduct.failing = 2
    store = opened(wait=wait)
    ids = store.remember_many([f"memory {number}" for number in range(5)])
    if not wait:
        store.count()  # now they fail
        if vanished:
            server.pass_time(200)
        store.remember("another")
        store.count()
    root = store.root()
    server.pass_time(200)
    other = opened()
    assert other.count() == (5 if wait else 6)
    assert other.root() == root
    assert set(ids) <= {one.id for one in other.iter_records()}
    assert other.check().findings == ()


def test_what_fails_again_and_again_is_an_error(opened: Open, server: SupermemoryServer) -> None:
    server.conduct.failing = 100
    store = opened(wait=True)
    with pytest.raises(BackendError, match="failed to process 1"):
        store.remember("one")
    assert "1 memory was not processed by the service, again and again" in store.check().findings
    server.conduct.failing = 0
    server.pass_time(200)
    assert opened().count() == 0
    assert store.remember("one")
    assert opened().count() == 1


def test_what_vanished_while_others_forgot_things_is_reported_not_brought_back(
    opened: Open, server: SupermemoryServer
) -> None:
    server.hold()
    store, other = opened(), opened()
    ids = store.remember_many(["one", "two"])
    store.count()
    other.forget(ids[0])
    store.remember("three")
    assert {one.record.content for one in opened().iter_records()} == {"two", "three"}
    assert any("is gone" in finding for finding in store.check().findings)


def test_a_long_text_that_failed_is_damage_for_others(opened: Open, server: SupermemoryServer) -> None:
    server.conduct.failing = 1
    store = opened()
    store.remember("long " * 4000 + "end")
    other = opened()
    assert not other.check()
    assert other.check().findings[0].endswith("the service failed to process it")
    store.settle()
    assert opened().check()
