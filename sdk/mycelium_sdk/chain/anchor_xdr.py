"""The bytes of anchors: the XDR of the contract's entries and events, written and read directly.

The form is one of fixed order (formats.md section 3), so that a few comparisons and slices do, where decoding
into objects takes as long as everything else that is done with an event. Whatever has any other form is left
to the general decoder, which also says what is wrong with it.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from mycelium_sdk.strkey import decode_account, decode_contract, encode_account, encode_contract

__all__ = ["AnchorFields", "address_text", "address_xdr", "decode_anchor", "encode_anchor", "symbol_xdr"]

_U64, _BYTES, _SYMBOL, _MAP, _ADDRESS = 5, 13, 15, 17, 18  # SCValType
_ACCOUNT, _CONTRACT = 0, 1  # SCAddressType

_u32 = struct.Struct(">I")
_u64 = struct.Struct(">Q")


class AnchorFields(NamedTuple):
    """What an entry says, in the order of its keys."""

    acl: bytes
    previous: bytes
    root: bytes
    timestamp: int
    uri: bytes
    version: int


def symbol_xdr(name: str) -> bytes:
    """The XDR of a symbol as a contract value."""
    return _u32.pack(_SYMBOL) + _opaque(name.encode("ascii"))


def _opaque(data: bytes) -> bytes:
    return _u32.pack(len(data)) + data + bytes(-len(data) % 4)


_HEAD = _u32.pack(_MAP) + _u32.pack(1) + _u32.pack(len(AnchorFields._fields))
_KEYS = tuple(
    symbol_xdr(name) + _u32.pack(_U64 if name in {"timestamp", "version"} else _BYTES)
    for name in AnchorFields._fields
)
"""Of each field the key, and the type of its value."""

_ACCOUNT_HEAD = _u32.pack(_ADDRESS) + _u32.pack(_ACCOUNT) + _u32.pack(0)  # a key of Ed25519
_CONTRACT_HEAD = _u32.pack(_ADDRESS) + _u32.pack(_CONTRACT)


def encode_anchor(fields: AnchorFields) -> bytes:
    """The XDR of the map that the contract keeps."""
    parts = [_HEAD]
    for key, value in zip(_KEYS, fields, strict=True):
        parts.append(key)
        parts.append(_opaque(value) if isinstance(value, bytes) else _u64.pack(value))
    return b"".join(parts)


def decode_anchor(data: bytes) -> AnchorFields | None:
    """What such a map says, whatever the lengths of its fields; None for any other bytes."""
    if not data.startswith(_HEAD):
        return None
    values: list[bytes | int] = []
    at = len(_HEAD)
    try:
        for name, key in zip(AnchorFields._fields, _KEYS, strict=True):
            at += len(key)
            if name in {"timestamp", "version"}:
                values.append(_u64.unpack_from(data, at)[0])
                at += _u64.size
            else:
                start = at + _u32.size
                end = start + _u32.unpack_from(data, at)[0]
                values.append(data[start:end])
                at = end + (start - end) % 4
    except struct.error:
        return None
    fields = AnchorFields(*values)  # type: ignore[arg-type]
    return fields if encode_anchor(fields) == data else None


def address_text(data: bytes) -> str | None:
    """The address of an account or a contract, of its XDR as a contract value; None for any other bytes."""
    for head, encode in ((_ACCOUNT_HEAD, encode_account), (_CONTRACT_HEAD, encode_contract)):
        if len(data) == len(head) + 32 and data.startswith(head):
            return encode(data[len(head) :])
    return None


def address_xdr(address: str) -> bytes:
    """The XDR of an account's or a contract's address as a contract value. Raises `InputError` for
    others."""
    if address.startswith("C"):
        return _CONTRACT_HEAD + decode_contract(address)
    return _ACCOUNT_HEAD + decode_account(address)
