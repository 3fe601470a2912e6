"""The way in and out of the command line: arguments, exit codes, signals, closed pipes, and no core files.

Nothing but the interpreter's own modules is imported before the handlers are in place, so that Ctrl-C ends
even a slow start without a traceback.
"""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["INTERRUPTED", "TERMINATED", "main", "run"]

INTERRUPTED = 130
"""The exit code after Ctrl-C, as shells have it: 128 and the signal's number."""

TERMINATED = 143
"""The exit code after SIGTERM."""


class _Terminated(KeyboardInterrupt):
    """SIGTERM came. Ends what is under way as Ctrl-C does."""


def main() -> None:
    """The console script: run with this process's arguments and exit."""
    try:
        _leave_no_core()
        _prepare_streams()
        _heed_termination()
        code = run(sys.argv[1:])
    except KeyboardInterrupt as end:
        code = _exit_code(end)
    sys.exit(code)


def run(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code (formats.md section 9). Writes to `sys.stdout` and
    `sys.stderr`.

    With `--json` among the arguments a failure is written to stdout as JSON, besides the lines on stderr.
    """
    try:
        from mycelium_cli import failures
        from mycelium_cli.output import discard_stdout, wants_json

        as_json = wants_json(arguments)
        try:
            with failures.shown_warnings():
                return _invoke(_checked(arguments))
        except BrokenPipeError:
            discard_stdout()
            return 0
        except Exception as error:  # noqa: BLE001 - the last handler, shows a bug
            return failures.report(error, as_json=as_json)
    except KeyboardInterrupt as end:
        # The terminal shows ^C where the cursor is.
        said = "error: terminated\n" if isinstance(end, _Terminated) else "\nerror: interrupted\n"
        with contextlib.suppress(OSError):
            if sys.stderr is not None:
                sys.stderr.write(said)
        return _exit_code(end)


def _exit_code(end: KeyboardInterrupt) -> int:
    return TERMINATED if isinstance(end, _Terminated) else INTERRUPTED


def _invoke(arguments: list[str]) -> int:
    from click.exceptions import Exit

    from mycelium_cli.root import cli

    try:
        # Not `cli.main()`, which turns interrupts and closed pipes into exit codes of its own.
        with cli.make_context("mycelium", arguments) as context:
            cli.invoke(context)
    except Exit as end:
        return end.exit_code
    return 0


def _checked(arguments: Sequence[str]) -> list[str]:
    """The arguments as UTF-8 text, whatever the locale decoded them as."""
    texts = []
    for place, argument in enumerate(arguments, 1):
        try:
            texts.append(os.fsencode(argument).decode("utf-8"))
        except UnicodeError:
            from mycelium_sdk.errors import UsageError

            raise UsageError(
                f"argument {place} is not valid UTF-8",
                hint="convert the text first, for example with iconv, or give it on stdin with `-`",
            ) from None
    return texts


def _leave_no_core() -> None:
    """Have no core file written if this process crashes: passphrases, seeds and memories would be in it."""
    _, highest = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (0, highest))
    # A program that the kernel pipes cores into gets one all the same (core(5)); this leaves its memory out.
    with contextlib.suppress(OSError), open("/proc/self/coredump_filter", "w") as file:  # noqa: PTH123
        file.write("0")


def _heed_termination() -> None:
    """End in order on SIGTERM: close files, remove what is half-written. Where it is ignored, it stays so."""

    def end(_number: int, _frame: object) -> None:
        raise _Terminated

    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, end)


def _prepare_streams() -> None:
    """Write UTF-8 in every locale, and put something in the place of a closed stream.

    What stands in for stdout refuses what is written: `output` knows for which results that matters.
    """
    for name, mode in (("stdout", os.O_RDONLY), ("stderr", os.O_WRONLY)):
        stream = getattr(sys, name)
        if stream is None:
            nothing = os.open(os.devnull, mode)
            setattr(sys, name, open(nothing, "w", encoding="utf-8"))  # noqa: SIM115, PTH123 - for the run
        else:
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
