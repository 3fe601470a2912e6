"""Opaque cursors: where a list goes on, in a form that has one spelling and fits one list only.

Base64 of a checksum and a place. The checksum covers the list too, so that a cursor of another list, another
contract or a chain that started anew is refused, as is one that was changed. It is no secret: whoever forges
one gets a page of public data. So any process behind the same database understands every cursor.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from typing import TYPE_CHECKING

from mycelium_indexer.api.problems import Refusal
from mycelium_indexer.values import Position
from mycelium_sdk.strkey import is_account, is_contract

if TYPE_CHECKING:
    from mycelium_indexer.values import Source

__all__ = ["MAX_CURSOR", "history_cursor", "history_place", "owners_cursor", "owners_place"]

MAX_CURSOR = 200

_CHECKSUM_BYTES = 8
_SHAPE = re.compile(r"[A-Za-z0-9_-]+", re.ASCII)
_WHOLE = re.compile(r"0|-?[1-9][0-9]{0,19}", re.ASCII)
_LEAST, _MOST = -(2**63), 2**63 - 1


def owners_cursor(source: Source, position: Position) -> str:
    """The cursor behind a position in the list of owners."""
    return _encode(("owners", source), f"{position.order} {position.owner}")


def owners_place(source: Source, cursor: str) -> Position:
    """The position of a cursor of the list of owners. Raises Refusal."""
    order, separator, owner = _decode(("owners", source), cursor).partition(" ")
    if not separator or not (is_account(owner) or is_contract(owner)):
        raise _malformed()
    return Position(_number(order), owner)


def history_cursor(source: Source, owner: str, version: int) -> str:
    """The cursor behind a version of an owner's history."""
    return _encode((owner, source), str(version))


def history_place(source: Source, owner: str, cursor: str) -> int:
    """The version that a history goes on below. Raises Refusal."""
    return _number(_decode((owner, source), cursor))


def _checksum(about: tuple[str, Source], place: bytes) -> bytes:
    name, source = about
    label = f"{name}\0{source.network}\0{source.contract}\0{source.epoch}\0".encode()
    return hashlib.sha256(label + place).digest()[:_CHECKSUM_BYTES]


def _encode(about: tuple[str, Source], place: str) -> str:
    data = place.encode("ascii")
    return base64.urlsafe_b64encode(_checksum(about, data) + data).decode("ascii").rstrip("=")


def _decode(about: tuple[str, Source], cursor: str) -> str:
    if len(cursor) > MAX_CURSOR or _SHAPE.fullmatch(cursor) is None:
        raise _malformed()
    try:
        data = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
        text = data[_CHECKSUM_BYTES:].decode("ascii")
    except (binascii.Error, UnicodeDecodeError):
        raise _malformed() from None
    # Written again: that compares the checksum, and the last bits, which Base64 ignores for some lengths.
    if _encode(about, text) != cursor:
        raise _malformed()
    return text


def _number(text: str) -> int:
    if _WHOLE.fullmatch(text) is None or not _LEAST <= int(text) <= _MOST:
        raise _malformed()
    return int(text)


def _malformed() -> Refusal:
    return Refusal("malformed-cursor", "this is no cursor of this list: begin without one")
