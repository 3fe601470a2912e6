"""What every backend offers, in one and the same way, over what an implementer writes: see `seam`.

`BaseBackend` adds the public interface once and finally, so that no backend can get identity of input, the
blob or the ranking wrong. `mycelium_sdk.testing.backend_conformance` states what all of them must do.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Self, final

from mycelium_sdk import canonical
from mycelium_sdk.backends.arguments import Query, checked_count, checked_query, checked_session, checked_text
from mycelium_sdk.backends.extras import Extras
from mycelium_sdk.backends.seam import Backend, Snapshot
from mycelium_sdk.backends.values import (
    Addition,
    CheckedExport,
    Context,
    Export,
    Hit,
    Imported,
    Item,
    Progress,
    Selection,
    Stats,
)
from mycelium_sdk.errors import InputError, Tampered
from mycelium_sdk.records import DEFAULT_MAX_RECORD_BYTES, Record, checked_time
from mycelium_sdk.strkey import check_account

if TYPE_CHECKING:
    from types import TracebackType

    from mycelium_sdk.stored import StoredRecord

__all__ = [
    "Addition",
    "Backend",
    "BaseBackend",
    "CheckedExport",
    "Context",
    "Export",
    "Hit",
    "Imported",
    "Item",
    "Progress",
    "Query",
    "Selection",
    "Snapshot",
    "Stats",
]

DEFAULT_MAX_BLOB_BYTES = 1 << 30
"""Default limit of an imported blob: one's own memory, 1 GiB (formats.md section 5)."""

_MOST = (1 << 31) - 1
"""No store holds more memories; every database can count so far."""


