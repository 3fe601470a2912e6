"""Whether memories were written in an order that means something: the measure that switches term windows.

Half of the memories are compared, each with the two before it in its run (a session, or writes without a long
pause) and with the two that were written sixteen writes earlier, whatever run they are of. What counts is how
many telling terms it shares with one pair and not with the other, so what all memories share (a speaker, a
date, a prefix) counts for neither. In a conversation the near pair shares 2.5 to 10 times as much as the far
one; in random order as much. The counts are whole numbers that depend on the memories and their order only,
so they can be added up as memories come.
"""

from __future__ import annotations

import zlib
from collections import deque
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

LAG = 16
"""How many writes earlier the far pair was written."""

MEMORY = LAG + 1
"""So many of the memories written last have to be known to count the next one."""

LONGEST_PAUSE = 60
"""Minutes between two writes of one run, where no session is given."""

FARTHEST = 64
"""So many writes away neighbours are looked for: other sessions may be written at the same time."""

NAMED = 1 << 31
"""Runs from here on are sessions."""
_STRETCH = 256
_PRIOR = 32
_DOUBT = 10  # terms that a store's memories are taken to share near and far, so that few say little
_NONE = 1.0
_FULL = 3.0
_CHANCE = 1.25  # random order shows as much here and there


class Counts(NamedTuple):
    """How many memories were compared, how many terms they share with their near pair only, and how many with
    the far pair only."""

    compared: int = 0
    near: int = 0
    far: int = 0

    def plus(self, other: Counts) -> Counts:
        """The counts of both."""
        return Counts(self.compared + other.compared, self.near + other.near, self.far + other.far)


NOTHING = Counts()


def run_of(session: str | None, time: float | None) -> int:
    """What says whether two memories are of one run, in 32 bits: a session by its checksum, a write without
    one by its minute (`time` is in Unix seconds), 0 for one whose order of writing is not known."""
    if session is not None:
        return NAMED | zlib.crc32(session.encode("utf-8", "surrogatepass"))
    if time is None or not 60 <= time < 60 * NAMED:
        return 0
    return int(time // 60)


def same_run(one: int, other: int) -> bool:
    """Whether two memories, one written next after the other, are of one run."""
    if one == other:
        return one != 0
    return 0 < one < NAMED and 0 < other < NAMED and abs(one - other) <= LONGEST_PAUSE


def stretch_of(run: int, number: int) -> int:
    """Whose counts a memory's are: its session's, or those of the 256 writes around it. `number` is its place
    in the order of writing."""
    return run if run >= NAMED else number // _STRETCH


def reach(own: Counts, whole: Counts) -> float:
    """How far terms reach into neighbouring memories, in [0, 1]: 0 where those share no more than memories
    far apart, 1 where they share three times as much. By the counts of the stretch and of the whole store; a
    stretch with few counts is taken to be like the whole."""
    if not whole.compared:
        return 0.0
    near = own.near + _PRIOR * (whole.near + _DOUBT) / whole.compared
    far = own.far + _PRIOR * (whole.far + _DOUBT) / whole.compared
    ratio = near / far
    return min(1.0, (ratio - _NONE) / (_FULL - _NONE)) if ratio > _CHANCE else 0.0


def _chosen(number: int) -> bool:
    """Every second memory, without any regularity that the order of writing could have as well."""
    return bool(number * 0x9E3779B1 & 0x8000)


class Meter:
    """Compares memories that come in the order of writing."""

    def __init__(self) -> None:
        self._last: deque[tuple[int, AbstractSet[str]]] = deque(maxlen=MEMORY)

    def count(self, number: int, run: int, telling: AbstractSet[str]) -> Counts:
        """The counts of the next memory: its place in the order of writing, its run, its telling terms."""
        last = self._last
        found = NOTHING
        if run and len(last) == MEMORY and _chosen(number):
            near = self._near(run)
            if near is not None:
                far = last[0][1] | last[1][1]
                found = Counts(1, len((telling & near) - far), len((telling & far) - near))
        last.append((run, telling))
        return found

    def _near(self, run: int) -> AbstractSet[str] | None:
        """The telling terms of the two memories before in the run, None if there is none."""
        found: AbstractSet[str] | None = None
        for other, telling in reversed(self._last):
            if same_run(other, run):
                if found is not None:
                    return found | telling
                found, run = telling, other
        return found
