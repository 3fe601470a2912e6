"""A lock among the threads of one process that a forked child can go on with.

A child has only the thread that forked it: what another thread held then would be held in it for ever.
"""

from __future__ import annotations

import os
import threading
import weakref
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import TracebackType

__all__ = ["ThreadLock"]


class ThreadLock:
    """A lock that the thread which holds it may take again, and gives back as often.

    In a forked child it is free, unless the thread that forked held it: that one still does.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._holder: int | None = None
        self._depth = 0
        _made.add(self)

    @property
    def mine(self) -> bool:
        """Whether the calling thread holds it."""
        return self._holder == threading.get_ident()

    def acquire(self, timeout: float = -1) -> bool:
        """Take it; False if somebody else still held it after `timeout` seconds (-1: wait for ever)."""
        taken = self._lock.acquire(timeout=timeout)
        if taken:
            self._holder = threading.get_ident()
            self._depth += 1
        return taken

    def release(self) -> None:
        """Give it back. Raises RuntimeError where another thread holds it, or nobody."""
        if not self.mine:
            raise RuntimeError("this thread does not hold the lock")
        self._depth -= 1
        if self._depth == 0:
            self._holder = None
        self._lock.release()

    def __enter__(self) -> ThreadLock:
        self.acquire()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    def _go_on_in_child(self) -> None:
        if not self.mine:
            self._lock, self._holder, self._depth = threading.RLock(), None, 0


_made: weakref.WeakSet[ThreadLock] = weakref.WeakSet()


def _go_on_in_child() -> None:
    for lock in list(_made):
        lock._go_on_in_child()  # noqa: SLF001 - of this module


os.register_at_fork(after_in_child=_go_on_in_child)
