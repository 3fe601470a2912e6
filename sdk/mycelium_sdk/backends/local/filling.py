"""Filling an empty store with a blob that is all in memory: straight into the tables, in one transaction.

Nothing waits for a slow source meanwhile, and a blob that turns out bad leaves nothing. Any other load is
staged first (`loading`).
"""

from __future__ import annotations

import array
import functools
import itertools
import operator
from typing import TYPE_CHECKING, NamedTuple

from mycelium_sdk.backends.local import derived
from mycelium_sdk.backends.local.loading import index_sessions, other_length, refuse_writes_since
from mycelium_sdk.backends.local.rows import PREFIX_BYTES, alike, distinct, keys_of
from mycelium_sdk.backends.local.schema import IDS
from mycelium_sdk.backends.local.seals import Head
from mycelium_sdk.backends.local.writing import insert
from mycelium_sdk.backends.values import Context, Contexts, Imported
from mycelium_sdk.errors import IntegrityKeyMissing, Tampered

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Iterator, Sequence

    from mycelium_sdk.backends.base import Progress
    from mycelium_sdk.backends.local.seals import Sealer, Sealers
    from mycelium_sdk.backends.values import Columns
    from mycelium_sdk.canonical import Batch, Fragments

_TAKEN_TOGETHER = 5000
_TAGS_TOGETHER = 50_000
_REPORTED_EVERY = 10_000

_Fields = tuple[int, bytes, bytes | None, int, str | None, float | None, str]


class Known:
    """What a blob does not say of its records, kept small; `contexts` is read to its end."""

    def __init__(self, contexts: Iterable[Context]) -> None:
        self._sequences: list[int] = []
        self.sessions: list[str | None] = []
        self.times: list[float | None] = []
        names: dict[str | None, str | None] = {}
        columns = contexts.columns() if isinstance(contexts, Contexts) else _in_columns(contexts)
        for sequences, sessions, times in columns:
            self._sequences += sequences
            self.sessions += map(names.setdefault, sessions, sessions)
            self.times += times

    def __iter__(self) -> Iterator[Context]:
        return map(Context, self._sequences, self.sessions, self.times)

    @functools.cached_property
    def places(self) -> Sequence[int]:
        """Of each record, its place in the order of arrival, from 1."""
        sequences, count = self._sequences, len(self._sequences)
        if sequences and len(set(sequences)) == count == max(sequences) and min(sequences) == 1:
            return sequences
        places = array.array("Q", bytes(8 * count))
        for place, number in enumerate(sorted(range(count), key=sequences.__getitem__), 1):
            places[number] = place
        return places


def _in_columns(contexts: Iterable[Context]) -> Iterator[Columns]:
    source = iter(contexts)
    while batch := list(itertools.islice(source, _TAKEN_TOGETHER)):
        sequences, sessions, times = zip(*batch, strict=True)
        yield sequences, sessions, times


def fresh(connection: sqlite3.Connection, sealers: Sealers) -> tuple[Head, Sealer] | None:
    """Head and sealer of a store that is empty, and as its last write left it; None for any other."""
    if connection.execute("SELECT EXISTS (SELECT 1 FROM memories)").fetchone()[0]:
        return None
    try:
        head, sealer = Head.read(connection, sealers.of)
    except (Tampered, IntegrityKeyMissing):
        return None
    return (head, sealer) if (head.records, head.total) == (0, 0) else None


def fill(
    connection: sqlite3.Connection,
    sealers: Sealers,
    records: Fragments,
    *,
    known: Known | None,
    expected_changes: int | None,
    progress: Progress | None,
) -> Imported | None:
    """Put all records into the store; None, with none of them read, if it is not `fresh` any more.

    The inside of a transaction that holds the write lock. What the source raises passes through, as do
    `UnanchoredWrites` and `InputError`: see `Backend.replace`.
    """
    found = fresh(connection, sealers)
    if found is None:
        return None
    refuse_writes_since(connection, expected_changes)
    derived.empty(connection)
    head, sealer = found
    filling = _Filling(connection, head.sequence, known, progress)
    connection.execute("DROP INDEX IF EXISTS memories_ids")
    insert(connection, sealer, head, filling.rows(records))
    connection.execute(IDS)
    filling.finish(head)
    head.write(connection, sealer)
    return Imported(head.records, head.changes)


