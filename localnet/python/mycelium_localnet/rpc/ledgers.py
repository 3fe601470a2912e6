"""Closed ledgers: getLatestLedger and getLedgers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mycelium_localnet import _native

from .pages import Range, bad_cursor, read_page
from .wire import text

if TYPE_CHECKING:
    from mycelium_localnet.rows import LedgerRow

    from .context import Context, Result
    from .pages import Page
    from .params import Params


def get_latest_ledger(context: Context, _params: Params) -> Result:
    """The last closed ledger; `id` is the SHA-256 of its header."""
    with context.chain.read() as view:
        latest = view.latest()
    return {
        "id": latest.hash.hex(),
        "protocolVersion": _native.PROTOCOL_VERSION,
        "sequence": latest.sequence,
        "closeTime": str(latest.close_time),
        "headerXdr": text(latest.header),
        "metadataXdr": text(latest.close_meta),
    }


def get_ledgers(context: Context, params: Params) -> Result:
    """Ledgers from `startLedger` or behind a cursor (a ledger number), in order."""
    with context.chain.read() as view:
        latest, oldest = view.latest(), view.oldest()
        kept = Range(oldest.sequence, latest.sequence)
        page = read_page(params, kept)
        start = _first(page, kept)
        ledgers = view.ledgers(start, page.limit)
    return {
        "ledgers": [_ledger(ledger) for ledger in ledgers],
        "latestLedger": latest.sequence,
        "latestLedgerCloseTime": latest.close_time,
        "oldestLedger": oldest.sequence,
        "oldestLedgerCloseTime": oldest.close_time,
        # A cursor at the tip gives an empty page and comes back, so that a client can wait there.
        "cursor": str(ledgers[-1].sequence if ledgers else start - 1),
    }


def _first(page: Page, kept: Range) -> int:
    if page.cursor is None:
        return page.start
    if not kept.oldest - 1 <= page.cursor <= kept.latest:
        raise bad_cursor(page.cursor, kept)
    return page.cursor + 1


def _ledger(ledger: LedgerRow) -> dict[str, object]:
    return {
        "hash": ledger.hash.hex(),
        "sequence": ledger.sequence,
        "ledgerCloseTime": str(ledger.close_time),
        "headerXdr": text(ledger.history_entry),
        "metadataXdr": text(ledger.close_meta),
    }
