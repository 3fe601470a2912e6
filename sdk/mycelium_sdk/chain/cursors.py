"""Cursors and ids of events: places in a chain's order (chain.md section 2)."""

from __future__ import annotations

import re

from mycelium_sdk.errors import WrongDomain

__all__ = ["ends_ledger", "ledger_of", "place_of"]

_LAST = 2**32 - 1  # of a ledger's transactions and operations; of a transaction's events
_PLACES = 2**63

_FORM = re.compile(r"(\d{1,19})-(\d{1,10})", re.ASCII)


def place_of(cursor: str) -> tuple[int, int]:
    """The two numbers that a cursor, or an event's id, is made of; they order like the events do.

    Raises:
        WrongDomain: it is none of Stellar RPC.
    """
    found = _FORM.fullmatch(cursor)
    place = None if found is None else (int(found[1]), int(found[2]))
    if place is None or place[0] >= _PLACES or place[1] > _LAST:
        raise WrongDomain("the server's cursor is not one of Stellar RPC", hint="ask another RPC server")
    return place


def ledger_of(cursor: str) -> int:
    """The ledger that a cursor, or an event's id, is in. Raises `WrongDomain` as `place_of`."""
    return place_of(cursor)[0] >> 32


def ends_ledger(cursor: str) -> bool:
    """Whether a cursor is behind everything in its ledger, as the one of a page that was not full is."""
    return place_of(cursor)[0] & _LAST == _LAST
