"""Reading a method's parameters: each by name, with its type, null and absent being the same.

Parameters that a method does not know are ignored, as Stellar RPC does: newer clients send more than older
servers take.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from .faults import INVALID_PARAMS, RpcFault, invalid_params

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

UINT32_MAX: Final = 2**32 - 1
UINT64_MAX: Final = 2**64 - 1

_DIGITS: Final = re.compile(r"[0-9]{1,20}", re.ASCII)


class Params:
    """The parameters of one call. Every reader raises RpcFault -32602, naming the field, for a value of
    another type."""

    def __init__(self, values: Mapping[str, object], path: str = "") -> None:
        self._values = values
        self._path = path

    @classmethod
    def of(cls, params: object) -> Params:
        """The `params` member of a request: an object, null or nothing; arrays are refused."""
        if params is None:
            return cls({})
        if not isinstance(params, dict):
            raise invalid_params("parameters go by name: send an object, not an array")
        return cls(params)

    def text(self, name: str) -> str | None:
        """A string, or None."""
        value = self._values.get(name)
        if value is not None and not isinstance(value, str):
            raise self._wrong(name, "a string")
        return value

    def required_text(self, name: str) -> str:
        """A string that must be there."""
        value = self.text(name)
        if value is None:
            raise invalid_params(f"{self._path}{name} is missing")
        return value

    def flag(self, name: str) -> bool:
        """True or false; false when unset."""
        value = self._values.get(name)
        if value is not None and not isinstance(value, bool):
            raise self._wrong(name, "true or false")
        return value is True

    def integer(self, name: str, maximum: int = UINT32_MAX) -> int:
        """A whole number from 0 to `maximum`; 0 when unset (Stellar RPC does not tell these two apart)."""
        value = self._values.get(name)
        if value is None:
            return 0
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= maximum:
            raise self._wrong(name, f"a whole number from 0 to {maximum}")
        return value

    def number(self, name: str) -> float | None:
        """A number, or None."""
        value = self._values.get(name)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
            raise self._wrong(name, "a number")
        return value

    def stroops(self, name: str) -> int | None:
        """An amount of up to 64 bits, as a whole number or as its digits (many clients' numbers have only 53
        bits), or None."""
        value = self._values.get(name)
        if isinstance(value, str) and _DIGITS.fullmatch(value):
            value = int(value)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
            raise self._wrong(name, "an amount in stroops: a whole number, or its digits as a string")
        return value

    def group(self, name: str) -> Params:
        """A nested object; an empty one when unset."""
        value = self._values.get(name)
        if value is None:
            return Params({}, f"{self._path}{name}.")
        if not isinstance(value, dict):
            raise self._wrong(name, "an object")
        return Params(value, f"{self._path}{name}.")

    def groups(self, name: str) -> list[Params]:
        """A list of objects; an empty one when unset."""
        found: list[Params] = []
        for index, value in enumerate(self._items(name)):
            if not isinstance(value, dict):
                raise self._wrong(name, "a list of objects")
            found.append(Params(value, f"{self._path}{name}[{index}]."))
        return found

    def texts(self, name: str) -> list[str]:
        """A list of strings; an empty one when unset."""
        return self._strings(name, self._items(name), "a list of strings")

    def text_lists(self, name: str) -> list[list[str]]:
        """A list of lists of strings; an empty one when unset."""
        found: list[list[str]] = []
        for value in self._items(name):
            if not isinstance(value, list):
                raise self._wrong(name, "a list of lists of strings")
            found.append(self._strings(name, value, "a list of lists of strings"))
        return found

    def has(self, name: str) -> bool:
        """Whether the field is there and not null."""
        return self._values.get(name) is not None

    def _items(self, name: str) -> Sequence[object]:
        value = self._values.get(name)
        if value is None:
            return ()
        if not isinstance(value, list):
            raise self._wrong(name, "a list")
        return value

    def _strings(self, name: str, values: Sequence[object], wanted: str) -> list[str]:
        found = [value for value in values if isinstance(value, str)]
        if len(found) != len(values):
            raise self._wrong(name, wanted)
        return found

    def _wrong(self, name: str, wanted: str) -> RpcFault:
        return invalid_params(f"{self._path}{name} must be {wanted}")


def format_problem(params: Params) -> str | None:
    """What is wrong with `xdrFormat`, None when it is unset or "base64".

    Raises RpcFault -32602 for "json", which this server does not speak.
    """
    wanted = params.text("xdrFormat")
    if wanted == "json":
        raise invalid_params(
            'xdrFormat "json" is not supported by this network; leave it out and decode the XDR'
        )
    if wanted in (None, "", "base64"):
        return None
    return f'expected xdrFormat to be "base64", got {wanted!r}'


def check_format(params: Params, code: int = INVALID_PARAMS) -> None:
    """Raise RpcFault `code` for an `xdrFormat` that does not exist, and -32602 for "json"."""
    problem = format_problem(params)
    if problem is not None:
        raise RpcFault(code, problem)
