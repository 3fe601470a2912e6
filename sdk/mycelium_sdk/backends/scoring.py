"""The one scorer: a pure function that ranks the candidates of any backend.

BM25 with the parameters measured for short memories (k1 0.9, b 0.4); where a backend also gives similarities
of an embedder, the convex combination of both, normalised. Scores are in (0, 1], higher is better, in every
backend.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mycelium_sdk.stored import StoredRecord

K1 = 0.9
B = 0.4
LEXICAL_SHARE = 0.5
LOWEST_SCORE = 1e-9


@dataclass(frozen=True, slots=True)
class Candidate:
    """A memory that may answer a query.

    `frequencies`: how often each of the query's terms stands in it (absent terms may be missing). `length`:
    its number of terms. `similarity`: its embedder's, in [-1, 1]; given for all candidates of a query or for
    none.
    """

    stored: StoredRecord
    frequencies: Mapping[str, int]
    length: int
    similarity: float | None = None


@dataclass(frozen=True, slots=True)
class Candidates:
    """What a backend delivers for a query: candidates in an order of its own that does not depend on how many
    were asked for, and the statistics of the whole store (not of a filtered part).

    `documents`: how many memories. `average_length`: mean number of terms. `document_frequencies`: in how
    many memories each of the query's terms stands.
    """

    items: Sequence[Candidate]
    documents: int
    average_length: float
    document_frequencies: Mapping[str, int]

    def part(self, first: int, last: int) -> Candidates:
        """The same with the items from `first` up to `last` only."""
        return self.with_items(self.items[first:last])

    def with_items(self, items: Sequence[Candidate]) -> Candidates:
        """The same statistics with other items."""
        return replace(self, items=items)


class Ranked(NamedTuple):
    """A candidate with its score."""

    candidate: Candidate
    score: float


def inverse_document_frequency(documents: int, frequency: int) -> float:
    """How telling a term is that stands in `frequency` of `documents` memories; always above 0."""
    return math.log(1.0 + (documents - frequency + 0.5) / (frequency + 0.5))


def term_weight(idf: float, frequency: int, length: int, average_length: float) -> float:
    """BM25 weight of a term in a memory; below `idf * (K1 + 1)` however often it occurs."""
    norm = 1.0 - B + B * length / average_length if average_length > 0 else 1.0
    return idf * frequency * (K1 + 1.0) / (frequency + K1 * norm)


class Lexical:
    """Scores by words alone, for one query over one state of a store."""

    def __init__(self, terms: Sequence[str], store: Candidates) -> None:
        self._average_length = store.average_length
        frequencies = store.document_frequencies
        self._idfs = {
            term: inverse_document_frequency(store.documents, frequencies.get(term, 0)) for term in terms
        }
        self._most = sum(self._idfs.values()) * (K1 + 1.0) or 1.0

    def weight(self, frequencies: Mapping[str, int], length: int) -> float:
        """BM25 of a memory with these frequencies; 0 if it has none of the terms."""
        return sum(
            term_weight(idf, frequency, length, self._average_length)
            for term, idf in self._idfs.items()
            if (frequency := frequencies.get(term, 0))
        )

    def score(self, candidate: Candidate) -> float:
        """The share of the weight that the query's terms could have at most; in [0, 1)."""
        return self.weight(candidate.frequencies, candidate.length) / self._most


def rank(terms: Sequence[str], candidates: Candidates) -> list[Ranked]:
    """All candidates, best first; among equals the one remembered last."""
    items = candidates.items
    lexical = Lexical(terms, candidates)
    scores = [lexical.score(item) for item in items]
    similarities = [item.similarity for item in items if item.similarity is not None]
    if items and len(similarities) == len(items):
        scores = _combined(scores, similarities)
    ranked = [
        Ranked(item, min(1.0, max(LOWEST_SCORE, score))) for item, score in zip(items, scores, strict=True)
    ]
    ranked.sort(key=lambda found: (-found.score, -found.candidate.stored.sequence, found.candidate.stored.id))
    return ranked


def _combined(lexical: list[float], similarities: list[float]) -> list[float]:
    best = max(lexical) or 1.0
    low = min(similarities)
    span = max(similarities) - low or 1.0
    return [
        LEXICAL_SHARE * score / best + (1.0 - LEXICAL_SHARE) * (similarity - low) / span
        for score, similarity in zip(lexical, similarities, strict=True)
    ]
