"""Memories as plain text: one for each paragraph, or for each line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mycelium_sdk.interchange.entries import refused
from mycelium_sdk.interchange.lines import text_lines

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

    from mycelium_sdk.interchange.entries import Entry, Intake

__all__ = ["read_text"]


def read_text(source: BinaryIO, intake: Intake, *, by_line: bool) -> Iterator[Entry]:
    """One memory for each paragraph (blank lines separate them), or with `by_line` for each line.

    White space around a memory is dropped, line ends within a paragraph stay. Raises `InputError`.
    """
    paragraph: list[str] = []
    size = start = 0
    for number, line in text_lines(source):
        if line.strip():
            start = start if paragraph else number
            paragraph.append(line)
            size += len(line)
            if size > 4 * intake.max_record_bytes:  # far beyond what can be kept, whatever is trimmed
                raise refused(f"line {start}", "the paragraph is too long for one memory", "try --lines")
        if paragraph and (by_line or not line.strip()):
            yield _entry(paragraph, start, intake)
            paragraph, size = [], 0
    if paragraph:
        yield _entry(paragraph, start, intake)


def _entry(lines: list[str], start: int, intake: Intake) -> Entry:
    return intake.entry(f"line {start}", "\n".join(lines).strip(), time=intake.now)
