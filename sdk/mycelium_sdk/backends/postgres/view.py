"""An owner's memories read in canonical order, by a cursor on the server, from one unchanging state."""

from __future__ import annotations

import contextlib
import itertools
from typing import TYPE_CHECKING, Any, NamedTuple

from mycelium_sdk.backends.base import Stats
from mycelium_sdk.backends.local.rows import alike, full_key
from mycelium_sdk.backends.postgres import heads
from mycelium_sdk.backends.postgres.cursors import READ_TOGETHER, batches
from mycelium_sdk.errors import BackendError, Tampered
from mycelium_sdk.stored import StoredRecord

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mycelium_sdk.backends.postgres.connections import Connections
    from mycelium_sdk.backends.postgres.pool import Connection

_COLUMNS = "key, fragment, id, copies, session, time"
_IN_ORDER = f"SELECT {_COLUMNS} FROM memories WHERE owner = %s ORDER BY key"  # noqa: S608 - constants

_SORTED_IN_MEMORY = 5000


class _Stored(NamedTuple):
    """A row of `_COLUMNS`."""

    key: bytes
    fragment: str
    id: int
    copies: int
    session: bytes | None
    time: float | None


class View:
    """A snapshot over a connection that is in a transaction."""

    def __init__(self, connection: Connection, owner: str) -> None:
        self._connection = connection
        self._open = contextlib.ExitStack()
        self._ended = False
        self._head = heads.read(connection, owner)
        self.stats = Stats(self._head.records, self._head.changes)

    def fragments(self) -> Iterator[tuple[str, int]]:
        """See `Snapshot.fragments`. Raises `Tampered` for what no store writes."""
        for batch in self._batches():
            texts = [row.fragment for row in batch]
            joined = ",".join(texts)
            if not joined.isascii():
                raise Tampered("a stored record was changed behind the store's back: it is no record")
            if all(row.copies == 1 for row in batch):
                yield joined, 1
            else:
                yield from zip(texts, (row.copies for row in batch), strict=True)

    def stored(self) -> Iterator[StoredRecord]:
        """See `Snapshot.stored`."""
        for batch in self._batches():
            yield from map(stored_record, batch)

    def close(self) -> None:
        """End what was not read to its end, while that is still this transaction's."""
        self._ended = True
        self._open.close()

    def _batches(self) -> Iterator[list[_Stored]]:
        """The rows in canonical order: by their keys, and where these were cut, by what follows."""
        held: list[_Stored] = []  # rows that begin alike, and perhaps like the next
        source = self._source()
        for rows in source:
            batch = held + [_Stored(*row) for row in rows]
            end = len(batch) - 1
            while end and alike(batch[end - 1].key, batch[end].key):
                end -= 1
            held = batch[end:]
            if end:
                yield _sorted(batch[:end])
            if len(held) > _SORTED_IN_MEMORY:
                held, ordered = _to_their_end(held, source)
                yield from self._by_id(ordered)
        if held:
            yield _sorted(held)

    def _source(self) -> Iterator[list[tuple[Any, ...]]]:
        """The rows by their keys. Raises `BackendError` if the view ends before they do."""
        if not self._ended:
            rows = batches(self._connection, _IN_ORDER, (self._head.number,), text=1)
            yield from self._open.enter_context(contextlib.closing(rows))
        if self._ended:
            raise BackendError("the view has ended", hint="read it to its end inside the block")

    def _by_id(self, numbers: Sequence[int]) -> Iterator[list[_Stored]]:
        for first in range(0, len(numbers), READ_TOGETHER):
            part = numbers[first : first + READ_TOGETHER]
            rows = self._connection.execute(
                f"SELECT {_COLUMNS} FROM memories WHERE owner = %s AND id = ANY(%s)",  # noqa: S608 - constants
                (self._head.number, part),
            )
            found = {row[2]: _Stored(*row) for row in rows}
            yield [found[number] for number in part]


def stored_record(row: _Stored) -> StoredRecord:
    """The row as a backend gives it."""
    session = None if row.session is None else row.session.decode("utf-8", "replace")
    return StoredRecord(str(row.id), row.fragment, row.copies, row.id, session, row.time)


def records(connections: Connections, owner: str, numbers: Sequence[int]) -> list[StoredRecord]:
    """The memories with these ids, in this order; those that are not there are left out."""
    rows = connections.ask(
        f"SELECT {_COLUMNS} FROM memories"  # noqa: S608 - constants
        " WHERE owner = (SELECT number FROM owners WHERE owner = %s) AND id = ANY(%s)",
        (owner, list(numbers)),
    )
    found = {row[2]: stored_record(_Stored(*row)) for row in rows}
    return [found[number] for number in numbers if number in found]


def _to_their_end(
    held: Sequence[_Stored], source: Iterator[list[tuple[Any, ...]]]
) -> tuple[list[_Stored], list[int]]:
    """Where very many begin alike: the first rows that do not any more, and the ids of those that do, in
    order. Only what they are sorted by is held in memory."""
    keys = [(full_key(row.fragment), row.id) for row in held]
    others: list[_Stored] = []
    for rows in source:
        stored = [_Stored(*row) for row in rows]
        same = list(itertools.takewhile(lambda row: alike(row.key, held[0].key), stored))
        keys += [(full_key(row.fragment), row.id) for row in same]
        others = stored[len(same) :]
        if others:
            break
    return others, [number for _, number in sorted(keys)]


def _sorted(rows: list[_Stored]) -> list[_Stored]:
    """Put those that begin alike in the order of what follows; the others stay where they are."""
    if not any(map(alike, (row.key for row in rows), (row.key for row in rows[1:]))):
        return rows
    ordered: list[_Stored] = []
    group: list[_Stored] = []
    for row in rows:
        if group and not alike(group[-1].key, row.key):
            ordered += sorted(group, key=_full_key)
            group = []
        group.append(row)
    return ordered + sorted(group, key=_full_key)


def _full_key(row: _Stored) -> bytes:
    return full_key(row.fragment)
