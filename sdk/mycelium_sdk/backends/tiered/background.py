"""Work for a slow partner, of which a caller waits for a bounded time only."""

from __future__ import annotations

import os
import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Follower"]


class Follower:
    """A thread that does `act` whenever it is asked to, and ends when there is nothing to do.

    `act` must not raise but for bugs, which show as those of any thread do. The thread never keeps a process
    alive.
    """

    def __init__(self, act: Callable[[], None]) -> None:
        self._act = act
        self._forget_thread()

    def _forget_thread(self) -> None:
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._asked = False
        self._idle: threading.Event | None = None
        self._began = 0.0

    def ask(self, patience: float) -> bool:
        """Have it done, and wait until it is, at most until `patience` seconds after the work began; whether
        it is done."""
        if self._process != os.getpid():
            self._forget_thread()  # a forked child has none of its parent's threads
        with self._lock:
            self._asked = True
            if self._idle is None:
                self._idle = threading.Event()
                self._began = time.monotonic()
                threading.Thread(target=self._work, name="mycelium-tier", daemon=True).start()
            idle, left = self._idle, self._began + patience - time.monotonic()
        return idle.wait(max(0.0, left))

    def wait(self, seconds: float) -> bool:
        """Wait until it has nothing to do; whether that is so."""
        idle = self._idle if self._process == os.getpid() else None
        return idle is None or idle.wait(seconds)

    def _work(self) -> None:
        try:
            while self._wanted():
                self._act()
        except BaseException:
            with self._lock:
                self._rest()
            raise

    def _wanted(self) -> bool:
        with self._lock:
            wanted, self._asked = self._asked, False
            if not wanted:
                self._rest()
            return wanted

    def _rest(self) -> None:
        if self._idle is not None:
            self._idle.set()
        self._idle = None
