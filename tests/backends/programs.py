"""Other processes on the memory file of a test."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

PRELUDE = """
import os, signal, sys
from mycelium_sdk.backends.local import LocalVectorBackend, connections
owner, path = sys.argv[1:3]

def die_after(ticks):
    '''Kill this process in the middle of a statement: after so many hundreds of SQLite's own instructions.'''
    left = [ticks]
    def tick():
        left[0] -= 1
        if left[0] < 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return 0
    opened = connections.open_private_sqlite
    def open_ticking(*arguments, **options):
        connection = opened(*arguments, **options)
        connection.set_progress_handler(tick, 100)
        return connection
    connections.open_private_sqlite = open_ticking
"""


def start(owner: str, path: Path, script: str, *arguments: object) -> subprocess.Popen[str]:
    """Run `script` in a process of its own; `owner` and `path` are names in it, and so is `die_after`."""
    return subprocess.Popen(
        [sys.executable, "-c", PRELUDE + textwrap.dedent(script), owner, str(path), *map(str, arguments)],
        stdout=subprocess.PIPE,
        text=True,
    )


def killed_ever_later(
    owner: str,
    path: Path,
    script: str,
    *,
    prepare: Callable[[], object] | None = None,
    more_than: int,
    factor: float = 1.5,
) -> Iterator[bool]:
    """Run `script` again and again, each time killed `factor` times as late, until it lives to the end.

    `prepare` is called before each run. What is yielded after each is whether it lived; more than `more_than`
    of them must have been killed.
    """
    killed, ticks, lived = 0, 0, False
    while not lived:
        if prepare is not None:
            prepare()
        process = start(owner, path, "die_after(int(sys.argv[3]))\n" + textwrap.dedent(script), ticks)
        process.communicate()
        lived = process.returncode == 0
        if lived:
            assert killed > more_than
        else:
            assert process.returncode == -signal.SIGKILL
            killed += 1
        yield lived
        ticks = int(ticks * factor) + 1


def put_old_file(path: Path, content: bytes) -> None:
    """Have nothing beside the memory file, and `content` in it."""
    for file in path.parent.iterdir():
        file.unlink()
    path.write_bytes(content)
    path.chmod(0o600)
