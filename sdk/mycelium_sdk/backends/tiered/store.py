"""A primary backend that is the truth, and a secondary that follows it.

Records, blob and root are the primary's. What it writes is brought to the secondary at once if that answers
quickly, and later otherwise: what is missing is queued durably. Recall reads the primary, and asks the
secondary where the primary has fewer memories than were asked for.
"""

from __future__ import annotations

import contextlib
import json
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from mycelium_sdk import canonical
from mycelium_sdk.backends.base import BaseBackend
from mycelium_sdk.backends.tiered.background import Follower
from mycelium_sdk.backends.tiered.queue import Lag, Queue
from mycelium_sdk.backends.tiered.upkeep import Upkeep, digest
from mycelium_sdk.bounded import TooSlow, within
from mycelium_sdk.errors import InputError, MyceliumError
from mycelium_sdk.home import Home

if TYPE_CHECKING:
    import os
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from mycelium_sdk.backends.base import (
        Addition,
        CheckedExport,
        Context,
        Imported,
        Progress,
        Query,
        Selection,
        Snapshot,
        Stats,
    )
    from mycelium_sdk.backends.integrity import IntegrityReport
    from mycelium_sdk.backends.scoring import Candidate, Candidates
    from mycelium_sdk.backends.tiered.upkeep import Extra, Repaired
    from mycelium_sdk.facts import LastAnchors
    from mycelium_sdk.records import Record
    from mycelium_sdk.stored import StoredRecord

__all__ = ["TieredBackend"]

_ELSEWHERE = "secondary:"
"""Ids of memories that only the secondary has begin with this."""

_LONGEST_PAUSE = 600.0


