"""Anchors read and written as bytes: the same as by way of objects, for every anchor and every other
bytes."""

from __future__ import annotations

import dataclasses
import hashlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stellar_sdk import scval, xdr

from mycelium_sdk.chain.anchor_xdr import (
    AnchorFields,
    address_text,
    address_xdr,
    decode_anchor,
    encode_anchor,
    symbol_xdr,
)
from mycelium_sdk.chain.anchors import (
    EVENT_NAME,
    MAX_ACL_BYTES,
    MAX_URI_BYTES,
    Anchor,
    anchor_from_event,
    anchor_from_event_xdr,
    anchor_from_value,
    anchor_to_value,
    previous_of,
    previous_of_first,
)
from mycelium_sdk.errors import InputError, WrongDomain
from mycelium_sdk.strkey import decode_contract, encode_account, encode_contract

MOMENTS = st.integers(0, 253_370_764_799)
HASH = st.binary(min_size=32, max_size=32)
OWNERS = st.one_of(HASH.map(encode_account), HASH.map(encode_contract))
ANCHORS = st.builds(
    Anchor,
    OWNERS,
    st.integers(1, 2**63 - 1),
    HASH,
    st.binary(max_size=40),
    st.binary(max_size=40),
    HASH,
    MOMENTS,
)
TOPIC = symbol_xdr(EVENT_NAME)


@given(ANCHORS)
def test_the_bytes_are_those_of_the_objects(anchor: Anchor) -> None:
    value = anchor_to_value(anchor).to_xdr_bytes()
    assert anchor.previous is not None
    assert anchor.timestamp is not None
    fields = AnchorFields(
        anchor.acl, anchor.previous, anchor.root, anchor.timestamp, anchor.uri, anchor.version
    )
    assert encode_anchor(fields) == value
    assert decode_anchor(value) == fields
    assert previous_of(anchor) == hashlib.sha256(value).digest()
    address = scval.to_address(anchor.owner).to_xdr_bytes()
    assert address_xdr(anchor.owner) == address
    assert address_text(address) == anchor.owner
    assert previous_of_first(anchor.owner) == hashlib.sha256(address).digest()
    assert scval.to_symbol(EVENT_NAME).to_xdr_bytes() == TOPIC
    assert anchor_from_event_xdr([TOPIC, address], value) == anchor


@given(ANCHORS, st.data())
def test_whatever_is_changed_the_two_ways_agree(anchor: Anchor, data: st.DataObject) -> None:
    parts = [bytearray(TOPIC), bytearray(address_xdr(anchor.owner)), bytearray(_value(anchor))]
    part = data.draw(st.sampled_from(parts))
    at = data.draw(st.integers(0, len(part) - 1))
    change = data.draw(st.sampled_from(["flip", "cut", "add"]))
    if change == "flip":
        part[at] ^= data.draw(st.integers(1, 255))
    elif change == "cut":
        del part[at:]
    else:
        part[at:at] = data.draw(st.binary(min_size=1, max_size=8))
    *topics, value = map(bytes, parts)
    assert _outcome(topics, value) == _by_objects(topics, value)


def _value(anchor: Anchor) -> bytes:
    return anchor_to_value(anchor).to_xdr_bytes()


def _outcome(topics: list[bytes], value: bytes) -> Anchor | None:
    try:
        return anchor_from_event_xdr(topics, value)
    except WrongDomain:
        return None


def _by_objects(topics: list[bytes], value: bytes) -> Anchor | None:
    try:
        return anchor_from_event(
            [xdr.SCVal.from_xdr_bytes(topic) for topic in topics], xdr.SCVal.from_xdr_bytes(value)
        )
    except Exception:  # noqa: BLE001 - whatever a decoder raises
        return None


@pytest.mark.parametrize(
    "fields",
    [
        {"version": 0},
        {"version": 2**63},
        {"version": 2**64 - 1},
        {"timestamp": 253_370_764_800},
        {"timestamp": 2**64 - 1},
        {"uri": bytes(MAX_URI_BYTES + 1)},
        {"acl": bytes(MAX_ACL_BYTES + 1)},
    ],
    ids=str,
)
def test_what_no_contract_can_have_written_is_no_anchor(fields: dict[str, Any]) -> None:
    """Neither by its bytes nor by its objects: databases and dates could not hold it."""
    genuine = Anchor(encode_account(bytes(32)), 1, bytes(32), b"", b"", bytes(32), 1)
    topics = [TOPIC, address_xdr(genuine.owner)]
    assert anchor_from_event_xdr(topics, _value(genuine)) == genuine
    value = _value(dataclasses.replace(genuine, **fields))
    assert decode_anchor(value) is not None
    with pytest.raises(WrongDomain, match="not an anchor"):
        anchor_from_event_xdr(topics, value)
    if "version" in fields or "timestamp" in fields:
        with pytest.raises(WrongDomain, match="not an anchor") as caught:
            anchor_from_value(genuine.owner, xdr.SCVal.from_xdr_bytes(value))
        assert caught.value.hint is not None
        assert "another RPC server" in caught.value.hint


def test_a_key_that_is_no_text_makes_no_anchor() -> None:
    key = xdr.SCVal(xdr.SCValType.SCV_SYMBOL, sym=xdr.SCSymbol(b"\xff\xfe"))
    value = xdr.SCVal(xdr.SCValType.SCV_MAP, map=xdr.SCMap([xdr.SCMapEntry(key, scval.to_uint64(1))]))
    with pytest.raises(WrongDomain, match="a key is no text"):
        anchor_from_value(encode_account(bytes(32)), value)


@given(st.binary(max_size=300))
def test_other_bytes_are_no_anchor(data: bytes) -> None:
    assert decode_anchor(data) is None
    assert address_text(data) is None
    with pytest.raises(WrongDomain):
        anchor_from_event_xdr([TOPIC, address_xdr(encode_account(bytes(32)))], data)


def test_a_field_that_claims_to_be_long_takes_no_memory() -> None:
    value = bytearray(_value(Anchor(encode_account(bytes(32)), 1, bytes(32), b"", b"", bytes(32), 1)))
    at = value.index(b"acl\0") + 8
    value[at : at + 4] = b"\xff\xff\xff\xff"
    assert decode_anchor(bytes(value)) is None


def test_addresses_of_contracts() -> None:
    address = encode_contract(bytes(range(32)))
    assert decode_contract(address) == bytes(range(32))
    for other in (encode_account(bytes(32)), address[:-1], "", address.lower()):
        with pytest.raises(InputError):
            decode_contract(other)
    with pytest.raises(InputError):
        encode_contract(b"short")
    with pytest.raises(InputError):
        address_xdr("M" + "A" * 68)
