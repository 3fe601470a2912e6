"""Making the search index: off the write path, in as few and as large pieces as there is to index.

New memories become a small segment; eight of a size become one; a block that is complete becomes one. What a
segment will hold is made from an unchanging view, while others read and write, and then stored in a short
transaction, if the memories are still those.
"""

from __future__ import annotations

import array
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mycelium_sdk.backends.coherence import Counts, Meter, stretch_of
from mycelium_sdk.backends.local.derived import empty_search
from mycelium_sdk.backends.local.documents import analysed, count_rows, read_rows, rows_before, terms_of
from mycelium_sdk.backends.local.segments import BLOCK, Segment, gaps, packed, read_segments, unpacked
from mycelium_sdk.backends.text import ANALYZER, telling

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Sequence

    from mycelium_sdk.backends.local.segments import Gap

_MERGED_TOGETHER = 8
_SMALL = 1 << 10
_MIDDLE = 1 << 13
_MOST_TERMS = 1 << 22
_CUT_OUT_SINGLY = 200


@dataclass
class Made:
    """A segment that is not stored yet. `gap`: the ids that it was made from."""

    gap: Gap
    first: int
    last: int
    documents: int
    length: int
    counts: Counts
    lengths: array.array[int]
    runs: array.array[int]
    postings: dict[str, array.array[int]]
    stretches: dict[int, Counts]


def missing(connection: sqlite3.Connection, most: int) -> int:
    """How many memories are not indexed; counts no further than `most`."""
    found = 0
    for gap in gaps(read_segments(connection)):
        found += count_rows(connection, gap, most - found)
        if found >= most:
            break
    return found


def make(connection: sqlite3.Connection) -> Made | None:
    """The next segment, of the first memories that are not indexed; None if all are."""
    for after, before in gaps(read_segments(connection)):
        row = connection.execute("SELECT min(id) FROM memories WHERE id > ?", (after,)).fetchone()
        if row[0] is None or (before is not None and row[0] >= before):
            continue
        end = (row[0] // BLOCK + 1) * BLOCK
        gap = after, end if before is None else min(end, before)
        return made_from(gap, rows_before(connection, after + 1), read_rows(connection, gap))
    return None


def made_from(gap: Gap, before: Iterable[tuple[Any, ...]], rows: Iterable[tuple[Any, ...]]) -> Made:
    """The segment of the memories in the gap, whose `rows` these are; `before`: those of the memories just
    before it."""
    meter = Meter()
    for text in map(analysed, before):
        meter.count(text.id, text.run, telling(text.terms))
    lengths, runs = array.array("I"), array.array("I")
    postings: defaultdict[str, array.array[int]] = defaultdict(lambda: array.array("H"))
    stretches: dict[int, Counts] = {}
    first = last = documents = length = 0
    for text in map(analysed, rows):
        number, words, run = text
        if not documents:
            first = number
        elif number > last + 1:
            lengths.extend([0] * (number - last - 1))
            runs.extend([0] * (number - last - 1))
        last = number
        documents += 1
        length += len(words)
        lengths.append(len(words) + 1)
        runs.append(run)
        place = number % BLOCK
        for word in words:
            postings[word].append(place)
        counts = meter.count(number, run, telling(words))
        if counts.compared:
            stretch = stretch_of(run, number)
            stretches[stretch] = stretches.get(stretch, Counts()).plus(counts)
        if length >= _MOST_TERMS:
            break
    total = Counts()
    for counts in stretches.values():
        total = total.plus(counts)
    return Made(gap, first, last, documents, length, total, lengths, runs, postings, stretches)


def store(connection: sqlite3.Connection, made: Made) -> bool:
    """Store a segment, unless its memories or the index changed meanwhile. Part of a transaction."""
    if connection.execute("SELECT analyzer FROM indexing").fetchone()[0] != ANALYZER:
        empty_search(connection, ANALYZER)
    segments = read_segments(connection)
    inside = any(
        after < made.first and (before is None or made.last < before) for after, before in gaps(segments)
    )
    if not inside or count_rows(connection, (made.first - 1, made.last + 1), BLOCK + 1) != made.documents:
        return False
    new = _new_id(connection)
    connection.execute(
        "INSERT INTO segments VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            new, made.first, made.last, made.documents, made.length, *made.counts,
            packed(made.lengths), packed(made.runs),
        ),
    )  # fmt: skip
    connection.executemany(
        "INSERT INTO postings VALUES (?, ?, ?, ?)",
        ((new, term, distinct(places), packed(places)) for term, places in sorted(made.postings.items())),
    )
    connection.executemany(
        "INSERT INTO coherence VALUES (?, ?, ?, ?, ?)",
        [(stretch, new, *counts) for stretch, counts in sorted(made.stretches.items())],
    )
    _tidy(connection)
    return True


def forget(connection: sqlite3.Connection) -> None:
    """Forget the memories that `temp.doomed` names; their rows are still there. Part of a transaction."""
    segments = read_segments(connection)
    if not segments and connection.execute("SELECT 1 FROM segments LIMIT 1").fetchone():
        empty_search(connection, ANALYZER)
    for segment in segments:
        rows = connection.execute(
            "SELECT id, fragment FROM texts"
            " WHERE id IN (SELECT id FROM temp.doomed WHERE id BETWEEN ? AND ?)",
            (segment.first, segment.last),
        ).fetchall()
        if len(rows) > _CUT_OUT_SINGLY or (rows and not _cut_out(connection, segment, rows)):
            _drop(connection, [segment])


