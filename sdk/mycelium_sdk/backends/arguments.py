"""What callers of a backend may ask: arguments of the public interface, checked, and the query they make."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from mycelium_sdk.errors import InputError


@dataclass(frozen=True, slots=True)
class Query:
    """What to look for. `terms` are the analyzer's, `text` is for embedders; a memory must have all of `tags`
    and, unless `session` is None, have been remembered in that session."""

    terms: tuple[str, ...]
    text: str
    tags: tuple[str, ...] = ()
    session: str | None = None


def checked_count(value: object, name: str) -> int:
    """An int of at least 0; a bool or a float is none."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise InputError(
            f"{name} is {_kind(value)} instead of an int", hint=f"{name} is an int of at least 0"
        )
    if value < 0:
        raise InputError(f"{name} is below 0", hint=f"{name} is an int of at least 0")
    return value


def checked_text(value: object, name: str) -> str:
    """A string that is text, i.e. has a UTF-8 encoding."""
    if not isinstance(value, str):
        raise InputError(f"{name} is {_kind(value)} instead of a string", hint="give a str")
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        raise InputError(
            f"{name} holds a lone surrogate, which is not text",
            hint="decode the source with the right encoding, e.g. UTF-8",
        ) from None
    return value


def checked_session(session: object) -> str | None:
    """A name that is not empty, or None."""
    if session is None:
        return None
    if not checked_text(session, "the session"):
        raise InputError("the session is empty", hint="leave it out, or give it a name")
    return str(session)


def checked_query(query: object, tags: object, session: object) -> Query | None:
    """The question, or None for a blank one."""
    text = checked_text(query, "the query")
    if tags is None:
        wanted: tuple[str, ...] = ()
    elif isinstance(tags, (str, bytes)) or not isinstance(tags, Iterable):
        raise InputError(
            "tags is not a list of strings", hint='write tags=["one", "two"], also for a single tag'
        )
    else:
        wanted = tuple(sorted({checked_text(tag, "a tag") for tag in tags}))
    of = checked_session(session)
    if not text.strip():
        return None
    from mycelium_sdk.backends.text import query_terms

    return Query(query_terms(text), text, wanted, of)


def _kind(value: object) -> str:
    name = type(value).__name__
    return f"{'an' if name[0].lower() in 'aeiou' else 'a'} {name}"
