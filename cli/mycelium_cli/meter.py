"""One line on a terminal that says how far a long piece of work is, written over again and again."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["Meter"]

_QUIET_SECONDS = 1.0
_TICK_SECONDS = 0.2
_COLUMNS = 80


class Meter:
    """How far the work called `doing` is. Nothing is written in its first second, by `clock` (in seconds).

    `running` shows it on the terminal `stream` while a block runs. Safe to be told of from many threads.
    """

    def __init__(self, doing: str, stream: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self._doing = doing
        self._stream = stream
        self._clock = clock
        self._started = clock()
        self._latest: tuple[str, int, int | None] | None = None
        self._shown = ""
        self._lock = threading.RLock()  # a note may be written while another is

    def report(self, what: str, done: int, total: int | None) -> None:
        """So many of so many are done; written at the next tick."""
        self._latest = what, done, total

    def tick(self) -> None:
        """Write the line as it is now."""
        seconds = self._clock() - self._started
        if seconds < _QUIET_SECONDS:
            return
        with self._lock:
            # One column less than there are: a full line would wrap on some terminals.
            line = self._line(seconds)[: self._columns() - 1]
            if line != self._shown:
                self._write(f"\r{line:<{len(self._shown)}}")
                self._shown = line

    @contextlib.contextmanager
    def hidden(self) -> Iterator[None]:
        """Take the line away, and write none in the block, which may write something else."""
        with self._lock:
            if self._shown:
                self._write(f"\r{'':<{len(self._shown)}}\r")
                self._shown = ""
            yield

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Tick while the block runs, and leave nothing behind."""
        done = threading.Event()

        def tick() -> None:
            while not done.wait(_TICK_SECONDS):
                self.tick()

        thread = threading.Thread(target=tick, name="progress", daemon=True)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()
            with self.hidden():
                pass

    def _line(self, seconds: float) -> str:
        latest = self._latest
        if latest is None:
            return f"{self._doing} ... {seconds:.0f} s"
        what, done, total = latest
        share = f" of {total:,} ({100 * done // total} %)" if total else ""
        return f"{self._doing}: {what} {done:,}{share} ... {seconds:.0f} s"

    def _columns(self) -> int:
        try:
            return os.get_terminal_size(self._stream.fileno()).columns or _COLUMNS
        except (OSError, ValueError):
            return _COLUMNS

    def _write(self, text: str) -> None:
        with contextlib.suppress(OSError):  # the terminal has gone, which is no reason to stop working
            self._stream.write(text)
            self._stream.flush()
