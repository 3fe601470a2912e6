"""Recall asks the secondary for what only that holds, and never for what the primary forgot."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mycelium_sdk import canonical
from mycelium_sdk.errors import BackendError
from mycelium_sdk.records import Record
from tests.backends.test_conformance import OWNER

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from mycelium_sdk.backends.base import BaseBackend
    from mycelium_sdk.backends.tiered import TieredBackend
    from tests.tiered.conftest import Shaky


def _texts(backend: BaseBackend) -> list[str]:
    return [one.record.content for one in backend.iter_records()]


class TestToppingUp:
    def test_what_only_the_secondary_holds_comes_after_the_own(
        self, tier: Callable[..., TieredBackend], shaky: Shaky
    ) -> None:
        store = tier()
        store.remember("tea with milk")
        theirs = shaky.remember("tea without milk", ["t"])
        hits = store.recall("tea milk", k=5)
        assert [hit["content"] for hit in hits] == ["tea with milk", "tea without milk"]
        assert hits[0]["score"] >= hits[1]["score"] > 0
        assert [hit["content"] for hit in store.recall("tea milk", k=1)] == ["tea with milk"]
        assert [hit["content"] for hit in store.recall("tea milk", tags=["t"])] == ["tea without milk"]
        assert store.count() == 1
        assert store.export_blob() == canonical.encode(OWNER, [Record("tea with milk")])
        assert store.forget(hits[1]["id"]) == 1
        assert shaky.records([theirs]) == []

    def test_a_new_primary_recalls_what_the_secondary_holds(
        self, tier: Callable[..., TieredBackend], shaky: Shaky
    ) -> None:
        shaky.remember_many(["tea with milk", "coffee"])
        assert [hit["content"] for hit in tier().recall("tea")] == ["tea with milk"]

    def test_what_the_primary_forgot_does_not_come_back(
        self, tier: Callable[..., TieredBackend], shaky: Shaky
    ) -> None:
        store = tier()
        one = store.remember("tea with milk")
        store.remember("tea without milk")
        shaky.down = True
        store.forget(one)
        shaky.down = False
        store._queue.retry_now()  # the secondary may be asked, and has not followed
        assert [hit["content"] for hit in store.recall("tea milk")] == ["tea without milk"]
        shaky.down = True
        store.clear()
        shaky.down = False
        store._queue.retry_now()
        assert store.recall("tea milk") == []

    def test_nothing_is_topped_up_after_the_queue_was_lost(
        self, tier: Callable[..., TieredBackend], shaky: Shaky, tmp_path: Path
    ) -> None:
        store = tier()
        one = store.remember("tea with milk")
        shaky.down = True
        store.forget(one)
        store.close()
        for file in tmp_path.glob("queue.db*"):
            file.unlink()
        shaky.down = False
        again = tier()
        assert not again.lag().compared
        assert again.lag()
        assert again.recall("tea") == []
        with pytest.raises(BackendError, match="lacks 1 of"):
            again.repair()
        assert again.repair("remove").removed == 1
        assert not again.lag()
        assert _texts(shaky) == []
