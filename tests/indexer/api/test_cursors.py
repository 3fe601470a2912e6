"""Cursors come back as they were given, or are refused."""

from __future__ import annotations

import string
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mycelium_indexer.api import cursors
from mycelium_indexer.api.problems import Refusal
from mycelium_indexer.values import Position, Source

from .ground import CONTRACT, NETWORK, OTHER_CONTRACT, anchors_of, fill, owner_number

if TYPE_CHECKING:
    from collections.abc import Callable

    from mycelium_indexer.store.base import IndexStore

    from .ground import Api

SOURCE = Source(1, NETWORK, CONTRACT, "", 1, current=True)
OTHERS = [
    Source(1, NETWORK, OTHER_CONTRACT, "", 1, current=True),
    Source(1, NETWORK + " ", CONTRACT, "", 1, current=True),
    Source(1, NETWORK, CONTRACT, "", 2, current=True),
]
OWNER = owner_number(1)
ALPHABET = string.ascii_letters + string.digits + "-_"

orders = st.integers(-(2**63), 2**63 - 1)
owners = st.integers(0, 5).map(owner_number) | st.just(CONTRACT)


@given(orders, owners)
def test_a_position_comes_back(order: int, owner: str) -> None:
    position = Position(order, owner)
    assert cursors.owners_place(SOURCE, cursors.owners_cursor(SOURCE, position)) == position


@given(st.integers(1, 2**63 - 1))
def test_a_version_comes_back(version: int) -> None:
    cursor = cursors.history_cursor(SOURCE, OWNER, version)
    assert cursors.history_place(SOURCE, OWNER, cursor) == version


def refused(read: Callable[[], object]) -> None:
    with pytest.raises(Refusal) as refusal:
        read()
    assert refusal.value.kind == "malformed-cursor"


@given(st.data())
def test_any_change_is_noticed(data: st.DataObject) -> None:
    cursor = cursors.owners_cursor(SOURCE, Position(7, OWNER))
    place = data.draw(st.integers(0, len(cursor) - 1))
    other = data.draw(st.sampled_from(ALPHABET).filter(lambda one: one != cursor[place]))
    refused(lambda: cursors.owners_place(SOURCE, cursor[:place] + other + cursor[place + 1 :]))
    refused(lambda: cursors.owners_place(SOURCE, cursor[:place] + cursor[place + 1 :]))
    refused(lambda: cursors.owners_place(SOURCE, cursor[:place] + other + cursor[place:]))


@pytest.mark.parametrize("version", [1, 22, 333, 4444])
def test_a_cursor_has_one_spelling(version: int) -> None:
    """Whatever the length, also of the bits that Base64 leaves over."""
    cursor = cursors.history_cursor(SOURCE, OWNER, version)
    assert cursors.history_place(SOURCE, OWNER, cursor) == version
    for last in ALPHABET:
        if last != cursor[-1]:
            refused(lambda last=last: cursors.history_place(SOURCE, OWNER, cursor[:-1] + last))  # type: ignore[misc]
    for spelling in (cursor + "=", cursor + "==", cursor + "\n", " " + cursor, cursor + "A", ""):
        refused(lambda spelling=spelling: cursors.history_place(SOURCE, OWNER, spelling))  # type: ignore[misc]


@pytest.mark.parametrize("source", OTHERS)
def test_a_cursor_fits_one_list_only(source: Source) -> None:
    owners_cursor = cursors.owners_cursor(SOURCE, Position(7, OWNER))
    history_cursor = cursors.history_cursor(SOURCE, OWNER, 7)
    refused(lambda: cursors.owners_place(source, owners_cursor))
    refused(lambda: cursors.history_place(source, OWNER, history_cursor))
    refused(lambda: cursors.history_place(SOURCE, owner_number(2), history_cursor))
    refused(lambda: cursors.owners_place(SOURCE, history_cursor))
    refused(lambda: cursors.history_place(SOURCE, OWNER, owners_cursor))


@pytest.mark.parametrize(
    "place",
    [
        "",
        "7",
        "07 " + OWNER,
        "-0 " + OWNER,
        f"{2**63} {OWNER}",
        "7 " + OWNER[:-1],
        "7  " + OWNER,
        "+7 " + OWNER,
    ],
)
def test_a_forged_place_is_still_checked(place: str) -> None:
    """The checksum is no secret, so what is under it is not believed."""
    refused(lambda: cursors.owners_place(SOURCE, cursors._encode(("owners", SOURCE), place)))


def test_over_http(store: IndexStore, api: Api) -> None:
    for number in range(3):
        fill(store, anchors_of(owner_number(number), [b"", b""], start=10 * number))
    for path in ("/memory", f"/memory/{OWNER}/history"):
        cursor = api.get(f"{path}?limit=1").json["next"]
        assert api.get(f"{path}?cursor={cursor}").status == 200
        changed = ("A" if cursor[3] != "A" else "B").join((cursor[:3], cursor[4:]))
        for wrong in (changed, cursor[:-1], cursor + "A", "a" * 10_000, "%27--", "%00", "%ff"):
            answer = api.get(f"{path}?cursor={wrong}")
            assert answer.status == 422
            assert answer.problem in {"malformed-cursor", "malformed-parameter"}
