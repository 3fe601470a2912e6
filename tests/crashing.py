"""The death of a process at a labelled step."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import pytest

from mycelium_sdk.steps import observed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mycelium_sdk.steps import Step

__all__ = ["Killed", "die_at", "killed_at"]


class Killed(BaseException):
    """The process dies here: nothing after it happens, and no `except Exception` cleans up."""


def die_at(label: Step | None) -> Callable[[Step], None]:
    """For `observed`: die when `label` is reached; None: live."""

    def observe(step: Step) -> None:
        if step is label:
            raise Killed

    return observe


@contextlib.contextmanager
def killed_at(label: Step) -> Iterator[None]:
    """What runs in the block must reach `label`, and dies there."""
    with observed(die_at(label)), pytest.raises(Killed):
        yield
