"""Finding candidates: the full-text index, kept up to date off the write path.

Writing only appends to `memories`. Whoever recalls brings the index up to date when more than a few memories
are missing in it, and looks through the few himself; so a search shows every memory, also when the index
cannot be written (another process writes, the disk is full).
"""

# ruff: noqa: S608 - statements are put together from constants; every value is a parameter

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mycelium_sdk.backends.local.writing import empty_search
from mycelium_sdk.backends.scoring import Candidate, Candidates, Lexical
from mycelium_sdk.backends.text import ANALYZER, terms
from mycelium_sdk.canonical import record_from_fragment
from mycelium_sdk.errors import BackendError, NonCanonical
from mycelium_sdk.stored import StoredRecord

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Mapping, Sequence

    from mycelium_sdk.backends.base import Query
    from mycelium_sdk.backends.local.connections import Connections

TAIL = 128
"""So many memories may be missing in the index before a search brings it up to date."""

_INDEXED_TOGETHER = 2000
_FETCHED_TOGETHER = 500
_PATIENCE = 0.25
_MOST_REMEMBERED = 4096

# FTS5's tokenizer `ascii` leaves alone what is not ASCII and splits at ASCII punctuation, so that is moved
# away.
_PRIVATE_USE = {code: 0xE000 + code for code in range(128) if not chr(code).isalnum() and chr(code) != " "}


@dataclass(frozen=True, slots=True)
class _Index:
    """What is indexed: memories up to the id `through`, how many, and how many terms they have together."""

    through: int
    documents: int
    length: int


class _Analysed(dict[int, Counter[str]]):
    """The terms of memories that are not indexed yet; ids are never given twice, so they stay true."""

    def of(self, number: int, fragment: str) -> Counter[str]:
        """The terms of a memory and how often each occurs."""
        known = self.get(number)
        if known is None:
            if len(self) >= _MOST_REMEMBERED:
                self.clear()
            known = self[number] = Counter(_terms(fragment))
        return known


class Search:
    """Candidates from words alone."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._analysed = _Analysed()

    def refresh(self) -> None:
        """Bring the index up to date if much is missing and the store can be written now."""
        with self._connections.reading() as connection:
            missing = _missing(connection)
        try:
            while missing > TAIL:
                with self._connections.writing(timeout=_PATIENCE) as connection:
                    _index_some(connection)
                    missing = _missing(connection)
        except BackendError:
            # The index can wait; what it lacks is looked through one by one. If more is wrong, reading will
            # say.
            return

    def find(self, connection: sqlite3.Connection, query: Query, limit: int) -> tuple[list[int], Candidates]:
        """Ids of the memories with any of the terms, most promising first, and the statistics of the
        store."""
        index = _index(connection)
        tail = [
            (number, self._analysed.of(number, fragment))
            for number, fragment in connection.execute(
                "SELECT id, fragment FROM memories WHERE id > ?", (index.through,)
            )
        ]
        frequencies = {
            term: _indexed_frequency(connection, index, term) + sum(term in counts for _, counts in tail)
            for term in query.terms
        }
        documents = index.documents + len(tail)
        length = index.length + sum(counts.total() for _, counts in tail)
        store = Candidates((), documents, length / documents if documents else 0.0, frequencies)
        lexical = Lexical(query.terms, store)
        found = _match(connection, index, query, limit)
        allowed = _allowed(connection, query, index.through)
        for number, counts in tail:
            weight = lexical.weight(counts, counts.total())
            if weight > 0 and (allowed is None or number in allowed):
                found.append((weight, number))
        found.sort(key=lambda pair: (-pair[0], -pair[1]))
        return [number for _, number in found[:limit]], store

    def fetch(
        self,
        connection: sqlite3.Connection,
        query: Query,
        numbers: Sequence[int],
        similarities: Mapping[int, float] | None = None,
    ) -> list[Candidate]:
        """The candidates with these ids, in this order."""
        decoded = {_encoded(term): term for term in query.terms}
        through = _index(connection).through
        found: dict[int, Candidate] = {}
        for first in range(0, len(numbers), _FETCHED_TOGETHER):
            part = numbers[first : first + _FETCHED_TOGETHER]
            rows = connection.execute(
                "SELECT m.id, m.fragment, m.copies, m.sequence, m.session, m.time, t.terms, t.length"
                " FROM memories m LEFT JOIN terms t ON t.id = m.id AND m.id <= ?"
                f" WHERE m.id IN ({','.join('?' * len(part))})",
                (through, *part),
            )
            for number, fragment, copies, sequence, session, when, text, indexed_length in rows:
                if text is None:
                    counts = self._analysed.of(number, fragment)
                    frequencies = {term: counts[term] for term in query.terms if term in counts}
                    length = counts.total()
                else:
                    frequencies = _frequencies(text, decoded)
                    length = indexed_length
                found[number] = Candidate(
                    StoredRecord(str(number), fragment, copies, sequence, session, when),
                    frequencies,
                    length,
                    None if similarities is None else similarities.get(number, -1.0),
                )
        return [found[number] for number in numbers]


def filters(query: Query, column: str) -> tuple[str, list[Any]]:
    """The query's conditions on tags and session as SQL that begins with AND, and its parameters."""
    # The unary plus keeps SQLite from looking up each id of the list in the full-text index.
    sql = f" AND +{column} IN (SELECT id FROM tags WHERE tag = ?)" * len(query.tags)
    parameters: list[Any] = list(query.tags)
    if query.session is not None:
        sql += f" AND +{column} IN (SELECT id FROM memories WHERE session = ?)"
        parameters.append(query.session)
    return sql, parameters


