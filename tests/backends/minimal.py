"""The least that a backend must be: a list in memory. It shows what an implementer writes."""

# ruff: noqa: ARG002 - a list in memory has no use for some of what it is told

from __future__ import annotations

import contextlib
import threading
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from mycelium_sdk import canonical
from mycelium_sdk.backends.base import BaseBackend, Context, Imported, Stats
from mycelium_sdk.errors import BackendError, InputError, UnanchoredWrites
from mycelium_sdk.records import Record
from mycelium_sdk.stored import StoredRecord
from mycelium_sdk.testing import reference

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from mycelium_sdk.backends.base import Addition, Progress, Query, Selection
    from mycelium_sdk.backends.scoring import Candidates


class ListBackend(BaseBackend):
    """Everything in one list, looked through from its beginning to its end."""

    def __init__(self, owner: str) -> None:
        super().__init__(owner)
        self._lock = threading.RLock()
        self._stored: list[StoredRecord] = []
        self._sequence = 0
        self._changes = 0
        self._closed = False

    @contextlib.contextmanager
    def _open(self) -> Iterator[None]:
        with self._lock:
            if self._closed:
                raise BackendError("the memory is closed", hint="open it again")
            yield

    def add(self, additions: Sequence[Addition]) -> list[str]:
        with self._open():
            known = {_identity(one.record): one.id for one in reversed(self._stored)}
            ids = []
            for addition in additions:
                text = canonical.fragment(addition.record)
                if text not in known:
                    known[text] = self._append(text, 1, addition.session, addition.time)
                    self._changes += 1
                ids.append(known[text])
            return ids

    def _append(self, text: str, copies: int, session: str | None, time: float | None) -> str:
        self._sequence += 1
        number = str(self._sequence)
        self._stored.append(StoredRecord(number, text, copies, self._sequence, session, time))
        return number

    @contextlib.contextmanager
    def snapshot(self) -> Iterator[_View]:
        with self._open():
            view = _View(self.stats(), list(self._stored))
        yield view

    def replace(
        self,
        records: Iterable[tuple[str, Record]],
        *,
        expected_changes: int | None,
        contexts: Iterable[Context] | None,
        progress: Progress | None,
    ) -> Imported:
        texts = [text for text, _ in records]
        told = [Context(place, None, None) for place, _ in enumerate(texts)]
        if contexts is not None:
            told = list(contexts)
        if len(told) != len(texts):
            raise InputError("the context has not one entry for each record of the blob")
        first = dict(zip(reversed(texts), reversed(told), strict=True))
        copies = Counter(texts)
        with self._open():
            if expected_changes is not None and expected_changes != self._changes:
                raise UnanchoredWrites("the memory was written to meanwhile")
            before = {one.fragment: one for one in self._stored}
            kept = [replace(one, copies=copies[text]) for text, one in before.items() if text in copies]
            self._changes += len(before) - len(kept) + sum(one != before[one.fragment] for one in kept)
            self._stored = kept
            for text in sorted(copies.keys() - before.keys(), key=lambda text: first[text].sequence):
                self._append(text, copies[text], *first[text][1:])
                self._changes += 1
            return Imported(len(texts), self._changes)

    def remove(self, selection: Selection, *, secure: bool) -> int:
        with self._open():
            gone = [
                one
                for one in self._stored
                if selection.everything or one.id == selection.id or selection.tag in one.record.tags
            ]
            self._stored = [one for one in self._stored if one not in gone]
            self._changes += len(gone)
            return sum(one.copies for one in gone)

    def candidates(self, query: Query, limit: int) -> Candidates:
        with self._open():
            stored = list(self._stored)
        return reference.candidates(stored, query)

    def records(self, ids: Sequence[str]) -> list[StoredRecord]:
        with self._open():
            there = {one.id: one for one in self._stored}
            return [there[number] for number in ids if number in there]

    def stats(self) -> Stats:
        with self._open():
            return Stats(sum(one.copies for one in self._stored), self._changes)

    def close(self) -> None:
        self._closed = True


class _View:
    def __init__(self, stats: Stats, stored: list[StoredRecord]) -> None:
        self.stats = stats
        self._stored = sorted(stored, key=lambda one: canonical.order_key(one.record))

    def fragments(self) -> Iterator[tuple[str, int]]:
        return ((one.fragment, one.copies) for one in self._stored)

    def stored(self) -> Iterator[StoredRecord]:
        return iter(self._stored)


def _identity(record: Record) -> str:
    return canonical.fragment(Record(record.content, tuple(sorted(set(record.tags)))))
