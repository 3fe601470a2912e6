"""The values that go in and out of a backend."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypedDict

if TYPE_CHECKING:
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
"""What `remember_many` takes: a text, (text, tags), or a mapping: `content`, and `tags`, `session` or not."""


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


Progress = Callable[[str, int, int | None], None]
"""Called now and then by what may take long: what is being done (one word), how many memories of it are done,
and of how many, where that is known."""


class Export(NamedTuple):
    """The blob in chunks, and the change counter of the state that it shows."""

    chunks: Iterator[bytes]
    change_counter: int
