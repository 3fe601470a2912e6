"""Whether a search index says of each memory that it covers what the memory says itself."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from mycelium_sdk.backends.coherence import Counts, Meter, stretch_of
from mycelium_sdk.backends.local import segments as segments_module
from mycelium_sdk.backends.local.documents import analysed, read_rows, rows_before
from mycelium_sdk.backends.local.segments import Cache, Index, read_segments, unpacked
from mycelium_sdk.backends.text import telling

if TYPE_CHECKING:
    import sqlite3

    from mycelium_sdk.backends.local import LocalVectorBackend
    from mycelium_sdk.backends.local.segments import Segment


def segments(store: LocalVectorBackend) -> list[tuple[int, int]]:
    """(first id, number of memories) of each segment."""
    with store._connections.reading() as connection:
        return [(segment.first, segment.documents) for segment in read_segments(connection)]


def indexed(store: LocalVectorBackend) -> int:
    """How many memories the index covers."""
    return sum(number for _, number in segments(store))


def check_index(store: LocalVectorBackend, *, coherence: bool = True) -> None:
    """Compare postings, lengths, runs and counts with what the rows give. `coherence` False leaves out the
    measure, which keeps what forgotten memories said of the order of writing."""
    with store._connections.reading() as connection:
        index = Index(connection, Cache())
        last = 0
        for segment in index.segments:
            assert last < segment.first <= segment.last < segment.base + segments_module.BLOCK
            last = segment.last
            _check_segment(connection, index, segment)
            if coherence:
                _check_coherence(connection, segment)
        ids = {segment.id for segment in index.segments}
        for table in ("postings", "coherence"):
            rows = connection.execute(f"SELECT DISTINCT segment FROM {table}")  # noqa: S608 - constants
            assert {number for (number,) in rows} <= ids


def _check_segment(connection: sqlite3.Connection, index: Index, segment: Segment) -> None:
    expected: dict[str, list[int]] = {}
    entries = index.entries(segment)
    lengths, runs = list(entries.lengths), list(entries.runs)
    assert len(lengths) == len(runs) == segment.last - segment.first + 1
    texts = [analysed(row) for row in read_rows(connection, (segment.first - 1, segment.last + 1))]
    for text in texts:
        assert lengths[text.id - segment.first] == len(text.terms) + 1
        assert runs[text.id - segment.first] == text.run
        lengths[text.id - segment.first] = 0
        for term in text.terms:
            expected.setdefault(term, []).append(text.id - segment.base)
    assert not any(lengths)
    assert segment.documents == len(texts)
    assert segment.length == sum(len(text.terms) for text in texts)
    postings = connection.execute(
        "SELECT term, documents, places FROM postings WHERE segment = ?", (segment.id,)
    ).fetchall()
    assert {term: list(unpacked("H", places)) for term, _, places in postings} == expected
    assert {term: number for term, number, _ in postings} == {
        term: len(Counter(places)) for term, places in expected.items()
    }


def _check_coherence(connection: sqlite3.Connection, segment: Segment) -> None:
    meter = Meter()
    for text in map(analysed, rows_before(connection, segment.first)):
        meter.count(text.id, text.run, telling(text.terms))
    expected: dict[int, Counts] = {}
    total = Counts()
    for text in map(analysed, read_rows(connection, (segment.first - 1, segment.last + 1))):
        counts = meter.count(text.id, text.run, telling(text.terms))
        if counts.compared:
            stretch = stretch_of(text.run, text.id)
            expected[stretch] = expected.get(stretch, Counts()).plus(counts)
            total = total.plus(counts)
    found = connection.execute(
        "SELECT stretch, compared, near, far FROM coherence WHERE segment = ?", (segment.id,)
    )
    assert {stretch: Counts(*counts) for stretch, *counts in found} == expected
    assert segment.counts == total
