"""XDR by concatenation: the few shapes that the ledger composes from parts it already has as bytes.

Entries, envelopes, events and results pass through the ledger as bytes. Metas and results are put together
from them with these functions; what has to be understood (accounts, transactions) is decoded with
`stellar_sdk`'s classes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

ZERO: Final = bytes(4)
ONE: Final = b"\0\0\0\1"

_ERROR, _U64, _I128, _BYTES, _STRING, _SYMBOL, _VEC, _MAP, _ADDRESS = 2, 5, 10, 13, 14, 15, 16, 17, 18


def u32(value: int) -> bytes:
    """An unsigned 32-bit number, or an enum's value above 0."""
    return value.to_bytes(4, "big")


def i32(value: int) -> bytes:
    """A signed 32-bit number: result codes."""
    return value.to_bytes(4, "big", signed=True)


def i64(value: int) -> bytes:
    """A signed 64-bit number."""
    return value.to_bytes(8, "big", signed=True)


def array(items: Sequence[bytes]) -> bytes:
    """A variable-length array of values."""
    return u32(len(items)) + b"".join(items)


def opaque(data: bytes) -> bytes:
    """Variable-length bytes, or a string: the length, the bytes, zeros up to a multiple of four."""
    return u32(len(data)) + data + bytes(-len(data) % 4)


def sc_symbol(text: str) -> bytes:
    """SCVal of a symbol."""
    return u32(_SYMBOL) + opaque(text.encode())


def sc_string(text: str | bytes) -> bytes:
    """SCVal of a string."""
    return u32(_STRING) + opaque(text.encode() if isinstance(text, str) else text)


def sc_bytes(data: bytes) -> bytes:
    """SCVal of bytes."""
    return u32(_BYTES) + opaque(data)


def sc_u64(value: int) -> bytes:
    """SCVal of an unsigned 64-bit number."""
    return u32(_U64) + value.to_bytes(8, "big")


def sc_i128(value: int) -> bytes:
    """SCVal of a signed 128-bit number."""
    return u32(_I128) + value.to_bytes(16, "big", signed=True)


def sc_account(public_key: bytes) -> bytes:
    """SCVal of an account's address, from its raw public key."""
    return u32(_ADDRESS) + bytes(8) + public_key


def sc_error(kind: int, code: int) -> bytes:
    """SCVal of an error, from SCErrorType (not the contract's) and SCErrorCode."""
    return u32(_ERROR) + u32(kind) + u32(code)


def sc_vec(items: Sequence[bytes]) -> bytes:
    """SCVal of a vector of SCVals."""
    return u32(_VEC) + ONE + array(items)


def sc_map(items: Sequence[tuple[bytes, bytes]]) -> bytes:
    """SCVal of a map; keys in the host's order."""
    return u32(_MAP) + ONE + array([key + value for key, value in items])
