"""Entity tags over what was anchored, and conditional requests (RFC 9110 sections 8.8.3 and 13.1.2)."""

from __future__ import annotations

import hashlib
import json
import re

__all__ = ["etag_of", "is_current"]

_TAG = re.compile(r'(?:W/)?"([\x21\x23-\x7e\x80-\xff]*)"')
_BETWEEN = re.compile(r"[ \t]*,[ \t,]*|[ \t]*\Z")


def etag_of(state: object) -> str:
    """A weak tag of a JSON value: weak since the same state is answered with another `lag` each time."""
    text = json.dumps(state, allow_nan=False, separators=(",", ":"))
    return f'W/"{hashlib.sha256(text.encode("ascii")).hexdigest()[:32]}"'


def is_current(if_none_match: str | None, etag: str) -> bool:
    """Whether the client says that it has this state. A malformed header says nothing."""
    if if_none_match is None:
        return False
    text = if_none_match.strip(" \t")
    if text == "*":
        return True
    wanted = etag.removeprefix("W/").strip('"')
    place, found = 0, False
    while place < len(text):
        tag = _TAG.match(text, place)
        if tag is None:
            return False
        found = found or tag[1] == wanted
        between = _BETWEEN.match(text, tag.end())
        if between is None:
            return False
        place = between.end()
    return found
