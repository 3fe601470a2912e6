"""The embedded chain, followed: anchors as the contract makes them, its faults, and an older deployment."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import pytest
from stellar_sdk import Keypair, scval

from mycelium_indexer.ingest import Ingester
from mycelium_indexer.values import Gap, LedgerRange, Repaired, Totals
from mycelium_localnet import Chain
from mycelium_sdk.chain import operations
from mycelium_sdk.chain.anchor_client import MemoryAnchorClient
from mycelium_sdk.chain.anchors import verify_history
from mycelium_sdk.chain.build import build_contract
from mycelium_sdk.chain.deployment import deploy, ensure_local_contract
from mycelium_sdk.chain.embedded import EmbeddedChain
from mycelium_sdk.errors import ChainUnavailable
from mycelium_sdk.networks import STANDALONE_PASSPHRASE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mycelium_indexer.store.base import IndexStore
    from mycelium_indexer.values import Source

OWNER = Keypair.from_raw_ed25519_seed(b"owner of a memory in these tests")
OTHER = Keypair.from_raw_ed25519_seed(b"somebody else within these tests")
ROOTS = [bytes([number]) * 32 for number in range(1, 30)]


@dataclasses.dataclass
class Followed:
    """A contract on an embedded chain, and what follows it."""

    client: MemoryAnchorClient
    store: IndexStore
    page: int = 1000

    def __post_init__(self) -> None:
        self.ingester = Ingester(self.client, self.store, page=self.page)

    @property
    def localnet(self) -> Chain:
        assert isinstance(self.client.chain, EmbeddedChain)
        return self.client.chain.localnet

    @property
    def source(self) -> Source:
        return self.ingester.source

    def anchor(self, number: int, who: Keypair = OWNER) -> None:
        self.client.set_anchor(who, ROOTS[number - 1], b"https://example.org/%d" % number)

    def follow(self) -> None:
        while self.ingester.poll_once():
            pass

    def versions(self, who: Keypair = OWNER) -> list[int]:
        found = self.store.history(self.source, who.public_key, below=None, limit=99)
        return [one.anchor.version for one in found]


@pytest.fixture
def open_chain() -> Iterator[Callable[[], EmbeddedChain]]:
    opened: list[EmbeddedChain] = []

    def opener() -> EmbeddedChain:
        chain = EmbeddedChain(Chain.open(":memory:"), STANDALONE_PASSPHRASE)
        opened.append(chain)
        for person in (OWNER, OTHER):
            chain.fund(person.public_key)
        return chain

    yield opener
    for chain in opened:
        chain.close()


@pytest.fixture
def followed(open_chain: Callable[[], EmbeddedChain], store: IndexStore) -> Followed:
    chain = open_chain()
    return Followed(MemoryAnchorClient(chain, ensure_local_contract(chain, None)), store)


def test_an_anchor_is_there_within_one_look(followed: Followed) -> None:
    followed.follow()
    for number in (1, 2, 3):
        followed.anchor(number)
        followed.anchor(number, OTHER)
        followed.ingester.poll_once()
        for who in (OWNER, OTHER):
            latest = followed.store.latest(followed.source, who.public_key)
            assert latest is not None
            assert latest.anchor == followed.client.get_anchor(who.public_key)
            assert latest.transaction is not None
            assert followed.client.chain.transaction(latest.transaction).ledger == latest.ledger
    history = followed.store.history(followed.source, OWNER.public_key, below=None, limit=9)
    proof = verify_history(history[0].anchor, (one.anchor for one in history))
    assert (proof.verified, proof.complete) == (True, True)


def test_retention_trimmed_under_its_feet(followed: Followed) -> None:
    followed.anchor(1)
    followed.follow()
    kept = []
    for number in range(2, 12):
        followed.anchor(number)
        kept.append(followed.client.get_anchor(OWNER.public_key))
    before = followed.store.progress(followed.source)
    assert before is not None
    followed.localnet.fault("retention", count=50, methods=["getEvents"], ledgers=3)
    followed.follow()
    assert followed.versions() == [11, 10, 9, 1], "nothing lost that the server still had"
    (gap,) = followed.store.gaps(followed.source)
    assert (gap.first, gap.last) == (2, 8)
    (missed,) = followed.store.missed(followed.source)
    assert missed.first == before.ledger + 1
    anchors = [anchor for anchor in kept if anchor is not None]
    assert followed.store.repair(followed.source, anchors) == Repaired(7, 0)
    assert followed.versions() == list(range(11, 0, -1))
    followed.localnet.clear_faults()
    followed.anchor(12)
    followed.follow()
    assert followed.versions()[0] == 12
    assert followed.store.totals(followed.source) == Totals(1, 12, 0, 0)


def test_an_archived_anchor_is_read_from_the_state_all_the_same(followed: Followed) -> None:
    followed.anchor(1)
    followed.follow()
    followed.anchor(2)
    followed.localnet.fault("archive", count=50, methods=["getLedgerEntries"], owner=OWNER.public_key)
    followed.localnet.skip_ledgers(20)
    followed.localnet.fault("retention", count=50, methods=["getEvents"], ledgers=3)
    followed.follow()
    assert followed.versions() == [2, 1]


def test_another_chain_at_the_same_place(
    followed: Followed, open_chain: Callable[[], EmbeddedChain], store: IndexStore
) -> None:
    """The local contract has the same address on every chain; the chain's id tells them apart."""
    followed.anchor(1)
    followed.anchor(2)
    followed.follow()
    chain = open_chain()
    newer = Followed(MemoryAnchorClient(chain, ensure_local_contract(chain, None)), store)
    newer.anchor(7)
    newer.follow()
    assert (newer.versions(), followed.versions()) == ([1], [2, 1])
    assert newer.source.contract == followed.source.contract
    assert [one.epoch for one in store.sources()] == [2, 1]


