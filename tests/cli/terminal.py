"""The command line at a terminal, and interrupting it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import select
import subprocess
import sys
import termios
from typing import TYPE_CHECKING

from .conftest import TIMEOUT

if TYPE_CHECKING:
    from collections.abc import Callable

CTRL_C, CTRL_D = b"\x03", b"\x04"


def clean(text: str) -> bool:
    """Whether nothing of the interpreter shows through."""
    return "Traceback" not in text and "Exception ignored" not in text


def unread(pipe: int) -> bool:
    """Whether something that was written to the pipe was not read yet."""
    left = bytearray(4)
    fcntl.ioctl(pipe, termios.FIONREAD, left)
    return any(left)


def interrupt(process: subprocess.Popen[bytes], press: Callable[[], None]) -> None:
    """Interrupt a process that waits for input.

    A signal that comes in the instant before a blocking read is only noticed when the read ends, in any
    Python program; so Ctrl-C is pressed again if the first had no effect.
    """
    for _ in range(3):
        press()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(TIMEOUT / 6)
            return


# Makes the terminal the controlling one of a new session, puts a pipe with a text in the place of stdin where
# there is a text, then becomes the command line.
AT_TERMINAL = """
import os, sys
os.login_tty(int(sys.argv[1]))
if sys.argv[2]:
    reading, writing = os.pipe()
    os.write(writing, sys.argv[2].encode())
    os.close(writing)
    os.dup2(reading, 0)
os.execv(sys.executable, [sys.executable, "-m", "mycelium_cli", *sys.argv[3:]])
"""


class Terminal:
    """The command line at a terminal: what a person sees and types. `piped`: what stdin holds instead."""

    def __init__(self, *arguments: str, piped: str = "") -> None:
        self.controller, terminal = pty.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-c", AT_TERMINAL, str(terminal), piped, *arguments],
            env={**os.environ, "MYCELIUM_DECRYPT_KEY": ""},
            pass_fds=[terminal],
        )
        os.close(terminal)
        self.seen = ""

    def until(self, text: str) -> None:
        """Read until the terminal shows the text."""
        while text not in self.seen:
            ready, _, _ = select.select([self.controller], [], [], TIMEOUT)
            assert ready, f"{text!r} did not come"
            self.seen += os.read(self.controller, 4096).decode()

    def types(self, text: bytes) -> None:
        """Type something."""
        os.write(self.controller, text)

    def rest(self) -> int:
        """Read to the end; the exit code."""
        with contextlib.suppress(OSError):  # what Linux gives at the end of a terminal
            while data := os.read(self.controller, 4096):
                self.seen += data.decode()
        return self.process.wait(TIMEOUT)

    def close(self) -> None:
        """End the process, if it has not ended."""
        self.process.kill()
        self.process.wait()
        os.close(self.controller)
