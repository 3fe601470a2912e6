"""The anchor of an owner: its decoding from what a contract returns or emits, and the hash chain that
orders anchors.

One decoder and one verifier, used by the client and by whoever serves history. Formats: formats.md section 3.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mycelium_sdk.chain.anchor_xdr import (
    AnchorFields,
    address_text,
    address_xdr,
    decode_anchor,
    encode_anchor,
    symbol_xdr,
)
from mycelium_sdk.chain.plausible import is_moment, is_version
from mycelium_sdk.errors import Tampered, WrongDomain, WrongOwner

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from stellar_sdk import xdr

__all__ = [
    "EVENT_NAME",
    "MAX_ACL_BYTES",
    "MAX_URI_BYTES",
    "ROOT_BYTES",
    "Anchor",
    "HistoryProof",
    "anchor_from_event",
    "anchor_from_event_xdr",
    "anchor_from_value",
    "anchor_to_value",
    "previous_of",
    "previous_of_first",
    "verify_history",
]

ROOT_BYTES = 32
MAX_URI_BYTES = 1024
MAX_ACL_BYTES = 2048
EVENT_NAME = "memory_anchored"

_EVENT_SYMBOL = symbol_xdr(EVENT_NAME)
_FIELDS = AnchorFields._fields
_LEGACY_FIELDS = ("acl", "root", "uri", "version")
_FORGED_HINT = "do not trust whoever served this history; the anchor on the chain stands: ask another server"


@dataclass(frozen=True, slots=True)
class Anchor:
    """What the chain holds for an owner.

    `version` counts from 1. `root` is 32 bytes; `uri` and `acl` are what the owner wrote, any bytes.
    `previous` (32 bytes) commits to the anchor before this one, `timestamp` is the close time of the
    anchoring ledger in Unix seconds: both None where the contract is an older deployment, which keeps
    neither.
    """

    owner: str
    version: int
    root: bytes
    uri: bytes
    acl: bytes
    previous: bytes | None
    timestamp: int | None

    @property
    def uri_text(self) -> str | None:
        """The URI as text, None unless it is valid UTF-8."""
        try:
            return self.uri.decode("utf-8")
        except UnicodeDecodeError:
            return None

    def as_dict(self) -> dict[str, Any]:
        """root, uri (text or None), acl, version, previous, timestamp."""
        return {
            "root": self.root,
            "uri": self.uri_text,
            "acl": self.acl,
            "version": self.version,
            "previous": self.previous,
            "timestamp": self.timestamp,
        }


@dataclass(frozen=True, slots=True)
class HistoryProof:
    """What `verify_history` found to be true.

    `verified`: the list is the owner's history back to `oldest`, as the latest anchor commits to it; False
    only for an older deployment, whose anchors commit to nothing. `complete`: it goes back to version 1.
    """

    verified: bool
    complete: bool
    oldest: int


def anchor_from_value(owner: str, value: xdr.SCVal) -> Anchor:
    """Decode what `get_anchor` returns for `owner`, of the present contract or an older deployment.

    Raises:
        WrongDomain: the value is no anchor, so what answered is another contract.
    """
    fields = _symbol_map(value)
    names = tuple(sorted(fields))
    if names not in (_FIELDS, _LEGACY_FIELDS):
        raise _not_an_anchor("its fields are not those of an anchor")
    current = names == _FIELDS
    previous = _bytes(fields["previous"], exactly=32) if current else None
    timestamp = _u64(fields["timestamp"]) if current else None
    version = _u64(fields["version"])
    if not is_version(version):
        raise _not_an_anchor("its version is 0, or more than the contract can have counted")
    if timestamp is not None and not is_moment(timestamp):
        raise _not_an_anchor("its time is after the year 9998")
    return Anchor(
        owner=owner,
        version=version,
        root=_bytes(fields["root"], exactly=ROOT_BYTES),
        uri=_bytes(fields["uri"]),
        acl=_bytes(fields["acl"]),
        previous=previous,
        timestamp=timestamp,
    )


def anchor_from_event(topics: Sequence[xdr.SCVal], value: xdr.SCVal) -> Anchor:
    """Decode the event `memory_anchored`: topics (name, owner), data the whole anchor.

    Raises:
        WrongDomain: it is not such an event (those of older deployments carry no anchor).
    """
    from stellar_sdk import scval
    from stellar_sdk.xdr import SCValType

    if (
        len(topics) != 2
        or topics[0].type is not SCValType.SCV_SYMBOL
        or scval.from_symbol(topics[0]) != EVENT_NAME
        or topics[1].type is not SCValType.SCV_ADDRESS
    ):
        raise _not_an_anchor(f"the event's topics are not ({EVENT_NAME}, owner)")
    anchor = anchor_from_value(scval.from_address(topics[1]).address, value)
    if anchor.previous is None:
        raise _not_an_anchor("the event's data is not a whole anchor")
    if len(anchor.uri) > MAX_URI_BYTES or len(anchor.acl) > MAX_ACL_BYTES:
        raise _not_an_anchor("its URI or its acl is longer than the contract takes")
    return anchor


def anchor_from_event_xdr(topics: Sequence[bytes], value: bytes) -> Anchor:
    """The same from the XDR of the event's topics and data. Raises `WrongDomain` also for what is no XDR."""
    if len(topics) == 2 and topics[0] == _EVENT_SYMBOL:
        owner, fields = address_text(topics[1]), decode_anchor(value)
        if owner is not None and fields is not None and _is_whole(fields):
            acl, previous, root, timestamp, uri, version = fields
            return Anchor(owner, version, root, uri, acl, previous, timestamp)
    from stellar_sdk import xdr

    from mycelium_sdk.chain.translate import UNREADABLE

    try:
        return anchor_from_event(
            [xdr.SCVal.from_xdr_bytes(topic) for topic in topics], xdr.SCVal.from_xdr_bytes(value)
        )
    except WrongDomain:
        raise
    except UNREADABLE as error:
        raise _not_an_anchor("it cannot be decoded") from error


