"""The best memories of one segment by plain BM25, without a look at those that cannot be among them.

The rarest terms come first. Once the terms that are left could not lift a memory above the floor by
themselves, they are only looked up for memories that were met already, and only while these can still reach
it. `sieve_numpy` does the same with numpy, to the last bit.
"""

from __future__ import annotations

import bisect
import heapq
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from mycelium_sdk.backends.scoring import length_norm, most_weight, term_weight

if TYPE_CHECKING:
    from array import array
    from collections.abc import Callable, Sequence

_SLACK = 1.0 + 1e-9  # sums of bounds are taken a little higher, since sums of floats are rounded
_HALVINGS = 8


class Postings(NamedTuple):
    """A term in a segment: its inverse document frequency, in how many memories it stands, and its places,
    read when they are needed."""

    idf: float
    documents: int
    places: Callable[[], array[int]]


class Part(NamedTuple):
    """A segment as it is sieved. `postings`: the rarest term first. `lengths`: 1 more than the number of
    terms of the memory at each place, from the place `start` on. `allowed`: the places that pass the query's
    filters, None if all do."""

    postings: Sequence[Postings]
    lengths: array[int]
    start: int
    average_length: float
    allowed: set[int] | None


def bounds(postings: Sequence[Postings]) -> list[float]:
    """For each place in the list, what the terms from there on cannot exceed together; ends with 0."""
    found = [0.0]
    for term in reversed(postings):
        found.append(found[-1] + most_weight(term.idf) * _SLACK)
    return found[::-1]


def sieve(part: Part, floor: float, limit: int) -> list[tuple[float, int]]:
    """(weight, place) of the `limit` best memories that weigh at least `floor`; among equals the last."""
    rest = bounds(part.postings)
    scores: dict[int, float] = {}
    for number, term in enumerate(part.postings):
        if rest[number] >= floor:
            _add(part, term, scores)
        else:
            scores = {place: score for place, score in scores.items() if score + rest[number] >= floor}
            _look_up(part, term, scores)
        if len(scores) >= limit:
            floor = max(floor, heapq.nlargest(limit, scores.values())[-1])
    return heapq.nlargest(limit, ((score, place) for place, score in scores.items() if score >= floor))


def frequencies_at(places: array[int], wanted: Sequence[int]) -> list[tuple[int, int]]:
    """(place, how often) for those of some places, in order, where the term stands. Each is looked up, unless
    it takes less to go through all."""
    if len(places) <= _HALVINGS * len(wanted):
        wanted = sorted(set(wanted).intersection(places))
    found: list[tuple[int, int]] = []
    first = 0
    for place in wanted:
        first = bisect.bisect_left(places, place, first)
        if first < len(places) and places[first] == place:
            found.append((place, bisect.bisect_right(places, place, first) - first))
    return found


def _add(part: Part, term: Postings, scores: dict[int, float]) -> None:
    """Add the term's weights for all memories that hold it."""
    places, lengths, start = term.places(), part.lengths, part.start
    if part.allowed is not None:
        counts = Counter(place for place in places if place in part.allowed)
    elif len(places) == term.documents:  # in each memory once
        once = _Once(term.idf, part.average_length)
        for place in places:
            scores[place] = scores.get(place, 0.0) + once[lengths[place - start]]
        return
    else:
        counts = Counter(places)
    for place, frequency in counts.items():
        norm = length_norm(lengths[place - start] - 1, part.average_length)
        scores[place] = scores.get(place, 0.0) + term_weight(term.idf, frequency, norm)


def _look_up(part: Part, term: Postings, scores: dict[int, float]) -> None:
    """Add the term's weights for memories that have a score."""
    if scores:
        for place, frequency in frequencies_at(term.places(), sorted(scores)):
            norm = length_norm(part.lengths[place - part.start] - 1, part.average_length)
            scores[place] += term_weight(term.idf, frequency, norm)


class _Once(dict[int, float]):
    """The weight of a term that stands once in a memory, by 1 more than the memory's number of terms."""

    def __init__(self, idf: float, average_length: float) -> None:
        super().__init__()
        self._idf = idf
        self._average_length = average_length

    def __missing__(self, length: int) -> float:
        weight = term_weight(self._idf, 1, length_norm(length - 1, self._average_length))
        self[length] = weight
        return weight
