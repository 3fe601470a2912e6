"""The listing: how many requests it takes, and that others who write meanwhile make nobody miss anything."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import pytest

from mycelium_sdk.backends.supermemory.v3 import V3
from mycelium_sdk.backends.supermemory.v5 import V5
from mycelium_sdk.errors import StoreUnavailable
from tests.supermemory.conftest import KEY, OWNER

if TYPE_CHECKING:
    from collections.abc import Callable

    from mycelium_sdk.backends.supermemory import SupermemoryBackend
    from mycelium_sdk.testing.supermemory_server import SupermemoryServer
    from tests.supermemory.conftest import Open


def asked(server: SupermemoryServer, call: Callable[[], object]) -> int:
    """How many requests a call makes."""
    before = len(server.requests)
    call()
    return len(server.requests) - before


def test_requests_of_each_operation(opened: Open, server: SupermemoryServer, api: str) -> None:
    opened().remember_many([f"memory {number}" for number in range(450)])
    pages = 5 if api == "v5" else 3
    store = opened()
    # What a first call needs: every page, and a look at what changed meanwhile.
    assert asked(server, store.export_blob) == pages + 1
    assert asked(server, store.export_blob) == 1
    assert asked(server, store.check) == 1  # everything was just listed
    assert asked(server, store.check) == pages + 1
    assert asked(server, store.count) == asked(server, store.change_counter) == 1
    assert asked(server, lambda: store.remember("new")) == 2
    assert asked(server, lambda: store.remember("new")) == 1
    assert asked(server, lambda: store.remember_many([f"more {number}" for number in range(200)])) == 2
    assert asked(server, lambda: store.recall("memory 7")) == 1
    assert asked(server, lambda: opened().recall("memory 7")) == 1
    assert asked(server, lambda: opened(ranking="words").recall("memory 7")) > pages
    if api == "v5":
        assert asked(server, lambda: opened().remember("by a new process")) == 2
    words = opened(ranking="words")
    words.count()
    assert asked(server, lambda: words.recall("memory 7")) == 1
    words.forget(tag="none")
    [one] = words.ids_of([words.all_records()[0].record])
    assert asked(server, lambda: words.forget(one)) == 4  # look, note it, look, delete


def test_an_empty_namespace_takes_one_request(opened: Open, server: SupermemoryServer) -> None:
    store = opened()
    assert asked(server, store.export_blob) == 1


@pytest.fixture
def _small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(V5, "page_size", 10)
    monkeypatch.setattr(V3, "page_size", 10)


@pytest.mark.usefixtures("_small_pages")
@pytest.mark.parametrize("times", [1, 2, 3])
@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("what", ["added", "forgotten", "both", "taken", "swapped", "changed", "foreign"])
def test_what_others_do_between_two_pages_is_seen_or_the_state_before(
    opened: Open, server: SupermemoryServer, what: str, times: int, *, known: bool
) -> None:
    other, store = opened(), opened()
    other.remember_many([(f"memory {number}", [f"t{number}"]) for number in range(25)])
    if known:
        store.count()
        other.remember_many([f"unseen {number}" for number in range(21)])
    shelf = server.shelf(KEY)
    numbers = itertools.count()
    busy: list[int] = []
    now = {doc.sent for doc in shelf.docs.values() if "myc_digest" in doc.metadata}
    states = [set(now)]

    def meanwhile() -> None:
        if busy or (number := next(numbers)) >= times:
            return
        busy.append(1)
        if what in {"added", "both", "swapped"}:
            other.remember(f"meanwhile {number}")
            now.add(f"meanwhile {number}")
            states.append(set(now))
        if what in {"forgotten", "both"}:
            assert other.forget(tag=f"t{22 + number}") == 1  # on a page that was read already
            now.remove(f"memory {22 + number}")
        if what in {"taken", "swapped"}:  # without a word, as somebody at the service's console does
            gone = sorted(shelf.docs.values(), key=lambda doc: doc.updated)[-5]
            shelf.delete(gone)
            now.remove(gone.sent)
        if what == "changed":
            doc = min(shelf.docs.values(), key=lambda doc: doc.updated)
            shelf.update(doc, None, {"note": f"{number}"})
        if what == "foreign":
            shelf.add(OWNER, None, f"somebody's {number}", {})
        states.append(set(now))
        busy.clear()

    server.conduct.after_page = meanwhile
    seen = {one.record.content for one in store.iter_records()}
    server.conduct.after_page = None
    assert seen in states
    assert next(numbers) >= times
    assert store.export_blob() == opened().export_blob()


@pytest.mark.usefixtures("_small_pages")
def test_a_namespace_that_never_rests_is_an_error_not_a_guess(
    opened: Open, server: SupermemoryServer
) -> None:
    store = opened()
    store.remember_many([f"memory {number}" for number in range(90)])
    shelf = server.shelf(KEY)
    server.conduct.after_page = lambda: shelf.delete(max(shelf.docs.values(), key=lambda doc: doc.updated))
    with pytest.raises(StoreUnavailable, match="written to by others"):
        opened().export_blob()


@pytest.mark.usefixtures("_small_pages")
@pytest.mark.parametrize("known", [False, True])
def test_a_listing_without_end_is_an_error(
    opened: Open, monkeypatch: pytest.MonkeyPatch, *, known: bool
) -> None:
    store = opened()
    if known:
        store.remember("one")
        store.count()
    other = opened()
    other.remember_many([f"memory {number}" for number in range(30)])
    service = store._line.service
    original = service.page
    monkeypatch.setattr(service, "page", lambda _, limit: original(1, limit)._replace(total=10**9))
    with pytest.raises(StoreUnavailable, match="written to by others"):
        store.export_blob()


def test_documents_that_vanish_show_in_the_change_counter(
    store: SupermemoryBackend, server: SupermemoryServer
) -> None:
    store.remember_many(["one", "two", "three"])
    counter, root = store.change_counter(), store.root()
    shelf = server.shelf(KEY)
    shelf.delete(next(iter(shelf.docs.values())))
    assert store.change_counter() < counter
    assert store.root() != root
