"""The death of a process at a labelled step."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from mycelium_sdk.steps import Step


class Killed(BaseException):
    """The process dies here."""


def die_at(label: Step) -> Callable[[Step], None]:
    """For `observed`: die when `label` is reached."""

    def observe(step: Step) -> None:
        if step is label:
            raise Killed

    return observe
