"""Threads that ask the database, so that the event loop never waits for it."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

from mycelium_indexer.api.problems import Refusal

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Readers"]

_A = TypeVar("_A")
_R = TypeVar("_R")


class Readers:
    """A bounded number of threads, with a bounded number of calls waiting for them.

    When the database is slow, more waiting would only make every answer late: those beyond are refused at
    once. Belongs to one event loop.
    """

    def __init__(self, threads: int, most_waiting: int) -> None:
        self._executor = ThreadPoolExecutor(threads, thread_name_prefix="reader")
        self._most = threads + most_waiting
        self._under_way = 0

    async def run(self, read: Callable[[_A], _R], argument: _A) -> _R:
        """What `read` returns or raises. Raises Refusal if too many are waiting."""
        if self._under_way >= self._most:
            raise Refusal(
                "overloaded", "too many requests are waiting for the database", headers={"Retry-After": "1"}
            )
        self._under_way += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._executor, read, argument)
        finally:
            self._under_way -= 1

    def close(self) -> None:
        """Wait for what is being read, and end the threads."""
        self._executor.shutdown(wait=True, cancel_futures=True)
