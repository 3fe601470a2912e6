"""The memories in the order of writing: which ones were written just before and after one, in its run."""

from __future__ import annotations

import array
import bisect
from typing import TYPE_CHECKING

from mycelium_sdk.backends.coherence import FARTHEST, LONGEST_PAUSE, NAMED, same_run

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mycelium_sdk.backends.local.documents import Document
    from mycelium_sdk.backends.local.segments import Segments


class Line:
    """The order of ids is the order of writing."""

    def __init__(self, index: Segments, documents: Sequence[Document]) -> None:
        self._index = index
        self._firsts = [segment.first for segment in index.segments]
        self._waiting = {document.id: document.run for document in documents}
        self._first, self._last = 1, 0
        self._runs = self._lengths = array.array("I")

    def run(self, number: int) -> int:
        """The run of a memory, 0 where there is no memory or its order of writing is not known."""
        if not self._first <= number <= self._last and not self._turn_to(number):
            return self._waiting.get(number, 0)
        place = number - self._first
        return self._runs[place] if self._lengths[place] else 0

    def sides(self, number: int, most: int) -> tuple[list[int], list[int]]:
        """The memories before and after in the run, nearest first, at most so many each."""
        if self.run(number) and self._first + most <= number <= self._last - most:
            place = number - self._first
            around = slice(place - most, place + most + 1)
            if 0 not in self._lengths[around] and _one_run(self._runs[around]):
                earlier = range(number - 1, number - most - 1, -1)
                return list(earlier), list(range(number + 1, number + most + 1))
        return self._walk(number, -1, most), self._walk(number, 1, most)

    def _walk(self, number: int, step: int, most: int) -> list[int]:
        found: list[int] = []
        run = self.run(number)
        if not run:
            return found
        for other in range(number + step, number + step * (FARTHEST + 1), step):
            there = self.run(other)
            if same_run(there, run):
                found.append(other)
                run = there
                if len(found) == most:
                    break
        return found

    def _turn_to(self, number: int) -> bool:
        """Have the entries of the segment that covers the id at hand."""
        place = bisect.bisect_right(self._firsts, number) - 1
        if place < 0 or number > self._index.segments[place].last:
            return False
        segment = self._index.segments[place]
        self._lengths, self._runs = self._index.entries(segment)
        self._first, self._last = segment.first, segment.last
        return True


def _one_run(runs: array.array[int]) -> bool:
    """Whether memories that follow each other are of one run for certain."""
    least, most = min(runs), max(runs)
    return least > 0 and (least == most or (most < NAMED and most - least <= LONGEST_PAUSE))
