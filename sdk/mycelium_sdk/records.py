"""The value type of a memory: a record, accepted from a caller or read from a blob."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from mycelium_sdk.errors import InputError

DEFAULT_MAX_RECORD_BYTES = 1024 * 1024
"""Default limit of one record: bytes of UTF-8, content and tags together."""


_EARLIEST, _LATEST = -62_135_596_800, 253_402_300_800
"""Years 1 to 9999, which every calendar can show, in Unix seconds."""


@dataclass(frozen=True, slots=True)
class Record:
    """One remembered thing. Its identity is its content and its tags.

    `tags` are sorted by code point. A record made by `from_input` has distinct, non-empty tags and a
    non-empty content; one parsed from a canonical blob may break those rules, since older blobs do
    (formats.md section 1).
    """

    content: str
    tags: tuple[str, ...] = ()

    @classmethod
    def from_input(
        cls, content: object, tags: object = None, *, max_bytes: int = DEFAULT_MAX_RECORD_BYTES
    ) -> Record:
        """Accept a record from a caller, or raise `InputError` (formats.md section 1, "Accepting input").

        `tags` is a list, tuple, set or other iterable of strings, or None; order and repeats do not matter.
        `max_bytes` limits the UTF-8 of content and tags together. No error repeats any of the text.
        """
        text = _accept(content, "the content")
        names = sorted({_accept(tag, "a tag") for tag in _each(tags)})
        size = sum(len(part.encode("utf-8")) for part in (text, *names))
        if size > max_bytes:
            raise InputError(
                f"the record has {size} bytes of text; the limit is {max_bytes}",
                hint="split the text into several memories",
            )
        return cls(text, tuple(names))


def checked_time(time: object) -> float | None:
    """When a memory was first known, in Unix seconds of the years 1 to 9999, or None for not known.

    Raises `InputError` for anything else.
    """
    if time is None:
        return None
    if isinstance(time, bool) or not isinstance(time, (int, float)):
        raise InputError(f"the time is {_kind(time)} instead of a number", hint="give Unix seconds")
    if not _EARLIEST <= time < _LATEST:  # nor is NaN
        raise InputError("the time is not within the years 1 to 9999", hint="give Unix seconds")
    return float(time)


def _each(tags: object) -> Iterable[object]:
    if tags is None:
        return ()
    if isinstance(tags, (str, bytes)):
        raise InputError(
            "tags is one string instead of a list of strings",
            hint='write tags=["one", "two"], also for a single tag',
        )
    if not isinstance(tags, Iterable) or isinstance(tags, Mapping):
        raise InputError(
            f"tags is {_kind(tags)} instead of a list of strings", hint='write tags=["one", "two"]'
        )
    return tags


def _accept(text: object, what: str) -> str:
    if not isinstance(text, str):
        raise InputError(f"{what} is {_kind(text)} instead of a string", hint="give text")
    if not text:
        raise InputError(f"{what} is empty", hint="give at least one character")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:  # not chained: the cause holds the text
        raise InputError(
            f"{what} holds a lone surrogate, which is not text",
            hint="decode the source with the right encoding, e.g. UTF-8, before remembering it",
        ) from None
    return str.__str__(text)  # without what a subclass may add or override


def _kind(value: object) -> str:
    return "None" if value is None else f"of type {type(value).__name__}"
