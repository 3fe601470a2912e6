"""Both stores are compared by hash and made equal, and nothing is lost unless somebody says so."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

import pytest

from mycelium_sdk import canonical
from mycelium_sdk.backends.local import LocalVectorBackend
from mycelium_sdk.backends.tiered import TieredBackend
from mycelium_sdk.errors import BackendError, InputError
from mycelium_sdk.records import Record
from tests.backends.test_conformance import OWNER

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from pathlib import Path

    from mycelium_sdk.backends.base import BaseBackend, Snapshot
    from tests.tiered.conftest import Shaky


def _texts(backend: BaseBackend) -> list[str]:
    return [one.record.content for one in backend.iter_records()]


class TestRepair:
    def test_equal_ones_are_left_alone(self, tier: Callable[..., TieredBackend], shaky: Shaky) -> None:
        store = tier()
        store.remember("one")
        calls = len(shaky.calls)
        assert store.repair().equal
        assert len(shaky.calls) == calls

    def test_what_was_lost_or_changed_is_made_good(
        self, tier: Callable[..., TieredBackend], shaky: Shaky
    ) -> None:
        store = tier()
        store.remember_many(["one", "two", "three"])
        shaky.forget(shaky.all_records()[0].id)
        shaky.remember("from elsewhere", session="s")
        with pytest.raises(BackendError, match="extra="):
            store.repair()
        repaired = store.repair("adopt")
        assert (repaired.added, repaired.removed, repaired.adopted, repaired.equal) == (1, 0, 1, True)
        assert _texts(store) == _texts(shaky) == ["from elsewhere", "one", "three", "two"]
        assert store.all_records()[0].session == "s"

    def test_copies_are_compared_too(self, tier: Callable[..., TieredBackend], shaky: Shaky) -> None:
        store = tier()
        store.remember("one")
        blob = canonical.encode(OWNER, [Record("one"), Record("one")])
        shaky.import_blob(blob)
        assert store.repair().equal
        assert shaky.count() == 1
        store.import_blob(blob)
        shaky.clear()
        shaky.remember("one")
        assert store.repair().equal
        assert shaky.count() == 2

    def test_a_local_secondary_is_repaired_from_another_process(self, tmp_path: Path) -> None:
        def opened() -> TieredBackend:
            first, second = (LocalVectorBackend(OWNER, tmp_path / f"{name}.db") for name in "ab")
            return TieredBackend(first, second, queue=tmp_path / "queue.db")

        with opened() as store:
            store.remember_many(str(number) for number in range(500))
        for file in tmp_path.glob("b.db*"):
            file.unlink()
        with opened() as store:
            repaired = store.repair()
            assert (repaired.added, repaired.equal) == (500, True)
            assert store.secondary.root() == store.primary.root()


def test_an_unknown_word_removes_nothing(tier: Callable[..., TieredBackend], shaky: Shaky) -> None:
    store = tier()
    shaky.remember("only there")
    with pytest.raises(InputError, match="refuse, adopt, remove"):
        store.repair("merge")  # type: ignore[arg-type]
    assert _texts(shaky) == ["only there"]


def test_an_import_is_followed_with_the_contexts_of_its_own_records(
    tier: Callable[..., TieredBackend], shaky: Shaky, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others write while it is brought to the secondary."""
    store = tier()
    shaky.down = True
    store.remember("b", session="of b")
    store.import_blob(canonical.encode(OWNER, [Record("b"), Record("c"), Record("c")]))
    shaky.down = False
    snapshot, looked = store.primary.snapshot, []

    def looking() -> AbstractContextManager[Snapshot]:
        looked.append(1)
        if len(looked) == 3:  # after all were compared, and one was looked at for the import
            store.primary.remember("a", session="of a")
        return snapshot()

    monkeypatch.setattr(store.primary, "snapshot", looking)
    store.catch_up()
    assert {one.record.content: one.session for one in shaky.iter_records()}["b"] == "of b"
    assert not store.lag().refused


def test_a_queue_that_cannot_be_written_does_not_stop_recall(
    tier: Callable[..., TieredBackend], shaky: Shaky, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = tier()
    store.remember("tea")
    shaky.down = True

    def full() -> NoReturn:
        raise BackendError("the disk is full")

    monkeypatch.setattr(store._queue._database, "writing", full)
    assert [hit["content"] for hit in store.recall("tea")] == ["tea"]
    with pytest.raises(BackendError, match="full"):
        store.remember("more")
