"""Keeping anchors alive on the network's own host, whose short times to live make a test of months."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from stellar_sdk import Keypair

from mycelium_sdk.chain import operations
from mycelium_sdk.chain.artifact import memory_anchor_sha256
from mycelium_sdk.chain.base import EntryStatus
from mycelium_sdk.chain.keeping import AnchorKeeper, Offer, Part
from mycelium_sdk.errors import ChainError, NotAnchored

if TYPE_CHECKING:
    from collections.abc import Callable

    from mycelium_localnet.profiles import ProfileName
    from tests.contract.conftest import Host

ROOT = b"\x01" * 32


@pytest.fixture
def host(make_host: Callable[[ProfileName], Host]) -> Host:
    made = make_host("short-ttl")
    made.client.set_anchor(made.owner, ROOT)
    return made


def _remaining(host: Host) -> int:
    state = host.client.entry_state(host.owner.public_key)
    assert state.remaining is not None
    return state.remaining


def test_an_anchor_that_lives_long_enough_costs_nothing(host: Host) -> None:
    kept, receipts = AnchorKeeper(host.client).keep(host.owner.public_key, lambda: host.other, below=5)
    assert receipts == []
    assert [one.part for one in kept] == [Part.ANCHOR]
    assert kept[0].before == kept[0].remaining == _remaining(host)


def test_what_is_about_to_expire_is_extended(host: Host) -> None:
    host.skip(_remaining(host) - 3)
    offers: list[Offer] = []

    def accept(offer: Offer) -> bool:
        offers.append(offer)
        return True

    kept, receipts = AnchorKeeper(host.client).keep(host.owner.public_key, lambda: host.other, accept=accept)
    assert [(offer.action, offer.parts) for offer in offers] == [("extend", (Part.ANCHOR,))]
    assert 0 < receipts[0].fee_charged <= offers[0].fee + 100
    assert kept[0].before == 3
    assert kept[0].remaining == _remaining(host) > 30  # the profile's most is 40
    anchor = host.client.get_anchor(host.owner.public_key)
    assert anchor is not None
    assert anchor.root == ROOT


def test_what_was_archived_is_restored_and_extended(host: Host) -> None:
    host.skip(_remaining(host) + 1)
    assert host.client.entry_state(host.owner.public_key).status is EntryStatus.ARCHIVED
    offers: list[Offer] = []

    def accept(offer: Offer) -> bool:
        offers.append(offer)
        return True

    kept, receipts = AnchorKeeper(host.client).keep(host.owner.public_key, lambda: host.other, accept=accept)
    assert [offer.action for offer in offers] == ["restore", "extend"]
    assert len(receipts) == 2
    assert kept[0].before is None
    assert kept[0].remaining == _remaining(host) > 30
    assert host.client.get_version(host.owner.public_key) == 1


def test_contract_and_code_only_on_request(host: Host) -> None:
    key = operations.code_key(memory_anchor_sha256())
    (before,) = host.chain.entries([key])
    offers: list[Offer] = []

    def accept(offer: Offer) -> bool:
        offers.append(offer)
        return len(offers) > 1

    keeper = AnchorKeeper(host.client)
    kept, receipts = keeper.keep(
        host.owner.public_key, lambda: host.other, include_contract=True, accept=accept
    )
    assert receipts == []
    assert offers[0].parts == (Part.CONTRACT, Part.CODE)
    assert host.chain.entries([key])[0].live_until == before.live_until
    kept, receipts = keeper.keep(
        host.owner.public_key, lambda: host.other, include_contract=True, accept=accept
    )
    assert receipts[0].fee_charged <= offers[0].fee + 100
    assert [one.part for one in kept] == list(Part)
    assert all(one.remaining is not None and one.remaining > 30 for one in kept)
    (after,) = host.chain.entries([key])
    assert after.live_until is not None
    assert before.live_until is not None
    assert after.live_until > before.live_until


def test_a_network_that_takes_it_and_does_nothing_is_noticed(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    host.skip(_remaining(host) - 3)
    nothing = operations.data_key(host.client.contract_id, host.arguments()[1])
    real = operations.extend
    monkeypatch.setattr(operations, "extend", lambda _, to: real([nothing], to))
    with pytest.raises(ChainError, match="as short as before"):
        AnchorKeeper(host.client).keep(host.owner.public_key, lambda: host.other)


def test_nobody_s_anchor_cannot_be_kept(host: Host) -> None:
    with pytest.raises(NotAnchored):
        AnchorKeeper(host.client).keep(Keypair.random().public_key, lambda: host.owner)