def anchor_to_value(anchor: Anchor) -> xdr.SCVal:
    """The map that the contract keeps for this anchor, keys sorted. Needs `previous` and `timestamp`."""
    from stellar_sdk import scval

    if anchor.previous is None or anchor.timestamp is None:
        raise ValueError("an older deployment's anchor has no such form")
    values = {
        "acl": scval.to_bytes(anchor.acl),
        "previous": scval.to_bytes(anchor.previous),
        "root": scval.to_bytes(anchor.root),
        "timestamp": scval.to_uint64(anchor.timestamp),
        "uri": scval.to_bytes(anchor.uri),
        "version": scval.to_uint64(anchor.version),
    }
    return scval.to_map({scval.to_symbol(name): values[name] for name in _FIELDS})


def previous_of(anchor: Anchor) -> bytes:
    """The `previous` that the anchor right after this one carries: SHA-256 of the XDR of its entry."""
    if anchor.previous is None or anchor.timestamp is None:
        raise ValueError("an older deployment's anchor has no such form")
    fields = AnchorFields(
        anchor.acl, anchor.previous, anchor.root, anchor.timestamp, anchor.uri, anchor.version
    )
    return hashlib.sha256(encode_anchor(fields)).digest()


def previous_of_first(owner: str) -> bytes:
    """The `previous` of an owner's version 1: SHA-256 of the XDR of the owner's address."""
    return hashlib.sha256(address_xdr(owner)).digest()


def verify_history(latest: Anchor, history: Iterable[Anchor]) -> HistoryProof:
    """Check a served history against the anchor that was read from the chain.

    `history` is newest first and begins with `latest`; it may end before version 1 (old events are dropped by
    servers). Read as a stream, nothing is kept.

    Raises:
        WrongOwner: an anchor of another owner is among them.
        Tampered: an anchor was omitted, moved, altered or invented; the message names the version.
    """
    anchors = iter(history)
    newer = next(anchors, None)
    if newer != latest:
        raise _forged(f"the history does not begin with the anchor on the chain (version {latest.version})")
    if latest.previous is None:
        return HistoryProof(verified=False, complete=False, oldest=latest.version)
    for anchor in anchors:
        if anchor.owner != latest.owner:
            raise WrongOwner("the history holds an anchor of another owner", hint=_FORGED_HINT)
        if anchor.version != newer.version - 1 or anchor.previous is None or anchor.timestamp is None:
            raise _forged(f"the history goes from version {newer.version} to {anchor.version}")
        if previous_of(anchor) != newer.previous:
            raise Tampered(
                f"version {anchor.version} of the history is not what version {newer.version} commits to"
            )
        newer = anchor
    complete = newer.version == 1
    if complete and newer.previous != previous_of_first(latest.owner):
        raise _forged("version 1 of the history is not the owner's first anchor")
    return HistoryProof(verified=True, complete=complete, oldest=newer.version)


def _is_whole(fields: AnchorFields) -> bool:
    return (
        is_version(fields.version)
        and is_moment(fields.timestamp)
        and len(fields.previous) == 32
        and len(fields.root) == ROOT_BYTES
        and len(fields.uri) <= MAX_URI_BYTES
        and len(fields.acl) <= MAX_ACL_BYTES
    )


def _forged(message: str) -> Tampered:
    return Tampered(message, hint=_FORGED_HINT)


def _symbol_map(value: xdr.SCVal) -> dict[str, xdr.SCVal]:
    from stellar_sdk import scval
    from stellar_sdk.xdr import SCValType

    if value.type is not SCValType.SCV_MAP or value.map is None:
        raise _not_an_anchor("it is no map")
    fields: dict[str, xdr.SCVal] = {}
    for item in value.map.sc_map:
        if item.key.type is not SCValType.SCV_SYMBOL:
            raise _not_an_anchor("a key is no symbol")
        try:
            fields[scval.from_symbol(item.key)] = item.val
        except ValueError as error:
            raise _not_an_anchor("a key is no text") from error
    if len(fields) != len(value.map.sc_map):
        raise _not_an_anchor("a key is there twice")
    return fields


def _bytes(value: xdr.SCVal, *, exactly: int | None = None) -> bytes:
    if value.bytes is None:
        raise _not_an_anchor("a field is not bytes")
    data = value.bytes.sc_bytes
    if exactly is not None and len(data) != exactly:
        raise _not_an_anchor(f"a field has {len(data)} bytes instead of {exactly}")
    return data


def _u64(value: xdr.SCVal) -> int:
    if value.u64 is None:
        raise _not_an_anchor("a field is not an unsigned 64-bit number")
    return value.u64.uint64


def _not_an_anchor(why: str) -> WrongDomain:
    return WrongDomain(
        f"what the contract gave is not an anchor: {why}",
        hint="check `[memory] anchor_address`; if it is right, ask another RPC server",
    )
