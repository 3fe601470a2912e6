"""What a reader of a format gives: one memory with its session and time, checked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mycelium_sdk.errors import InputError
from mycelium_sdk.records import DEFAULT_MAX_RECORD_BYTES, Record, checked_time

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Entry", "Intake", "refused", "timed"]


@dataclass(frozen=True, slots=True)
class Entry:
    """One memory on its way in.

    `time` is in Unix seconds UTC, None where it is not known. `sequence` is its place in the order of
    arrival, None where only its place in the source tells. `exact`: it was exported from a memory, with
    `copies`, and is taken as it is even if `remember` would refuse it.
    """

    record: Record
    session: str | None = None
    time: float | None = None
    sequence: int | None = None
    copies: int = 1
    exact: bool = False


@dataclass(slots=True)
class Intake:
    """What holds for every memory of a source.

    `owner`: whose memory it goes into, which a blob must name. `tags` are added to each. `session` is for
    those that name none; `now`, in Unix seconds, for those whose time the format does not tell.
    `max_record_bytes` limits one memory. `skipped` counts, while a chat is read, messages without text.
    """

    owner: str
    now: float
    tags: tuple[str, ...] = ()
    session: str | None = None
    max_record_bytes: int = DEFAULT_MAX_RECORD_BYTES
    skipped: int = 0

    def entry(
        self,
        place: str,
        content: object,
        tags: Iterable[str] = (),
        *,
        session: str | None = None,
        time: float | None = None,
    ) -> Entry:
        """An entry that `remember` would accept. Raises `InputError`, which names the place, not the text."""
        try:
            record = Record.from_input(content, (*tags, *self.tags), max_bytes=self.max_record_bytes)
        except InputError as error:
            raise refused(place, error.message, error.hint) from None
        return Entry(record, self.session if session is None else session, time)


def refused(place: str, reason: str, hint: str | None = None) -> InputError:
    """The error that says where and why a source cannot be imported, and holds none of its text."""
    return InputError(f"{place}: {reason}; nothing was imported", hint=hint)


def timed(value: object, place: str) -> float | None:
    """Unix seconds, or None for a time that is not known. Raises `InputError`."""
    try:
        return checked_time(value)
    except InputError as error:
        raise refused(place, error.message, error.hint) from None
