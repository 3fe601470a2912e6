"""The Supermemory backend: an owner's memory as documents in a namespace of a Supermemory service.

The service processes, searches and may alter what it is given, and has no transactions; so every memory is
rebuilt from its document and checked against its digest (`documents`), a journal in the namespace makes
imports and forgettings happen as a whole (`journal`, `view`), and what this process knows of the namespace is
brought up to date by one request (`mirror`).
"""

from __future__ import annotations

import contextlib
import threading
from collections import Counter
from typing import TYPE_CHECKING, Literal

from mycelium_sdk import canonical
from mycelium_sdk.backends.base import BaseBackend, Imported, Stats
from mycelium_sdk.backends.supermemory.documents import document_id, identity, memory_of, refuse_damaged
from mycelium_sdk.backends.supermemory.journal import Change
from mycelium_sdk.backends.supermemory.line import Line
from mycelium_sdk.backends.supermemory.mirror import Mirror
from mycelium_sdk.backends.supermemory.settings import DEFAULT_URL, checked_key, checked_url, require
from mycelium_sdk.backends.supermemory.settling import Settling
from mycelium_sdk.backends.supermemory.snapshot import FrozenView
from mycelium_sdk.backends.supermemory.writer import Writer
from mycelium_sdk.errors import BackendError, InputError, UnanchoredWrites
from mycelium_sdk.records import DEFAULT_MAX_RECORD_BYTES, Record
from mycelium_sdk.retry import RetryPolicy
from mycelium_sdk.stored import StoredRecord
from mycelium_sdk.timed_http import REQUEST_SECONDS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from mycelium_sdk.backends.base import Addition, Context, Progress, Query, Selection, Snapshot
    from mycelium_sdk.backends.integrity import IntegrityReport
    from mycelium_sdk.backends.scoring import Candidates
    from mycelium_sdk.backends.supermemory.documents import Memory
    from mycelium_sdk.backends.supermemory.line import Api
    from mycelium_sdk.backends.supermemory.view import View
    from mycelium_sdk.backends.supermemory.words import WordIndex

Ranking = Literal["service", "words"]
"""Who finds: the service's search, by meaning; or the words and context of all memories, as locally."""

PROCESSING_SECONDS = 120.0
"""How long documents that are being processed are waited for."""

_FEW = 3


