"""A tier of two stores, the second of which fails on demand."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from mycelium_sdk.backends.local import LocalVectorBackend
from mycelium_sdk.backends.tiered import TieredBackend
from mycelium_sdk.errors import BackendError, LimitExceeded
from tests.backends.minimal import ListBackend
from tests.backends.test_conformance import OWNER

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from mycelium_sdk.backends.base import Addition, Query, Selection
    from mycelium_sdk.backends.scoring import Candidates


class Shaky(ListBackend):
    """A list that is down, hangs, or cannot hold what contains `unholdable`, on demand; counts its calls."""

    def __init__(self, owner: str) -> None:
        super().__init__(owner)
        self.down = False
        self.answers = threading.Event()
        self.answers.set()
        self.unholdable: str | None = None
        self.calls: list[str] = []
        self.secure: list[bool] = []

    def _asked(self, name: str) -> None:
        self.calls.append(name)
        self.answers.wait()
        if self.down:
            raise BackendError("the cloud is down")

    def add(self, additions: Sequence[Addition]) -> list[str]:
        self._asked("add")
        if self.unholdable and any(self.unholdable in one.record.content for one in additions):
            raise LimitExceeded("the cloud cannot hold this text")
        return super().add(additions)

    def remove(self, selection: Selection, *, secure: bool) -> int:
        self._asked("remove")
        self.secure.append(secure)
        return super().remove(selection, secure=secure)

    def close(self) -> None:
        """It lives on, as a cloud does."""

    def candidates(self, query: Query, limit: int) -> Candidates:
        self._asked("candidates")
        return super().candidates(query, limit)


@pytest.fixture
def shaky() -> Shaky:
    return Shaky(OWNER)


@pytest.fixture
def tier(tmp_path: Path, shaky: Shaky) -> Iterator[Callable[..., TieredBackend]]:
    """Opens the tier, again and again as a process does that starts anew; the second store lives on."""
    opened: list[TieredBackend] = []

    def opener(patience: float = 60.0) -> TieredBackend:
        first = LocalVectorBackend(OWNER, tmp_path / "first.db", durability="process")
        opened.append(TieredBackend(first, shaky, queue=tmp_path / "queue.db", patience=patience))
        return opened[-1]

    yield opener
    shaky.answers.set()
    for one in opened:
        one.close()
