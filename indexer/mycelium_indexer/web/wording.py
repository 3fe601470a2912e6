"""How numbers, moments and other people's strings are written for people to read."""

from __future__ import annotations

from datetime import UTC, datetime

from mycelium_sdk.errors import UntrustedSource
from mycelium_sdk.fetching.policy import FetchPolicy
from mycelium_sdk.fetching.urls import parse_https

__all__ = [
    "ages",
    "clock_time",
    "day",
    "duration",
    "is_moment",
    "is_safe_link",
    "moment",
    "printable",
    "short",
]

_ANY_PORT = FetchPolicy(ports=None)
_LAST_MOMENT = 253_402_300_799
"""9999-12-31 23:59:59 UTC: a contract that is not ours may claim any 64-bit number as its time."""


def printable(text: str) -> str:
    """The text with what is not seen written as escapes: controls, and marks that reverse or join text, with
    which one address is made to look like another."""
    return "".join(char if char.isprintable() else _escape(char) for char in text)


def _escape(char: str) -> str:
    code = ord(char)
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def short(text: str, most: int = 96) -> str:
    """At most `most` characters, an ellipsis for the rest."""
    return text if len(text) <= most else text[: most - 1] + "…"


def is_safe_link(uri: str | None) -> bool:
    """Whether a page may link to it: an https URL that every program reads alike."""
    if uri is None:
        return False
    try:
        parse_https(uri, _ANY_PORT)
    except UntrustedSource:
        return False
    return True


def is_moment(seconds: int | None) -> bool:
    """Whether these Unix seconds can be written as a date."""
    return seconds is not None and 0 <= seconds <= _LAST_MOMENT


def moment(seconds: int) -> str:
    """Unix seconds as date and time in UTC; a number that is no date stays a number."""
    if not is_moment(seconds):
        return f"{seconds} (Unix seconds)"
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S} UTC"


def day(seconds: int) -> str:
    """Unix seconds, which must be a moment, as a date in UTC."""
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d}"


def clock_time(seconds: int) -> str:
    """Unix seconds, which must be a moment, as date, hour and minute in UTC."""
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M}"


def duration(seconds: float) -> str:
    """Seconds in the largest unit that still says enough; `refresh.js` writes them alike."""
    whole = max(0, int(seconds))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min"
    if whole < 48 * 3600:
        return f"{whole // 3600} h"
    return f"{whole // 86400} days"


def ages(seconds: int | None, now: float) -> str | None:
    """How long ago that was, None for what is no moment."""
    return None if seconds is None or not is_moment(seconds) else f"{duration(now - seconds)} ago"
