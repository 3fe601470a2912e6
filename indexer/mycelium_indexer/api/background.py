"""The ingester beside the server, in one process: for small installations."""

from __future__ import annotations

import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["beside"]

_TURN_SECONDS: Final = 0.001
"""After so long a thread that computes lets others go on: taking in a page must not keep answers waiting."""


@contextmanager
def beside(run: Callable[[threading.Event], None], on_end: Callable[[], None]) -> Iterator[None]:
    """Have `run` run in a thread as long as the block does; the event tells it to end, and is waited for.

    `on_end` is called when it ends, whatever the reason. What it raised is raised by the block.
    """
    stop = threading.Event()
    turn = sys.getswitchinterval()
    sys.setswitchinterval(_TURN_SECONDS)
    with ThreadPoolExecutor(1, thread_name_prefix="ingester") as executor:
        running = executor.submit(run, stop)
        running.add_done_callback(lambda _: on_end())
        try:
            yield
        finally:
            stop.set()
            sys.setswitchinterval(turn)
            running.result()
