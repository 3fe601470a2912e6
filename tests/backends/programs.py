"""Other processes on the memory file of a test."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from typing import TYPE_CHECKING

if TYPE_CHECKING:
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