def _cut_out(connection: sqlite3.Connection, segment: Segment, rows: Sequence[tuple[int, str]]) -> bool:
    """Take these memories out of a segment; False if it holds something else than they say."""
    lengths = unpacked(
        "I", connection.execute("SELECT lengths FROM segments WHERE id = ?", (segment.id,)).fetchone()[0]
    )
    gone: defaultdict[str, set[int]] = defaultdict(set)
    length = 0
    for number, fragment in rows:
        words = terms_of(fragment)
        if lengths[number - segment.first] != len(words) + 1:
            return False
        lengths[number - segment.first] = 0
        length += len(words)
        for word in words:
            gone[word].add(number % BLOCK)
    for term, places in gone.items():
        row = connection.execute(
            "SELECT places FROM postings WHERE segment = ? AND term = ?", (segment.id, term)
        ).fetchone()
        before = unpacked("H", b"" if row is None else row[0])
        after = array.array("H", [place for place in before if place not in places])
        if distinct(before) - distinct(after) != len(places):
            return False
        _put(connection, segment.id, term, after)
    connection.execute(
        "UPDATE segments SET documents = documents - ?, length = length - ?, lengths = ? WHERE id = ?",
        (len(rows), length, packed(lengths), segment.id),
    )
    if len(rows) == segment.documents:
        _drop(connection, [segment])
    return True


def _put(connection: sqlite3.Connection, segment: int, term: str, places: array.array[int]) -> None:
    if places:
        connection.execute(
            "UPDATE postings SET documents = ?, places = ? WHERE segment = ? AND term = ?",
            (distinct(places), packed(places), segment, term),
        )
    else:
        connection.execute("DELETE FROM postings WHERE segment = ? AND term = ?", (segment, term))


def _tidy(connection: sqlite3.Connection) -> None:
    """Merge what has become many."""
    while group := to_merge(read_segments(connection)):
        _merge(connection, group)


def to_merge(segments: Sequence[Segment]) -> list[Segment]:
    """Segments that are many enough of a size, or of a block that is complete, to become one; none, if all is
    well."""
    blocks: defaultdict[int, list[Segment]] = defaultdict(list)
    for segment in segments:
        blocks[segment.base].append(segment)
    newest = max(blocks, default=0)
    for base, group in blocks.items():
        if base != newest and len(group) > 1:
            return group
    for level in range(3):
        like = [segment for segment in blocks[newest] if _level(segment) == level]
        if len(like) >= _MERGED_TOGETHER and _adjoin(blocks[newest], like):
            return like
    return []


def _level(segment: Segment) -> int:
    span = segment.last - segment.first
    return (span >= _SMALL) + (span >= _MIDDLE)


def _adjoin(every: Sequence[Segment], some: Sequence[Segment]) -> bool:
    """Whether no other segment lies between these."""
    first = every.index(some[0])
    return list(every[first : first + len(some)]) == list(some)


def _merge(connection: sqlite3.Connection, group: Sequence[Segment]) -> None:
    """Make one segment of several of a block."""
    new = _new_id(connection)
    lengths, runs = array.array("I"), array.array("I")
    counts = Counts()
    following = group[0].first
    for segment in group:
        row = connection.execute("SELECT lengths, runs FROM segments WHERE id = ?", (segment.id,)).fetchone()
        hole = [0] * (segment.first - following)
        for numbers, data in ((lengths, row[0]), (runs, row[1])):
            numbers.extend(hole)
            numbers.extend(unpacked("I", data))
        following = segment.last + 1
        counts = counts.plus(segment.counts)
    connection.execute(
        "INSERT INTO segments VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            new, group[0].first, group[-1].last, sum(segment.documents for segment in group),
            sum(segment.length for segment in group), *counts, packed(lengths), packed(runs),
        ),
    )  # fmt: skip
    marks, ids = ",".join("?" * len(group)), [segment.id for segment in group]
    _merge_postings(connection, new, group)
    connection.execute(
        "INSERT INTO coherence SELECT stretch, ?, sum(compared), sum(near), sum(far) FROM coherence"  # noqa: S608
        f" WHERE segment IN ({marks}) GROUP BY stretch",
        (new, *ids),
    )
    _drop(connection, group)


def _merge_postings(connection: sqlite3.Connection, new: int, group: Sequence[Segment]) -> None:
    merged: defaultdict[str, list[tuple[int, bytes]]] = defaultdict(list)
    for segment in group:
        for term, documents, places in connection.execute(
            "SELECT term, documents, places FROM postings WHERE segment = ?", (segment.id,)
        ):
            merged[term].append((documents, places))
    connection.executemany(
        "INSERT INTO postings VALUES (?, ?, ?, ?)",
        (
            (new, term, sum(number for number, _ in parts), b"".join(places for _, places in parts))
            for term, parts in sorted(merged.items())
        ),
    )


def _drop(connection: sqlite3.Connection, group: Iterable[Segment]) -> None:
    for segment in group:
        connection.execute("DELETE FROM segments WHERE id = ?", (segment.id,))
        for table in ("postings", "coherence"):
            connection.execute(f"DELETE FROM {table} WHERE segment = ?", (segment.id,))  # noqa: S608


def _new_id(connection: sqlite3.Connection) -> int:
    connection.execute("UPDATE indexing SET made = made + 1")
    return int(connection.execute("SELECT made FROM indexing").fetchone()[0])


def distinct(places: array.array[int]) -> int:
    """How many different places there are in an ascending list."""
    return len(set(places))
