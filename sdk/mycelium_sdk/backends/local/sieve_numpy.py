"""`sieve` with numpy, for segments where much is to be added up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mycelium_sdk.backends.local.segments import BLOCK
from mycelium_sdk.backends.local.sieve import bounds
from mycelium_sdk.backends.scoring import length_norm, term_weight

if TYPE_CHECKING:
    from array import array
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from mycelium_sdk.backends.local.sieve import Part, Postings

    Floats = NDArray[np.float64]
    Numbers = NDArray[Any]


def sieve(part: Part, floor: float, limit: int) -> list[tuple[float, int]]:
    """See `sieve.sieve`."""
    rest = bounds(part.postings)
    lengths = np.frombuffer(part.lengths, dtype=np.uint32)
    allowed = None if part.allowed is None else _mask(part.allowed)
    every = np.zeros(BLOCK)
    number = 0
    for term in part.postings:
        if rest[number] < floor:
            break
        places, frequencies = _counted(term)
        if allowed is not None:
            passing = allowed[places]
            places, frequencies = places[passing], frequencies[passing]
        every[places] += _weights(part, lengths, term.idf, (places, frequencies))
        floor = _raised(every, floor, limit)
        number += 1
    places = np.flatnonzero(every)
    scores = every[places]
    for term, left in zip(part.postings[number:], rest[number:], strict=False):
        kept = scores + left >= floor
        places, scores = places[kept], scores[kept]
        if not places.size:
            break
        frequencies = _frequencies_at(_numbers(term.places()), places.astype(np.uint16))
        having = frequencies > 0
        scores[having] += _weights(part, lengths, term.idf, (places[having], frequencies[having]))
        floor = _raised(scores, floor, limit)
    kept = scores >= floor
    places, scores = places[kept], scores[kept]
    order = np.lexsort((places, scores))[::-1][:limit]
    return list(zip(scores[order].tolist(), places[order].tolist(), strict=True))


def frequencies_at(places: array[int], wanted: Sequence[int]) -> list[tuple[int, int]]:
    """See `sieve.frequencies_at`."""
    asked = np.asarray(wanted, dtype=np.uint16)
    frequencies = _frequencies_at(_numbers(places), asked)
    having = np.flatnonzero(frequencies)
    return list(zip(asked[having].tolist(), frequencies[having].tolist(), strict=True))


def _frequencies_at(every: Numbers, asked: Numbers) -> Numbers:
    found: Numbers = np.searchsorted(every, asked, "right") - np.searchsorted(every, asked, "left")
    return found


def _weights(part: Part, lengths: Numbers, idf: float, counted: tuple[Numbers, Numbers]) -> Floats:
    """Of a term at places, by how often it stands there: the scorer's own formulas, over arrays."""
    places, frequencies = counted
    terms: Any = lengths[places.astype(np.int64) - part.start].astype(np.int64) - 1
    many: Any = frequencies
    return np.asarray(term_weight(idf, many, length_norm(terms, part.average_length)))


def _counted(term: Postings) -> tuple[Numbers, Numbers]:
    """Places, each once, and how often the term stands there."""
    every = _numbers(term.places())
    if every.size == term.documents:
        return every, np.ones(every.size, dtype=np.int64)
    starts = np.flatnonzero(np.concatenate(([True], every[1:] != every[:-1])))
    return every[starts], np.diff(starts, append=every.size)


def _raised(scores: Floats, floor: float, limit: int) -> float:
    """The floor, or the weight of the memory at the place `limit`, if that is higher."""
    above = scores[scores >= floor] if floor > 0 else scores[scores > 0]
    if above.size < limit:
        return floor
    return max(floor, float(np.partition(above, above.size - limit)[above.size - limit]))


def _numbers(places: array[int]) -> Numbers:
    return np.frombuffer(places, dtype=np.uint16)


def _mask(allowed: set[int]) -> NDArray[np.bool_]:
    mask = np.zeros(BLOCK, dtype=np.bool_)
    mask[list(allowed)] = True
    return mask
