"""When a heartbeat is due."""

from __future__ import annotations

from typing import Any

import pytest

from mycelium_sdk.errors import InputError
from mycelium_sdk.memory import AnchoringPolicy


@pytest.mark.parametrize(
    ("writes", "last_anchor", "due"),
    [
        (1, None, True),
        (0, None, False),
        (1, 900.0, True),
        (1, 901.0, False),
        (5, 1_000.0, False),
        (0, 0.0, False),
        (1, 5_000.0, True),  # in the future: a clock was set back
    ],
)
def test_due(writes: int, last_anchor: float | None, due: bool) -> None:
    policy = AnchoringPolicy(heartbeat_seconds=100, min_writes=1)
    assert policy.due(writes=writes, last_anchor=last_anchor, now=1_000.0) is due


def test_min_writes() -> None:
    policy = AnchoringPolicy(heartbeat_seconds=0, min_writes=3)
    assert not policy.due(writes=2, last_anchor=None, now=1.0)
    assert policy.due(writes=3, last_anchor=None, now=1.0)


@pytest.mark.parametrize(
    "arguments",
    [
        {"heartbeat_seconds": -1},
        {"heartbeat_seconds": True},
        {"heartbeat_seconds": "60"},
        {"heartbeat_seconds": float("nan")},
        {"heartbeat_seconds": float("inf")},
        {"min_writes": 0},
        {"min_writes": 1.5},
        {"min_writes": True},
    ],
)
def test_bad_thresholds_are_refused(arguments: dict[str, Any]) -> None:
    with pytest.raises(InputError) as caught:
        AnchoringPolicy(**arguments)
    assert caught.value.hint
