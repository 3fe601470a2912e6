"""A question at the terminal before something that cannot be undone, or that costs money."""

from __future__ import annotations

import sys

from mycelium_cli.output import to_stderr

__all__ = ["at_a_terminal", "confirmed"]


def at_a_terminal() -> bool:
    """Whether somebody can be asked."""
    return sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()


def confirmed(question: str, *, without_terminal: str) -> bool:
    """Whether the answer is yes.

    Raises `UsageError`, which names the option `without_terminal`, where nobody can be asked.
    """
    if not at_a_terminal():
        from mycelium_sdk.errors import UsageError

        raise UsageError("there is no terminal to ask at", hint=f"say {without_terminal}")
    sys.stderr.write(f"{question} [y/N] ")
    sys.stderr.flush()
    answer = sys.stdin.readline()
    if not answer:
        to_stderr("")
    return answer.strip().lower() in {"y", "yes"}
