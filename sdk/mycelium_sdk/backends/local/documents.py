"""Memories as the search index sees them: their terms, and their place among those written around them."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

from mycelium_sdk.backends.coherence import MEMORY, Counts, Meter, run_of
from mycelium_sdk.backends.text import telling, terms

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterable, Iterator

    from mycelium_sdk.backends.local.segments import Gap

_COLUMNS = "id, fragment, session, time"


class Text(NamedTuple):
    """A memory's terms, in order and with repeats, and its run."""

    id: int
    terms: list[str]
    run: int


class Document(NamedTuple):
    """A memory that is not indexed: its terms with their frequencies, their number, its run, and its part of
    the coherence measure."""

    id: int
    frequencies: Counter[str]
    length: int
    run: int
    counts: Counts


def count_rows(connection: sqlite3.Connection, gap: Gap, most: int) -> int:
    """How many memories there are in the gap; counts no further than `most`."""
    condition, parameters = _within(gap)
    row = connection.execute(
        f"SELECT count(*) FROM (SELECT 1 FROM memories WHERE {condition} LIMIT ?)",  # noqa: S608 - constants
        (*parameters, most),
    )
    return int(row.fetchone()[0])


def read_rows(connection: sqlite3.Connection, gap: Gap) -> Iterator[tuple[Any, ...]]:
    """The rows of memories in the gap, in order."""
    condition, parameters = _within(gap)
    return connection.execute(
        f"SELECT {_COLUMNS} FROM texts WHERE {condition} ORDER BY id",  # noqa: S608 - constants
        parameters,
    )


def rows_before(connection: sqlite3.Connection, number: int) -> list[tuple[Any, ...]]:
    """The rows of the memories just before the one with this id, in order: what a meter has to know."""
    rows = connection.execute(
        f"SELECT {_COLUMNS} FROM texts WHERE id < ? ORDER BY id DESC LIMIT ?",  # noqa: S608 - constants
        (number, MEMORY),
    )
    return rows.fetchall()[::-1]


def analysed(row: tuple[Any, ...]) -> Text:
    """The memory of a row."""
    number, fragment, session, time = row
    known_session = session if isinstance(session, str) else None  # an edited row has any type
    return Text(
        number, terms_of(fragment), run_of(known_session, time if isinstance(time, (int, float)) else None)
    )


def terms_of(fragment: str) -> list[str]:
    """The terms of a memory: its text's, then its tags'. None for a row that was edited into no record at
    all.

    Reads the fragment without the checks of the canonical form, since an index is no proof of anything.
    """
    try:
        record = json.loads(fragment)
        found = terms(record["content"])
        for tag in record["tags"]:
            found += terms(tag)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return []
    return found


class Waiting:
    """Memories that are not indexed, analysed once in this process: an id is never given twice."""

    _MOST = 4096

    def __init__(self) -> None:
        self._known: dict[int, _Analysed] = {}

    def documents(
        self,
        gaps: Iterable[Gap],
        read: Callable[[Gap], Iterable[tuple[Any, ...]]],
        before: Callable[[int], Iterable[tuple[Any, ...]]],
    ) -> list[Document]:
        """Those in the gaps, in order. `read` and `before` are as `read_rows` and `rows_before`."""
        found: list[Document] = []
        for gap in gaps:
            waiting = [self._analysed(row) for row in read(gap)]
            if not waiting:
                continue
            meter = Meter()
            for one in map(self._analysed, before(waiting[0].text.id)):
                meter.count(one.text.id, one.text.run, one.telling)
            found.extend(
                Document(
                    text.id, frequencies, len(text.terms), text.run, meter.count(text.id, text.run, about)
                )
                for text, frequencies, about in waiting
            )
        return found

    def _analysed(self, row: tuple[Any, ...]) -> _Analysed:
        known = self._known.get(row[0])
        if known is None:
            if len(self._known) >= self._MOST:
                self._known.clear()
            text = analysed(row)
            known = _Analysed(text, Counter(text.terms), telling(text.terms))
            self._known[row[0]] = known
        return known


class _Analysed(NamedTuple):
    text: Text
    frequencies: Counter[str]
    telling: set[str]


def _within(gap: Gap) -> tuple[str, tuple[int, ...]]:
    after, before = gap
    return ("id > ?", (after,)) if before is None else ("id > ? AND id < ?", (after, before))
