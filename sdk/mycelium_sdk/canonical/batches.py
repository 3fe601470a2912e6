"""Many records of a canonical blob at once: from their text to columns of contents and tags.

Texts without escapes stand for themselves, and are taken as they are; each of the others must be what the
encoder makes of what it says. Whatever is not exactly canonical is not taken, and `parsing` says why.
"""

from __future__ import annotations

import json
import re
from json.encoder import encode_basestring_ascii
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

_BEFORE, _BETWEEN, _AFTER = '{"content":"', '","tags":[', "]}"
_NEXT = '},{"content":'
"""Where one record ends and another begins. No text of a record holds it: quotes are escaped there."""

# What a string is of: characters that canonical JSON writes as they are, and escapes. Possessive, so that
# nothing is remembered for backtracking; but for the list of tags, see `parsing`.
_BODY = r"[ !#-\[\]-~]*+(?:\\.[ !#-\[\]-~]*+)*+"
_TAGS = rf'(?:"{_BODY}"(?:,"{_BODY}")*)?'
_records = re.compile(
    rf"{re.escape(_BEFORE)}({_BODY}){re.escape(_BETWEEN)}({_TAGS}){re.escape(_AFTER)},", re.DOTALL
)
_ENCLOSING = len(_BEFORE + _BETWEEN + _AFTER + ",")

_string = json.JSONDecoder().raw_decode
_SURROGATE = "\\ud"
_SEVERAL = 2


class Batch(NamedTuple):
    """Consecutive records of a blob, in columns. `parts`: the text of each one's content, without its quotes,
    and of its tags, as the blob has them."""

    contents: Sequence[str]
    tags: Sequence[tuple[str, ...]]
    parts: Sequence[tuple[str, str]]

    def fragments(self) -> list[str]:
        """The fragments of the records."""
        return [f"{_BEFORE}{content}{_BETWEEN}{tags}{_AFTER}" for content, tags in self.parts]


def parts_of(fragment: str) -> tuple[str, str]:
    """The parts of a canonical fragment, see `Batch`."""
    content, tags = fragment[len(_BEFORE) : -len(_AFTER)].split(_BETWEEN, 1)
    return content, tags


def quick_batch(text: str, start: int) -> tuple[Batch | None, int]:
    """The records from `start` up to the last one that begins in the text, and the place where that one does.

    None if none comes before it, or if what does is not all canonical, apart from the order of records.
    """
    end = text.rfind(_NEXT, start) + 2  # after the comma
    found = _records.findall(text, start, end) if end > start else []
    if not found:
        return None, start
    contents, tags = zip(*found, strict=True)
    # What was found is as long as all of the text, so nothing else is in between.
    if sum(map(len, contents)) + sum(map(len, tags)) + _ENCLOSING * len(found) != end - start:
        return None, start
    try:
        if text.find("\\", start, end) >= 0:
            contents = tuple([part if "\\" not in part else _unescaped(part) for part in contents])
        return Batch(contents, _tags_of(tags), found), end
    except ValueError:
        return None, start


def _unescaped(part: str) -> str:
    """What a string says. Raises `ValueError` if it is not written the canonical way."""
    quoted = f'"{part}"'
    text: str = _string(quoted)[0]
    if encode_basestring_ascii(text) != quoted:
        raise ValueError
    if _SURROGATE in part:  # lone ones are encoded again as they were
        text.encode("utf-8")
    return text


def _tags_of(texts: Sequence[str]) -> Sequence[tuple[str, ...]]:
    """What the lists of tags say. Raises `ValueError` if one is not written the canonical way."""
    if not any(texts):
        return ((),) * len(texts)
    return [_tags(text) if text else () for text in texts]


def _tags(text: str) -> tuple[str, ...]:
    if "\\" in text:
        tags: list[str] = json.loads(f"[{text}]")
        if ",".join(map(encode_basestring_ascii, tags)) != text:
            raise ValueError
        if _SURROGATE in text:
            "".join(tags).encode("utf-8")
    else:
        tags = text[1:-1].split('","')
    if len(tags) >= _SEVERAL and tags != sorted(tags):
        raise ValueError
    return tuple(tags)
