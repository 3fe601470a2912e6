"""What is known of candidates: their words, the memories around them, and how far terms reach among those."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mycelium_sdk.backends.scoring import WINDOW, Candidate, Words, spreading

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mycelium_sdk.backends.local.line import Line
    from mycelium_sdk.backends.local.lookup import Lookup

_EMPTY = Words({}, 0)
_NO_WINDOW: tuple[list[int], list[int]] = ([], [])


class Gathered:
    """Gathers each fact once."""

    def __init__(self, lookup: Lookup, line: Line) -> None:
        self._lookup = lookup
        self._line = line
        self._looked_at: set[int] = set()
        self._reaches: dict[int, float] = {}
        self._spreading = spreading(lookup.number, lookup.document_frequencies)
        self._telling: dict[int, Words] = {}
        self.words: dict[int, Words] = {}
        """The words of those memories looked at that have any of the query's terms."""
        self.windows: dict[int, tuple[list[int], list[int]]] = {}
        """The memories before and after each that was looked around, nearest first; none where the order of
        writing means nothing."""

    def look_at(self, numbers: Iterable[int]) -> None:
        """Find the words of these memories."""
        new = set(numbers) - self._looked_at
        self._looked_at |= new
        found = self._lookup.words(new, self._lookup.document_frequencies)
        self.words.update(found)
        for number, words in found.items():
            if not self._spreading.isdisjoint(words.frequencies):
                self._telling[number] = words

    def look_around(self, numbers: Iterable[int]) -> set[int]:
        """Find the memories around these, and what they hold of the terms that spread; their ids."""
        new = [number for number in numbers if number not in self.windows]
        self._reaches.update(self._lookup.reaches(self._line, new))
        around: set[int] = set()
        for number in new:
            window = self._line.sides(number, WINDOW) if self._reaches.get(number) else _NO_WINDOW
            self.windows[number] = window
            around.update(*window)
        unknown = around - self._looked_at
        self._telling.update(self._lookup.words(unknown, self._spreading))
        return around

    def candidate(self, number: int) -> Candidate:
        """The memory as the scorer takes it."""
        reach = self._reaches.get(number, 0.0)
        words = self.words.get(number, _EMPTY)
        if not reach:
            return Candidate(str(number), number, words)
        earlier, later = self.windows[number]
        telling = self._telling
        around = [(-place, telling[near]) for place, near in enumerate(earlier, 1) if near in telling]
        around += [(place, telling[near]) for place, near in enumerate(later, 1) if near in telling]
        return Candidate(str(number), number, words, around, reach)
