"""Text from stdin, where `-` stands in for an argument."""

from __future__ import annotations

import sys

from mycelium_sdk.errors import InputError
from mycelium_sdk.records import DEFAULT_MAX_RECORD_BYTES

__all__ = ["text_argument"]


def text_argument(argument: str, what: str) -> str:
    """`argument`, or what stdin holds if it is `-`, without the one line end that `echo` adds.

    Raises:
        InputError: stdin is closed, not UTF-8, or longer than a record may be.
    """
    if argument != "-":
        return argument
    if sys.stdin is None:
        raise InputError(f"{what} should come from stdin, which is closed", hint="pipe the text in")
    data = sys.stdin.buffer.read(DEFAULT_MAX_RECORD_BYTES + 3)
    if len(data) > DEFAULT_MAX_RECORD_BYTES + 2:
        raise InputError(
            f"the text on stdin is longer than {DEFAULT_MAX_RECORD_BYTES} bytes",
            hint="split it into several memories",
        )
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        # Not chained: the cause holds the text.
        raise InputError(
            "the text on stdin is not valid UTF-8", hint="convert it first, for example with iconv"
        ) from None
    return text.removesuffix("\n").removesuffix("\r")
