"""Events of contracts and of the network's fees: getEvents."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING, Final

from .event_filters import read_filters
from .faults import invalid_params, invalid_request
from .pages import MAX_EVENT, MAX_OPERATION, MAX_TRANSACTION, event_id, parse_event_id
from .params import UINT64_MAX, check_format
from .wire import text, texts

if TYPE_CHECKING:
    from mycelium_localnet.rows import EventPosition, EventRow
    from mycelium_localnet.view import ReadView

    from .context import Context, Result
    from .event_filters import EventFilters
    from .params import Params

DEFAULT_LIMIT: Final = 100
MAXIMUM_LIMIT: Final = 10_000
SCAN_LEDGERS: Final = 10_000
"""How many ledgers one call looks through; the cursor of its answer goes on from there."""


def get_events(context: Context, params: Params) -> Result:
    """Events from `startLedger` to `endLedger` (exclusive), or behind a cursor, that pass a filter."""
    check_format(params)
    after, end_ledger = _window(params)
    limit = params.group("pagination").integer("limit", UINT64_MAX)
    if limit > MAXIMUM_LIMIT:
        raise invalid_params(f"limit must not exceed {MAXIMUM_LIMIT}")
    limit = limit or DEFAULT_LIMIT
    filters = read_filters(params)
    with context.chain.read() as view:
        latest, oldest = view.latest(), view.oldest()
        if not oldest.sequence <= after[0] <= latest.sequence:
            raise invalid_request(
                f"startLedger must be within the ledger range: {oldest.sequence} - {latest.sequence}"
            )
        end = min(latest.sequence + 1, after[0] + SCAN_LEDGERS, end_ledger or latest.sequence + 1)
        found = _scan(view, filters, after, end, limit)
    cursor = (
        found[-1].position if len(found) == limit else (end - 1, MAX_TRANSACTION, MAX_OPERATION, MAX_EVENT)
    )
    return {
        "events": [_event(row) for row in found],
        "cursor": event_id(cursor),
        "latestLedger": latest.sequence,
        "oldestLedger": oldest.sequence,
        "latestLedgerCloseTime": str(latest.close_time),
        "oldestLedgerCloseTime": str(oldest.close_time),
    }


def _window(params: Params) -> tuple[EventPosition, int]:
    """The position behind which to begin, and the ledger before which to end (0: none given)."""
    start, end = params.integer("startLedger"), params.integer("endLedger")
    cursor = params.group("pagination").text("cursor")
    if cursor is None:
        if not start:
            raise invalid_params("startLedger must be positive")
        return (start, -1, 0, 0), end
    if start or end:
        raise invalid_params("ledger ranges and cursor cannot both be set")
    return parse_event_id(cursor), 0


def _scan(
    view: ReadView, filters: EventFilters, after: EventPosition, end_ledger: int, limit: int
) -> list[EventRow]:
    # In a function of its own: the half-read query must be gone before the view is closed.
    rows = view.events(after=after, end_ledger=end_ledger, contract_ids=filters.contract_ids())
    return list(islice(filter(filters.matches, rows), limit))


def _event(row: EventRow) -> dict[str, object]:
    return {
        "type": row.type,
        "ledger": row.ledger,
        "ledgerClosedAt": datetime.fromtimestamp(row.close_time, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "contractId": row.contract_id or "",
        "id": event_id(row.position),
        "operationIndex": row.op_index,
        "transactionIndex": row.tx_index,
        "inSuccessfulContractCall": row.in_successful_call,
        "txHash": row.tx_hash.hex(),
        "topic": texts(row.topics),
        "value": text(row.value),
    }
