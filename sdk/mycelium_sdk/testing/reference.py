"""Candidates by definition, from a list of all memories: a backend's own, quicker way must agree with it.

A backend of few memories can use it as it is.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from mycelium_sdk.backends import coherence
from mycelium_sdk.backends.scoring import POOL, WINDOW, Candidate, Candidates, Lexical, Words, spreading
from mycelium_sdk.backends.text import telling, terms

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mycelium_sdk.backends.base import Query
    from mycelium_sdk.stored import StoredRecord


class _Memory(NamedTuple):
    stored: StoredRecord
    words: Words
    run: int
    stretch: int
    counts: coherence.Counts


def candidates(stored: Sequence[StoredRecord], query: Query) -> Candidates:
    """All memories that match, of all there are."""
    memories = _measured(sorted(stored, key=lambda one: one.sequence))
    frequencies = {term: sum(term in one.words.frequencies for one in memories) for term in query.terms}
    average = sum(one.words.length for one in memories) / len(memories) if memories else 0.0
    lexical = Lexical(query.terms, len(memories), average, frequencies)
    weights = {place: lexical.weight(one.words) for place, one in enumerate(memories)}
    passing = {place for place, one in enumerate(memories) if _passes(one.stored, query)}
    matching = sorted(
        (place for place in passing if weights[place] > 0), key=lambda place: (-weights[place], -place)
    )
    reaches = _reaches(memories)
    windows = [_window(memories, place) if reaches[place] else {} for place in range(len(memories))]
    pool = matching[:POOL]
    near = sorted({other for place in pool for other in windows[place]} & passing)
    leading = list(dict.fromkeys((*pool, *near)))
    told = spreading(len(memories), frequencies)
    return Candidates(
        [
            Candidate(
                memories[place].stored.id,
                memories[place].stored.sequence,
                memories[place].words,
                [
                    (distance, memories[other].words)
                    for other, distance in windows[place].items()
                    if not told.isdisjoint(memories[other].words.frequencies)
                ]
                if place in leading
                else (),
                reaches[place] if place in leading else 0.0,
            )
            for place in dict.fromkeys((*leading, *matching))
        ],
        len(leading),
        len(memories),
        average,
        frequencies,
    )


def _measured(stored: Sequence[StoredRecord]) -> list[_Memory]:
    meter = coherence.Meter()
    memories = []
    for one in stored:
        record = one.record
        found = [term for text in (record.content, *record.tags) for term in terms(text)]
        run = coherence.run_of(one.session, one.time)
        counts = meter.count(one.sequence, run, telling(found))
        stretch = coherence.stretch_of(run, one.sequence)
        memories.append(_Memory(one, Words(Counter(found), len(found)), run, stretch, counts))
    return memories


def _reaches(memories: Sequence[_Memory]) -> list[float]:
    whole = coherence.Counts()
    stretches: dict[int, coherence.Counts] = {}
    for one in memories:
        whole = whole.plus(one.counts)
        stretches[one.stretch] = stretches.get(one.stretch, coherence.Counts()).plus(one.counts)
    return [coherence.reach(stretches[one.stretch], whole) if one.run else 0.0 for one in memories]


def _window(memories: Sequence[_Memory], place: int) -> dict[int, int]:
    """Places of the memories around one in its run, with their distances."""
    found: dict[int, int] = {}
    for step in (-1, 1):
        run, distance, other = memories[place].run, 0, place + step
        while 0 <= other < len(memories) and abs(distance) < WINDOW:
            there = memories[other].run
            apart = abs(memories[other].stored.sequence - memories[place].stored.sequence)
            if apart > coherence.FARTHEST:
                break
            if coherence.same_run(there, run):
                distance += step
                found[other] = distance
                run = there
            other += step
    return found


def _passes(stored: StoredRecord, query: Query) -> bool:
    return set(query.tags).issubset(stored.record.tags) and query.session in {None, stored.session}