class _Filling:
    """What is known of the records once they have passed by."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        sequence: int,
        known: Known | None,
        progress: Progress | None,
    ) -> None:
        self._connection = connection
        self._sequence = sequence
        self._known = known
        self._progress = progress
        self._memories = self._records = 0
        self._plain = True
        self._last = b""
        self._tags: list[tuple[str, int]] = []

    def rows(self, records: Fragments) -> Iterator[_Fields]:
        """The rows of the memories, each once. Raises `InputError` where the contexts do not fit."""
        return itertools.chain.from_iterable(self._rows_of(run) for run in self._runs(records))

    def _runs(self, records: Fragments) -> Iterator[_Run]:
        for run in _runs(records):
            before = self._memories
            self._memories += len(run.places)
            self._records += sum(run.copies)
            yield run
            if self._progress is not None and self._memories // _REPORTED_EVERY > before // _REPORTED_EVERY:
                self._progress("storing", self._memories, None)
        if self._known is not None and len(self._known.times) != self._records:
            raise other_length()

    def _rows_of(self, run: _Run) -> Iterable[_Fields]:
        known, start, count = self._known, self._sequence, len(run.places)
        if known is None:
            numbers: Sequence[int] = range(start + self._memories - count + 1, start + self._memories + 1)
            sessions: Sequence[str | None] = [None] * count
            times: Sequence[float | None] = [None] * count
        elif run.places[-1] < len(known.times):
            numbers = [start + known.places[place] for place in run.places]
            sessions = [known.sessions[place] for place in run.places]
            times = [known.times[place] for place in run.places]
        else:
            raise other_length()
        keys = keys_of(run.contents, run.tags)
        self._plain = self._plain and max(run.copies) == 1 and not _any_alike([self._last, *keys])
        self._last = keys[-1]
        identities: Sequence[bytes | None] = [None] * count
        if any(run.tags):
            identities, tags = zip(*map(distinct, run.contents, run.tags), strict=True)
            self._note(tags, numbers)
        return zip(numbers, keys, identities, run.copies, sessions, times, run.fragments, strict=True)

    def finish(self, head: Head) -> None:
        """What is left to be written, besides the head that is brought up to date."""
        self._write_tags()
        if self._known is not None and any(name is not None for name in self._known.sessions):
            index_sessions(self._connection)
        head.changes += self._memories
        # Each copy has a place of its own in the order of arrival.
        head.sequence += self._memories if self._known is None else self._records
        head.records = self._records
        head.plain = int(self._plain)

    def _note(self, tags: Sequence[tuple[str, ...]], numbers: Sequence[int]) -> None:
        self._tags += [(tag, number) for those, number in zip(tags, numbers, strict=True) for tag in those]
        if len(self._tags) >= _TAGS_TOGETHER:
            self._write_tags()

    def _write_tags(self) -> None:
        self._tags.sort()
        self._connection.executemany("INSERT INTO tags VALUES (?, ?)", self._tags)
        self._tags.clear()


class _Run(NamedTuple):
    """Memories that follow each other in a blob, each once, in columns. `places`: of the first copy of each
    among all records, from 0. `copies`: how many there are."""

    places: Sequence[int]
    copies: list[int]
    contents: Sequence[str]
    tags: Sequence[tuple[str, ...]]
    fragments: Sequence[str]

    def without_last(self) -> _Run:
        places, copies, contents, tags, fragments = self
        return _Run(places[:-1], copies[:-1], contents[:-1], tags[:-1], fragments[:-1])


def _runs(records: Fragments) -> Iterator[_Run]:
    """All memories of a blob. One that has copies is in the run of the last of them."""
    held: _Run | None = None
    place = 0
    for batch in records.batches():
        run = _run(batch, place)
        if held is not None:
            if held.fragments[-1] == run.fragments[0]:
                run = run._replace(places=[held.places[-1], *run.places[1:]])
                run.copies[0] += held.copies[-1]
                held = held.without_last()
            if held.places:
                yield held
        held = run
        place += len(batch.contents)
    if held is not None:
        yield held


def _run(batch: Batch, place: int) -> _Run:
    contents, tags, fragments = batch.contents, batch.tags, batch.fragments()
    count = len(fragments)
    if not any(map(operator.eq, fragments, fragments[1:])):
        return _Run(range(place, place + count), [1] * count, contents, tags, fragments)
    firsts = [0, *(at for at in range(1, count) if fragments[at] != fragments[at - 1])]
    return _Run(
        [place + at for at in firsts],
        list(map(operator.sub, [*firsts[1:], count], firsts)),
        [contents[at] for at in firsts],
        [tags[at] for at in firsts],
        [fragments[at] for at in firsts],
    )


def _any_alike(keys: Sequence[bytes]) -> bool:
    starts = [key[:PREFIX_BYTES] for key in keys]
    return any(map(operator.eq, starts, starts[1:])) and any(map(alike, keys, keys[1:]))
