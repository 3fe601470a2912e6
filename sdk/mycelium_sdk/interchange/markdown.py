"""Memories as Markdown: each bullet and each paragraph is one.

Not all of Markdown, only what tells where a memory begins and ends: bullets and numbered items at any depth,
their continuation lines, paragraphs, headings, rules, fenced code and tables. Emphasis and links stay as
written.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mycelium_sdk.interchange.entries import refused
from mycelium_sdk.interchange.lines import json_value, text_lines

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import BinaryIO

    from mycelium_sdk.interchange.entries import Entry, Intake
    from mycelium_sdk.records import Record

__all__ = ["BULLET", "HEADING", "bullet", "read_markdown", "survives"]

BULLET = re.compile(r"( *)([-*+]|\d{1,9}[.)])( +|$)")
HEADING = re.compile(r" {0,3}#{1,6}(?: +(.*?))?(?: +#+)? *$")
_RULE = re.compile(r" {0,3}([-*_])(?: *\1){2,} *$")
_UNDERLINE = re.compile(r" {0,3}(?:=+|-+) *$")
_FENCE = re.compile(r" *(`{3,}|~{3,})")
_APART = re.compile(r"`{3,}|~{3,}|\|")
"""What at the beginning of a line is no part of the bullet above: fenced code, a table."""

_TAGS = re.compile(r"\s*<!-- tags: (\[.*\]) -->\s*$")

# A backslash before what would begin something keeps it text; one before a backslash is a backslash.
_ESCAPED = re.compile(r"(\s*)\\([-+*#=_`~<\\])")
_ESCAPED_NUMBER = re.compile(r"(\s*\d{1,9})\\([.)])")
_ESCAPES = re.compile(r"(\s*)([-+*#=_`~<\\])")
_NUMBER = re.compile(r"(\s*\d{1,9})([.)])")
_UNWRITABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


@dataclass(slots=True)
class _Block:
    """A bullet or a paragraph in the making. `column`: where its lines begin; None for a paragraph."""

    start: int
    column: int | None
    heading: str | None
    lines: list[str] = field(default_factory=list)
    tags: tuple[str, ...] = ()
    closed: bool = False


class _Reader:
    """Reads lines one by one and hands out each block as it ends."""

    def __init__(self) -> None:
        self.heading: str | None = None
        self._block: _Block | None = None
        self._blanks = 0
        self._fence: str | None = None

    def take(self, number: int, raw: str) -> _Block | None:
        """The block that this line ends."""
        indent = raw[: len(raw) - len(raw.lstrip(" \t"))].expandtabs(4)
        line = indent + raw.lstrip(" \t")
        block = self._block
        if self._fence is not None and block is not None:
            self._literal(block, line)
            return None
        if not line.strip():
            self._blanks += block is not None
            return None
        if self._blanks and block is not None and (block.column is None or len(indent) < block.column):
            return self._then(block, number, line)
        if block is None or block.closed or self._begins(block, line):
            return self._then(block, number, line)
        self._continue(block, line, len(indent))
        return None

    def end(self) -> _Block | None:
        """The last block."""
        block, self._block = self._block, None
        return block

    def _then(self, ended: _Block | None, number: int, line: str) -> _Block | None:
        """End a block, and begin what the line begins."""
        adjacent = not self._blanks
        self._block, self._blanks = None, 0
        found = HEADING.match(line)
        if found:
            self.heading = (found[1] or "").strip() or None
        elif adjacent and ended is not None and _underlines(line, ended):
            self.heading = ended.lines[0].strip()
            return None
        elif not _RULE.match(line):
            item = BULLET.match(line)
            column = None if item is None else _column(item)
            self._block = _Block(number, column, self.heading)
            self._append(self._block, line if item is None else line[item.end() :])
        return ended

    def _begins(self, block: _Block, line: str) -> bool:
        """Whether a line that follows a block without a blank one begins something else."""
        if HEADING.match(line) or _RULE.match(line) or (block.column is not None and _APART.match(line)):
            return True
        item = BULLET.match(line)
        if item is not None:
            # A number that happens to begin a wrapped line begins no list.
            return block.column is not None or not item[2][0].isdigit() or item[2][:-1] == "1"
        return _underlines(line, block)

    def _continue(self, block: _Block, line: str, indent: int) -> None:
        block.lines.extend([""] * self._blanks)
        self._blanks = 0
        self._append(block, line[min(indent, block.column or 0) :])

    def _append(self, block: _Block, text: str) -> None:
        tags = _TAGS.match(text)
        if tags:
            block.tags, block.closed = _tags(tags[1], f"line {block.start}"), True
            return
        fence = _FENCE.match(text)
        if fence:
            self._fence = fence[1]
        block.lines.append(text if fence else _unescaped(text))

    def _literal(self, block: _Block, line: str) -> None:
        assert self._fence is not None  # noqa: S101 - asked by the caller
        indent = len(line) - len(line.lstrip())
        text = line[min(indent, block.column or 0) :]
        if text.strip().startswith(self._fence) and not text.strip().strip(self._fence[0]):
            self._fence = None
        block.lines.append(text)


def _underlines(line: str, block: _Block) -> bool:
    """Whether the line makes a heading of the one-line paragraph before it."""
    return block.column is None and len(block.lines) == 1 and bool(_UNDERLINE.match(line))


def _column(item: re.Match[str]) -> int:
    """Where the text of an item begins; after more than four spaces it is code, which begins at once."""
    spaces = len(item[3])
    return item.end() - (spaces - 1 if spaces > 4 else 0) + (1 if not spaces else 0)


def _tags(text: str, place: str) -> tuple[str, ...]:
    found = json_value(text, place)
    if not isinstance(found, list) or not all(isinstance(tag, str) for tag in found):
        raise refused(place, "its tags are no list of texts")
    return tuple(found)


def _unescaped(text: str) -> str:
    found = _ESCAPED.match(text) or _ESCAPED_NUMBER.match(text)
    return text if found is None else f"{found[1]}{text[found.start(2) :]}"


def _escaped(text: str) -> str:
    found = _ESCAPES.match(text) or _NUMBER.match(text)
    return text if found is None else f"{found[1]}\\{text[found.start(2) :]}"


def read_markdown(source: BinaryIO, intake: Intake, *, headings: bool) -> Iterator[Entry]:
    """One memory for each bullet and each paragraph; with `headings` each has the heading above as a tag.

    Raises `InputError`.
    """
    reader = _Reader()
    for number, line in text_lines(source):
        block = reader.take(number, line)
        if block is not None:
            yield from _entries(block, intake, headings=headings)
    last = reader.end()
    if last is not None:
        yield from _entries(last, intake, headings=headings)


def _entries(block: _Block, intake: Intake, *, headings: bool) -> Iterator[Entry]:
    content = "\n".join(block.lines).strip()
    if content:
        tags = (*block.tags, block.heading) if headings and block.heading else block.tags
        yield intake.entry(f"line {block.start}", content, tags, time=intake.now)


def bullet(record: Record) -> str:
    """A memory as a bullet, which `read_markdown` reads again; see `survives`.

    Control characters, which Markdown cannot carry, become U+FFFD.
    """
    lines = _UNWRITABLE.sub("\ufffd", record.content).split("\n")
    written = [f"- {_escaped(lines[0])}", *(f"  {_escaped(line)}" if line else "" for line in lines[1:])]
    if record.tags:
        # So written that nothing in a tag can end the comment.
        tags = json.dumps(list(record.tags), ensure_ascii=False).replace(">", "\\u003e")
        written.append(f"  <!-- tags: {_UNWRITABLE.sub(chr(0xFFFD), tags)} -->")
    return "\n".join(written) + "\n"


def survives(record: Record, written: str) -> bool:
    """Whether reading `written`, the bullet of `record`, gives the same content and tags."""
    reader = _Reader()
    blocks = [reader.take(number, line) for number, line in enumerate(_lines(written), 1)]
    found = [block for block in (*blocks, reader.end()) if block is not None]
    return [("\n".join(block.lines).strip(), block.tags) for block in found] == [
        (record.content, record.tags)
    ]


def _lines(text: str) -> Iterable[str]:
    return text.removesuffix("\n").split("\n")
