"""The hash chain of anchors: frozen vectors, and every way to serve a false history is noticed."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from stellar_sdk import StrKey, scval, xdr

from mycelium_sdk.chain.anchors import (
    Anchor,
    anchor_from_event,
    anchor_from_value,
    anchor_to_value,
    previous_of,
    previous_of_first,
    verify_history,
)
from mycelium_sdk.errors import Tampered, WrongDomain, WrongOwner

if TYPE_CHECKING:
    from collections.abc import Callable

CHAINS: list[dict[str, Any]] = json.loads((Path(__file__).parent / "vectors.json").read_text())["chains"]


def anchors_of(chain: dict[str, Any]) -> list[Anchor]:
    """The anchors of a vector, oldest first."""
    return [
        Anchor(
            owner=chain["owner"],
            version=item["version"],
            root=bytes.fromhex(item["root"]),
            uri=bytes.fromhex(item["uri"]),
            acl=bytes.fromhex(item["acl"]),
            previous=bytes.fromhex(item["previous"]),
            timestamp=item["timestamp"],
        )
        for item in chain["anchors"]
    ]


@pytest.fixture
def history() -> list[Anchor]:
    """A true history, newest first."""
    return anchors_of(CHAINS[0])[::-1]


@pytest.mark.parametrize("chain", CHAINS, ids=lambda chain: chain["name"])
def test_vectors(chain: dict[str, Any]) -> None:
    anchors = anchors_of(chain)
    assert anchors[0].previous == previous_of_first(chain["owner"])
    for anchor, item in zip(anchors, chain["anchors"], strict=True):
        assert len(anchor_to_value(anchor).to_xdr_bytes()) == item["entry_bytes"]
        assert previous_of(anchor).hex() == item["entry_sha256"]
    for newer, older in zip(anchors[1:], anchors, strict=False):
        assert newer.previous == previous_of(older)


@pytest.mark.parametrize("chain", CHAINS, ids=lambda chain: chain["name"])
def test_decoding_is_the_inverse_of_encoding(chain: dict[str, Any]) -> None:
    topics = [scval.to_symbol("memory_anchored"), scval.to_address(chain["owner"])]
    for anchor in anchors_of(chain):
        value = xdr.SCVal.from_xdr_bytes(anchor_to_value(anchor).to_xdr_bytes())
        if anchor.timestamp == 2**64 - 1:  # the format has room for it, and no ledger closed then
            with pytest.raises(WrongDomain, match="its time"):
                anchor_from_value(anchor.owner, value)
            continue
        assert anchor_from_value(anchor.owner, value) == anchor
        assert anchor_from_event(topics, value) == anchor


def test_a_true_history_is_complete(history: list[Anchor]) -> None:
    proof = verify_history(history[0], history)
    assert (proof.verified, proof.complete, proof.oldest) == (True, True, 1)


def test_a_history_that_ends_early_is_verified_and_not_complete(history: list[Anchor]) -> None:
    proof = verify_history(history[0], history[:2])
    assert (proof.verified, proof.complete, proof.oldest) == (True, False, 2)


def test_a_history_is_read_as_a_stream(history: list[Anchor]) -> None:
    assert verify_history(history[0], iter(history)).complete


def altered(**change: object) -> Callable[[list[Anchor]], list[Anchor]]:
    def alter(history: list[Anchor]) -> list[Anchor]:
        return [history[0], dataclasses.replace(history[1], **change), *history[2:]]  # type: ignore[arg-type]

    return alter


@pytest.mark.parametrize(
    "forge",
    [
        pytest.param(lambda history: history[:0], id="nothing"),
        pytest.param(lambda history: history[1:], id="newest omitted"),
        pytest.param(lambda history: [history[0], history[2]], id="middle omitted"),
        pytest.param(lambda history: [history[0], history[2], history[1]], id="reordered"),
        pytest.param(lambda history: [history[0], history[1], history[1]], id="repeated"),
        pytest.param(lambda history: [*history, history[2]], id="something before version 1"),
        pytest.param(altered(root=bytes(31) + b"\x01"), id="another root"),
        pytest.param(altered(uri=b"https://evil.example/"), id="another uri"),
        pytest.param(altered(acl=b"x"), id="another acl"),
        pytest.param(altered(timestamp=1_700_000_006), id="another time"),
        pytest.param(altered(previous=bytes(32)), id="another previous"),
        pytest.param(altered(version=3), id="another version"),
        pytest.param(altered(previous=None), id="without previous"),
        pytest.param(altered(timestamp=None), id="without time"),
    ],
)
def test_every_forged_history_is_noticed(
    history: list[Anchor], forge: Callable[[list[Anchor]], list[Anchor]]
) -> None:
    with pytest.raises(Tampered):
        verify_history(history[0], forge(history))


def test_an_anchor_of_another_owner_is_noticed(history: list[Anchor]) -> None:
    with pytest.raises(WrongOwner):
        verify_history(history[0], altered(owner=CHAINS[1]["owner"])(history))


def test_a_first_anchor_that_is_not_the_owners_first_is_noticed() -> None:
    (first, *_) = anchors_of(CHAINS[0])
    invented = dataclasses.replace(first, previous=bytes(32))
    with pytest.raises(Tampered, match="first anchor"):
        verify_history(invented, [invented])


def test_an_older_deployments_history_cannot_be_verified(history: list[Anchor]) -> None:
    latest = dataclasses.replace(history[0], previous=None, timestamp=None)
    assert not verify_history(latest, [latest]).verified


def field_map(**values: xdr.SCVal) -> xdr.SCVal:
    return scval.to_map({scval.to_symbol(name): value for name, value in sorted(values.items())})


GOOD = {
    "acl": scval.to_bytes(b""),
    "previous": scval.to_bytes(bytes(32)),
    "root": scval.to_bytes(bytes(31) + b"\x01"),
    "timestamp": scval.to_uint64(5),
    "uri": scval.to_bytes(b"u"),
    "version": scval.to_uint64(1),
}
LEGACY = {name: value for name, value in GOOD.items() if name not in {"previous", "timestamp"}}
OWNER = CHAINS[0]["owner"]


def test_an_older_deployments_anchor_has_no_previous_and_no_time() -> None:
    anchor = anchor_from_value(OWNER, field_map(**LEGACY))
    assert (anchor.previous, anchor.timestamp, anchor.version, anchor.uri) == (None, None, 1, b"u")
    with pytest.raises(ValueError, match="older deployment"):
        anchor_to_value(anchor)


@pytest.mark.parametrize(
    "value",
    [
        pytest.param(scval.to_void(), id="nothing"),
        pytest.param(scval.to_uint64(1), id="a number"),
        pytest.param(field_map(), id="empty"),
        pytest.param(field_map(**GOOD | {"more": scval.to_void()}), id="a field more"),
        pytest.param(field_map(**{k: v for k, v in GOOD.items() if k != "uri"}), id="a field less"),
        pytest.param(field_map(**GOOD | {"root": scval.to_bytes(bytes(31))}), id="short root"),
        pytest.param(field_map(**GOOD | {"previous": scval.to_bytes(bytes(33))}), id="long previous"),
        pytest.param(field_map(**GOOD | {"uri": scval.to_string("u")}), id="uri as a string"),
        pytest.param(field_map(**GOOD | {"version": scval.to_uint32(1)}), id="version of 32 bits"),
        pytest.param(field_map(**GOOD | {"version": scval.to_uint64(0)}), id="version 0"),
        pytest.param(field_map(**GOOD | {"timestamp": scval.to_int64(1)}), id="signed time"),
        pytest.param(
            scval.to_map({scval.to_string(name): value for name, value in sorted(GOOD.items())}),
            id="keys as strings",
        ),
        pytest.param(
            xdr.SCVal(
                xdr.SCValType.SCV_MAP,
                map=xdr.SCMap(
                    [
                        xdr.SCMapEntry(scval.to_symbol(name), value)
                        for name, value in [*GOOD.items(), ("uri", scval.to_bytes(b"twice"))]
                    ]
                ),
            ),
            id="a key twice",
        ),
    ],
)
def test_what_is_no_anchor_is_refused(value: xdr.SCVal) -> None:
    with pytest.raises(WrongDomain, match="not an anchor"):
        anchor_from_value(OWNER, value)


@pytest.mark.parametrize(
    ("topics", "data"),
    [
        ([scval.to_symbol("memory_anchored")], field_map(**GOOD)),
        ([scval.to_symbol("other"), scval.to_address(OWNER)], field_map(**GOOD)),
        ([scval.to_string("memory_anchored"), scval.to_address(OWNER)], field_map(**GOOD)),
        ([scval.to_symbol("memory_anchored"), scval.to_string(OWNER)], field_map(**GOOD)),
        ([scval.to_symbol("memory_anchored"), scval.to_address(OWNER)] * 2, field_map(**GOOD)),
        ([scval.to_symbol("memory_anchored"), scval.to_address(OWNER)], field_map(**LEGACY)),
    ],
)
def test_what_is_no_anchoring_event_is_refused(topics: list[xdr.SCVal], data: xdr.SCVal) -> None:
    with pytest.raises(WrongDomain):
        anchor_from_event(topics, data)


def test_uri_as_text() -> None:
    value = field_map(**GOOD | {"uri": scval.to_bytes("ü".encode())})
    assert anchor_from_value(OWNER, value).uri_text == "ü"
    value = field_map(**GOOD | {"uri": scval.to_bytes(b"\xff")})
    assert anchor_from_value(OWNER, value).uri_text is None


def test_owners_may_be_contracts() -> None:
    assert StrKey.is_valid_contract(CHAINS[1]["owner"])