def test_a_chain_that_is_put_back(followed: Followed) -> None:
    followed.anchor(1)
    followed.follow()
    snapshot = followed.localnet.snapshot()
    followed.anchor(2)
    followed.anchor(3)
    followed.follow()
    older = followed.source
    followed.localnet.revert(snapshot)
    for number in (4, 5, 6):
        followed.anchor(number)
    followed.follow()
    assert followed.source.epoch == 2
    assert followed.versions() == [4, 3, 2, 1]
    latest = followed.store.latest(followed.source, OWNER.public_key)
    assert latest is not None
    assert latest.anchor.root == ROOTS[5]
    kept = followed.store.latest(older, OWNER.public_key)
    assert kept is not None
    assert kept.anchor.root == ROOTS[2]


# -- an older deployment


@pytest.fixture(scope="module")
def legacy_wasm(request: pytest.FixtureRequest) -> bytes:
    return build_contract(request.path.parents[2] / "contract" / "legacy_anchor.py").wasm


@pytest.fixture
def legacy(open_chain: Callable[[], EmbeddedChain], legacy_wasm: bytes, store: IndexStore) -> Followed:
    chain = open_chain()
    return Followed(MemoryAnchorClient(chain, deploy(chain, legacy_wasm, OTHER).contract_id), store)


def test_an_older_deployment_is_read_from_its_state(legacy: Followed) -> None:
    for number in (1, 2):
        legacy.anchor(number)
        legacy.follow()
    latest = legacy.store.latest(legacy.source, OWNER.public_key)
    assert latest is not None
    assert latest.anchor == legacy.client.get_anchor(OWNER.public_key)
    assert (latest.anchor.previous, latest.anchor.timestamp) == (None, None)
    assert latest.transaction is not None
    assert legacy.client.chain.transaction(latest.transaction).ledger == latest.ledger
    assert legacy.versions() == [2, 1]


def test_what_was_overwritten_before_it_was_read_is_a_gap(legacy: Followed) -> None:
    for number in (1, 2, 3):
        legacy.anchor(number)
        legacy.anchor(number, OTHER)
    legacy.follow()
    assert legacy.versions() == [3]
    assert {(gap.first, gap.last) for gap in legacy.store.gaps(legacy.source)} == {(1, 2)}
    assert legacy.store.totals(legacy.source) == Totals(2, 2, 2, 0)


