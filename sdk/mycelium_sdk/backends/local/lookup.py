"""What one query asks of one state of a store: the best by plain BM25, and the words of any memories."""

from __future__ import annotations

import array
import bisect
import functools
import importlib.util
from typing import TYPE_CHECKING

from mycelium_sdk.backends.coherence import Counts, reach, stretch_of
from mycelium_sdk.backends.local import sieve
from mycelium_sdk.backends.local.sieve import Part, Postings
from mycelium_sdk.backends.scoring import Lexical, Words

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
    from types import ModuleType

    from mycelium_sdk.backends.base import Query
    from mycelium_sdk.backends.local.documents import Document
    from mycelium_sdk.backends.local.line import Line
    from mycelium_sdk.backends.local.segments import Segment, Segments

_WORTH_NUMPY = 4096
_WORTH_NUMPY_LOOKUP = 64


class Lookup:
    """The query's terms in one state of a store. `documents`: the memories that are not indexed; `allowed`:
    the ids of those that pass the query's filters, in order, None if all do."""

    def __init__(
        self, query: Query, index: Segments, documents: Sequence[Document], allowed: Sequence[int] | None
    ) -> None:
        self.index = index
        self.documents = documents
        self.allowed = allowed
        segments = self.index.segments
        self._by_id = {document.id: document for document in self.documents}
        self._frequencies = self.index.frequencies(query.terms)
        self.number = sum(segment.documents for segment in segments) + len(self.documents)
        """How many memories there are."""
        length = sum(segment.length for segment in segments) + sum(d.length for d in self.documents)
        self.average_length = length / self.number if self.number else 0.0
        self.document_frequencies = {
            term: sum(found.values()) + sum(term in document.frequencies for document in self.documents)
            for term, found in self._frequencies.items()
        }
        self._lexical = Lexical(query.terms, self.number, self.average_length, self.document_frequencies)

    def allows(self, number: int) -> bool:
        """Whether the memory passes the filters."""
        if self.allowed is None:
            return True
        place = bisect.bisect_left(self.allowed, number)
        return place < len(self.allowed) and self.allowed[place] == number

    def best(self, limit: int) -> list[int]:
        """Ids of the best by plain BM25 among those that pass the filters; among equals the last first."""
        best = sorted(self._waiting_weights(), reverse=True)[:limit]
        for segment in reversed(self.index.segments):
            floor = best[limit - 1][0] if len(best) >= limit else 0.0
            part = self._part(segment)
            if part.postings:
                found = _sieve_for(part)(part, floor, limit)
                best.extend((weight, segment.base + place) for weight, place in found)
                best.sort(reverse=True)
                del best[limit:]
        return [number for _, number in best]

    def words(self, numbers: Iterable[int], terms: Collection[str]) -> dict[int, Words]:
        """How often some of the terms stand in those of these memories that have any, and their lengths."""
        found: dict[int, Words] = {}
        wanted = sorted(numbers)
        for segment in self.index.segments:
            first = bisect.bisect_left(wanted, segment.first)
            last = bisect.bisect_right(wanted, segment.last, first)
            if first < last:
                found.update(self._indexed_words(segment, wanted[first:last], terms))
        for number in wanted if self._by_id else ():
            document = self._by_id.get(number)
            if document is not None:
                known = document.frequencies
                counts = {term: known[term] for term in terms if term in known}
                if counts:
                    found[number] = Words(counts, document.length)
        return found

    def reaches(self, line: Line, numbers: Iterable[int]) -> dict[int, float]:
        """How far terms reach around each of these memories."""
        stretches = {number: stretch_of(run, number) for number in numbers if (run := line.run(number))}
        whole = Counts()
        for segment in self.index.segments:
            whole = whole.plus(segment.counts)
        for document in self.documents:
            whole = whole.plus(document.counts)
        found = self.index.counts(sorted(set(stretches.values())))
        for document in self.documents:
            stretch = stretch_of(document.run, document.id)
            found[stretch] = found.get(stretch, Counts()).plus(document.counts)
        return {number: reach(found.get(stretch, Counts()), whole) for number, stretch in stretches.items()}

    def _waiting_weights(self) -> Iterator[tuple[float, int]]:
        for document in self.documents:
            weight = self._lexical.weight(Words(document.frequencies, document.length))
            if weight > 0 and self.allows(document.id):
                yield weight, document.id

    def _part(self, segment: Segment) -> Part:
        postings = [
            Postings(idf, documents, self._reader(segment, term))
            for term, idf in self._lexical.idfs.items()
            if (documents := self._frequencies[term].get(segment.id))
        ]
        allowed = None
        if self.allowed is not None:
            first = bisect.bisect_left(self.allowed, segment.first)
            last = bisect.bisect_right(self.allowed, segment.last)
            allowed = {number - segment.base for number in self.allowed[first:last]}
        if not postings or allowed == set():
            return Part((), array.array("I"), 0, 0.0, None)
        lengths = self.index.entries(segment).lengths
        return Part(postings, lengths, segment.first - segment.base, self.average_length, allowed)

    def _reader(self, segment: Segment, term: str) -> Callable[[], array.array[int]]:
        return lambda: self.index.places(segment, term)

    def _indexed_words(
        self, segment: Segment, numbers: Sequence[int], terms: Collection[str]
    ) -> Iterator[tuple[int, Words]]:
        base = segment.base
        wanted = [number - base for number in numbers]
        many = len(wanted) >= _WORTH_NUMPY_LOOKUP and _has_numpy()
        frequencies_at = _numpy().frequencies_at if many else sieve.frequencies_at
        counts: dict[int, dict[str, int]] = {}
        for term in terms:
            if segment.id not in self._frequencies[term]:
                continue
            places = self.index.places(segment, term)
            for place, frequency in frequencies_at(places, wanted):
                counts.setdefault(place, {})[term] = frequency
        lengths = self.index.entries(segment).lengths
        for place, frequencies in counts.items():
            number = base + place
            yield number, Words(frequencies, lengths[number - segment.first] - 1)


def _sieve_for(part: Part) -> Callable[[Part, float, int], list[tuple[float, int]]]:
    """With numpy where it is there and worth its while."""
    many = sum(term.documents for term in part.postings) >= _WORTH_NUMPY and _has_numpy()
    found: Callable[[Part, float, int], list[tuple[float, int]]] = _numpy().sieve if many else sieve.sieve
    return found


@functools.cache
def _has_numpy() -> bool:
    return importlib.util.find_spec("numpy") is not None


def _numpy() -> ModuleType:
    from mycelium_sdk.backends.local import sieve_numpy

    return sieve_numpy
