"""The one scorer: a pure function that ranks the candidates of any backend.

BM25 with the parameters measured for short memories (k1 0.9, b 0.4), over term windows: a term that stands in
a memory written just before or after counts, weakened, as the memory's own, as far as the order of writing
means anything (`coherence`). Where a backend also gives similarities of an embedder, both are added,
normalised and weighted. Scores are in (0, 1], higher is better, in every backend.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

K1 = 0.9
B = 0.4

WINDOW = 5
"""How many memories before and after one its terms are looked for in."""

EARLIER = 0.5
LATER = 0.43
DECAY = 0.8
SPREAD_SHARE = 0.1
"""Terms that stand in a greater share of the memories say nothing of their neighbours."""

POOL = 30
"""So many of the best by plain BM25, and their neighbours, are ranked with their windows; the others after
them, in blocks of as many."""

SIMILARITY = 0.8
SURROUNDINGS = 0.4
"""Weights of the similarity of a memory, and of it with its surroundings, where the words' weight is 1."""

SURROUNDED_BY = 2
"""How many memories before and after one are its surroundings."""

_SHARES = (0.5, 0.25)

LOWEST_SCORE = 1e-9

_FACTORS = {
    sign * distance: nearest * DECAY ** (distance - 1)
    for sign, nearest in ((-1, EARLIER), (1, LATER))
    for distance in range(1, WINDOW + 1)
}


class Words(NamedTuple):
    """How often each of the query's terms stands in a memory (absent terms may be missing), and its number of
    terms."""

    frequencies: Mapping[str, int]
    length: int


class Candidate(NamedTuple):
    """A memory that may answer a query.

    `sequence`: its place in the order of writing. `around`: the memories in its run within `WINDOW` of it
    that hold a term that says something of neighbours (`spreading`), each with how many places later it was
    written (before: below 0); `reach`: how far terms reach among them, in [0, 1] (`coherence.reach`).
    `similarity`: its embedder's, in [-1, 1], and `surroundings`: the function of that name of it and its
    neighbours'; given for all candidates of a query or for none.
    """

    id: str
    sequence: int
    words: Words
    around: Sequence[tuple[int, Words]] = ()
    reach: float = 0.0
    similarity: float | None = None
    surroundings: float | None = None


@dataclass(frozen=True, slots=True)
class Candidates:
    """What a backend delivers for a query: candidates in an order of its own that does not depend on how many
    were asked for, and the statistics of the whole store (not of a filtered part).

    `leading`: the first so many are ranked together: the `POOL` best by plain BM25, the memories in their
    windows where terms reach those, and as many by similarity with their surroundings. `documents`: how many
    memories there are. `average_length`: mean number of terms. `document_frequencies`: in how many memories
    each of the query's terms stands.
    """

    items: Sequence[Candidate]
    leading: int
    documents: int
    average_length: float
    document_frequencies: Mapping[str, int]


class Ranked(NamedTuple):
    """A candidate with its score."""

    candidate: Candidate
    score: float


def inverse_document_frequency(documents: int, frequency: int) -> float:
    """How telling a term is that stands in `frequency` of `documents` memories; always above 0."""
    return math.log(1.0 + (documents - frequency + 0.5) / (frequency + 0.5))


def length_norm(length: int, average_length: float) -> float:
    """What a memory's number of terms makes of the frequencies in it; 1 at the average."""
    return 1.0 - B + B * length / average_length if average_length > 0 else 1.0


def term_weight(idf: float, frequency: int, norm: float) -> float:
    """BM25 weight of a term in a memory; below `most_weight(idf)` however often it occurs."""
    return idf * frequency * (K1 + 1.0) / (frequency + K1 * norm)


def most_weight(idf: float) -> float:
    """What no weight of the term exceeds."""
    return idf * (K1 + 1.0)


def surroundings(own: float, earlier: Sequence[float], later: Sequence[float]) -> float:
    """The mean similarity of a memory and those around it, nearest first; they weigh a half and a quarter."""
    total, weights = own, 1.0
    for side in (earlier, later):
        for share, similarity in zip(_SHARES, side, strict=False):
            total += share * similarity
            weights += share
    return total / weights


def spreading(documents: int, document_frequencies: Mapping[str, int]) -> set[str]:
    """The terms that say something of the memories around one that holds them: those of few memories."""
    return {term for term, number in document_frequencies.items() if number <= SPREAD_SHARE * documents}


