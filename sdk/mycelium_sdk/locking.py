"""Advisory locks on files: between processes, and between threads."""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from typing import TYPE_CHECKING

from mycelium_sdk.errors import StoreLocked
from mycelium_sdk.files import file_errors

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["exclusive", "shared"]

_POLL_SECONDS = 0.02


def exclusive(
    path: Path, *, timeout: float = 60.0, busy: str = "another process is anchoring this memory"
) -> contextlib.AbstractContextManager[None]:
    """Hold the file at `path`, made 0600 where missing, alone.

    The kernel lets go when the process ends, however it ends, so a lock never outlives its holder.

    Raises:
        StoreLocked: somebody else held it for longer than `timeout` seconds; the message is `busy`.
        BackendError: the file cannot be made or opened.
    """
    return _held(path, fcntl.LOCK_EX, timeout, busy)


def shared(
    path: Path, *, timeout: float = 60.0, busy: str = "another process uses this memory alone"
) -> contextlib.AbstractContextManager[None]:
    """The same together with others that share it, while nobody holds it alone."""
    return _held(path, fcntl.LOCK_SH, timeout, busy)


@contextlib.contextmanager
def _held(path: Path, kind: int, timeout: float, busy: str) -> Iterator[None]:
    with file_errors(path, "lock"):
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        deadline = time.monotonic() + timeout
        while True:
            try:
                fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    raise StoreLocked(busy, hint="wait for it to finish, then try again") from None
                time.sleep(_POLL_SECONDS)
        process = os.getpid()
        try:
            yield
        finally:
            # A child that was forked meanwhile has the descriptor too: closing would leave the lock to it.
            if os.getpid() == process:
                fcntl.flock(descriptor, fcntl.LOCK_UN)
    finally:
        os.close(descriptor)
