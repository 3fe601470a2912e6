"""The backend seam: the eight methods that an implementer writes.

They are over values, and know nothing of roots, blobs, ranking or chains.
"""

from __future__ import annotations

import abc
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from contextlib import AbstractContextManager

    from mycelium_sdk.backends.arguments import Query
    from mycelium_sdk.backends.scoring import Candidates
    from mycelium_sdk.backends.values import Addition, Context, Imported, Progress, Selection, Stats
    from mycelium_sdk.records import Record
    from mycelium_sdk.stored import StoredRecord

__all__ = ["Backend", "Snapshot"]


class Snapshot(Protocol):
    """One unchanging view of a store, in canonical order. Each iteration may be made once."""

    @property
    def stats(self) -> Stats: ...

    def fragments(self) -> Iterator[tuple[str, int]]:
        """What a blob is made of: (text, copies). A text is a memory's fragment, or several fragments joined
        by commas, which is quicker, where each of them occurs once."""
        ...

    def stored(self) -> Iterator[StoredRecord]:
        """Every memory with its id, sequence, session and time."""
        ...


class Backend(Protocol):
    """What an implementer writes. All methods may be called from many threads, by many processes at once."""

    @abc.abstractmethod
    def add(self, additions: Sequence[Addition]) -> list[str]:
        """Add all or none; one id for each, in their order.

        A record whose content and set of tags are there already gives the id it has (the lowest, where an
        imported blob left several) and changes nothing. If nothing was new the change counter stays. When
        this returns, the records outlive the process.
        """

    @abc.abstractmethod
    def snapshot(self) -> AbstractContextManager[Snapshot]:
        """A view that later writes do not change; held until the context ends."""

    @abc.abstractmethod
    def replace(
        self,
        records: Iterable[tuple[str, Record]],
        *,
        expected_changes: int | None,
        contexts: Iterable[Context] | None,
        progress: Progress | None,
    ) -> Imported:
        """Replace everything by these (fragment, record) pairs, which come in canonical order.

        Equal neighbours are copies of one memory. The iterable raises if the blob turns out bad, even at its
        very end: nothing has changed then. Memories that were there before keep id, sequence, session and
        time; others get new sequences: in the order they come, or of `contexts`, which has one entry for each
        pair and gives their sessions and times as well (copies take the first one's). Raises
        `UnanchoredWrites`, changing nothing, if `expected_changes` is not None and not the change counter.
        """

    @abc.abstractmethod
    def remove(self, selection: Selection, *, secure: bool) -> int:
        """Forget what is selected and everything derived from it; how many records that were, with copies.

        With `secure` no file of the store holds the text afterwards, also not from an earlier `remove`.
        """

    @abc.abstractmethod
    def candidates(self, query: Query, limit: int) -> Candidates:
        """At least the first `limit` memories that match, in an order that depends on query and state only;
        all that match, if they are fewer. A memory matches that has one of the query's terms, or stands just
        before or after one in a coherent run (`scoring.Candidates`); with an embedder every memory that
        passes the filters does. Never stale: shows every write that was
        acknowledged before the call.
        """

    @abc.abstractmethod
    def records(self, ids: Sequence[str]) -> list[StoredRecord]:
        """The memories with these ids, in this order; those that are not there (any more) are left out.

        Raises `Tampered` if the store can tell that one of them was changed behind its back.
        """

    @abc.abstractmethod
    def stats(self) -> Stats:
        """Size and change counter now."""

    @abc.abstractmethod
    def close(self) -> None:
        """Let go of everything; harmless when repeated."""