def _index(connection: sqlite3.Connection) -> _Index:
    analyzer, *found = connection.execute(
        "SELECT analyzer, through, documents, length FROM indexing"
    ).fetchone()
    return _Index(*found) if analyzer == ANALYZER else _Index(0, 0, 0)


def _missing(connection: sqlite3.Connection) -> int:
    """How many memories are not indexed; counts no further than needed."""
    through = _index(connection).through
    return int(
        connection.execute(
            "SELECT count(*) FROM (SELECT 1 FROM memories WHERE id > ? LIMIT ?)", (through, TAIL + 1)
        ).fetchone()[0]
    )


def _index_some(connection: sqlite3.Connection) -> None:
    """Index the next memories, within the caller's transaction."""
    if connection.execute("SELECT analyzer FROM indexing").fetchone()[0] != ANALYZER:
        empty_search(connection, ANALYZER)
    rows = connection.execute(
        "SELECT id, fragment FROM memories WHERE id > ? ORDER BY id LIMIT ?",
        (_index(connection).through, _INDEXED_TOGETHER),
    ).fetchall()
    if not rows:  # another thread or process has indexed them meanwhile
        return
    analysed = [(number, _terms(fragment)) for number, fragment in rows]
    entries = [(number, len(words), _encoded(" ".join(words))) for number, words in analysed]
    connection.executemany("INSERT INTO terms VALUES (?, ?, ?)", entries)
    connection.executemany(
        "INSERT INTO search(rowid, terms) VALUES (?, ?)", [(number, text) for number, _, text in entries]
    )
    connection.execute(
        "UPDATE indexing SET through = ?, documents = documents + ?, length = length + ?",
        (entries[-1][0], len(entries), sum(length for _, length, _ in entries)),
    )


def _terms(fragment: str) -> list[str]:
    """The terms of a memory: its text's, then its tags'. None for a row that was edited into no record at
    all."""
    try:
        record = record_from_fragment(fragment)
    except NonCanonical:
        return []
    return [term for text in (record.content, *record.tags) for term in terms(text)]


def _frequencies(text: str, decoded: Mapping[str, str]) -> dict[str, int]:
    """How often each of some terms stands in an indexed text; `decoded` maps them from their indexed form."""
    found: dict[str, int] = {}
    for word in text.split(" "):
        if word in decoded:
            term = decoded[word]
            found[term] = found.get(term, 0) + 1
    return found


def _encoded(text: str) -> str:
    return text.translate(_PRIVATE_USE)


def _indexed_frequency(connection: sqlite3.Connection, index: _Index, term: str) -> int:
    if not index.documents:
        return 0
    row = connection.execute("SELECT doc FROM vocabulary WHERE term = ?", (_encoded(term),)).fetchone()
    return 0 if row is None else int(row[0])


def _match(
    connection: sqlite3.Connection, index: _Index, query: Query, limit: int
) -> list[tuple[float, int]]:
    """Weight (FTS5's own, close enough to choose by) and id of the best indexed memories."""
    if not index.documents or not query.terms:
        return []
    sql, parameters = filters(query, "rowid")
    expression = " OR ".join(f'"{_encoded(term)}"' for term in query.terms)
    rows = connection.execute(
        f"SELECT -rank, rowid FROM search WHERE search MATCH ?{sql} ORDER BY rank, rowid DESC LIMIT ?",
        (expression, *parameters, limit),
    )
    return rows.fetchall()


def _allowed(connection: sqlite3.Connection, query: Query, after: int) -> set[int] | None:
    """The ids above `after` that pass the filters, None if all do."""
    sql, parameters = filters(query, "id")
    if not sql:
        return None
    rows = connection.execute(f"SELECT id FROM memories WHERE id > ?{sql}", (after, *parameters))
    return {number for (number,) in rows}
