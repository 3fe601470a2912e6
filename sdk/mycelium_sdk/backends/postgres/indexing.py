"""Making and mending the search index, as the local store does (`local.indexing`), in the database.

One process at a time makes an owner's index, under an advisory lock of its own, so that no write waits for
the analysis; the owner's row is locked only while a segment is stored.
"""

# ruff: noqa: S608 - statements are put together from constants; every value is a parameter

from __future__ import annotations

import array
import zlib
from collections import defaultdict
from typing import TYPE_CHECKING

from mycelium_sdk.backends.coherence import Counts
from mycelium_sdk.backends.local.documents import terms_of
from mycelium_sdk.backends.local.indexing import Made, distinct, made_from, to_merge
from mycelium_sdk.backends.local.segments import BLOCK, gaps, packed, unpacked
from mycelium_sdk.backends.postgres import heads, index
from mycelium_sdk.backends.postgres.writing import empty_derived
from mycelium_sdk.backends.text import ANALYZER

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mycelium_sdk.backends.local.segments import Segment
    from mycelium_sdk.backends.postgres.heads import Head
    from mycelium_sdk.backends.postgres.pool import Connection
    from mycelium_sdk.backends.postgres.writing import Doomed

SEARCH = ("segments", "postings", "coherence")

_CUT_OUT_SINGLY = 200
_LOCK = 0x4D79_4978  # "MyIx"

_SEGMENT = "INSERT INTO segments VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %b, %b)"


def alone(connection: Connection, owner: str, *, patient: bool) -> bool:
    """Whether this transaction makes the owner's index now. `patient`: wait until it may."""
    key = _LOCK, zlib.crc32(owner.encode("ascii")) - (1 << 31)
    if patient:
        connection.execute("SELECT pg_advisory_xact_lock(%s, %s)", key)
        return True
    row = connection.execute("SELECT pg_try_advisory_xact_lock(%s, %s)", key).fetchone()
    return row == (True,)


def make_one(connection: Connection, owner: str) -> int | None:
    """Make and store the next segment, of the first memories that are not indexed: how many memories it has.
    None if all are indexed, 0 if they changed meanwhile. Part of a transaction that is `alone`."""
    made = _made(connection, heads.read(connection, owner))
    if made is None:
        return None
    head = heads.lock(connection, owner)
    if head.analyzer != ANALYZER:
        empty_derived(connection, head, SEARCH)
        head.analyzer = ANALYZER
    segments = index.read_segments(connection, head)
    inside = any(
        after < made.first and (before is None or made.last < before) for after, before in gaps(segments)
    )
    rows = connection.execute(
        "SELECT count(*) FROM memories WHERE owner = %s AND id BETWEEN %s AND %s",
        (head.number, made.first, made.last),
    )
    if not inside or rows.fetchone() != (made.documents,):
        return 0
    _store(connection, head, made)
    while group := to_merge(index.read_segments(connection, head)):
        _merge(connection, head, group)
    heads.write(connection, head)
    return made.documents


