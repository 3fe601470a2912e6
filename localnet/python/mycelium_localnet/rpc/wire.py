"""XDR in the text of JSON: base64, decoded strictly."""

from __future__ import annotations

from binascii import a2b_base64, b2a_base64
from typing import Protocol, Self, TypeVar

from xdrlib3 import Error as XdrlibError

from .faults import invalid_params


class XdrType(Protocol):
    """What the XDR classes of `stellar_sdk` have in common."""

    @classmethod
    def from_xdr_bytes(cls, xdr: bytes) -> Self: ...

    def to_xdr_bytes(self) -> bytes: ...


T = TypeVar("T", bound=XdrType)


def text(data: bytes) -> str:
    """Bytes as base64."""
    return b2a_base64(data, newline=False).decode("ascii")


def texts(items: tuple[bytes, ...] | list[bytes]) -> list[str]:
    """Several values as base64, in their order."""
    return [text(item) for item in items]


def decode(kind: type[T], source: str) -> tuple[T, bytes]:
    """The value and its bytes. Raises ValueError unless `source` is base64 of exactly one canonically encoded
    value.

    RFC 4506 wants zero padding and booleans of 0 or 1, which the decoder does not check: hence the
    comparison. Without it two spellings of one ledger key would be two keys.
    """
    try:
        data = a2b_base64(source, strict_mode=True)
        value = kind.from_xdr_bytes(data)
        canonical = value.to_xdr_bytes()
    except (EOFError, RecursionError, XdrlibError) as error:
        raise ValueError("the XDR ends early or is nested too deeply") from error
    if canonical != data:
        raise ValueError("the XDR is not in its canonical form")
    return value, data


def decode_param(kind: type[T], source: str, message: str) -> tuple[T, bytes]:
    """`decode` for a parameter: RpcFault -32602 with `message` instead of ValueError."""
    try:
        return decode(kind, source)
    except ValueError as error:
        raise invalid_params(message) from error
