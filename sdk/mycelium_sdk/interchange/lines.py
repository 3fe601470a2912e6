"""Bytes as lines of text, with bounded memory, and as JSON values; errors name the line and no text."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NoReturn

from mycelium_sdk.interchange.entries import refused

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

__all__ = ["MAX_LINE_BYTES", "decoded", "json_value", "text_lines"]

MAX_LINE_BYTES = 64 * 1024 * 1024
"""Longer lines are refused: what has none that short is no text."""

_BOM = b"\xef\xbb\xbf"
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")


def text_lines(source: BinaryIO) -> Iterator[tuple[int, str]]:
    r"""Each line with its number, from 1, and without its end, which is `\n` or `\r\n`.

    A byte order mark at the beginning is dropped. Raises `InputError` for what is not UTF-8, holds U+0000,
    or has a line of more than `MAX_LINE_BYTES`.
    """
    number = 0
    while data := source.readline(MAX_LINE_BYTES + 1):
        number += 1
        if len(data) > MAX_LINE_BYTES:
            raise refused(
                f"line {number}", f"it is longer than {MAX_LINE_BYTES} bytes", "is this a text file?"
            )
        text = decoded(data, f"line {number}", first=number == 1)
        yield number, text.removesuffix("\n").removesuffix("\r")


def decoded(data: bytes, place: str, *, first: bool) -> str:
    """The text of UTF-8 bytes; `first`: they may begin with a byte order mark, which is dropped.

    Raises `InputError`.
    """
    if first:
        if data.startswith(_UTF_16):
            raise refused(place, "the file is in UTF-16", "convert it: `iconv -f UTF-16 -t UTF-8`")
        data = data.removeprefix(_BOM)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:  # not chained: the cause holds the text
        raise refused(
            place, "it is not valid UTF-8", "convert the file first, for example with iconv"
        ) from None
    if "\0" in text:
        raise refused(place, "it holds a zero byte, so this is no text file", "give a text file in UTF-8")
    return text


def json_value(text: str, place: str) -> Any:
    """The value of a JSON text. Raises `InputError` for what is none, repeats a key or is not finite."""
    try:
        return json.loads(text, object_pairs_hook=_unique, parse_constant=_no_number)
    except RecursionError:
        raise refused(place, "its JSON is nested too deeply") from None
    except _RepeatedKeyError:
        raise refused(place, "an object has the same key twice", "leave one of them") from None
    except ValueError:  # not chained: the cause holds the text
        raise refused(place, "it is not valid JSON", "check the file, for example with jq") from None


class _RepeatedKeyError(ValueError):
    """An object has a key twice, so that it can be read in two ways."""


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise _RepeatedKeyError
    return found


def _no_number(_: str) -> NoReturn:
    raise ValueError("NaN and infinities are not JSON")