class BaseBackend(Backend, Extras):
    """Base class of every backend: the public interface over the methods of `Backend`.

    `owner` is the account (G...) that the memory belongs to. `max_record_bytes` limits one remembered record
    (UTF-8 of content and tags together). Errors: `InputError` for what cannot be accepted, before anything is
    written; `BackendError` and its kinds for the store.
    """

    def __init__(self, owner: str, *, max_record_bytes: int = DEFAULT_MAX_RECORD_BYTES) -> None:
        self.owner = check_account(owner)
        self.max_record_bytes = max_record_bytes
        self._root: tuple[int, bytes] | None = None

    @final
    def remember(self, content: str, tags: Iterable[str] | None = None, session: str | None = None) -> str:
        """Keep a text; its id. An equal memory (content and set of tags) keeps its id and nothing changes."""
        return self.remember_many([{"content": content, "tags": tags}], session=session)[0]

    @final
    def remember_many(self, items: Iterable[Item], session: str | None = None) -> list[str]:
        """Keep many at once, all or none; their ids, in order. `session` is for items that name none.

        A mapping may say when it was first known: `time` in Unix seconds, None for not known, now where it
        is left out.
        """
        if isinstance(items, (str, bytes, Mapping)):
            raise InputError("remember_many takes a list of memories", hint="put the single one into a list")
        default = checked_session(session)
        now = time.time()
        additions = [self._addition(item, default, now) for item in items]
        return self.add(additions) if additions else []

    def _addition(self, item: Item, session: str | None, now: float) -> Addition:
        content, tags = item, None  # type: object, object
        known: float | None = now
        if isinstance(item, tuple):
            if len(item) != 2:
                raise InputError("a tuple given to remember_many is not (content, tags)")
            content, tags = item
        elif isinstance(item, Mapping):
            unknown = set(item) - {"content", "tags", "session", "time"}
            if unknown or "content" not in item:
                raise InputError(
                    "a mapping given to remember_many has other keys than content, tags, session and time",
                    hint="content is required, the others may be left out",
                )
            content, tags = item["content"], item.get("tags")
            own = item.get("session")
            session = session if own is None else checked_session(own)
            known = checked_time(item["time"]) if "time" in item else now
        return Addition(Record.from_input(content, tags, max_bytes=self.max_record_bytes), session, known)

    @final
    def recall(
        self,
        query: str,
        k: int = 5,
        tags: Iterable[str] | None = None,
        session: str | None = None,
        offset: int = 0,
    ) -> list[Hit]:
        """The `k` memories after the first `offset` that match the query best, best first.

        `query` is text, never syntax; a blank one gives an empty list. `k`, `offset`: ints of at least 0; a
        `k` beyond the matches gives all of them. `tags`: only memories that have all of these. `session`:
        only memories of that session. The order is stable, so pages fit together while nothing is written.
        """
        limit, start = checked_count(k, "k"), checked_count(offset, "offset")
        question = checked_query(query, tags, session)
        if question is None or limit == 0:
            return []
        from mycelium_sdk.backends import scoring

        wanted = min(start + limit, _MOST)
        rounded = -(-wanted // scoring.POOL) * scoring.POOL
        ranked = scoring.rank(question.terms, self.candidates(question, min(rounded, _MOST)))
        scores = {candidate.id: score for candidate, score in ranked[start:wanted]}
        hits: list[Hit] = []
        for stored in self.records(list(scores)):
            record = stored.record
            if not _fits(question, stored, record):  # what a store filters by can be edited behind its back
                raise Tampered(f"memory {stored.id} was found by a tag or session that it does not have")
            hits.append(_hit(stored, record, scores[stored.id]))
        return hits

    @final
    def all_records(self) -> list[StoredRecord]:
        """Every memory, in canonical order. For very many use `iter_records`."""
        return list(self.iter_records())

    @final
    def iter_records(self) -> Iterator[StoredRecord]:
        """Every memory, in canonical order, from one unchanging view that is held until the iteration
        ends."""
        with self.snapshot() as view:
            yield from view.stored()

    @final
    def count(self) -> int:
        """How many records there are. Each copy counts, where an imported blob holds equal records."""
        return self.stats().records

    @final
    def change_counter(self) -> int:
        """A number that grows with every real write, by any process, and never otherwise."""
        return self.stats().change_counter

    @final
    def forget(
        self,
        id: str | None = None,  # noqa: A002 - the name users know
        *,
        tag: str | None = None,
        secure: bool = False,
    ) -> int:
        """Forget the memory with this id, or all that have this tag; how many records that were.

        An unknown id or tag forgets nothing and gives 0. `secure`: afterwards the text is in none of the
        store's files; it costs a rewrite of the store.
        """
        if (id is None) == (tag is None):
            raise InputError("forget takes either an id or a tag", hint="recall gives ids and tags")
        for value, name in ((id, "the id"), (tag, "the tag")):
            if value is not None:
                checked_text(value, name)
        return self.remove(Selection(id=id, tag=tag), secure=secure)

    @final
    def clear(self, *, secure: bool = False) -> int:
        """Forget everything; how many records that were."""
        return self.remove(Selection(everything=True), secure=secure)

    @final
    @contextlib.contextmanager
    def export(self) -> Iterator[Export]:
        """The canonical blob in chunks, with the change counter it belongs to: one view, exported once.

        `with backend.export() as (chunks, change_counter): ...`; the chunks can be read inside the block
        only.
        """
        with self.snapshot() as view:
            yield Export(canonical.write_blob(self.owner, view.fragments()), view.stats.change_counter)

    @final
    def iter_blob(self) -> Iterator[bytes]:
        """The canonical blob in chunks, from one unchanging view that is held until the iteration ends."""
        with self.export() as (chunks, _):
            yield from chunks

    @final
    def export_blob(self) -> bytes:
        """The canonical blob of all records (formats.md section 1)."""
        return b"".join(self.iter_blob())

    @final
    def root(self) -> bytes:
        """SHA-256 of the blob, 32 bytes; that of an unchanged store is kept, by its change counter.

        So an edit of the store's files does not show here: what verifies computes it from `export`.
        """
        known = self.known_root()
        if known is not None:
            return known
        with self.export() as (chunks, changes):
            root = canonical.root(chunks)
        self.keep_root(changes, root)
        return root

    @final
    def import_blob(
        self,
        blob: canonical.Source,
        *,
        max_bytes: int = DEFAULT_MAX_BLOB_BYTES,
        progress: Progress | None = None,
    ) -> int:
        """Replace everything by the records of a canonical blob of this owner, all or nothing; how many those
        are.

        `blob` is bytes, a binary file or an iterable of chunks. Raises `NonCanonical`, `WrongOwner` or
        `LimitExceeded` with nothing changed.
        """
        return self.load(blob, max_bytes=max_bytes, progress=progress).records

    @final
    def load(
        self,
        blob: canonical.Source,
        *,
        max_bytes: int = DEFAULT_MAX_BLOB_BYTES,
        expected_changes: int | None = None,
        digest: canonical.BlobDigest | None = None,
        contexts: Iterable[Context] | None = None,
        progress: Progress | None = None,
    ) -> Imported:
        """`import_blob` for callers that keep state about the store.

        Raises `UnanchoredWrites`, with nothing changed, if `expected_changes` is given and the store was
        written to since its change counter was that. `digest`, if given, hashes the blob in the same pass.
        `contexts`: for each record of the blob, in its order, what the blob does not say; for records that
        are new here. Raises `InputError`, with nothing changed, if those are more or fewer.
        """
        pairs = canonical.parse_fragments(blob, self.owner, max_bytes=max_bytes, digest=digest)
        return self.replace(pairs, expected_changes=expected_changes, contexts=contexts, progress=progress)

    # -- what a store may do better: besides `Extras`

    @property
    def place(self) -> str:
        """Where the memories are, in words for a person that also tell two stores apart; never a secret."""
        return type(self).__name__

    def ids_of(self, records: Sequence[Record]) -> list[str | None]:
        """The id that each of these has here, as `remember` would give it, None if it is not here.

        This looks at every memory; a store with a quicker way overrides it.
        """
        from mycelium_sdk.backends import lookups

        with self.snapshot() as view:
            return lookups.ids_of(view.stored(), records)

    def ids_of_digests(self, digests: Collection[bytes]) -> Mapping[bytes, str]:
        """The ids of the memories whose fragments have these SHA-256 digests, as far as they are here.

        This looks at every memory; a store with a quicker way overrides it.
        """
        from mycelium_sdk.backends import lookups

        with self.snapshot() as view:
            return lookups.ids_of_digests(view.stored(), digests)

    @contextlib.contextmanager
    def export_checked(self, progress: Progress | None = None) -> Iterator[CheckedExport]:
        """The canonical blob in chunks, the one view that it is made from, and what `check` says, to be asked
        for once the chunks were read; all inside the block only.

        A store that vouches for its rows overrides it, so that what it says is of this very view, and every
        row is read once.
        """
        with self.snapshot() as view:
            chunks = canonical.write_blob(self.owner, view.fragments())
            yield CheckedExport(chunks, view, lambda: self.check(progress))

    def known_root(self) -> bytes | None:
        """What `keep_root` kept for the change counter as it is now."""
        kept = self._root
        return kept[1] if kept is not None and kept[0] == self.stats().change_counter else None

    def keep_root(self, changes: int, root: bytes) -> None:
        """Keep the root of the state with this change counter."""
        self._root = changes, root

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _fits(query: Query, stored: StoredRecord, record: Record) -> bool:
    return query.session in {None, stored.session} and set(query.tags).issubset(record.tags)


def _hit(stored: StoredRecord, record: Record, score: float) -> Hit:
    return {
        "id": stored.id,
        "content": record.content,
        "tags": list(record.tags),
        "score": score,
        "session": stored.session,
        "time": stored.time,
        "sequence": stored.sequence,
    }