class TieredBackend(BaseBackend):
    """Two backends of one owner as one. Closing it closes both.

    `queue`: the file of what the secondary lacks; by default one in the home folder for this owner and the
    two places. `patience`: seconds that a caller waits for the secondary at most. While it is down it is
    asked again after pauses of a second up to five minutes.

    Raises `InputError` if the two hold different owners' memories, `BackendError` if the queue cannot be
    kept.
    """

    def __init__(
        self,
        primary: BaseBackend,
        secondary: BaseBackend,
        *,
        queue: str | os.PathLike[str] | None = None,
        patience: float = 2.0,
    ) -> None:
        if primary.owner != secondary.owner:
            raise InputError(
                "the two backends hold different owners' memories", hint="open both for one owner"
            )
        super().__init__(primary.owner, max_record_bytes=primary.max_record_bytes)
        self.primary = primary
        self.secondary = secondary
        self._patience = patience
        path = (
            Home.default().tier_queue(primary.owner, f"{primary.place} {secondary.place}")
            if queue is None
            else Path(queue).expanduser()
        )
        self._queue = Queue(path)
        self._upkeep = Upkeep(primary, secondary, self._queue)
        self._follower = Follower(self._follow)
        self._trust_a_new_primary()

    def _trust_a_new_primary(self) -> None:
        """One that was never written to has forgotten nothing."""
        if not self._queue.whole().compared and self.primary.change_counter() == 0:
            self._queue.trust()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.primary!r}, {self.secondary!r})"

    @property
    def place(self) -> str:
        """See `BaseBackend.place`."""
        return f"{self.primary.place}, followed by {self.secondary.place}"

    # -- what the secondary lacks

    def lag(self) -> Lag:
        """What the secondary lacks, and what it cannot hold faithfully. Asks the primary only."""
        whole = self._queue.whole()
        refused = self._queue.refused()
        places = self.primary.ids_of_digests({name for name, _ in refused}) if refused else {}
        return Lag(
            waiting=self._queue.waiting(),
            everything=whole.replaced > 0,
            refused=tuple((places.get(name), reason) for name, reason in refused),
            compared=whole.compared,
            error=whole.error,
            retry_at=whole.retry_at or None,
        )

    def catch_up(self, timeout: float = 60.0) -> Lag:
        """Bring the secondary up to date now, without waiting for a pause to end; what it still lacks.

        Waits at most `timeout` seconds; what takes longer goes on while this process lives.
        """
        self._queue.retry_now()
        self._follower.ask(timeout)
        return self.lag()

    def repair(self, extra: Extra = "refuse") -> Repaired:
        """Compare both by hash and make them equal, also where the queue was lost.

        What the primary lacks is removed from the secondary if the primary forgot it. `extra` says what
        becomes of other memories that only the secondary holds: "refuse" (change nothing), "adopt" (the
        primary takes them) or "remove".

        Raises what either backend raises, `BackendError` for "refuse", and `InputError` for another word.
        """
        repaired = self._upkeep.repair(extra)
        self._queue.succeeded()
        return repaired

    # -- writing

    def add(self, additions: Sequence[Addition]) -> list[str]:
        """See `Backend.add`."""
        digests = [digest(canonical.fragment(addition.record)) for addition in additions]
        with self._upkeep.writing():
            change = self._queue.announce(digests)
            try:
                ids = self.primary.add(additions)
            except BaseException:
                self._queue.conclude(change)
                raise
            self._queue.conclude(change, zip(digests, ids, strict=True))
        self._bring()
        return ids

    def remove(self, selection: Selection, *, secure: bool) -> int:
        """See `Backend.remove`."""
        if selection.id is not None and selection.id.startswith(_ELSEWHERE):
            theirs = replace(selection, id=selection.id.removeprefix(_ELSEWHERE))
            return self.secondary.remove(theirs, secure=secure)
        with self._upkeep.writing():
            if selection.everything:
                change, _ = self._queue.announce_replacement(secure=secure)
                removed = self._concluding(change, selection, secure=secure)
            else:
                doomed = self._selected(selection)
                change = self._queue.announce(doomed, secure=secure)
                removed = self._concluding(change, selection, secure=secure)
                if removed != sum(doomed.values()):
                    # Others wrote meanwhile; only a comparison tells what went.
                    change, _ = self._queue.announce_replacement(secure=secure)
                    self._queue.conclude(change)
        self._bring()
        return removed

    def _concluding(self, change: int, selection: Selection, *, secure: bool) -> int:
        try:
            return self.primary.remove(selection, secure=secure)
        finally:
            self._queue.conclude(change)

    def _selected(self, selection: Selection) -> dict[bytes, int]:
        """What the primary would forget: digests, and how many copies there are."""
        if selection.id is not None:
            return {digest(one.fragment): one.copies for one in self.primary.records([selection.id])}
        written = json.dumps(selection.tag)
        with self.primary.snapshot() as view:
            return {
                digest(one.fragment): one.copies
                for one in view.stored()
                if written in one.fragment and selection.tag in one.record.tags
            }

    def replace(
        self,
        records: Iterable[tuple[str, Record]],
        *,
        expected_changes: int | None,
        contexts: Iterable[Context] | None,
        progress: Progress | None,
    ) -> Imported:
        """See `Backend.replace`; the secondary follows."""
        with self._upkeep.writing():
            change, before = self._queue.announce_replacement()
            try:
                imported = self.primary.replace(
                    records, expected_changes=expected_changes, contexts=contexts, progress=progress
                )
            except MyceliumError:
                self._queue.cancel_replacement(change, before)
                raise
            finally:
                self._queue.conclude(change)
        self._bring()
        return imported

    def _bring(self) -> None:
        if self._due():
            self._follower.ask(self._patience)

    def _due(self) -> bool:
        """Whether the secondary may be asked now; a clock that was set back does not stop it for long."""
        pause = self._queue.whole().retry_at - time.time()
        return not 0.0 < pause < _LONGEST_PAUSE

    def _follow(self) -> None:
        # Closing does not wait for a secondary that hangs, so the queue may be closed by then.
        with contextlib.suppress(MyceliumError):
            try:
                self._upkeep.follow()
            except MyceliumError as error:
                self._queue.failed(error.message)
            else:
                self._queue.succeeded()

    # -- reading

    def candidates(self, query: Query, limit: int) -> Candidates:
        """See `Backend.candidates`; topped up by what only the secondary holds."""
        own = self.primary.candidates(query, limit)
        whole = self._queue.whole()
        if len(own.items) >= limit or whole.replaced or not whole.compared or not self._due():
            return own
        try:
            theirs, items = within(self._patience, lambda: self._only_there(query, limit))
        except TooSlow:
            self._failed("it did not answer in time")
            return own
        except MyceliumError as error:
            self._failed(error.message)
            return own
        if own.documents == 0:
            return replace(theirs, items=items)
        return replace(own, items=[*own.items, *items[: limit - len(own.items)]])

    def _failed(self, reason: str) -> None:
        # What the primary found is not kept back because the pause cannot be noted, on a disk that is full.
        with contextlib.suppress(MyceliumError):
            self._queue.failed(reason)

    def _only_there(self, query: Query, limit: int) -> tuple[Candidates, list[Candidate]]:
        found = self.secondary.candidates(query, limit)
        stored = {one.id: one for one in self.secondary.records([item.id for item in found.items])}
        known = self.primary.ids_of([one.record for one in stored.values()])
        queued = self._queue.queued(digest(one.fragment) for one in stored.values())
        only_there = {
            one.id
            for one, here in zip(stored.values(), known, strict=True)
            if here is None and digest(one.fragment) not in queued
        }
        items = [item._replace(id=_ELSEWHERE + item.id) for item in found.items if item.id in only_there]
        return found, items

    def records(self, ids: Sequence[str]) -> list[StoredRecord]:
        """See `Backend.records`."""
        theirs = [name.removeprefix(_ELSEWHERE) for name in ids if name.startswith(_ELSEWHERE)]
        if not theirs:
            return self.primary.records(ids)
        found: dict[str, StoredRecord] = {one.id: one for one in self.primary.records(ids)}
        for one in self.secondary.records(theirs):
            found[_ELSEWHERE + one.id] = replace(one, id=_ELSEWHERE + one.id)
        return [found[name] for name in ids if name in found]

    # -- what is the primary's

    def snapshot(self) -> AbstractContextManager[Snapshot]:
        """See `Backend.snapshot`."""
        return self.primary.snapshot()

    def stats(self) -> Stats:
        """See `Backend.stats`."""
        return self.primary.stats()

    def check(self, progress: Progress | None = None) -> IntegrityReport:
        """See `BaseBackend.check`."""
        return self.primary.check(progress)

    @contextlib.contextmanager
    def export_checked(self, progress: Progress | None = None) -> Iterator[CheckedExport]:
        """See `BaseBackend.export_checked`."""
        with self.primary.export_checked(progress) as export:
            yield export

    def adopt(self, root: bytes, progress: Progress | None = None) -> None:
        """See `BaseBackend.adopt`."""
        self.primary.adopt(root, progress)

    @property
    def keeps_links(self) -> bool:
        """See `BaseBackend.keeps_links`."""
        return self.primary.keeps_links

    def link(self, chain: str) -> bytes | None:
        """See `BaseBackend.link`."""
        return self.primary.link(chain)

    def set_link(self, chain: str, link: bytes | None) -> None:
        """See `BaseBackend.set_link`."""
        self.primary.set_link(chain, link)

    def files(self) -> tuple[Path, ...]:
        """See `BaseBackend.files`."""
        return (*self.primary.files(), *self.secondary.files(), self._queue.path)

    def last_anchors(self) -> LastAnchors | None:
        """See `BaseBackend.last_anchors`."""
        return self.primary.last_anchors()

    def known_root(self) -> bytes | None:
        """See `BaseBackend.known_root`."""
        return self.primary.known_root()

    def keep_root(self, changes: int, root: bytes) -> None:
        """See `BaseBackend.keep_root`."""
        self.primary.keep_root(changes, root)

    def ids_of(self, records: Sequence[Record]) -> list[str | None]:
        """See `BaseBackend.ids_of`."""
        return self.primary.ids_of(records)

    def ids_of_digests(self, digests: Collection[bytes]) -> Mapping[bytes, str]:
        """See `BaseBackend.ids_of_digests`."""
        return self.primary.ids_of_digests(digests)

    def close(self) -> None:
        """See `Backend.close`. Gives the secondary `patience` seconds to finish."""
        self._follower.wait(self._patience)
        self.primary.close()
        self.secondary.close()
        self._queue.close()