class Lexical:
    """Weights by words alone, for one query over one state of a store."""

    def __init__(
        self,
        terms: Iterable[str],
        documents: int,
        average_length: float,
        document_frequencies: Mapping[str, int],
    ) -> None:
        self._average_length = average_length
        # The rarest first: an order that does not depend on who adds up.
        ordered = sorted({(document_frequencies.get(term, 0), term) for term in terms})
        self.idfs = {term: inverse_document_frequency(documents, number) for number, term in ordered}
        """The terms' inverse document frequencies, the rarest term first."""
        self._spreading = spreading(documents, document_frequencies)
        self.most = sum(map(most_weight, self.idfs.values())) or 1.0
        """What no weight of a memory exceeds."""
        self._known: dict[int, dict[str, float]] = {}

    def weight(self, words: Words) -> float:
        """BM25 of a memory; 0 if it has none of the terms."""
        return sum(self._weights(words).values())

    def window_weight(self, candidate: Candidate) -> float:
        """BM25 of a memory where each term counts as in the memory of its window where it weighs most."""
        best = self._weights(candidate.words)
        if candidate.reach:
            for distance, words in candidate.around:
                factor = candidate.reach * _FACTORS[distance]
                for term, weight in self._neighbours_weights(words).items():
                    if term in self._spreading and factor * weight > best.get(term, 0.0):
                        best[term] = factor * weight
        return sum(best.values())

    def _neighbours_weights(self, words: Words) -> dict[str, float]:
        """Of words that the candidates keep, and that up to ten of them ask for."""
        known = self._known.get(id(words))
        if known is None:
            known = self._known[id(words)] = self._weights(words)
        return known

    def _weights(self, words: Words) -> dict[str, float]:
        frequencies, length = words
        norm = length_norm(length, self._average_length)
        return {
            term: term_weight(idf, frequencies[term], norm)
            for term, idf in self.idfs.items()
            if frequencies.get(term)
        }


class _Fusion:
    """Words and similarities together; normalised by what the leading candidates reach."""

    def __init__(self, weights: Sequence[float], items: Sequence[Candidate]) -> None:
        self._best = max(weights, default=0.0) or 1.0
        self._similar = _Range([item.similarity or 0.0 for item in items])
        self._around = _Range([_around(item) for item in items])
        # Where the order of writing means nothing, surroundings say nothing.
        self._surroundings = SURROUNDINGS * sum(item.reach for item in items) / (len(items) or 1)

    def score(self, weight: float, item: Candidate) -> float:
        """In [0, 1]."""
        total = (
            min(1.0, weight / self._best)
            + SIMILARITY * self._similar.share(item.similarity or 0.0)
            + self._surroundings * self._around.share(_around(item))
        )
        return total / (1.0 + SIMILARITY + self._surroundings)


class _Range:
    def __init__(self, values: Sequence[float]) -> None:
        self._low = min(values, default=0.0)
        self._span = max(values, default=0.0) - self._low or 1.0

    def share(self, value: float) -> float:
        return min(1.0, max(0.0, (value - self._low) / self._span))


def _around(item: Candidate) -> float:
    """The similarity of a memory's surroundings, as far as they mean anything."""
    own = item.similarity or 0.0
    return own if item.surroundings is None else own + item.reach * (item.surroundings - own)


def rank(terms: Sequence[str], candidates: Candidates) -> list[Ranked]:
    """All candidates, best first; among equals the one written last.

    Those after the leading ones are ranked in blocks of fixed size, so that pages fit together however many
    candidates were asked for.
    """
    items = candidates.items
    lexical = Lexical(terms, candidates.documents, candidates.average_length, candidates.document_frequencies)
    starts = [0, *range(candidates.leading, len(items), POOL), len(items)]
    fusion: _Fusion | None = None
    ranked: list[Ranked] = []
    ceiling = 1.0
    for first, last in itertools.pairwise(starts):
        block = items[first:last]
        weights = [lexical.window_weight(item) for item in block]
        if first == 0 and items and all(item.similarity is not None for item in items):
            fusion = _Fusion(weights, block)
        if fusion is None:
            scores = [weight / lexical.most for weight in weights]
        else:
            scores = [fusion.score(weight, item) for weight, item in zip(weights, block, strict=True)]
        for score, item in sorted(zip(scores, block, strict=True), key=_best_first):
            # A later block never scores above an earlier one.
            ceiling = min(ceiling, max(LOWEST_SCORE, score))
            ranked.append(Ranked(item, ceiling))
    return ranked


def _best_first(pair: tuple[float, Candidate]) -> tuple[float, int, str]:
    score, item = pair
    return -score, -item.sequence, item.id
