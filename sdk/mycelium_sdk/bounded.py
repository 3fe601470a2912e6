"""Waiting for something for a bounded time, whatever it waits for itself."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["TooSlow", "within"]

_Answer = TypeVar("_Answer")


class TooSlow(Exception):  # noqa: N818 - says what happened to a wait, and is mapped by who waited
    """There was no answer in time."""


def within(seconds: float, act: Callable[[], _Answer]) -> _Answer:
    """What `act` returns or raises, if it does so in time.

    Otherwise it goes on alone in a thread that keeps no process alive. Raises `TooSlow`.
    """
    answers: list[_Answer] = []
    errors: list[BaseException] = []

    def work() -> None:
        try:
            answers.append(act())
        except BaseException as error:  # noqa: BLE001 - raised again by who waits
            errors.append(error)

    thread = threading.Thread(target=work, name="mycelium-bounded", daemon=True)
    thread.start()
    thread.join(seconds)
    if errors:
        raise errors[0]
    if not answers:
        raise TooSlow
    return answers[0]
