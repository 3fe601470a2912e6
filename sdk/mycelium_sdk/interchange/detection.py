"""Which format a source is in, told from how it begins and how it is called."""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass

from mycelium_sdk.errors import InputError
from mycelium_sdk.interchange.markdown import BULLET, HEADING

__all__ = ["HEAD_BYTES", "Detected", "detect"]

HEAD_BYTES = 64 * 1024
"""So much of a source is looked at."""

_WORDS = {
    "jsonl": "JSON lines",
    "markdown": "Markdown",
    "text": "plain text",
    "chat": "a chat",
    "blob": "a blob",
}
_CHAT_KEYS = {"role", "messages", "chat_messages", "mapping", "sender", "author", "conversations"}
_JSON = re.compile(r"\{|\[\s*[{\[\]]")
"""A list in brackets may be a footnote's number or a link, so more than the bracket is looked at."""

_BY_SUFFIX = {".md": "markdown", ".markdown": "markdown", ".txt": "text", ".text": "text"}


@dataclass(frozen=True, slots=True)
class Detected:
    """A format and what made it out."""

    format: str
    because: str

    def __str__(self) -> str:
        return f"read as {_WORDS[self.format]}, since {self.because}"


def detect(head: bytes, name: str = "") -> Detected:
    """The format of a source that begins with `head` (the first `HEAD_BYTES`), and is called `name` if it has
    a name.

    What looks like JSON is never taken for text: it is one of the JSON formats, or refused. Raises
    `InputError`, which says how to name the format.
    """
    text = head.decode("utf-8", "replace").removeprefix("\ufeff")
    beginning = text.lstrip()
    if beginning.startswith('{"owner":"'):
        return Detected("blob", "it begins with an owner, as a canonical blob does")
    whole = len(head) < HEAD_BYTES
    if _JSON.match(beginning) or (whole and beginning[:1] == "[" and _value(beginning) is not None):
        return _json_format(beginning, whole=whole)
    suffix = os.path.splitext(name)[1].lower()  # noqa: PTH122 - no path, only a name
    if suffix in {".jsonl", ".ndjson", ".json"} and beginning:
        raise _unknown("its name says JSON, and it does not begin like JSON")
    if suffix in _BY_SUFFIX:
        return Detected(_BY_SUFFIX[suffix], f"its name ends in {suffix}")
    lines = [line for line in text.split("\n")[:200] if line.strip()]
    if lines and (BULLET.match(lines[0]) or HEADING.match(lines[0])) and any(map(BULLET.match, lines)):
        return Detected("markdown", "it begins with a bullet or a heading")
    return Detected("text", "it begins like none of the others")


def _json_format(beginning: str, *, whole: bool) -> Detected:
    line, end, _ = beginning.partition("\n")
    first = _value(line) if end or whole else None
    if beginning.startswith('{"content":') and not (end or whole):
        return Detected("jsonl", "it begins with an object with a content")
    if isinstance(first, dict) and "content" in first and not first.keys() & _CHAT_KEYS:
        return Detected("jsonl", "its first line is an object with a content")
    value = first if first is not None or not whole else _value(beginning)
    if value == []:
        return Detected("chat", "it is an empty JSON list")
    sample = value[0] if isinstance(value, list) else value
    keys = (
        sample.keys() if isinstance(sample, dict) else {key for key in _CHAT_KEYS if f'"{key}"' in beginning}
    )
    if keys & _CHAT_KEYS:
        return Detected("chat", "it is JSON with messages")
    raise _unknown("it is JSON of a shape that is not known")


def _value(text: str) -> object:
    try:
        value: object = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value


def _unknown(reason: str) -> InputError:
    return InputError(
        f"the format cannot be told: {reason}; nothing was imported",
        hint="name it with --format; `jq -c '.[]'` makes JSON lines of a list",
    )
