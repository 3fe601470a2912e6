"""A page as progress: never backwards, and never beyond what was read."""

from __future__ import annotations

import dataclasses

import pytest

from mycelium_indexer.ingest.pages import fresh_events, place_before, progress_after
from mycelium_sdk.chain.base import ChainEvent, EventPage
from mycelium_sdk.chain.cursors import ledger_of, place_of
from mycelium_sdk.errors import WrongDomain


def event(ledger: int, number: int = 1) -> ChainEvent:
    identity = f"{ledger << 32 | number << 12:019d}-{0:010d}"
    return ChainEvent(identity, "C", ledger, 1000 + ledger, "", (), b"")


def page(*events: ChainEvent, end: int | None = None) -> EventPage:
    """A full page, or one that ends with a ledger."""
    cursor = events[-1].id if end is None else f"{(end + 1 << 32) - 1:019d}-4294967295"
    return EventPage(events, cursor, latest_ledger=50, oldest_ledger=1, latest_close_time=1050)


def after(found: EventPage, *, before: EventPage | None = None) -> tuple[str, int, int]:
    known = None
    for one in (before, found):
        if one is None:
            continue
        events = fresh_events(one, None if known is None else known.cursor)
        known = progress_after(
            one, events, before=known, start=5, landmark=None, now=7.0
        )  # fmt: skip
    assert known is not None
    assert (known.first_ledger, known.asked_at, known.latest_ledger) == (5, 7.0, 50)
    return known.cursor, known.ledger, known.close_time


def test_events_come_once_and_in_order() -> None:
    mixed = page(event(9), event(7), event(9), event(8, 2), event(8, 1))
    assert [one.ledger for one in fresh_events(mixed, None)] == [7, 8, 8, 9]
    assert [one.ledger for one in fresh_events(mixed, event(8, 1).id)] == [8, 9]
    assert fresh_events(mixed, event(9).id) == []
    with pytest.raises(WrongDomain):
        fresh_events(page(dataclasses.replace(event(9), id="nine")), None)


def test_a_full_page_may_have_left_off_in_the_middle_of_a_ledger() -> None:
    cursor, ledger, close_time = after(page(event(7), event(8), event(9)))
    assert (cursor, ledger, close_time) == (event(9).id, 8, 1008)
    assert after(page(event(9, 1), event(9, 2), event(9, 3)))[1:] == (8, 1009)


def test_a_page_that_is_not_full_has_all_up_to_its_end() -> None:
    assert after(page(event(7), end=20))[1:] == (20, 1007)
    assert after(page(event(7), end=50))[1:] == (50, 1050)
    assert after(page(end=20), before=page(event(7), end=15))[1:] == (20, 1007)


def test_a_cursor_that_goes_back_is_not_followed() -> None:
    first = page(event(7), event(8), event(9))
    for older in (page(event(5), event(6), event(7)), page(end=6), page(event(7), end=8)):
        assert after(older, before=first)[:2] == (event(9).id, 8)
    # A cursor that stays, with events behind it: the last of them is the place.
    stays = dataclasses.replace(page(event(10), event(11), end=9), cursor=first.cursor)
    assert after(stays, before=first)[0] == event(11).id


def test_the_place_before_a_ledger() -> None:
    place = place_before(9)
    assert ledger_of(place) == 9, "a server that has ledger 9, and not ledger 8, takes it"
    assert place_of(place) < place_of(event(9).id)
