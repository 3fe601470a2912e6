"""What a value of the configuration must be: one small parser for each kind of value.

A parser takes the value, and whether it came as text (an environment variable, an option) rather than typed
(TOML). It returns the value that the configuration holds, or raises `BadValue`; the caller knows the key and
adds its name. Values that may hold a credential, such as URLs, are never repeated in a problem.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

from mycelium_sdk.strkey import is_account, is_contract

Parser = Callable[[object, bool], object]


class BadValue(ValueError):  # noqa: N818 - never leaves the configuration
    """A value that its key does not take: the problem, and what to write instead."""

    def __init__(self, problem: str, hint: str) -> None:
        super().__init__(problem)
        self.hint = hint


def nearest(name: str, names: tuple[str, ...]) -> str | None:
    """The one of `names` that `name` was probably meant to be."""
    import difflib

    return next(iter(difflib.get_close_matches(name, names, n=1, cutoff=0.6)), None)


def text(value: object, _as_text: bool) -> str:
    """A string that is not empty."""
    if not isinstance(value, str):
        raise BadValue(f"must be a string, not {_kind(value)}", "put the value in quotes")
    if not value.strip():
        raise BadValue("is empty", "give a value, or leave it out")
    return value


def one_of(*names: str) -> Parser:
    """One of the names."""

    def parse(value: object, as_text: bool) -> str:
        name = text(value, as_text)
        if name in names:
            return name
        close = nearest(name.lower(), names)
        raise BadValue(
            f"is {name!r}, which is none of {', '.join(names)}",
            f"did you mean {close!r}?" if close else f"use one of {', '.join(names)}",
        )

    return parse


def http_url(value: object, as_text: bool) -> str:
    """An absolute http or https URL."""
    url = text(value, as_text)
    from urllib.parse import urlsplit  # loaded only where a URL is configured

    try:
        parts = urlsplit(url)
        valid = (
            parts.scheme in {"http", "https"}
            and bool(parts.hostname)
            and (parts.port is None or parts.port > 0)
        )
    except ValueError:
        valid = False
    if not valid or any(character.isspace() for character in url):
        raise BadValue("is not an http or https URL", "write it in full, e.g. https://rpc.example.org")
    return url


def contract_address(value: object, as_text: bool) -> str:
    """The address of a contract."""
    address = text(value, as_text)
    if is_contract(address):
        return address
    if is_account(address):
        raise BadValue("is the address of an account", "give the contract's address, which begins with C")
    raise BadValue(
        "is not a contract address", "a contract address is C and 55 more characters, checksum included"
    )


def path(value: object, as_text: bool) -> Path:
    """A file's path; `~` is the user's home folder."""
    name = str(value) if isinstance(value, Path) else text(value, as_text)
    if "\0" in name:
        raise BadValue("holds a NUL character", "give the path of a file")
    try:
        return Path(name).expanduser()
    except RuntimeError:
        raise BadValue("begins with ~, and there is no home folder", "write the path in full") from None


def integer(least: int, most: int | None = None) -> Parser:
    """A whole number between two bounds, both allowed."""

    def parse(value: object, as_text: bool) -> int:
        if as_text and isinstance(value, str):
            try:
                value = int(value.strip())
            except ValueError:
                raise BadValue("is not a whole number", "write digits only") from None
        if not isinstance(value, int) or isinstance(value, bool):
            raise BadValue(f"must be a whole number, not {_kind(value)}", "write digits, without quotes")
        if value < least or (most is not None and value > most):
            allowed = f"at least {least}" if most is None else f"from {least} to {most}"
            raise BadValue(f"is {value}, out of range", f"give a number {allowed}")
        return value

    return parse


def seconds(value: object, as_text: bool) -> float:
    """A time in seconds, above zero."""
    if as_text and isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            raise BadValue("is not a number of seconds", "write a number such as 2.5") from None
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        raise BadValue(f"must be a number of seconds, not {_kind(value)}", "write a number, without quotes")
    if not math.isfinite(value) or value <= 0:
        raise BadValue("must be above zero", "give a number of seconds such as 2.5")
    return float(value)


def list_of(item: Parser) -> Parser:
    """A list; as text, its items are separated by commas."""

    def parse(value: object, as_text: bool) -> tuple[object, ...]:
        if as_text and isinstance(value, str):
            value = [part.strip() for part in value.split(",") if part.strip()]
        if not isinstance(value, (list, tuple)):
            raise BadValue(f"must be a list, not {_kind(value)}", "put the values in square brackets")
        return tuple(item(part, as_text) for part in value)

    return parse


def ip_network(value: object, as_text: bool) -> str:
    """An IP address or network, e.g. `10.0.0.0/8`."""
    import ipaddress

    name = text(value, as_text)
    try:
        return str(ipaddress.ip_network(name))
    except ValueError:
        raise BadValue(
            f"holds {name!r}, which is no IP network", "write an address, or e.g. 10.0.0.0/8"
        ) from None


def _kind(value: object) -> str:
    return {bool: "true or false", dict: "a table", list: "a list", int: "a number", float: "a number"}.get(
        type(value), f"of type {type(value).__name__}"
    )
