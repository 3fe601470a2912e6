"""The values that go in and out of a backend."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypedDict

if TYPE_CHECKING:
    from mycelium_sdk.backends.base import Snapshot
    from mycelium_sdk.backends.integrity import IntegrityReport
    from mycelium_sdk.records import Record


class Hit(TypedDict):
    """One answer of `recall`. `score` is in (0, 1], higher is better; `time` is in Unix seconds, UTC."""

    id: str
    content: str
    tags: list[str]
    score: float
    session: str | None
    time: float | None
    sequence: int


Item = str | tuple[str, Iterable[str] | None] | Mapping[str, object]
"""What `remember_many` takes: a text, (text, tags), or a mapping: `content`, and `tags`, `session` and
`time` (Unix seconds, None for not known) or not."""


class Addition(NamedTuple):
    """A record on its way into a backend, already checked. `time` is in Unix seconds, UTC."""

    record: Record
    session: str | None
    time: float | None


@dataclass(frozen=True, slots=True)
class Selection:
    """Which memories to forget: the one with `id`, those with `tag`, or `everything`; exactly one is set."""

    id: str | None = None
    tag: str | None = None
    everything: bool = False


@dataclass(frozen=True, slots=True)
class Stats:
    """`records`: how many records the blob would have (each copy counts). `change_counter` grows with every
    real write, in the transaction that makes it, and never otherwise."""

    records: int
    change_counter: int


class Imported(NamedTuple):
    """`records` of the blob, and the change counter as the import's own transaction left it."""

    records: int
    change_counter: int


class Context(NamedTuple):
    """What a blob does not say of a record: its place in the order of arrival (only the order counts), its
    session, and its time in Unix seconds, UTC."""

    sequence: int
    session: str | None
    time: float | None


Columns = tuple[Sequence[int], Sequence[str | None], Sequence[float | None]]
"""Several `Context`s: their sequences, sessions and times."""


class Contexts(Iterator[Context]):
    """Contexts that come several at a time."""

    def __init__(self, columns: Iterator[Columns]) -> None:
        self._columns = columns
        self._each = itertools.chain.from_iterable(map(Context, *some) for some in columns)

    def __iter__(self) -> Iterator[Context]:
        return self._each

    def __next__(self) -> Context:
        return next(self._each)

    def columns(self) -> Iterator[Columns]:
        """The same in columns, for who needs no `Context` of each; instead of those, not besides."""
        return self._columns


Progress = Callable[[str, int, int | None], None]
"""Called now and then by what may take long: what is being done (one word), how many memories of it are done,
and of how many, where that is known."""


class Export(NamedTuple):
    """The blob in chunks, and the change counter of the state that it shows."""

    chunks: Iterator[bytes]
    change_counter: int


class CheckedExport(NamedTuple):
    """The blob in chunks, the view that it is made from, and a function that gives the answer of `check` once
    the chunks were read to their end."""

    chunks: Iterator[bytes]
    view: Snapshot
    integrity: Callable[[], IntegrityReport]
