"""Four processes write and read at once while one after the other is killed: nothing acknowledged is lost."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.backends.soak import Said, soak

if TYPE_CHECKING:
    from pathlib import Path


def test_nothing_acknowledged_is_lost_and_no_reader_sees_an_error(path: Path) -> None:
    left = 8

    def pause(said: Said) -> bool:
        nonlocal left
        said.wait_for(60)
        left -= 1
        return left >= 0

    outcome = soak(path, pause)
    assert outcome.wrong == ()
    assert outcome.kills == 8
    assert outcome.remembered > 300
    assert outcome.forgotten > 20
