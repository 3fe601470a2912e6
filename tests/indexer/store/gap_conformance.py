"""What a store of the indexer must do about versions that are missing, and what contradicts."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import pytest

from mycelium_indexer.values import Gap, LedgerRange, Repaired, Totals
from mycelium_sdk.errors import InputError, Tampered
from mycelium_sdk.testing.event_server import forged_history
from tests.indexer.store.feeding import ALICE, BOB, event, owner, progress, state

if TYPE_CHECKING:
    from tests.indexer.store.feeding import Feed


class GapConformance:
    """A part of `StoreConformance`."""

    # -- versions that are missing

    def test_a_version_that_is_skipped_leaves_a_gap(self, feed: Feed) -> None:
        history = forged_history(ALICE, 9)
        feed.page(5, history[2])
        assert feed.gaps() == [(1, 2)]
        feed.page(8, history[3], history[7])
        assert feed.versions() == [8, 4, 3]
        assert feed.store.gaps(feed.source) == [Gap(ALICE, 1, 2, 5), Gap(ALICE, 5, 7, 8)]
        assert feed.store.gaps(feed.source, BOB) == []
        assert feed.store.totals(feed.source) == Totals(1, 3, 2, 0)

    def test_a_gap_that_is_filled_shrinks_splits_and_goes(self, feed: Feed) -> None:
        history = forged_history(ALICE, 9)
        feed.page(5, history[8])
        for ledger, (version, left) in enumerate(
            [
                (5, [(1, 4), (6, 8)]),
                (8, [(1, 4), (6, 7)]),
                (6, [(1, 4), (7, 7)]),
                (7, [(1, 4)]),
                (1, [(2, 4)]),
                (3, [(2, 2), (4, 4)]),
                (4, [(2, 2)]),
                (2, []),
            ],
            start=10,
        ):
            feed.page(ledger, history[version - 1])
            assert feed.gaps() == left, version
            assert feed.store.totals(feed.source).gaps == len(left)
        assert feed.versions() == list(range(9, 0, -1))
        assert feed.latest() == event(history[8], 5)
        assert feed.store.totals(feed.source) == Totals(1, 9, 0, 0)

    def test_the_latest_never_goes_back(self, feed: Feed) -> None:
        history = forged_history(ALICE, 5)
        feed.page(5, history[4])
        feed.page(6, history[1])
        feed.store.take_state(feed.source, [state(history[3])], ledger=7)
        assert feed.latest() == event(history[4], 5)
        assert [
            item.anchor.version for item in feed.store.owners(feed.source, after=None, limit=9).items
        ] == [5]

    def test_the_state_leaves_gaps_and_events_find_their_place(self, feed: Feed) -> None:
        store, source = feed.store, feed.source
        alice, bob = forged_history(ALICE, 5), forged_history(BOB, 2)
        feed.page(5, alice[0], bob[0])
        noticed = store.take_state(source, [state(alice[4]), state(bob[1])], ledger=50)
        assert noticed == [Gap(ALICE, 2, 4, 50)]
        assert feed.latest() == state(alice[4])
        assert store.progress(source) == progress(5), "the cursor stays"
        feed.page(44, alice[2])

        def listed() -> list[str]:
            return [one.anchor.owner for one in store.owners(source, after=None, limit=9).items]

        feed.page(47, forged_history(owner(3), 1)[0])
        assert listed()[2:] == [owner(3)], "the state was of ledger 50"
        feed.page(48, event(alice[4], 45))
        assert listed()[:2] == [BOB, owner(3)]
        assert listed()[2] == ALICE
        assert feed.latest() == event(alice[4], 45)
        assert feed.gaps() == [(2, 2), (4, 4)]
        assert store.totals(source) == Totals(3, 6, 2, 0)
        assert store.take_state(source, [state(alice[4])], ledger=60) == []
        assert feed.latest() == event(alice[4], 45)

    def test_missed_ledgers_are_kept(self, feed: Feed) -> None:
        store, source = feed.store, feed.source
        feed.page(5)
        missed = LedgerRange(6, 90)
        assert not store.advance(source, progress(90), after=None, missed=missed)
        assert store.missed(source) == []
        assert store.advance(source, progress(90), after=progress(5).cursor, missed=missed)
        assert store.missed(source) == [missed]
        assert store.progress(source) == progress(90)

    # -- what contradicts

    def test_another_anchor_of_a_version_is_set_aside(self, feed: Feed) -> None:
        history = forged_history(ALICE, 2)
        feed.page(5, *history)
        feed.page(
            6, dataclasses.replace(history[0], uri=b"other"), dataclasses.replace(history[1], root=bytes(32))
        )
        assert feed.latest().anchor == history[1]
        assert {one.reason for one in feed.store.set_aside(feed.source, limit=9)} == {
            "version 1: another anchor has its version", "version 2: another anchor has its version",
        }  # fmt: skip
        assert feed.store.totals(feed.source) == Totals(1, 2, 0, 2)

    def test_the_same_anchor_by_another_event_is_set_aside(self, feed: Feed) -> None:
        (first,) = forged_history(ALICE, 1)
        feed.page(5, first)
        feed.page(6, first)
        assert feed.latest() == event(first, 5)
        assert feed.store.totals(feed.source).set_aside == 1

    @pytest.mark.parametrize(
        ("there", "comes"),
        [((), 1), ((1,), 2), ((4,), 3), ((2, 4), 3)],
        ids=["first", "next", "below", "between"],
    )
    def test_what_the_hash_chain_contradicts_is_set_aside(
        self, feed: Feed, there: tuple[int, ...], comes: int
    ) -> None:
        history = forged_history(ALICE, 5)
        feed.page(5, *(history[version - 1] for version in there))
        before = (feed.versions(), feed.gaps(), feed.store.totals(feed.source).anchors)
        forged = dataclasses.replace(history[comes - 1], previous=bytes(32))
        feed.page(6, forged, *forged_history(BOB, 1))
        assert (feed.versions(), feed.gaps(), feed.store.totals(feed.source).anchors - 1) == before
        (aside,) = feed.store.set_aside(feed.source, limit=9)
        assert f"version {comes}: " in aside.reason
        assert feed.latest(BOB).anchor.version == 1, "the rest of the page is taken"
        feed.page(7, history[comes - 1])
        assert comes in feed.versions()

    def test_a_state_that_contradicts_is_set_aside(self, feed: Feed) -> None:
        history = forged_history(ALICE, 2)
        feed.page(5, history[0])
        forged = dataclasses.replace(history[1], previous=bytes(32))
        assert feed.store.take_state(feed.source, [state(forged)], ledger=6) == []
        assert feed.versions() == [1]
        assert feed.store.totals(feed.source).set_aside == 1

    def test_an_older_deployments_anchors_need_no_chain(self, feed: Feed) -> None:
        history = [
            dataclasses.replace(one, previous=None, timestamp=None) for one in forged_history(ALICE, 5)
        ]
        feed.page(5, history[0], history[1], history[4])
        feed.page(6, history[2])
        assert feed.latest().anchor == history[4]
        assert (feed.versions(), feed.gaps()) == ([5, 3, 2, 1], [(4, 4)])
        with pytest.raises(InputError, match="older deployment"):
            feed.store.repair(feed.source, [history[3]])

    # -- repairing

    def test_kept_anchors_fill_gaps(self, feed: Feed) -> None:
        alice, bob = forged_history(ALICE, 9), forged_history(BOB, 4)
        feed.page(5, alice[0], alice[3], alice[8], bob[3])
        repaired = feed.store.repair(feed.source, [*bob, *alice])
        assert repaired == Repaired(filled=2 + 4 + 3, unproved=0)
        assert feed.gaps(None) == []
        found = feed.store.history(feed.source, ALICE, below=None, limit=20)
        assert [one.anchor for one in found] == alice[::-1]
        assert found[1] == state(alice[7]), "where it was made is not proved"
        assert found[5] == event(alice[3], 5, 2)
        assert feed.store.totals(feed.source) == Totals(2, 13, 0, 0)
        assert feed.store.repair(feed.source, alice) == Repaired(0, 0)

    def test_a_list_that_ends_early_fills_what_it_proves(self, feed: Feed) -> None:
        history = forged_history(ALICE, 9)
        feed.page(5, history[8])
        assert feed.store.repair(feed.source, history[5:8]) == Repaired(3, 0)
        assert feed.gaps() == [(1, 5)]
        # Nothing commits to those below a hole.
        assert feed.store.repair(feed.source, [*history[:3], history[4]]) == Repaired(1, 3)
        assert feed.gaps() == [(1, 4)]
        assert feed.store.totals(feed.source) == Totals(1, 5, 1, 0)

    def test_what_nothing_commits_to_is_left_out(self, feed: Feed) -> None:
        history = forged_history(ALICE, 5)
        feed.page(5, history[2])
        assert feed.store.repair(feed.source, [*history[3:], *forged_history(BOB, 2)]) == Repaired(0, 4)
        assert feed.versions() == [3]
        assert feed.store.latest(feed.source, BOB) is None

    @pytest.mark.parametrize("version", [1, 2, 4, 6])
    @pytest.mark.parametrize(
        "change",
        [
            {"root": bytes(31) + b"\1"},
            {"uri": b"elsewhere"},
            {"acl": b"x"},
            {"timestamp": 7},
            {"previous": bytes(32)},
        ],
        ids=lambda change: next(iter(change)),
    )
    def test_a_forged_list_is_refused_whole_with_the_version_named(
        self, feed: Feed, version: int, change: dict[str, object]
    ) -> None:
        history, bob = forged_history(ALICE, 7), forged_history(BOB, 3)
        feed.page(5, history[2], history[6], bob[2])
        before = (feed.versions(), feed.gaps(None), feed.store.totals(feed.source))
        forged = list(history)
        forged[version - 1] = dataclasses.replace(history[version - 1], **change)  # type: ignore[arg-type]
        with pytest.raises(Tampered, match=rf"version \d of {ALICE}") as caught:
            feed.store.repair(feed.source, [*bob, *forged])
        # A changed `previous` shows in the version itself, and in that what it now points to is another one.
        named = {version, version - 1} if "previous" in change else {version}
        assert any(f"version {one} of" in caught.value.message for one in named)
        assert (feed.versions(), feed.gaps(None), feed.store.totals(feed.source)) == before

    def test_a_list_that_contradicts_what_is_there_is_refused(self, feed: Feed) -> None:
        history = forged_history(ALICE, 3)
        feed.page(5, history[0], history[2])
        forged = dataclasses.replace(history[0], uri=b"elsewhere")
        with pytest.raises(Tampered, match="version 1"):
            feed.store.repair(feed.source, [forged, history[1]])
        with pytest.raises(Tampered, match="twice"):
            feed.store.repair(feed.source, [history[1], dataclasses.replace(history[1], acl=b"x")])
        assert feed.gaps() == [(2, 2)]

    def test_a_list_of_another_past_is_refused(self, feed: Feed) -> None:
        """What is below the gap must be what the list goes on from."""
        true, other = forged_history(ALICE, 4), forged_history(ALICE, 4, since=5)
        feed.page(5, other[0])
        feed.page(6, true[3])
        with pytest.raises(Tampered, match=r"version 1 of .* in the database"):
            feed.store.repair(feed.source, true[1:3])
        assert feed.gaps() == [(2, 3)]
