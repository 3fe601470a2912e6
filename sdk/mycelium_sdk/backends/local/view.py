"""A memory file read in canonical order, and checked against its seals."""

# ruff: noqa: S608 - statements are put together from constants; every value is a parameter

from __future__ import annotations

import contextlib
import itertools
import operator
from typing import TYPE_CHECKING, Any

from mycelium_sdk.backends.local import writing
from mycelium_sdk.backends.local.checking import Checking
from mycelium_sdk.backends.local.rows import PREFIX_BYTES, STORED, Stored, full_key
from mycelium_sdk.errors import Tampered
from mycelium_sdk.stored import StoredRecord

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator, Sequence

    from mycelium_sdk.backends.base import Progress
    from mycelium_sdk.backends.integrity import IntegrityReport
    from mycelium_sdk.backends.local.seals import Sealers

_SORTED_IN_MEMORY = 5000
_READ_TOGETHER = 64
_LARGE = 1 << 16

# Equal for neighbours whose order is open, since their keys were cut at the same prefix.
_ALIKE = (
    f"CASE WHEN length(key) > {PREFIX_BYTES} THEN CAST(substr(key, 1, {PREFIX_BYTES}) AS BLOB) ELSE id END"
)

_SEALED = f"{STORED}, mac"
_TEXT, _COPIES = (1 + Stored._fields.index(name) for name in ("fragment", "copies"))


class View:
    """A snapshot over a connection that is in a transaction."""

    def __init__(self, connection: sqlite3.Connection, sealers: Sealers) -> None:
        self._connection = connection
        self._sealers = sealers
        self._open = contextlib.ExitStack()
        self.stats = writing.stats(connection)

    def fragments(self) -> Iterator[tuple[str, int]]:
        """See `Snapshot.fragments`. Raises `Tampered` for what no store writes."""
        if self._connection.execute("SELECT plain FROM store").fetchone()[0]:
            rows = self._rows("SELECT fragment FROM texts ORDER BY key")
            for batch in _fetched(rows, column=0):
                yield _joined([text for (text,) in batch]), 1
            return
        for batch in self._batches("fragment, copies"):
            _, texts, copies = zip(*batch, strict=True)
            yield from _pairs(texts, copies)

    def stored(self) -> Iterator[StoredRecord]:
        """Stored records in canonical order."""
        for rows in self._batches("fragment, id, copies, session, time"):
            for _, fragment, number, copies, session, time in rows:
                yield StoredRecord(str(number), fragment, copies, number, session, time)

    def check(self, progress: Progress | None = None) -> IntegrityReport:
        """Compare every row, and the counters, with their seals."""
        checking = Checking(self._connection, self._sealers, progress)
        for batch in self._batches(_SEALED, text=_TEXT):
            checking.take(batch)
        return checking.report()

    def checked(self, progress: Progress | None = None) -> tuple[Iterator[tuple[str, int]], Checking]:
        """`fragments`, and what has compared every row, and the counters, once the last one was given."""
        checking = Checking(self._connection, self._sealers, progress)
        return self._checked_fragments(checking), checking

    def _checked_fragments(self, checking: Checking) -> Iterator[tuple[str, int]]:
        for batch in self._batches(_SEALED, text=_TEXT):
            checking.take(batch)
            yield from _pairs([row[_TEXT] for row in batch], [row[_COPIES] for row in batch])

    def close(self) -> None:
        """End what was not read to its end: a statement in progress keeps its state after the transaction."""
        self._open.close()

    def _batches(self, columns: str, *, text: int = 1) -> Iterator[list[tuple[Any, ...]]]:
        """Rows of `columns`, after a mark that says which begin alike, in canonical order. The text stands at
        the place `text` of a row."""
        rows = self._rows(f"SELECT {_ALIKE}, {columns} FROM texts ORDER BY key")
        held: list[tuple[Any, ...]] = []  # rows that begin alike, and perhaps like the next
        for fetched in _fetched(rows, column=text):
            batch = held + fetched
            last = batch[-1][0]
            end = len(batch) - 1
            while end and batch[end - 1][0] == last:
                end -= 1
            held = batch[end:]
            if end:
                yield self._sorted(batch[:end], text)
            if len(held) > _SORTED_IN_MEMORY:
                yield from self._sorted_by_sqlite(last, columns)
                held = []
                while (row := rows.fetchone()) is not None and row[0] == last:
                    pass
                held = [] if row is None else [row]
        if held:
            yield self._sorted(held, text)

    @staticmethod
    def _sorted(rows: list[tuple[Any, ...]], text: int) -> list[tuple[Any, ...]]:
        """Put those that begin alike in the order of what follows; the others stay where they are."""
        marks = [row[0] for row in rows]
        if not any(map(operator.eq, marks, marks[1:])):
            return rows
        groups = (list(group) for _, group in itertools.groupby(rows, key=operator.itemgetter(0)))
        return [
            row
            for group in groups
            for row in (sorted(group, key=lambda row: full_key(row[text])) if len(group) > 1 else group)
        ]

    def _sorted_by_sqlite(self, prefix: bytes, columns: str) -> Iterator[list[tuple[Any, ...]]]:
        """All that begin with the prefix, where they are too many for memory."""
        rows = self._rows(
            f"SELECT NULL, {columns} FROM texts WHERE key > ? AND key < ? ORDER BY full_key(fragment)",
            prefix,
            prefix + b"\xff" * PREFIX_BYTES,
        )
        while batch := rows.fetchmany(_READ_TOGETHER):
            yield batch

    def _rows(self, sql: str, *parameters: object) -> sqlite3.Cursor:
        return self._open.enter_context(contextlib.closing(self._connection.execute(sql, parameters)))


def _fetched(rows: sqlite3.Cursor, *, column: int) -> Iterator[list[tuple[Any, ...]]]:
    """What is left of the rows, in lists that are short where the texts in that column are long."""
    number = 1
    while batch := rows.fetchmany(number):
        yield batch
        large = any(len(str(row[column])) > _LARGE for row in (batch[0], batch[-1]))
        number = 1 if large else min(2 * number, _READ_TOGETHER)


def _pairs(texts: Sequence[str], copies: Sequence[Any]) -> Iterator[tuple[str, int]]:
    """The fragments as `Snapshot.fragments` gives them."""
    if copies.count(1) == len(copies):
        yield _joined(texts), 1
        return
    for text, number in zip(texts, copies, strict=True):
        if type(number) is not int:
            raise _no_record()
        yield _joined([text]), number


def _joined(texts: Sequence[str]) -> str:
    """The fragments joined by commas. Raises `Tampered` if one of them cannot be one."""
    try:
        joined = ",".join(texts)
    except TypeError:
        raise _no_record() from None
    if not joined.isascii():
        raise _no_record()
    return joined


def _no_record() -> Tampered:
    return Tampered(
        "a stored record was changed behind the store's back: it is no record",
        hint="load what is anchored: `mycelium memory rehydrate --on-conflict replace`",
    )
