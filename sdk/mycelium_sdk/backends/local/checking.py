"""Comparing all rows of one state of a memory file with their seals, while they are read for something else.

Whether all are kept is known when the last row was taken. Rows that are all kept, and came in order, are
exactly what the store wrote: so their fragments make a canonical blob, and nobody need parse it to know.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

from mycelium_sdk.backends.integrity import Integrity, IntegrityReport
from mycelium_sdk.backends.local.rows import alike
from mycelium_sdk.backends.local.seals import Head
from mycelium_sdk.errors import IntegrityKeyMissing, Tampered

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence

    from mycelium_sdk.backends.base import Progress
    from mycelium_sdk.backends.local.seals import Sealer, Sealers

_REPORTED_EVERY = 10_000
_MOST_NAMED = 20


class Checking:
    """The store's row is compared at once, the others as they are taken."""

    def __init__(self, connection: sqlite3.Connection, sealers: Sealers, progress: Progress | None) -> None:
        self._progress = progress
        self._checked = self._altered = self._records = self._total = 0
        self._last = b""
        self._in_order = True
        self._found: list[str] = []
        self._sealer: Sealer | None = None
        try:
            self._head, self._sealer = Head.read(connection, sealers.of)
        except IntegrityKeyMissing as error:
            self._found.append(error.message)
        except Tampered as error:
            self._found.append(error.message)
            self._head = Head.unchecked(connection)
            self._sealer = sealers.of(self._head.store)

    def take(self, rows: Sequence[tuple[Any, ...]]) -> None:
        """The next rows in canonical order: each a mark (`view`), the fields of `Stored`, and the MAC."""
        sealer = self._sealer
        if sealer is None:
            return
        told = self._checked // _REPORTED_EVERY
        self._checked += len(rows)
        kept = True
        shares = sealer.shares_of([row[1:8] for row in rows], [row[8] for row in rows])
        for row, share in zip(rows, shares, strict=True):
            if share is None:
                kept = False
                self._altered += 1
                if self._altered <= _MOST_NAMED:
                    self._found.append(f"memory {row[1]} was changed")
            else:
                self._total ^= share
                self._records += row[4]
        if kept and self._in_order:
            keys = [self._last, *[row[2] for row in rows]]
            self._last = keys[-1]
            self._in_order = all(map(operator.lt, keys, keys[1:])) or all(map(_follows, keys, keys[1:]))
        if self._progress is not None and self._checked // _REPORTED_EVERY > told:
            self._progress("checking", self._checked // _REPORTED_EVERY * _REPORTED_EVERY, self._head.records)

    def report(self) -> IntegrityReport:
        """What is to be said of the rows, all of which were taken."""
        if self._sealer is None:
            return IntegrityReport(Integrity.UNKNOWN, 0, tuple(self._found))
        found = list(self._found)
        if self._altered > _MOST_NAMED:
            more = self._altered - _MOST_NAMED
            found.append("1 more memory was changed" if more == 1 else f"{more} more memories were changed")
        if not found and (self._total, self._records) != (self._head.total, self._head.records):
            missing = self._head.records - self._records
            lost = "1 memory is missing" if missing == 1 else f"{missing} memories are missing"
            found.append(lost if missing > 0 else "memories were put in or back")
        if not found and not self._in_order:
            found.append("the memories do not stand in their order")
        state = Integrity.BROKEN if found else Integrity.KEPT
        return IntegrityReport(state, self._checked, tuple(found))


def _follows(key: bytes, following: bytes) -> bool:
    """Whether rows with these keys stand in order; where both were cut, who sorted the rows sees to that."""
    return key < following or alike(key, following)