class SupermemoryBackend(BaseBackend):
    """The owner's memory in a Supermemory service, in the namespace (v3: container tag) named by the address.

    `owner`: the account, G... `api_key`: the service's key; None for the variable SUPERMEMORY_API_KEY.
    `base_url`: the service's address; None for the variable SUPERMEMORY_BASE_URL, else the public one.
    `api`: "v5", or "v3" for self-hosted servers and old accounts; None for v5, or, at an address of one's
    own, whichever it speaks, which the first call finds out. `wait`: whether a write returns only when the
    service has processed it, and so searches it; without, it is stored and shown all the same, and looked
    after by later calls. `wait_seconds`: the bound of such waits. `ranking`: "service" finds by one search of
    the service, at most 100 memories; "words" as the local backend does, from a listing that is kept up to
    date. `progress` is told of waits and listings. `timeout`: seconds for one request. `retry`: when requests
    are repeated. `max_record_bytes`: limit of one remembered record.

    Making one asks nothing of the network. Raises `ConfigError` without a key or for a bad address,
    `InputError` for a bad owner or option. Later: `StoreUnavailable` (retryable; calling again loses and
    doubles nothing), `BackendError` for a refused key or missing credits, `LimitExceeded` for what the
    service cannot hold, `Tampered` for what is no longer as it was written.
    """

    def __init__(
        self,
        owner: str,
        api_key: str | None = None,
        base_url: str | None = None,
        *,
        api: Api | None = None,
        wait: bool = False,
        wait_seconds: float = PROCESSING_SECONDS,
        ranking: Ranking = "service",
        progress: Progress | None = None,
        timeout: float = REQUEST_SECONDS,
        retry: RetryPolicy | None = None,
        max_record_bytes: int = DEFAULT_MAX_RECORD_BYTES,
    ) -> None:
        super().__init__(owner, max_record_bytes=max_record_bytes)
        require(api, (None, "v5", "v3"), "api")
        require(ranking, ("service", "words"), "ranking")
        self.base_url = checked_url(base_url)
        self._wait = wait
        self._wait_seconds = wait_seconds
        self._ranking = ranking
        self._progress = progress
        policy = retry or RetryPolicy()
        self._line = Line(
            self.owner, checked_key(api_key), url=self.base_url, api=api, policy=policy, seconds=timeout
        )
        self._mirror = Mirror(self._line, self.owner)
        self._writer = Writer(self._line, self._mirror, self.owner)
        self._settling = Settling(self._line, self._mirror, self._writer)
        self._words: WordIndex | None = None
        self._sorted: tuple[View | None, list[StoredRecord]] = (None, [])
        self._rooted: tuple[View | None, bytes] = (None, b"")
        self._lock = threading.RLock()
        self._handed = threading.local()

    @property
    def place(self) -> str:
        """See `BaseBackend.place`."""
        return f"supermemory {self.base_url or DEFAULT_URL}"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.owner!r}, base_url={self.base_url!r})"

    @property
    def api(self) -> str:
        """The API that is spoken, "v5" or "v3"; finding out may ask the service."""
        return self._line.service.api

    def add(self, additions: Sequence[Addition]) -> list[str]:
        """See `Backend.add`."""
        wanted = [canonical.fragment(addition.record) for addition in additions]
        with self._lock:
            first = dict(zip(reversed(wanted), reversed(additions), strict=True))
            ordered = {text: first[text] for text in dict.fromkeys(wanted)}
            view = self._view_for(ordered)
            ids: dict[str, str] = {}
            if view is not None:
                view = self._writable(view, [document_id(text) for text in ordered])
                ids = self._ids_in(view, ordered)
            new = [
                StoredRecord(document_id(text), text, 1, self._writer.sequence(view), one.session, one.time)
                for text, one in ordered.items()
                if text not in ids
            ]
            if view is None:
                self._writer.put(new)
            else:
                self._writer.commit(view, new, [], whole=False)
            ids.update((one.fragment, one.id) for one in new)
        if self._wait and new:
            self.settle()
        return [ids[text] for text in wanted]

    def _view_for(self, texts: Iterable[str]) -> View | None:
        """The namespace; None if it need not be listed, as none of these memories is there."""
        names = [document_id(text) for text in texts]
        if self._mirror.is_known or not self._line.service.knows_own_ids or len(names) > _FEW:
            return self._mirror.look(self._progress)
        if any(self._line.get(name) is not None for name in names):
            return self._mirror.look(self._progress)
        return None

    def _writable(self, view: View, needed: Collection[str] | None) -> View:
        """The namespace after what was left undone is done, and nobody is loading the `needed`."""
        self._settling.tend(view)
        return self._writer.clear_the_way(view, needed)

    def _ids_in(self, view: View, texts: Mapping[str, Addition]) -> dict[str, str]:
        found = {}
        for text, addition in texts.items():
            memory = view.with_identity(document_id(text))
            if memory is not None:
                found[text] = memory.id
                memory = self._settling.fetched(memory)
                if memory.damage is not None:
                    stored = StoredRecord(
                        memory.id, text, memory.copies, memory.sequence, addition.session, addition.time
                    )
                    self._writer.repair(memory, stored)
        return found

    def snapshot(self) -> AbstractContextManager[Snapshot]:
        """See `Backend.snapshot`."""
        return self._viewing()

    @contextlib.contextmanager
    def _viewing(self) -> Iterator[FrozenView]:
        with self._lock:
            view = self._complete(self._look())
            kept, ordered = self._sorted
            if kept is not view:
                ordered = sorted(self._texts(view).values(), key=lambda one: canonical.order_key(one.record))
                self._sorted = view, ordered
            damaged = next((one for one in view.memories.values() if one.damage is not None), None)
        yield FrozenView(Stats(view.records, view.changes), ordered, damaged)

    def replace(
        self,
        records: Iterable[tuple[str, Record]],
        *,
        expected_changes: int | None,
        contexts: Iterable[Context] | None,
        progress: Progress | None,
    ) -> Imported:
        """See `Backend.replace`. All or nothing: an import that breaks off is never seen."""
        texts = [text for text, _ in records]
        told = None if contexts is None else list(contexts)
        if told is not None and len(told) != len(texts):
            raise InputError("the context has not one entry for each record of the blob")
        copies = Counter(texts)
        with self._lock:
            view = self._complete(self._writable(self._look(progress), None), progress)
            if expected_changes is not None and expected_changes != view.changes:
                raise UnanchoredWrites("the memory was written to meanwhile")
            view = self._without_damaged(view)
            there = {one.fragment: one.id for one in self._texts(view).values()}
            plan = [
                _change(memory, copies[text])
                for text, name in there.items()
                if (memory := view.memories[name]).copies != copies[text]
            ]
            new = self._writer.placed(view, there, texts, told)
            self._writer.commit(view, new, plan, whole=True)
            if plan:
                self._writer.finish(self._look())
            imported = Imported(len(texts), self._look().changes)
        if self._wait and new:
            self.settle(progress)
        return imported

    def _without_damaged(self, view: View) -> View:
        """The namespace after memories were deleted that are no longer what was remembered."""
        damaged = [_change(memory, 0) for memory in view.memories.values() if memory.damage is not None]
        if not damaged:
            return view
        self._writer.commit(view, [], damaged, whole=False)
        self._writer.finish(self._look())
        return self._look()

    def remove(self, selection: Selection, *, secure: bool) -> int:  # noqa: ARG002 - the service keeps no copies
        """See `Backend.remove`. Raises `BackendError` if the service kept a document that is forgotten."""
        with self._lock:
            view = self._writable(self._look(), ())
            if selection.id is not None:
                chosen = [view.memories[selection.id]] if selection.id in view.memories else []
            elif selection.everything:
                chosen = list(view.memories.values())
            else:
                view = self._complete(view)
                chosen = [
                    view.memories[name]
                    for name, one in self._texts(view).items()
                    if selection.tag in one.record.tags
                ]
            if not chosen:
                return 0
            self._writer.commit(view, [], [_change(memory, 0) for memory in chosen], whole=True)
            left = self._writer.finish(self._look())
        if left:
            raise BackendError(
                f"the memories are forgotten, but the service has not deleted {left} of the documents yet",
                hint="any later write deletes them; forgetting again is harmless",
            )
        return sum(memory.copies for memory in chosen)

    def candidates(self, query: Query, limit: int) -> Candidates:
        """See `Backend.candidates`. With the service's ranking at most 100, by its search."""
        if self._ranking == "words":
            return self._candidates_by_words(query, limit)
        from mycelium_sdk.backends.supermemory.finding import sought

        hits = self._line.search(query.text) if query.terms else []
        with self._lock:
            fresh = [written.stored for written in self._writer.written.values()]
        found = sought(query, self.owner, hits, fresh, self._fetched)
        self._handed.stored, self._handed.partly = found.stored, found.partly
        return found.candidates

    def _fetched(self, name: str, handle: str | None) -> Memory | None:
        document = self._line.get(name, handle)
        return None if document is None else memory_of(document)

    def _candidates_by_words(self, query: Query, limit: int) -> Candidates:
        with self._lock:
            view = self._complete(self._look())
            if self._words is None:
                from mycelium_sdk.backends.supermemory.words import WordIndex

                self._words = WordIndex(self.owner)
            texts = self._texts(view)
            self._words.follow(texts)
            self._handed.stored, self._handed.partly = texts, {}
            return self._words.candidates(query, limit)

    def records(self, ids: Sequence[str]) -> list[StoredRecord]:
        """See `Backend.records`."""
        # A recall asks for what its search has just shown: another request would show no more.
        handed: dict[str, StoredRecord] = dict(self._handed.__dict__.pop("stored", {}))
        partly: Mapping[str, str | None] = self._handed.__dict__.pop("partly", {})
        if handed.keys() | partly.keys() >= set(ids):
            for name in ids:
                memory = None if name in handed else self._fetched(name, partly[name])
                if memory is not None:
                    refuse_damaged(memory)
                    if memory.stored is not None:
                        handed[name] = memory.stored
            return [handed[name] for name in ids if name in handed]
        with self._lock:
            view = self._complete(self._look())
            for name in ids:
                if name in view.memories:
                    refuse_damaged(view.memories[name])
            texts = self._texts(view)
            return [texts[name] for name in ids if name in texts]

    def ids_of(self, records: Sequence[Record]) -> list[str | None]:
        """See `BaseBackend.ids_of`."""
        with self._lock:
            view = self._look()
            found = (view.with_identity(document_id(identity(record))) for record in records)
            return [None if memory is None else memory.id for memory in found]

    def known_root(self) -> bytes | None:
        """See `BaseBackend.known_root`. A document that went or was edited without a word leaves none."""
        with self._lock:
            view, root = self._rooted
            return root if view is self._look() else None

    def keep_root(self, changes: int, root: bytes) -> None:
        """See `BaseBackend.keep_root`."""
        with self._lock:
            exported = self._sorted[0]
            if exported is not None and exported.changes == changes:
                self._rooted = exported, root

    def stats(self) -> Stats:
        """See `Backend.stats`."""
        with self._lock:
            view = self._look()
            return Stats(view.records, view.changes)

    def check(self, progress: Progress | None = None) -> IntegrityReport:
        """Every document of the namespace, rebuilt and compared with its digest.

        The findings also name what is no memory: other documents in the namespace, imports that were not
        finished, and what still waits to be processed or deleted.
        """
        from mycelium_sdk.backends.supermemory.checking import report

        with self._lock:
            # What was only just listed need not be listed again.
            view = self._look(progress) if self._mirror.unchecked else self._mirror.relist(progress)
            self._mirror.unchecked = False
            given_up = self._settling.tend(view)
            view = self._complete(view, progress)
            return report(view, len(given_up), self._settling.lost)

    def settle(self, progress: Progress | None = None) -> None:
        """Wait until the service has processed what this process wrote.

        Raises `StoreUnavailable` after `wait_seconds`, `BackendError` for what the service failed to process
        again and again. What was written stays in both cases.
        """
        self._settling.wait(self._wait_seconds, progress or self._progress, self._lock)

    def close(self) -> None:
        """See `Backend.close`."""
        self._line.close()
        if self._words is not None:
            self._words.close()

    def _look(self, progress: Progress | None = None) -> View:
        return self._mirror.look(progress or self._progress)

    def _complete(self, view: View, progress: Progress | None = None) -> View:
        return self._settling.complete(view, self._wait_seconds, progress or self._progress)

    def _texts(self, view: View) -> dict[str, StoredRecord]:
        """The memories by id. The service may not show yet what this process has just written."""
        written = self._writer.written
        return {
            name: memory.stored or written[name].stored
            for name, memory in view.memories.items()
            if memory.damage is None
        }


def _change(memory: Memory, copies: int) -> Change:
    return Change(memory.id, memory.sequence, memory.changes, copies)
