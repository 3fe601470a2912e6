"""Closing ledgers: choosing what goes in, applying it, and writing everything in the caller's one
transaction."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from mycelium_localnet import headers
from mycelium_localnet.accounts import Account
from mycelium_localnet.apply.transaction import apply_transaction, give_back, take_fee
from mycelium_localnet.envelopes import present
from mycelium_localnet.fees import charged_fee
from mycelium_localnet.meta import Report, event_rows
from mycelium_localnet.room import Room
from mycelium_localnet.rows import LedgerRow
from mycelium_localnet.state import stored_state
from mycelium_localnet.validation import validate

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Sequence

    from mycelium_localnet.context import LedgerContext
    from mycelium_localnet.envelopes import Transaction
    from mycelium_localnet.headers import Header
    from mycelium_localnet.state import State


_INSERT_LEDGER = "INSERT INTO ledgers (sequence, hash, close_time, header, close_meta) VALUES (?, ?, ?, ?, ?)"
_INSERT_TRANSACTION = (
    "INSERT INTO transactions (ledger, application_order, hash, source, envelope, result, meta, successful,"
    " fee_bump, transaction_events, contract_events, diagnostic_events)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
_INSERT_EVENT = (
    "INSERT INTO events (ledger, tx_index, op_index, event_index, tx_hash, transaction_order, type,"
    " contract_id, topic_count, topics, value, in_successful_call)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)


class Selection(NamedTuple):
    """What a ledger takes up, and what stays pending since there is no room."""

    chosen: list[Transaction]
    waiting: list[Transaction]


def select(candidates: Iterable[Transaction], state: State, context: LedgerContext) -> Selection:
    """The candidates that are valid one after the other, first come, first served, as far as there is room in
    the ledger. Invalid ones would only fail, and are left out.

    Whatever comes from a source that waits must wait as well: its sequence number comes later.
    """
    scratch, room = state.child(), Room(context)
    found = Selection([], [])
    waiting_sources: set[bytes] = set()
    for transaction in candidates:
        if transaction.source in waiting_sources:
            found.waiting.append(transaction)
        elif validate(transaction, scratch, context).valid:
            if not room.take(transaction):
                waiting_sources.add(transaction.source)
                found.waiting.append(transaction)
                continue
            account = present(Account.load(scratch, transaction.source))
            account.add_balance(-charged_fee(transaction, context.base_fee))
            account.set_sequence(transaction.sequence, context.sequence, context.close_time)
            account.save(scratch)
            found.chosen.append(transaction)
    return found


def close(
    connection: sqlite3.Connection,
    previous: LedgerRow,
    header: Header,
    context: LedgerContext,
    transactions: Sequence[Transaction],
) -> LedgerRow:
    """Close the ledger of `context` behind `previous` (with its decoded `header`), with `transactions` in it.

    Fees first, then each transaction in order (classic ones before Soroban ones), then refunds.
    """
    state = stored_state(connection, context.sequence)
    ordered = sorted(transactions, key=lambda transaction: transaction.is_soroban)
    taken = [
        take_fee(transaction, state, charged_fee(transaction, context.base_fee)) for transaction in ordered
    ]
    applied = [
        apply_transaction(transaction, state, context, order, fee)
        for order, (transaction, fee) in enumerate(zip(ordered, taken, strict=True), start=1)
    ]
    for one in applied:
        give_back(one, state)
    reports = [Report(one, context.network.native_contract) for one in applied]
    envelopes = headers.tx_set(
        previous.hash,
        [transaction.envelope for transaction in ordered if not transaction.is_soroban],
        [transaction.envelope for transaction in ordered if transaction.is_soroban],
        context.base_fee,
    )
    closed = replace(
        header,
        previous=previous.hash,
        tx_set_hash=headers.digest(envelopes),
        close_time=context.close_time,
        result_hash=headers.results_hash([report.result_pair for report in reports]),
        state_hash=state.digest(header.state_hash),
        sequence=context.sequence,
        fee_pool=header.fee_pool + sum(one.fee - one.refund for one in applied),
    )
    skip_list = headers.next_skip_list(closed.sequence, header.skip_list, closed.state_hash)
    packed = replace(closed, skip_list=skip_list).pack()
    row = LedgerRow(
        closed.sequence,
        headers.digest(packed),
        closed.close_time,
        packed,
        headers.close_meta(
            packed, envelopes, [report.close_part for report in reports], context.settings.fee_per_write_1kb
        ),
    )
    state.store(connection)
    _store(connection, row, reports)
    return row


def skip(connection: sqlite3.Connection, last: LedgerRow, count: int) -> int:
    """Close `count` empty ledgers behind `last`, and return the last number.

    Every header is computed, so the hashes are chained, but only every `ROW_DISTANCE`th of those that stay
    within the kept history is stored: 2 million ledgers take seconds and a few hundred rows.
    """
    final = last.sequence + count
    oldest = final - headers.RETENTION - headers.ROW_DISTANCE
    connection.executemany(
        _INSERT_LEDGER,
        (
            (sequence, name, last.close_time, header, None)
            for sequence, name, header in islice(headers.empty_successors(last.header), count)
            if sequence == final or (sequence > oldest and sequence % headers.ROW_DISTANCE == 0)
        ),
    )
    headers.trim(connection)
    return final


def _store(connection: sqlite3.Connection, row: LedgerRow, reports: Sequence[Report]) -> None:
    meta = row.close_meta if reports else None
    connection.execute(_INSERT_LEDGER, (row.sequence, row.hash, row.close_time, row.header, meta))
    if reports:
        connection.executemany(
            _INSERT_TRANSACTION, [report.transaction_row(row.sequence) for report in reports]
        )
        connection.executemany(_INSERT_EVENT, event_rows(row.sequence, reports))
    headers.trim(connection)
