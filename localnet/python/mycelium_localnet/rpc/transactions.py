"""Applied transactions: getTransaction and getTransactions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .faults import invalid_params
from .pages import Range, bad_cursor, read_page, split_total_order_id, total_order_id
from .params import check_format
from .wire import text, texts

if TYPE_CHECKING:
    from mycelium_localnet.rows import TransactionRow

    from .context import Context, Result
    from .pages import Page
    from .params import Params


def get_transaction(context: Context, params: Params) -> Result:
    """One transaction by its hash; status NOT_FOUND, with nothing about the transaction, while no ledger
    holds it."""
    check_format(params)
    wanted = params.required_text("hash")
    with context.chain.read() as view:
        found = view.transaction(_hash(wanted))
        latest, oldest = view.latest(), view.oldest()
    answer: dict[str, object] = {
        "status": "NOT_FOUND",
        "txHash": wanted,
        "latestLedger": latest.sequence,
        "latestLedgerCloseTime": str(latest.close_time),
        "oldestLedger": oldest.sequence,
        "oldestLedgerCloseTime": str(oldest.close_time),
    }
    if found is not None:
        answer |= _details(found)
        answer["createdAt"] = str(found.close_time)
    return answer


def get_transactions(context: Context, params: Params) -> Result:
    """Transactions from `startLedger` or behind a cursor (a TOID whose operation is 1), in the order of
    application."""
    with context.chain.read() as view:
        latest, oldest = view.latest(), view.oldest()
        kept = Range(oldest.sequence, latest.sequence)
        page = read_page(params, kept)
        after = _after(page, kept)
        found = view.transactions(after, page.limit)
    if len(found) == page.limit:
        end = (found[-1].ledger, found[-1].application_order)
    else:
        # Everything up to the tip was seen, and ledgers without transactions need not be seen again.
        end = max(after, (latest.sequence, 0), *((row.ledger, row.application_order) for row in found[-1:]))
    return {
        "transactions": [
            _details(row) | {"txHash": row.hash.hex(), "createdAt": row.close_time} for row in found
        ],
        "latestLedger": latest.sequence,
        "latestLedgerCloseTimestamp": latest.close_time,
        "oldestLedger": oldest.sequence,
        "oldestLedgerCloseTimestamp": oldest.close_time,
        "cursor": str(total_order_id(*end, 1)),
    }


def _after(page: Page, kept: Range) -> tuple[int, int]:
    if page.cursor is None:
        return page.start, 0
    ledger, transaction, _operation = split_total_order_id(page.cursor)
    if ledger not in kept:
        raise bad_cursor(page.cursor, kept)
    return ledger, transaction


def _hash(wanted: str) -> bytes:
    if len(wanted) != 64:
        raise invalid_params(f"unexpected hash length ({len(wanted)})")
    try:
        return bytes.fromhex(wanted)
    except ValueError as error:
        raise invalid_params("incorrect hash: it must be hexadecimal") from error


def _details(row: TransactionRow) -> dict[str, object]:
    return {
        "status": "SUCCESS" if row.successful else "FAILED",
        "ledger": row.ledger,
        "applicationOrder": row.application_order,
        "feeBump": row.fee_bump,
        "envelopeXdr": text(row.envelope),
        "resultXdr": text(row.result),
        "resultMetaXdr": text(row.meta),
        "events": {
            "transactionEventsXdr": texts(row.transaction_events),
            "contractEventsXdr": [texts(operation) for operation in row.contract_events],
        },
        "diagnosticEventsXdr": texts(row.diagnostic_events),
    }
