"""What goes wrong, for people and for programs: `error:` and `hint:` lines, JSON error objects, exit codes.

Every error of the SDK's tree has its exit code (formats.md section 9), and what the operating system refuses
about a file is taken into that tree. Whatever else comes from outside it is a bug: it shows its traceback and
exits with 1.
"""

from __future__ import annotations

import contextlib
import warnings
from typing import TYPE_CHECKING, Any

import click
from click.exceptions import NoArgsIsHelpError

from mycelium_cli import output
from mycelium_cli.obstacles import obstacle
from mycelium_sdk.errors import MyceliumError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["BUG", "report", "shown_warnings"]

BUG = 1
"""The exit code of a bug, or of a result that could not be written."""

_USAGE = 2


def report(error: Exception, *, as_json: bool) -> int:
    """Show an error and return the exit code.

    On stderr `error:` says what is wrong and `hint:` what to do. With `as_json` stdout gets
    `{"error": {"type", "message", "hint", "verdict", "exit_code"}}`.
    """
    if isinstance(error, NoArgsIsHelpError):
        output.to_stderr(error.format_message())
        return _USAGE
    described = _described(obstacle(error) or error)
    if described["exit_code"] == BUG and not isinstance(error, output.OutputFailed):
        import traceback

        output.to_stderr("".join(traceback.format_exception(error)).rstrip("\n"))
    verdict = f" ({described['verdict']})" if described["verdict"] else ""
    output.to_stderr(f"error: {output.shown(described['message'])}{verdict}")
    if described["hint"]:
        output.to_stderr(f"hint: {output.shown(described['hint'])}")
    if as_json and not isinstance(error, output.OutputFailed):
        output.write_json({"error": described})
    return int(described["exit_code"])


def _described(error: Exception) -> dict[str, Any]:
    kind, message, hint, verdict, code = type(error).__name__, str(error), None, None, BUG
    if isinstance(error, MyceliumError):
        message, hint, code = error.message, error.hint, error.exit_code
        verdict = None if error.verdict is None else str(error.verdict)
    elif isinstance(error, click.ClickException):
        kind, message, code = "UsageError", error.format_message(), _USAGE
        context = getattr(error, "ctx", None)
        if context is not None:
            hint = f"`{context.command_path} --help` shows how it is used"
    elif isinstance(error, output.OutputFailed):
        hint = "free some space, or write elsewhere"
    else:
        # The exception's own text may hold anything, also a memory: it stays in the traceback.
        message = f"internal error: {kind}"
        hint = "this is a bug; please report it with the lines above"
    return {"type": kind, "message": message, "hint": hint, "verdict": verdict, "exit_code": code}


@contextlib.contextmanager
def shown_warnings() -> Iterator[None]:
    """Show the SDK's warnings as `warning:` lines instead of Python's two with a source line."""

    def show(message: Warning | str, *_: object, **__: object) -> None:
        output.to_stderr(f"warning: {output.shown(str(message))}")

    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = show
        yield
