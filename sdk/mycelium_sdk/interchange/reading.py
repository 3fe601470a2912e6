"""One reader for each format of an import, by the format's name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mycelium_sdk import canonical
from mycelium_sdk.errors import InputError
from mycelium_sdk.interchange.entries import Entry

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

    from mycelium_sdk.interchange.entries import Intake

__all__ = ["IMPORT_FORMATS", "MAX_BLOB_BYTES", "read_entries"]

IMPORT_FORMATS = ("jsonl", "markdown", "text", "chat", "blob")

MAX_BLOB_BYTES = 1 << 30
"""Limit of a blob: one's own memory (formats.md section 5)."""


def read_entries(
    source: BinaryIO,
    kind: str,
    intake: Intake,
    *,
    by_line: bool = False,
    headings: bool = False,
) -> Iterator[Entry]:
    """The memories in a source of this kind (`IMPORT_FORMATS`), in its order, each checked as it comes.

    `by_line` is for text, `headings` for Markdown. Raises `InputError`, which names the place and none of
    the text; for a blob `NonCanonical`, `WrongOwner` or `LimitExceeded`.
    """
    if kind == "jsonl":
        from mycelium_sdk.interchange.jsonl import read_json_lines

        return read_json_lines(source, intake)
    if kind == "markdown":
        from mycelium_sdk.interchange.markdown import read_markdown

        return read_markdown(source, intake, headings=headings)
    if kind == "text":
        from mycelium_sdk.interchange.plain import read_text

        return read_text(source, intake, by_line=by_line)
    if kind == "chat":
        from mycelium_sdk.interchange.chat import read_chat

        return read_chat(source, intake)
    if kind == "blob":
        return _read_blob(source, intake)
    raise InputError(
        "the format is none that can be imported", hint=f"use one of {', '.join(IMPORT_FORMATS)}"
    )


def _read_blob(source: BinaryIO, intake: Intake) -> Iterator[Entry]:
    """The records as they are; equal ones come one after the other and make one entry."""
    previous, copies = None, 0
    for record in canonical.parse(source, intake.owner, max_bytes=MAX_BLOB_BYTES):
        if record == previous:
            copies += 1
            continue
        if previous is not None:
            yield Entry(previous, intake.session, copies=copies, exact=True)
        previous, copies = record, 1
    if previous is not None:
        yield Entry(previous, intake.session, copies=copies, exact=True)
