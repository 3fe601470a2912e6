"""Results of functions that a caller passed in, where a coroutine is not awaited by anybody."""

from __future__ import annotations

import inspect

__all__ = ["is_asynchronous"]


def is_asynchronous(result: object) -> bool:
    """Whether `result` would have to be awaited; a coroutine is closed, since nobody will run it."""
    if inspect.iscoroutine(result):
        result.close()
    return inspect.isawaitable(result)
