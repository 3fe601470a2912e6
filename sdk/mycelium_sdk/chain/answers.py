"""Decodes what an RPC server answers into this package's values.

Called within `translate.decoding`: whatever is not of the documented shape, and every number that cannot be,
raises there, as `ValueError` or as what the XDR classes raise.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

from stellar_sdk import xdr
from stellar_sdk.soroban_rpc import GetTransactionStatus

from mycelium_sdk.chain import operations, plausible
from mycelium_sdk.chain.base import (
    ChainEvent,
    ChainIdentity,
    EntryState,
    EntryStatus,
    EventPage,
    LedgerHead,
    Resources,
    Simulation,
    TransactionState,
    TransactionStatus,
)
from mycelium_sdk.chain.cursors import ledger_of, place_of
from mycelium_sdk.chain.diagnostics import host_failure, return_value, transaction_result_code

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stellar_sdk.soroban_rpc import (
        EventInfo,
        GetEventsResponse,
        GetLatestLedgerResponse,
        GetTransactionResponse,
        LedgerEntryResult,
        LedgerInfo,
        SimulateTransactionResponse,
    )

__all__ = [
    "entry_state",
    "event_page",
    "identity",
    "latest_ledger",
    "ledger_head",
    "simulation",
    "transaction_data",
    "transaction_state",
]


def identity(
    network: Mapping[str, object], latest: GetLatestLedgerResponse, passphrase: str
) -> ChainIdentity:
    """Which chain it is, of the network's `passphrase`. Only our own chains serve a `chainId`."""
    sequence, close_time = latest_ledger(latest)
    return ChainIdentity(
        passphrase=passphrase,
        chain_id=plausible.chain_id(network.get("chainId")),
        protocol=plausible.ledger(latest.protocol_version),  # of the same width
        latest_ledger=sequence,
        close_time=close_time,
    )


def latest_ledger(answer: GetLatestLedgerResponse) -> tuple[int, int]:
    """The latest ledger, and when it closed."""
    return plausible.ledger(answer.sequence, least=1), plausible.moment(answer.close_time)


def ledger_head(found: LedgerInfo) -> LedgerHead:
    """A closed ledger."""
    return LedgerHead(
        plausible.ledger(found.sequence, least=1),
        plausible.hash_text(found.hash),
        plausible.moment(found.ledger_close_time),
    )


def transaction_data(answer: SimulateTransactionResponse) -> xdr.SorobanTransactionData:
    """The footprint and resources that a simulation found."""
    if answer.transaction_data is None:
        raise ValueError("a simulation without transaction data")
    return xdr.SorobanTransactionData.from_xdr(answer.transaction_data)


def simulation(answer: SimulateTransactionResponse) -> Simulation:
    """A simulation that succeeded."""
    resources = transaction_data(answer).resources
    # However much it is: a price beyond the limit is refused by its name.
    if answer.min_resource_fee is None or answer.min_resource_fee < 0:
        raise ValueError("a simulation without a fee")
    return Simulation(
        value=xdr.SCVal.from_xdr(answer.results[0].xdr) if answer.results else None,
        resource_fee=answer.min_resource_fee,
        resources=Resources(
            instructions=resources.instructions.uint32,
            read_bytes=resources.disk_read_bytes.uint32,
            write_bytes=resources.write_bytes.uint32,
            read_entries=len(resources.footprint.read_only),
            write_entries=len(resources.footprint.read_write),
        ),
        latest_ledger=plausible.ledger(answer.latest_ledger),
    )


def transaction_state(answer: GetTransactionResponse, transaction_hash: str) -> TransactionState:
    """What is known about the hash that was asked for."""
    oldest, latest = plausible.ledger(answer.oldest_ledger), plausible.ledger(answer.latest_ledger)
    latest_close_time = plausible.moment(answer.latest_ledger_close_time)
    if answer.status is GetTransactionStatus.NOT_FOUND:
        return TransactionState(
            status=TransactionStatus.NOT_FOUND,
            hash=transaction_hash,
            oldest_ledger=oldest,
            latest_ledger=latest,
            latest_close_time=latest_close_time,
        )
    if answer.result_xdr is None or answer.transaction_hash != transaction_hash:
        raise ValueError("another transaction, or one without a result")
    result = xdr.TransactionResult.from_xdr(answer.result_xdr)
    if result.fee_charged.int64 < 0:
        raise ValueError("a fee below nothing")
    succeeded = answer.status is GetTransactionStatus.SUCCESS
    failure = None if succeeded else host_failure(answer.diagnostic_events_xdr)
    value = None
    if succeeded and answer.result_meta_xdr is not None:
        value = return_value(xdr.TransactionMeta.from_xdr(answer.result_meta_xdr))
    return TransactionState(
        status=TransactionStatus.SUCCESS if succeeded else TransactionStatus.FAILED,
        hash=transaction_hash,
        oldest_ledger=oldest,
        latest_ledger=latest,
        latest_close_time=latest_close_time,
        ledger=None if answer.ledger is None else plausible.ledger(answer.ledger, least=1),
        close_time=None if answer.create_at is None else plausible.moment(answer.create_at),
        fee_charged=result.fee_charged.int64,
        result_code=transaction_result_code(result),
        value=value,
        contract_error=None if failure is None else failure.contract_error,
    )


def entry_state(
    key: xdr.LedgerKey, entry: LedgerEntryResult | None, latest_ledger: int, expiring_within: int
) -> EntryState:
    """The state of the entry that was asked for by `key`; None where the server has none."""
    plausible.ledger(latest_ledger)
    if entry is None:
        return EntryState(EntryStatus.ABSENT, latest_ledger)
    data = xdr.LedgerEntryData.from_xdr(entry.xdr)
    if not operations.is_entry_of(key, data):
        raise ValueError("the entry of another key")
    last_modified = plausible.ledger(entry.last_modified_ledger)
    live_until = entry.live_until_ledger
    if live_until is None:
        status = EntryStatus.LIVE
    elif plausible.ledger(live_until) < latest_ledger:
        # Servers give archived entries with a 0, or with the ledger that has passed.
        status, live_until = EntryStatus.ARCHIVED, None
    elif live_until - latest_ledger < expiring_within:
        status = EntryStatus.EXPIRING
    else:
        status = EntryStatus.LIVE
    return EntryState(status, latest_ledger, live_until, last_modified, data)


def event_page(answer: GetEventsResponse) -> EventPage:
    """A page of a contract's events."""
    place_of(answer.cursor)
    return EventPage(
        events=tuple(_event(item) for item in answer.events),
        cursor=answer.cursor,
        latest_ledger=plausible.ledger(answer.latest_ledger),
        oldest_ledger=plausible.ledger(answer.oldest_ledger),
        latest_close_time=plausible.moment(answer.latest_Ledger_close_time),
    )


def _event(item: EventInfo) -> ChainEvent:
    if ledger_of(item.id) != plausible.ledger(item.ledger):
        raise ValueError("an event of another ledger than its own")
    return ChainEvent(
        id=item.id,
        contract_id=item.contract_id,
        ledger=item.ledger,
        close_time=plausible.moment(int(item.ledger_close_at.timestamp())),
        transaction=item.transaction_hash,
        topic_xdr=tuple(base64.b64decode(topic, validate=True) for topic in item.topic),
        value_xdr=base64.b64decode(item.value, validate=True),
    )