def test_the_state_may_be_ahead_of_the_events(legacy: Followed) -> None:
    """Pages of two events: the state has the newest version from the first one on, its event comes later."""
    followed = Followed(legacy.client, legacy.store, page=2)
    for number in range(1, 8):
        followed.anchor(number)
    followed.ingester.poll_once()
    first = followed.store.latest(followed.source, OWNER.public_key)
    assert first is not None
    assert (first.anchor.version, first.ledger, first.transaction) == (7, None, None)
    followed.follow()
    latest = followed.store.latest(followed.source, OWNER.public_key)
    assert latest is not None
    assert latest.transaction is not None
    assert (latest.anchor, followed.versions()) == (first.anchor, [7])


def test_a_state_that_is_behind_the_events_is_waited_for(legacy: Followed) -> None:
    legacy.anchor(1)
    legacy.follow()
    before = legacy.store.progress(legacy.source)
    legacy.anchor(2)
    legacy.localnet.fault("stale", count=50, methods=["getLedgerEntries"], ledgers=1)
    with pytest.raises(ChainUnavailable, match="older than its events"):
        legacy.ingester.poll_once()
    assert legacy.store.progress(legacy.source) == before
    legacy.localnet.clear_faults()
    legacy.follow()
    assert legacy.versions() == [2, 1]
    assert legacy.store.totals(legacy.source).set_aside == 0


def test_what_an_older_deployment_takes_and_no_anchor_is(legacy: Followed) -> None:
    """It takes roots of any length: one that is none must not stop the rest."""
    arguments = [scval.to_address(OWNER.public_key), *map(scval.to_bytes, (b"short", b"uri", b""))]
    legacy.client.chain.submit(operations.invoke(legacy.client.contract_id, "set_anchor", arguments), OWNER)
    legacy.anchor(1, OTHER)
    legacy.follow()
    assert legacy.store.latest(legacy.source, OWNER.public_key) is None
    assert legacy.versions(OTHER) == [1]
    (aside,) = legacy.store.set_aside(legacy.source, limit=9)
    assert "5 bytes" in aside.reason
    legacy.anchor(2)
    legacy.follow()
    assert legacy.versions() == [2]
    assert legacy.store.gaps(legacy.source, OWNER.public_key) == [
        Gap(OWNER.public_key, 1, 1, _ledger(legacy))
    ]


def _ledger(followed: Followed) -> int:
    latest = followed.store.latest(followed.source, OWNER.public_key)
    assert latest is not None
    assert latest.ledger is not None
    return latest.ledger


def test_retention_of_an_older_deployment(legacy: Followed) -> None:
    legacy.anchor(1)
    legacy.follow()
    for number in range(2, 6):
        legacy.anchor(number)
    legacy.localnet.skip_ledgers(9)
    legacy.localnet.fault("retention", count=50, methods=["getEvents"], ledgers=3)
    legacy.follow()
    assert legacy.versions() == [5, 1]
    assert [(gap.first, gap.last) for gap in legacy.store.gaps(legacy.source)] == [(2, 4)]
    assert len(legacy.store.missed(legacy.source)) == 1
    assert isinstance(legacy.store.missed(legacy.source)[0], LedgerRange)


def test_owners_who_anchored_before_it_was_followed(followed: Followed) -> None:
    for number in (1, 2, 3):
        followed.anchor(number)
    kept = [anchor for anchor in [followed.client.get_anchor(OWNER.public_key)] if anchor is not None]
    latest = followed.client.chain.identity().latest_ledger
    followed.localnet.skip_ledgers(5)
    followed.ingester = Ingester(followed.client, followed.store, start_ledger=latest + 1)
    followed.follow()
    assert followed.versions() == []
    gaps = followed.ingester.learn([OWNER.public_key, OTHER.public_key])
    assert [(gap.first, gap.last) for gap in gaps] == [(1, 2)]
    found = followed.store.latest(followed.source, OWNER.public_key)
    assert found is not None
    assert [found.anchor] == kept
    assert followed.store.latest(followed.source, OTHER.public_key) is None
    followed.anchor(4)
    followed.follow()
    assert followed.versions() == [4, 3]
