"""What is written where: results on stdout, everything else on stderr, and JSON where it was asked for."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import sys
import time
import unicodedata
from typing import TYPE_CHECKING, Any, TextIO

from mycelium_cli.meter import Meter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

__all__ = [
    "OutputFailed",
    "amount",
    "bytes_to_stdout",
    "discard_stdout",
    "duration",
    "memories",
    "moment",
    "note_finished",
    "progress",
    "report_progress",
    "shown",
    "shown_in_line",
    "to_stderr",
    "to_stdout",
    "wants_json",
    "write_json",
]

STROOPS_PER_XLM = 10_000_000

_KEPT = "\n\t"
_STEERING = {"Cc", "Cf", "Cs", "Zl", "Zp"}
_JOINERS = "\u200c\u200d"  # used by scripts and emoji, and harmless

_meter: Meter | None = None
"""What is being shown on the terminal, if anything is."""


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


def note_finished(version: int | None) -> None:
    """Say that an anchoring of an earlier run was finished now, if one was."""
    if version is not None:
        to_stderr(f"note: version {version}, interrupted earlier, was finished")


def bytes_to_stdout(chunks: Iterable[bytes]) -> None:
    """Write a result that is no text of ours, in chunks; end quietly if its reader goes away.

    Raises:
        OutputFailed: it cannot be written, also because stdout is closed.
    """
    try:
        with _meter_hidden():
            for chunk in chunks:
                sys.stdout.buffer.write(chunk)
            sys.stdout.buffer.flush()
    except BrokenPipeError:
        _discard(sys.stdout)
    except OSError as error:
        _discard(sys.stdout)
        raise OutputFailed(f"the result cannot be written: {error.strerror}") from error


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


def shown_in_line(text: str) -> str:
    """The same for a text that stands within a line, so that it can neither end it nor look like another."""
    return shown(text).replace("\n", "\\x0a").replace("\t", "\\x09")


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
def progress(doing: str, *, clock: Callable[[], float] = time.monotonic) -> Iterator[None]:
    """Say on stderr, if that is a terminal, how far the work of the block is, once it takes over a second.

    Nothing is said where stderr is a file or a pipe: whoever reads that later has no use for it. What the
    work reports to `report_progress` is shown.
    """
    global _meter  # noqa: PLW0603 - there is one terminal
    if not sys.stderr.isatty():
        yield
        return
    meter = Meter(doing, sys.stderr, clock)
    before, _meter = _meter, meter
    try:
        with meter.running():
            yield
    finally:
        _meter = before


def report_progress(what: str, done: int, total: int | None) -> None:
    """So many of so many are done; a `Progress` for whatever the SDK does in a `progress` block."""
    if _meter is not None:
        _meter.report(what, done, total)


def _is_plain(character: str) -> bool:
    return character in _KEPT or character in _JOINERS or unicodedata.category(character) not in _STEERING


def _escaped(character: str) -> str:
    if character.isascii():
        return f"\\x{ord(character):02x}"
    return character.encode("ascii", "backslashreplace").decode("ascii")


def _write(stream: TextIO, text: str) -> None:
    """Write and flush. A reader that has gone, or that never was, as where the stream was closed, changes
    neither what the command does nor its exit code."""
    try:
        with _meter_hidden():
            stream.write(text)
            stream.flush()
    except OSError as error:
        _discard(stream)
        if error.errno in {errno.EPIPE, errno.EBADF}:
            return
        raise OutputFailed(f"the result cannot be written: {error.strerror}") from error


def _meter_hidden() -> contextlib.AbstractContextManager[None]:
    return contextlib.nullcontext() if _meter is None else _meter.hidden()


def _discard(stream: Any) -> None:
    """Point the stream's descriptor at nothing, so that the interpreter's own flush at the end is quiet."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nothing, stream.fileno())
    finally:
        os.close(nothing)
