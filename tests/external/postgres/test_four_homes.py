"""One memory has one root, wherever it lives and in whatever order it was written."""

from __future__ import annotations

import contextlib
import random
from typing import TYPE_CHECKING

from mycelium_sdk import canonical
from mycelium_sdk.backends.local import LocalVectorBackend
from mycelium_sdk.backends.supermemory import SupermemoryBackend
from mycelium_sdk.backends.tiered import TieredBackend
from mycelium_sdk.records import Record
from mycelium_sdk.testing.supermemory_server import SupermemoryServer
from tests.external.postgres.conftest import OWNER

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from mycelium_sdk.backends.base import BaseBackend
    from mycelium_sdk.backends.postgres import PostgresBackend

MEMORIES = 10_000
ODD = ("", "\0", "é", "\uff5e", "\U0001f602", '"', "\\", "https://example.org/", ",")


def test_ten_thousand_memories_in_four_orders_have_one_root(
    tmp_path: Path, opened: Callable[..., PostgresBackend]
) -> None:
    records = [
        Record(f"{ODD[number % len(ODD)]} memory {number}", (f"tag,{number % 7}",) if number % 3 else ())
        for number in range(MEMORIES)
    ]
    root = canonical.root(canonical.encode(OWNER, records))
    with contextlib.ExitStack() as stack:
        cloud = stack.enter_context(SupermemoryServer())
        primary = LocalVectorBackend(OWNER, tmp_path / "one.db")
        secondary = SupermemoryBackend(OWNER, "another-key", cloud.url)
        homes: dict[str, BaseBackend] = {
            "local": LocalVectorBackend(OWNER, tmp_path / "local.db"),
            "tiered": TieredBackend(primary, secondary, queue=tmp_path / "queue.db", patience=60.0),
            "supermemory": SupermemoryBackend(OWNER, "key", cloud.url),
            "postgres": opened(),
        }
        for number, (name, home) in enumerate(homes.items()):
            stack.enter_context(home)
            order = records[:]
            random.Random(number).shuffle(order)  # noqa: S311 - an order, no secret
            for start in range(0, MEMORIES, 500):
                home.remember_many([(one.content, one.tags) for one in order[start : start + 500]])
            assert home.root() == root, name
            assert home.count() == MEMORIES
        tier = homes["tiered"]
        assert isinstance(tier, TieredBackend)
        assert not tier.catch_up(300.0)
        assert tier.secondary.root() == root
