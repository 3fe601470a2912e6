"""One anchoring at a time per home folder and owner, across processes."""

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

__all__ = ["exclusive"]

_POLL_SECONDS = 0.02


@contextlib.contextmanager
def exclusive(path: Path, *, timeout: float = 60.0) -> Iterator[None]:
    """Hold an advisory lock on the file at `path`, made 0600 where missing.

    The kernel lets go when the process ends, however it ends, so a lock never outlives its holder.

    Raises:
        StoreLocked: another process held it for longer than `timeout` seconds.
        BackendError: the file cannot be made or opened.
    """
    with file_errors(path, "lock"):
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        deadline = time.monotonic() + timeout
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    raise StoreLocked(
                        "another process is anchoring this memory",
                        hint="wait for it to finish, then try again",
                    ) from None
                time.sleep(_POLL_SECONDS)
        yield
    finally:
        os.close(descriptor)
