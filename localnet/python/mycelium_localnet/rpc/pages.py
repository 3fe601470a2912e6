"""Paging of getTransactions and getLedgers, and the ids that cursors are made of."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from .faults import INVALID_REQUEST, invalid_params, invalid_request
from .params import check_format

if TYPE_CHECKING:
    from mycelium_localnet.rows import EventPosition

    from .params import Params

DEFAULT_LIMIT: Final = 50
MAXIMUM_LIMIT: Final = 200

MAX_TRANSACTION: Final = 0xFFFFF
MAX_OPERATION: Final = 0xFFF
MAX_EVENT: Final = 0xFFFFFFFF

_INT64_MAX: Final = 2**63 - 1
_EVENT_ID: Final = re.compile(r"([0-9]{1,19})-([0-9]{1,10})", re.ASCII)
_NUMBER: Final = re.compile(r"[0-9]{1,19}", re.ASCII)


def total_order_id(ledger: int, transaction: int, operation: int) -> int:
    """The TOID (SEP-35): one number that sorts as ledger, transaction (20 bits) and operation (12 bits)."""
    return ledger << 32 | transaction << 12 | operation


def split_total_order_id(value: int) -> tuple[int, int, int]:
    """The inverse of `total_order_id`."""
    return value >> 32, value >> 12 & MAX_TRANSACTION, value & MAX_OPERATION


def event_id(position: EventPosition) -> str:
    """The id of an event, which is also the cursor behind it: `%019d-%010d` of its TOID and its index."""
    return f"{total_order_id(*position[:3]):019d}-{position[3]:010d}"


def parse_event_id(cursor: str) -> EventPosition:
    """The inverse of `event_id`. Raises RpcFault -32602 for anything else."""
    match = _EVENT_ID.fullmatch(cursor)
    if match is None or int(match[1]) > _INT64_MAX or int(match[2]) > MAX_EVENT:
        raise invalid_params(f"invalid event id {cursor!r}")
    return *split_total_order_id(int(match[1])), int(match[2])


class Range(NamedTuple):
    """The ledgers that are kept, both inclusive."""

    oldest: int
    latest: int

    def __contains__(self, sequence: object) -> bool:
        return isinstance(sequence, int) and self.oldest <= sequence <= self.latest


class Page(NamedTuple):
    """Where a page begins: at ledger `start`, or behind `cursor` when that is set."""

    start: int
    cursor: int | None
    limit: int


def read_page(params: Params, kept: Range) -> Page:
    """`startLedger`, `pagination.cursor` and `pagination.limit` (1 to 200; 0 or unset: 50).

    Raises RpcFault -32600 for a start that is not kept, a start next to a cursor, a limit above 200 and an
    unknown `xdrFormat`; -32602 for a cursor that is no number. Whether the cursor is in range is the method's
    to say.
    """
    pagination = params.group("pagination")
    start = params.integer("startLedger")
    cursor = pagination.text("cursor") or ""
    limit = pagination.integer("limit", _INT64_MAX)
    if cursor:
        if start:
            raise invalid_request(f"startLedger ({start}) and cursor ({cursor}) cannot both be set")
    elif start not in kept:
        raise invalid_request(
            f"startLedger ({start}) must be between the oldest ledger ({kept.oldest})"
            f" and the latest ({kept.latest})"
        )
    if limit > MAXIMUM_LIMIT:
        raise invalid_request(f"limit must not exceed {MAXIMUM_LIMIT}")
    check_format(params, INVALID_REQUEST)
    return Page(start, _number(cursor) if cursor else None, limit or DEFAULT_LIMIT)


def _number(cursor: str) -> int:
    if _NUMBER.fullmatch(cursor) is None or int(cursor) > _INT64_MAX:
        raise invalid_params(f"invalid cursor {cursor!r}")
    return int(cursor)


def bad_cursor(cursor: int, kept: Range) -> Exception:
    """-32602: the cursor points outside of what is kept."""
    return invalid_params(
        f"cursor ({cursor}) must be between the oldest ledger ({kept.oldest}) and the latest ({kept.latest})"
    )
