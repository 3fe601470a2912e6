"""Findings of `mycelium doctor`, and how a check becomes one."""

from __future__ import annotations

import enum
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mycelium_cli.obstacles import obstacle
from mycelium_sdk.errors import MyceliumError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Finding", "Found", "State", "run_check", "unchecked"]


class State(enum.StrEnum):
    """How grave a finding is. Only a fault makes `doctor` fail."""

    OK = "ok"
    WARNING = "warning"
    FAULT = "fault"


@dataclass(frozen=True, slots=True)
class Finding:
    """What one check found. `fix` is there unless all is well; `exit_code` as in formats.md section 9."""

    name: str
    state: State
    message: str
    fix: str | None = None
    exit_code: int = 0


class Found(Exception):  # noqa: N818 - how a check ends early
    """A check found something else than that all is well. `code`: another exit code than the check's own."""

    def __init__(
        self, state: State, message: str, fix: str | None = None, *, code: int | None = None
    ) -> None:
        super().__init__(message)
        self.state, self.message, self.fix, self.code = state, message, fix, code


def run_check(name: str, kind: type[MyceliumError], check: Callable[[], str]) -> Finding:
    """The finding of a check that returns its message, raises `Found` for more, or an error of the tree, or
    what the operating system refuses about a file.

    `kind` is the branch of the tree whose exit code a fault of this check has.
    """
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            message = check()
    except Found as found:
        code = kind.exit_code if found.code is None else found.code
        return Finding(name, found.state, found.message, found.fix, code if found.state is State.FAULT else 0)
    except MyceliumError as error:
        return Finding(name, State.FAULT, error.message, error.hint, error.exit_code)
    except OSError as error:
        refused = obstacle(error, kind)
        if refused is None:
            raise
        return Finding(name, State.FAULT, refused.message, refused.hint, kind.exit_code)
    if caught:
        return Finding(
            name, State.WARNING, f"{message}; {caught[0].message}", "correct its name, or unset it"
        )
    return Finding(name, State.OK, message)


def unchecked(name: str, other: str) -> Finding:
    """The finding of a check that was not made, since what another one looked at is at fault."""
    return Finding(
        name, State.WARNING, f"not checked, because of the {other}'s fault", f"see the {other}'s fix"
    )
