"""Writes of several requests that break off: nobody sees a half, and whoever comes next finishes it."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import pytest

from mycelium_sdk import canonical
from mycelium_sdk.backends.supermemory.v3 import V3
from mycelium_sdk.backends.supermemory.v5 import V5
from mycelium_sdk.errors import BackendError, MyceliumError, StoreLocked, StoreUnavailable
from mycelium_sdk.records import Record
from mycelium_sdk.testing.supermemory_server import Fault
from tests.supermemory.conftest import KEY, OWNER

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from collections.abc import Set as AbstractSet

    from mycelium_sdk.backends.supermemory.service import Draft
    from mycelium_sdk.testing.supermemory_server import SupermemoryServer
    from tests.supermemory.conftest import Clock, Open

OLD = [Record("kept"), Record("kept twice"), Record("kept twice"), Record("old 1", ("old",)), Record("old 2")]
NEW = [Record("kept"), Record("kept"), Record("kept twice"), *(Record(f"new {n}") for n in range(5))]


def blob(records: list[Record]) -> bytes:
    return canonical.encode(OWNER, records)


def count(server: SupermemoryServer) -> int:
    return len(server.shelf(KEY).docs)


@pytest.mark.parametrize("executed", [False, True])
def test_an_import_that_breaks_off_anywhere_is_seen_as_whole_or_not_at_all(
    opened: Open, server: SupermemoryServer, clock: Clock, *, executed: bool
) -> None:
    counters = []
    for after in range(100):
        first = opened()
        first.import_blob(blob(OLD))
        counters.append(first.change_counter())
        asked = len(server.requests)
        # The service is gone from some request on, and so is the process.
        server.faults = [Fault("drop", times=10**6, after=after, executed=False)]
        if executed:
            server.faults = [
                Fault("drop", after=after, executed=True),
                Fault("drop", times=10**6, after=after),
            ]
        try:
            first.import_blob(blob(NEW))
            done = len(server.requests) - asked <= after
        except StoreUnavailable:
            done = False
        server.faults = []
        other = opened()
        seen = other.export_blob()
        assert seen in (blob(OLD), blob(NEW))
        counters.append(other.change_counter())
        assert (counters[-1] > counters[-2]) == (seen == blob(NEW))
        clock.seconds += 1000
        # Whoever writes next finishes it, or takes it back.
        last = opened()
        assert last.count() == len(OLD if seen == blob(OLD) else NEW)
        last.remember("one more")
        expected = OLD if seen == blob(OLD) else NEW
        assert last.export_blob() == blob([*expected, Record("one more")])
        counters.append(last.change_counter())
        if seen == blob(NEW):
            assert counters[-1] == counters[-2] + 1
        assert opened().check().findings == ()
        last.import_blob(blob(NEW))
        assert opened().export_blob() == blob(NEW)
        last.clear()
        if done:
            break
    assert done
    assert counters == sorted(counters)
    assert after > 3


@pytest.mark.parametrize("after", range(8))
def test_a_forgetting_that_breaks_off_has_happened_or_has_not(
    opened: Open, server: SupermemoryServer, after: int
) -> None:
    store = opened()
    store.import_blob(blob(OLD))
    before = store.change_counter()
    server.faults = [Fault("drop", times=10**6, after=after)]
    with contextlib.suppress(StoreUnavailable):
        assert store.forget(tag="old") == 1
    server.faults = []
    other = opened()
    left = [record for record in OLD if record.tags != ("old",)]
    assert other.export_blob() in (blob(OLD), blob(left))
    assert (other.change_counter() == before) == (other.export_blob() == blob(OLD))
    # What is forgotten can be remembered again, even if its document is still there.
    other.remember("old 1", ["old"])
    assert opened().export_blob() == blob(OLD)
    assert other.forget(tag="old") == 1
    assert opened().export_blob() == blob(left)
    assert "old 1" not in [doc.sent for doc in server.shelf(KEY).docs.values()]


def test_everything_is_forgotten_at_once_however_many_there_are(
    opened: Open, server: SupermemoryServer, clock: Clock
) -> None:
    store = opened()
    store.remember_many([f"memory {number}" for number in range(450)])
    before = store.change_counter()
    server.faults = [Fault("drop", times=10**6, method="DELETE", path="", after=2)]
    with pytest.raises(StoreUnavailable):
        store.clear()
    server.faults = []
    other = opened()
    assert other.count() == 0
    assert other.change_counter() == before + 450
    assert other.check().findings == ("250 documents are forgotten, and to be deleted by the next write",)
    other.remember("memory 7")
    assert opened().count() == 1
    assert opened().check().findings == ()
    assert count(server) == 2  # with the entry of the journal


def test_the_server_dies_in_the_middle_of_many(opened: Open, server: SupermemoryServer, clock: Clock) -> None:
    texts = [f"memory {number}" for number in range(700)]
    store, other = opened(), opened()
    server.faults = [Fault("drop", times=10**6, after=4)]
    with pytest.raises(StoreUnavailable):
        store.remember_many(texts)
    server.faults = []
    assert other.count() == 0
    assert count(server) > 500
    assert "belong to an import that is not finished" in " ".join(other.check().findings)
    # Another process cannot know that this one gave up.
    for call in (lambda: other.remember(texts[0]), lambda: other.import_blob(blob(NEW))):
        with pytest.raises(StoreLocked, match="loading"):
            call()
    other.remember("something else")
    assert other.forget(tag="nothing") == 0
    # The one itself does.
    store.remember_many(texts)
    assert opened().count() == 701
    assert other.check().findings == ()


def test_what_broke_off_is_taken_back_after_a_while(
    opened: Open, server: SupermemoryServer, clock: Clock
) -> None:
    store = opened()
    server.faults = [Fault("drop", times=10**6, after=4)]
    with pytest.raises(StoreUnavailable):
        store.import_blob(blob(NEW))
    server.faults = []
    other = opened()
    with pytest.raises(StoreLocked):
        other.import_blob(blob(OLD))
    clock.seconds += 1000
    other.import_blob(blob(OLD))
    assert opened().export_blob() == blob(OLD)
    assert opened().check().findings == ()


def test_a_long_import_gives_signs_of_life(
    opened: Open, server: SupermemoryServer, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    for service in (V5, V3):
        monkeypatch.setattr(service, "batch_size", 10)
    store, other = opened(), opened()
    records = [Record(f"memory {number:03}") for number in range(60)]
    original = store._line.add
    batches = []

    def add(drafts: Sequence[Draft], present: Callable[[Sequence[str]], AbstractSet[str]]) -> None:
        original(drafts, present)
        clock.seconds += 400
        batches.append(len(drafts))
        if len(batches) == 7:
            with pytest.raises(StoreLocked):
                other.import_blob(blob(OLD))
            assert other.count() == 0

    monkeypatch.setattr(store._line, "add", add)
    store.import_blob(blob(records))
    assert batches == [1, *[10] * 6]
    assert other.export_blob() == blob(records)


def test_a_refused_import_is_taken_back_at_once(opened: Open, server: SupermemoryServer) -> None:
    store = opened()
    store.import_blob(blob(OLD))
    documents, counter = count(server), store.change_counter()
    server.conduct.credits = 4
    with pytest.raises(BackendError, match="credits"):
        store.import_blob(blob(NEW))
    assert opened().export_blob() == blob(OLD)
    assert (count(server), opened().change_counter()) == (documents, counter)


def test_documents_that_the_service_does_not_delete_are_forgotten_all_the_same(
    opened: Open, server: SupermemoryServer
) -> None:
    store = opened()
    ids = store.remember_many([f"memory {number}" for number in range(5)])
    server.conduct.undeletable = {ids[1], ids[3]}
    with pytest.raises(BackendError, match="has not deleted 2"):
        store.clear()
    assert store.count() == opened().count() == 0
    # Also after the same process has noted something else.
    with pytest.raises(BackendError, match="has not deleted 2"):
        store.forget(store.remember("another"))
    assert store.count() == opened().count() == 0
    server.conduct.undeletable = set()
    opened().remember("memory 1")
    assert opened().count() == 1
    assert count(server) == 2


def test_documents_that_are_gone_already_are_no_error(opened: Open, server: SupermemoryServer) -> None:
    store, other = opened(), opened()
    store.remember_many(["one", "two"])
    assert other.count() == 2
    shelf = server.shelf(KEY)
    server.faults = []
    original = other._writer.finish

    def finish(view: object) -> int:
        for doc in list(shelf.docs.values()):
            if "myc_digest" in doc.metadata:
                shelf.delete(doc)
        return original(view)  # type: ignore[arg-type]

    other._writer.finish = finish  # type: ignore[method-assign]
    assert other.clear() == 2
    assert store.count() == 0


def test_entries_of_the_journal_do_not_pile_up(opened: Open, server: SupermemoryServer, clock: Clock) -> None:
    counters = []
    for number in range(6):
        clock.seconds += 1000
        store = opened()
        store.remember_many([f"one {number}", f"two {number}"])
        for text in ("one", "two"):
            store.forget(store.remember(f"{text} {number}"))
        counters.append(store.change_counter())
        assert count(server) == 1
    assert counters == [4, 8, 12, 16, 20, 24]
    assert opened().change_counter() == 24


@pytest.mark.parametrize("attempt", [1, 2])
def test_two_machines_at_once(opened: Open, server: SupermemoryServer, attempt: int) -> None:
    """Each sees what the other did, whatever it knew."""
    one, two = opened(), opened()
    for store in (one, two):
        assert store.count() == 0
    mine = one.remember("shared", ["tag"])
    assert two.remember("shared", ["tag"]) == mine
    two.forget(mine)
    assert one.count() == 0
    assert one.remember("shared", ["tag"]) == mine
    assert two.count() == 1
    two.import_blob(blob(NEW))
    assert one.export_blob() == blob(NEW)
    one.import_blob(blob(OLD))
    assert two.export_blob() == blob(OLD)
    assert one.change_counter() == two.change_counter()


def test_an_import_repairs_what_was_edited(opened: Open, server: SupermemoryServer) -> None:
    store = opened()
    store.import_blob(blob(OLD))
    doc = next(doc for doc in server.shelf(KEY).docs.values() if doc.sent == "kept")
    server.shelf(KEY).update(doc, None, {"myc_content": '"edited"'})
    other = opened()
    with pytest.raises(MyceliumError):
        other.export_blob()
    other.import_blob(blob(OLD))
    assert opened().export_blob() == blob(OLD)
