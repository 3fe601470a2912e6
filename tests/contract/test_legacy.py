"""An older deployment: recognised, read and moved, with what it cannot give said plainly."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from stellar_sdk import StrKey

from mycelium_sdk.chain.anchor_client import MemoryAnchorClient
from mycelium_sdk.chain.anchors import verify_history
from mycelium_sdk.chain.base import EntryStatus
from mycelium_sdk.chain.build import build_contract
from mycelium_sdk.chain.deployment import deploy
from mycelium_sdk.errors import ContractNotFound, InputError, VersionConflict, WrongDomain

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from mycelium_localnet.profiles import ProfileName
    from tests.contract.conftest import Host

ROOTS = [bytes([number]) * 32 for number in range(1, 5)]


@pytest.fixture(scope="module")
def legacy_wasm(request: pytest.FixtureRequest) -> bytes:
    source: Path = request.path.parent / "legacy_anchor.py"
    return build_contract(source).wasm


def legacy_client(host: Host, wasm: bytes) -> MemoryAnchorClient:
    return MemoryAnchorClient(host.chain, deploy(host.chain, wasm, host.other).contract_id)


@pytest.fixture
def legacy(host: Host, legacy_wasm: bytes) -> MemoryAnchorClient:
    return legacy_client(host, legacy_wasm)


def test_the_two_are_told_apart_by_their_interface(host: Host, legacy: MemoryAnchorClient) -> None:
    assert legacy.is_legacy
    assert not host.client.is_legacy


def test_reading_before_the_first_anchor(host: Host, legacy: MemoryAnchorClient) -> None:
    owner = host.owner.public_key
    assert legacy.get_anchor(owner) is None
    assert legacy.get_version(owner) == 0
    assert legacy.is_anchored(owner) is False
    assert legacy.entry_state(owner).status is EntryStatus.ABSENT


def test_anchoring_and_reading(host: Host, legacy: MemoryAnchorClient) -> None:
    for version, root in enumerate(ROOTS, start=1):
        assert legacy.set_anchor(host.owner, root, b"uri", b"acl").version == version
    anchor = legacy.get_anchor(host.owner.public_key)
    assert anchor is not None
    assert (anchor.version, anchor.root, anchor.uri, anchor.acl) == (4, ROOTS[3], b"uri", b"acl")
    assert (anchor.previous, anchor.timestamp) == (None, None)
    assert not verify_history(anchor, [anchor]).verified
    assert legacy.entry_state(host.owner.public_key).status is EntryStatus.LIVE


def test_comparing_is_the_clients_and_the_receipt_says_so(host: Host, legacy: MemoryAnchorClient) -> None:
    receipt = legacy.set_anchor_if(host.owner, 0, ROOTS[0])
    assert (receipt.version, receipt.compared) == (1, False)
    with pytest.raises(VersionConflict) as caught:
        legacy.set_anchor_if(host.owner, 0, ROOTS[1])
    assert (caught.value.expected, caught.value.actual) == (0, 1)
    assert legacy.get_version(host.owner.public_key) == 1


def test_another_machine_in_between_is_noticed_afterwards(host: Host, legacy: MemoryAnchorClient) -> None:
    """The window that compare-and-set closes and this contract leaves open: reported, not hidden."""
    other = MemoryAnchorClient(host.chain, legacy.contract_id)
    actual_version = other.get_version

    def slip_through(owner: str) -> int:
        version = actual_version(owner)
        other.set_anchor(host.owner, ROOTS[3])
        return version

    legacy.get_version = slip_through  # type: ignore[method-assign]
    with pytest.raises(VersionConflict, match="cannot compare by itself") as caught:
        legacy.set_anchor_if(host.owner, 0, ROOTS[0])
    assert (caught.value.expected, caught.value.actual) == (0, 1)
    anchor = other.get_anchor(host.owner.public_key)
    assert anchor is not None
    assert (anchor.version, anchor.root) == (2, ROOTS[0])


def test_the_clients_limits_hold_here_too(host: Host, legacy: MemoryAnchorClient) -> None:
    """The contract itself takes anything; what the SDK writes must be an anchor."""
    with pytest.raises(InputError):
        legacy.set_anchor(host.owner, bytes(32))
    with pytest.raises(InputError):
        legacy.set_anchor_if(host.owner, 0, ROOTS[0], b"u" * 1025)


def test_archived_and_restored(make_host: Callable[[ProfileName], Host], legacy_wasm: bytes) -> None:
    host = make_host("short-ttl")
    client = legacy_client(host, legacy_wasm)
    client.set_anchor(host.owner, ROOTS[0])
    anchor = client.get_anchor(host.owner.public_key)
    host.skip(60)
    assert client.entry_state(host.owner.public_key).status is EntryStatus.ARCHIVED
    assert client.get_anchor(host.owner.public_key) == anchor
    assert client.restore(host.owner.public_key, host.other) is not None
    assert client.entry_state(host.owner.public_key, expiring_within=1).status is EntryStatus.LIVE


def test_no_contract_at_the_address(host: Host) -> None:
    client = MemoryAnchorClient(host.chain, StrKey.encode_contract(bytes(32)))
    for ask in (
        lambda: client.is_legacy,
        lambda: client.get_anchor(host.owner.public_key),
        lambda: client.get_version(host.owner.public_key),
        lambda: client.set_anchor(host.owner, ROOTS[0]),
        lambda: client.set_anchor_if(host.owner, 0, ROOTS[0]),
        lambda: client.entry_state(host.owner.public_key),
    ):
        with pytest.raises(ContractNotFound):
            ask()


def test_another_contract_at_the_address(host: Host, tmp_path: Path) -> None:
    source = tmp_path / "other.py"
    source.write_text(
        "from pysoroban import Address, contract, i32, public\n\n@contract\nclass Other:\n"
        "    @public\n    def get_version(self, owner: Address) -> i32:\n        return 7\n"
        "    @public\n    def get_anchor(self, owner: Address) -> i32:\n        return 7\n"
    )
    client = MemoryAnchorClient(
        host.chain, deploy(host.chain, build_contract(source).wasm, host.other).contract_id
    )
    for ask in (
        lambda: client.is_legacy,
        lambda: client.get_anchor(host.owner.public_key),
        lambda: client.get_version(host.owner.public_key),
        lambda: client.set_anchor_if(host.owner, 0, ROOTS[0]),
    ):
        with pytest.raises(WrongDomain):
            ask()
