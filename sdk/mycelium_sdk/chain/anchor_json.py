"""Anchors as JSON (formats.md section 7): what an indexer serves, and what people keep."""

from __future__ import annotations

from collections.abc import Mapping

from mycelium_sdk.chain.anchors import ROOT_BYTES, Anchor
from mycelium_sdk.chain.history import PastAnchor
from mycelium_sdk.chain.plausible import is_ledger, is_moment, is_version
from mycelium_sdk.strkey import is_account, is_contract

__all__ = ["past_from_json"]

_HASH_BYTES = 32


def past_from_json(item: object) -> PastAnchor:
    """An anchor from its JSON, parsed. Nothing but its form is checked; `uri_hex` counts, not `uri`.

    Raises:
        ValueError: it is not of that form; the message says where, and quotes nothing.
    """
    if not isinstance(item, Mapping):
        raise ValueError("an anchor is no object")  # noqa: TRY004 - of the data, not of the call
    owner = item.get("owner")
    if not isinstance(owner, str) or not (is_account(owner) or is_contract(owner)):
        raise ValueError("`owner` is no address of an account or a contract")
    version = _number(item, "version")
    if version is None or not is_version(version):
        raise ValueError("`version` is not a number from 1")
    timestamp, written = _number(item, "timestamp"), _number(item, "ledger")
    if timestamp is not None and not is_moment(timestamp):
        raise ValueError("`timestamp` is no time that a ledger can have closed at")
    if written is not None and not is_ledger(written):
        raise ValueError("`ledger` is no ledger's number")
    transaction = _hex(item, "tx", _HASH_BYTES)
    anchor = Anchor(
        owner=owner,
        version=version,
        root=_present(item, "root", ROOT_BYTES),
        uri=_present(item, "uri_hex"),
        acl=_present(item, "acl_hex"),
        previous=_hex(item, "previous", _HASH_BYTES),
        timestamp=timestamp,
    )
    if (anchor.previous is None) != (anchor.timestamp is None):
        raise ValueError("of `previous` and `timestamp` one is there without the other")
    return PastAnchor(anchor, written, None if transaction is None else transaction.hex())


def _number(item: Mapping[str, object], name: str) -> int | None:
    """A number that a database can hold: the contract counts by ones and seconds."""
    value = item.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 1 << 63:
        raise ValueError(f"`{name}` is not a number from 0")
    return value


def _present(item: Mapping[str, object], name: str, exactly: int | None = None) -> bytes:
    value = _hex(item, name, exactly)
    if value is None:
        raise ValueError(f"`{name}` is missing")
    return value


def _hex(item: Mapping[str, object], name: str, exactly: int | None = None) -> bytes | None:
    text = item.get(name)
    if text is None:
        return None
    try:
        value = bytes.fromhex(text) if isinstance(text, str) else None
    except ValueError:
        value = None
    if value is None or value.hex() != text or (exactly is not None and len(value) != exactly):
        size = "" if exactly is None else f" of {exactly} bytes"
        raise ValueError(f"`{name}` is not lower-case hexadecimal{size}")
    return value
