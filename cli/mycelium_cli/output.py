"""What is written where: results on stdout, everything else on stderr, and JSON where it was asked for."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import threading
import time
import unicodedata
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = [
    "OutputFailed",
    "amount",
    "discard_stdout",
    "duration",
    "memories",
    "moment",
    "progress",
    "shown",
    "to_stderr",
    "to_stdout",
    "wants_json",
    "write_json",
]

STROOPS_PER_XLM = 10_000_000

_FIRST_NOTICE = 1.0
_NEXT_NOTICE = 10.0
_KEPT = "\n\t"
_STEERING = {"Cc", "Cf", "Cs", "Zl", "Zp"}
_JOINERS = "\u200c\u200d"  # used by scripts and emoji, and harmless


class OutputFailed(Exception):  # noqa: N818 - the names say what happened
    """The result could not be written, for example because the disk is full."""


def wants_json(arguments: Sequence[str]) -> bool:
    """Whether `--json` is among the options, also where the rest of the command line cannot be understood."""
    options = list(arguments)
    return "--json" in (options[: options.index("--")] if "--" in options else options)


def to_stdout(text: str) -> None:
    """Write a result, followed by a line end."""
    _write(sys.stdout, text + "\n")


def to_stderr(text: str) -> None:
    """Write a note for a person, followed by a line end."""
    with contextlib.suppress(OutputFailed):
        _write(sys.stderr, text + "\n")


def write_json(document: object) -> None:
    """Write the one JSON document of a command: ASCII, so that every locale and pipe carries it."""
    to_stdout(json.dumps(document, indent=2))


def discard_stdout() -> None:
    """Let everything still to be written to stdout vanish: whoever read it has gone."""
    _discard(sys.stdout)


def shown(text: str) -> str:
    """Text that is safe to show in a terminal.

    A memory may come from a stranger. Escape sequences and characters that reorder or hide text are written
    as escapes; line ends and tabs stay.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(character if _is_plain(character) else _escaped(character) for character in text)


def amount(stroops: int) -> str:
    """A fee for a person, for example `0.0123456 XLM (123,456 stroops)`."""
    whole, rest = divmod(stroops, STROOPS_PER_XLM)
    return f"{whole}.{rest:07d} XLM ({stroops:,} stroops)"


def duration(seconds: float) -> str:
    """A time for a person, for example `18 ms` or `2.4 s`."""
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"


def memories(count: int) -> str:
    """How many memories, in words, for example `1 memory` or `268 memories`."""
    return "1 memory" if count == 1 else f"{count} memories"


def moment(seconds: float) -> str:
    """A Unix time for a person, in UTC."""
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(seconds))


@contextlib.contextmanager
def progress(doing: str) -> Iterator[None]:
    """Say on stderr what is being done, once it takes longer than a second, and then every ten seconds."""
    done = threading.Event()
    started = time.monotonic()

    def tell() -> None:
        pause = _FIRST_NOTICE
        while not done.wait(pause):
            to_stderr(f"{doing} ... {time.monotonic() - started:.0f} s")
            pause = _NEXT_NOTICE

    thread = threading.Thread(target=tell, name="progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def _is_plain(character: str) -> bool:
    return character in _KEPT or character in _JOINERS or unicodedata.category(character) not in _STEERING


def _escaped(character: str) -> str:
    if character.isascii():
        return f"\\x{ord(character):02x}"
    return character.encode("ascii", "backslashreplace").decode("ascii")


def _write(stream: TextIO, text: str) -> None:
    """Write and flush. A reader that has gone changes neither what the command does nor its exit code."""
    try:
        stream.write(text)
        stream.flush()
    except BrokenPipeError:
        _discard(stream)
    except OSError as error:
        _discard(stream)
        raise OutputFailed(f"the result cannot be written: {error.strerror}") from error


def _discard(stream: Any) -> None:
    """Point the stream's descriptor at nothing, so that the interpreter's own flush at the end is quiet."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nothing, stream.fileno())
    finally:
        os.close(nothing)