def _made(connection: Connection, head: Head) -> Made | None:
    for after, before in gaps(index.read_segments(connection, head)):
        row = connection.execute(
            "SELECT min(id) FROM memories WHERE owner = %s AND id > %s", (head.number, after)
        ).fetchone()
        first = None if row is None else row[0]
        if first is None or (before is not None and first >= before):
            continue
        end = (first // BLOCK + 1) * BLOCK
        gap = after, end if before is None else min(end, before)
        return made_from(
            gap,
            index.rows_before(connection, head, after + 1),
            index.rows_in(connection, head, gap),
        )
    return None


def _store(connection: Connection, head: Head, made: Made) -> None:
    head.made += 1
    connection.execute(
        _SEGMENT,
        (
            head.number, head.made, made.first, made.last, made.documents, made.length, *made.counts,
            packed(made.lengths), packed(made.runs),
        ),
    )  # fmt: skip
    with (
        connection.cursor() as cursor,
        cursor.copy(
            "COPY postings(owner, segment, term, documents, places) FROM STDIN (FORMAT BINARY)"
        ) as copy,
    ):
        copy.set_types(("int4", "int8", "bytea", "int8", "bytea"))
        for term, places in sorted(made.postings.items()):
            copy.write_row((head.number, head.made, term.encode("utf-8"), distinct(places), packed(places)))
    connection.cursor().executemany(
        "INSERT INTO coherence VALUES (%s, %s, %s, %s, %s, %s)",
        [(head.number, head.made, stretch, *counts) for stretch, counts in sorted(made.stretches.items())],
    )


def forget(connection: Connection, head: Head, doomed: Sequence[Doomed]) -> None:
    """Forget these memories. Part of a transaction that holds the owner's row."""
    segments = index.read_segments(connection, head)
    if not segments:
        empty_derived(connection, head, SEARCH)
    for segment in segments:
        inside = [one for one in doomed if segment.first <= one.id <= segment.last]
        if len(inside) > _CUT_OUT_SINGLY or (inside and not _cut_out(connection, head, segment, inside)):
            _drop(connection, head, [segment])


def _cut_out(connection: Connection, head: Head, segment: Segment, doomed: Sequence[Doomed]) -> bool:
    """Take these memories out of a segment; False if it holds something else than they say, or nothing but
    them."""
    if len(doomed) == segment.documents:
        return False
    row = connection.execute(
        "SELECT lengths FROM segments WHERE owner = %s AND id = %s", (head.number, segment.id), binary=True
    ).fetchone()
    lengths = unpacked("I", b"" if row is None else row[0])
    gone: defaultdict[bytes, set[int]] = defaultdict(set)
    length = 0
    for one in doomed:
        words = terms_of(one.fragment)
        if lengths[one.id - segment.first] != len(words) + 1:
            return False
        lengths[one.id - segment.first] = 0
        length += len(words)
        for word in words:
            gone[word.encode("utf-8")].add(one.id % BLOCK)
    found = connection.execute(
        "SELECT term, places FROM postings WHERE owner = %s AND segment = %s AND term = ANY(%s)",
        (head.number, segment.id, list(gone)),
        binary=True,
    ).fetchall()
    left: list[tuple[bytes, array.array[int]]] = []
    for term, data in found:
        before = unpacked("H", data)
        after = array.array("H", [place for place in before if place not in gone[term]])
        if distinct(before) - distinct(after) != len(gone[term]):
            return False
        left.append((term, after))
    if len(left) != len(gone):
        return False
    _put(connection, head, segment, left)
    connection.execute(
        "UPDATE segments SET documents = documents - %s, length = length - %s, lengths = %b"
        " WHERE owner = %s AND id = %s",
        (len(doomed), length, packed(lengths), head.number, segment.id),
    )
    return True


def _put(
    connection: Connection, head: Head, segment: Segment, postings: Iterable[tuple[bytes, array.array[int]]]
) -> None:
    left = [(term, distinct(places), packed(places)) for term, places in postings]
    connection.execute(
        "DELETE FROM postings WHERE owner = %s AND segment = %s AND term = ANY(%s)",
        (head.number, segment.id, [term for term, number, _ in left if not number]),
    )
    connection.execute(
        "UPDATE postings p SET documents = new.documents, places = new.places"
        " FROM unnest(%b::bytea[], %b::bigint[], %b::bytea[]) AS new(term, documents, places)"
        " WHERE p.owner = %b AND p.segment = %b AND p.term = new.term AND new.documents > 0",
        (*(list(column) for column in zip(*left, strict=True)), head.number, segment.id),
    )


def _merge(connection: Connection, head: Head, group: Sequence[Segment]) -> None:
    """Make one segment of several of a block, which follow each other."""
    ids = [segment.id for segment in group]
    rows = connection.execute(
        "SELECT id, lengths, runs FROM segments WHERE owner = %s AND id = ANY(%s)",
        (head.number, ids),
        binary=True,
    )
    known = {number: (data, runs) for number, data, runs in rows}
    lengths, runs = array.array("I"), array.array("I")
    counts = Counts()
    following = group[0].first
    for segment in group:
        hole = [0] * (segment.first - following)
        for numbers, data in zip((lengths, runs), known[segment.id], strict=True):
            numbers.extend(hole)
            numbers.extend(unpacked("I", data))
        following = segment.last + 1
        counts = counts.plus(segment.counts)
    head.made += 1
    connection.execute(
        _SEGMENT,
        (
            head.number, head.made, group[0].first, group[-1].last,
            sum(segment.documents for segment in group), sum(segment.length for segment in group), *counts,
            packed(lengths), packed(runs),
        ),
    )  # fmt: skip
    # In the order of segments, so that places stay in order.
    connection.execute(
        "INSERT INTO postings SELECT owner, %s, term, sum(documents),"
        " string_agg(places, ''::bytea ORDER BY array_position(%s::bigint[], segment)) FROM postings"
        " WHERE owner = %s AND segment = ANY(%s) GROUP BY owner, term",
        (head.made, ids, head.number, ids),
    )
    connection.execute(
        "INSERT INTO coherence SELECT owner, %s, stretch, sum(compared), sum(near), sum(far) FROM coherence"
        " WHERE owner = %s AND segment = ANY(%s) GROUP BY owner, stretch",
        (head.made, head.number, ids),
    )
    _drop(connection, head, group)


def _drop(connection: Connection, head: Head, group: Sequence[Segment]) -> None:
    ids = [segment.id for segment in group]
    connection.execute("DELETE FROM segments WHERE owner = %s AND id = ANY(%s)", (head.number, ids))
    for table in ("postings", "coherence"):
        connection.execute(f"DELETE FROM {table} WHERE owner = %s AND segment = ANY(%s)", (head.number, ids))
