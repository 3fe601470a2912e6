"""What a store of the indexer must do, whatever the database."""

from __future__ import annotations

import dataclasses
import threading
from typing import TYPE_CHECKING

import pytest

from mycelium_indexer.values import Batch, IndexedAnchor, Landmark, Position, SetAside, Totals
from mycelium_sdk.strkey import encode_contract
from mycelium_sdk.testing.event_server import forged_history
from tests.indexer.store.feeding import ALICE, BOB, CONTRACT, NETWORK, Feed, event, owner, progress
from tests.indexer.store.gap_conformance import GapConformance

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mycelium_indexer.store.base import IndexStore


class StoreConformance(GapConformance):
    """Inherit, and give the fixture `opened`: a function that opens the same empty database each time."""

    @pytest.fixture
    def store(self, opened: Callable[[], IndexStore]) -> Iterator[IndexStore]:
        store = opened()
        yield store
        store.close()

    @pytest.fixture
    def feed(self, store: IndexStore) -> Feed:
        return Feed(store)

    # -- sources

    def test_a_source_is_made_once_and_found_again(self, opened: Callable[[], IndexStore]) -> None:
        store = opened()
        assert store.sources() == []
        assert store.find_source(NETWORK, CONTRACT) is None
        made = store.source(NETWORK, CONTRACT, "")
        assert (made.network, made.contract, made.chain_id, made.epoch) == (NETWORK, CONTRACT, "", 1)
        assert made.current
        assert store.source(NETWORK, CONTRACT, "") == made
        store.close()
        again = opened()
        assert again.find_source(NETWORK, CONTRACT) == made
        assert again.sources() == [made]
        again.close()
        again.close()

    def test_another_chain_id_is_another_source_and_the_first_stays_readable(self, feed: Feed) -> None:
        store = feed.store
        first = store.source(NETWORK, CONTRACT, "aa")
        assert (first.epoch, first.current) == (2, True)
        feed.page(5, *forged_history(ALICE, 2))
        second = store.source(NETWORK, CONTRACT, "bb")
        assert (second.epoch, second.current) == (3, True)
        assert store.progress(second) is None
        assert store.latest(second, ALICE) is None
        assert feed.latest().anchor.version == 2
        assert store.find_source(NETWORK, CONTRACT) == second
        assert [one.epoch for one in store.sources()] == [3, 1, 2]
        # The same chain again: where it was left.
        assert store.source(NETWORK, CONTRACT, "aa").id == first.id
        assert [one.current for one in store.sources()] == [True, False, False]

    def test_a_chain_that_started_anew_is_noticed_once(self, feed: Feed) -> None:
        store = feed.store
        newer = store.start_anew(feed.source)
        assert (newer.epoch, newer.current, newer.chain_id) == (2, True, "")
        assert store.start_anew(feed.source) == newer, "somebody else noticed it before"
        assert store.find_source(NETWORK, CONTRACT) == newer
        assert store.source(NETWORK, CONTRACT, "") == newer

    def test_contracts_and_networks_are_kept_apart(self, store: IndexStore) -> None:
        one, other = Feed(store), Feed(store, encode_contract(bytes(32)))
        elsewhere = store.source("Another Network", CONTRACT, "")
        history = forged_history(ALICE, 3)
        one.page(5, *history[:2])
        other.page(7, *history)
        assert (one.versions(), other.versions()) == ([2, 1], [3, 2, 1])
        assert store.latest(elsewhere, ALICE) is None
        assert store.totals(one.source).anchors == 2
        assert store.totals(other.source).anchors == 3
        assert store.totals(elsewhere) == Totals(0, 0, 0, 0)

    # -- pages

    def test_a_page_is_kept_as_it_came(self, feed: Feed, opened: Callable[[], IndexStore]) -> None:
        history = forged_history(ALICE, 3)
        assert feed.store.progress(feed.source) is None
        assert feed.page(5, *history)
        again = opened()
        found = again.history(feed.source, ALICE, below=None, limit=10)
        assert found == tuple(event(one, 5, one.version) for one in reversed(history))
        assert again.latest(feed.source, ALICE) == found[0]
        assert again.progress(feed.source) == progress(5)
        assert again.totals(feed.source) == Totals(owners=1, anchors=3, gaps=0, set_aside=0)
        again.close()

    def test_all_of_the_progress_is_kept(self, feed: Feed) -> None:
        full = progress(9, landmark=Landmark(8, "ab" * 32), latest_ledger=12, asked_at=7.25, first_ledger=3)
        assert feed.store.advance(feed.source, full, after=None)
        assert feed.store.progress(feed.source) == full

    def test_who_comes_second_changes_nothing(self, feed: Feed) -> None:
        history = forged_history(ALICE, 2)
        first = Batch((event(history[0], 5),), (), progress(5))
        second = Batch((event(history[1], 6),), (), progress(6))
        assert feed.store.apply(feed.source, first, after=None)
        assert not feed.store.apply(feed.source, first, after=None)
        assert not feed.store.apply(feed.source, second, after="elsewhere")
        assert not feed.store.advance(feed.source, progress(6), after=None)
        assert feed.store.progress(feed.source) == progress(5)
        assert feed.versions() == [1]
        assert feed.store.apply(feed.source, second, after=first.progress.cursor)

    def test_ingesters_at_once_do_no_harm(self, opened: Callable[[], IndexStore], feed: Feed) -> None:
        history = forged_history(ALICE, 40)
        stores = [opened() for _ in range(4)]

        def follow(store: IndexStore) -> None:
            while True:
                known = store.progress(feed.source)
                done = 0 if known is None else known.ledger
                if done == len(history):
                    return
                batch = Batch((event(history[done], done + 1),), (), progress(done + 1))
                store.apply(feed.source, batch, after=None if known is None else known.cursor)

        threads = [threading.Thread(target=follow, args=(store,)) for store in stores]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for store in stores:
            store.close()
        assert feed.versions() == list(range(40, 0, -1))
        assert feed.store.totals(feed.source) == Totals(1, 40, 0, 0)

    def test_an_event_that_is_there_changes_nothing(self, feed: Feed) -> None:
        history = forged_history(ALICE, 3)
        feed.page(5, *history)
        feed.page(6, *(event(one, 5, one.version) for one in history))
        assert feed.versions() == [3, 2, 1]
        assert feed.store.totals(feed.source) == Totals(1, 3, 0, 0)

    def test_any_bytes_survive(self, feed: Feed) -> None:
        nasty = [
            b"'; DROP TABLE anchors; --", b'"); DELETE FROM owners; --', b"<script>alert(1)</script>",
            b"javascript:alert(1)", b"\xff\xfe\x00\x80invalid", b"\x00", b"%s %(x)s :name ? $1",
            "ü\u202e".encode(), bytes(range(256)),
        ]  # fmt: skip
        first = forged_history(ALICE, 1)[0]
        anchors = [
            dataclasses.replace(forged_history(owner(n), 1)[0], uri=text, acl=text[::-1])
            for n, text in enumerate(nasty, 100)
        ]
        feed.page(5, first, *anchors)
        for anchor in anchors:
            assert feed.latest(anchor.owner).anchor == anchor
        assert feed.store.totals(feed.source).anchors == 1 + len(nasty)

    def test_owners_that_are_no_addresses_find_nothing(self, feed: Feed) -> None:
        feed.page(5, *forged_history(ALICE, 1))
        for text in ("' OR '1'='1", "%", "_" * 56, ALICE.lower(), ""):
            assert feed.store.latest(feed.source, text) is None
            assert feed.store.history(feed.source, text, below=None, limit=5) == ()

    def test_what_is_set_aside_is_kept_once_with_its_reason(self, feed: Feed) -> None:
        aside = [SetAside(f"{n << 32:019d}-0000000000", n, "ab" * 32, f"reason {n}") for n in (3, 4, 5)]
        feed.page(5, aside=aside)
        feed.page(6, aside=aside)
        assert feed.store.set_aside(feed.source, limit=2) == [aside[2], aside[1]]
        assert feed.store.totals(feed.source) == Totals(0, 0, 0, 3)

    # -- reading

    def test_history_in_pages(self, feed: Feed) -> None:
        feed.page(5, *forged_history(ALICE, 7), *forged_history(BOB, 2))

        def read(below: int | None) -> list[int]:
            page = feed.store.history(feed.source, ALICE, below=below, limit=3)
            return [one.anchor.version for one in page]

        assert (read(None), read(5), read(2), read(1)) == ([7, 6, 5], [4, 3, 2], [1], [])

    def test_owners_newest_first_in_pages(self, feed: Feed) -> None:
        people = [owner(n) for n in range(25)]
        histories = {name: forged_history(name, 2) for name in people}
        feed.page(5, *(histories[name][0] for name in people))
        for ledger, name in enumerate(people[:9], start=10):
            feed.page(ledger, histories[name][1])
        expected = [*people[8::-1], *sorted(people[9:], reverse=True)]
        found: list[IndexedAnchor] = []
        after: Position | None = None
        while True:
            page = feed.store.owners(feed.source, after=after, limit=4)
            found += page.items
            after = page.following
            if after is None:
                break
            assert len(page.items) == 4
        assert [one.anchor.owner for one in found] == expected
        assert [one.anchor.version for one in found] == [2] * 9 + [1] * 16
        assert feed.store.owners(feed.source, after=None, limit=25).following is None

    def test_known_owners_in_pages(self, feed: Feed) -> None:
        people = sorted(owner(n) for n in range(7))
        feed.page(5, *(forged_history(name, 1)[0] for name in people), forged_history(people[3], 2)[1])
        found: list[tuple[str, int]] = []
        while True:
            after = found[-1][0] if found else None
            more = feed.store.known_owners(feed.source, after=after, limit=3)
            if not more:
                break
            found += more
        assert found == [(name, 2 if name == people[3] else 1) for name in people]

    def test_a_large_page(self, feed: Feed) -> None:
        """More owners and events than one query may ask for."""
        people = [owner(n) for n in range(1300)]
        feed.page(5, *(forged_history(name, 1)[0] for name in people))
        feed.page(6, *(forged_history(name, 2)[1] for name in people))
        feed.page(7, *(event(forged_history(name, 2)[1], 6, n) for n, name in enumerate(people, 1)))
        assert feed.store.totals(feed.source) == Totals(1300, 2600, 0, 0)
