"""The tables of a chain file, and how lists of byte strings are kept in one column."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

APPLICATION_ID: Final = 0x4D594C43
"""`application_id` in the SQLite header ("MYLC"): tells a chain file from any other SQLite file."""

SCHEMA_VERSION: Final = 1
"""`user_version` in the SQLite header."""

TABLES: Final = (
    """
    CREATE TABLE settings (
        key TEXT PRIMARY KEY,
        value TEXT NOT NULL
    ) WITHOUT ROWID
    """,
    # The state after the last closed ledger. live_until and ttl_modified are what the network keeps in a TTL
    # entry of its own (the ledger until which the entry lives, the ledger that set it); NULL for entries that
    # have no TTL.
    """
    CREATE TABLE entries (
        key BLOB PRIMARY KEY,                -- LedgerKey
        entry BLOB NOT NULL,                 -- LedgerEntry
        live_until INTEGER,
        ttl_modified INTEGER,
        type INTEGER NOT NULL                -- LedgerEntryType
    )
    """,
    # Ledgers without a row are empty ones that were skipped: each follows from the nearest row below it.
    # Close metas are NULL for empty ledgers, whose meta follows from the header (headers.py).
    """
    CREATE TABLE ledgers (
        sequence INTEGER PRIMARY KEY,
        hash BLOB NOT NULL,
        close_time INTEGER NOT NULL,
        header BLOB NOT NULL,                -- LedgerHeader
        close_meta BLOB                      -- LedgerCloseMeta
    )
    """,
    """
    CREATE TABLE transactions (
        ledger INTEGER NOT NULL,
        application_order INTEGER NOT NULL,  -- from 1
        hash BLOB NOT NULL UNIQUE,
        source TEXT NOT NULL,                -- G...
        envelope BLOB NOT NULL,              -- TransactionEnvelope
        result BLOB NOT NULL,                -- TransactionResult
        meta BLOB NOT NULL,                  -- TransactionMeta
        successful INTEGER NOT NULL,
        fee_bump INTEGER NOT NULL,
        transaction_events BLOB NOT NULL,    -- list of TransactionEvent
        contract_events BLOB NOT NULL,       -- list, by operation, of lists of ContractEvent
        diagnostic_events BLOB NOT NULL,     -- list of DiagnosticEvent
        PRIMARY KEY (ledger, application_order)
    )
    """,
    """
    CREATE TABLE events (
        ledger INTEGER NOT NULL,
        tx_index INTEGER NOT NULL,
        op_index INTEGER NOT NULL,
        event_index INTEGER NOT NULL,
        tx_hash BLOB NOT NULL,
        transaction_order INTEGER NOT NULL,
        type TEXT NOT NULL,                  -- 'contract' or 'system'
        contract_id TEXT,                    -- C...
        topic_count INTEGER NOT NULL,
        topics BLOB NOT NULL,                -- list of SCVal
        value BLOB NOT NULL,                 -- SCVal
        in_successful_call INTEGER NOT NULL,
        PRIMARY KEY (ledger, tx_index, op_index, event_index)
    ) WITHOUT ROWID
    """,
    "CREATE INDEX events_by_contract ON events (contract_id, ledger, tx_index, op_index, event_index)",
    # Accepted transactions that no ledger holds yet; `position` is the order in which they came.
    """
    CREATE TABLE pending (
        position INTEGER PRIMARY KEY AUTOINCREMENT,
        hash BLOB NOT NULL UNIQUE,
        source TEXT NOT NULL,                -- G...
        envelope BLOB NOT NULL,              -- TransactionEnvelope
        received INTEGER NOT NULL            -- Unix seconds
    )
    """,
)


def pack_list(items: Iterable[bytes]) -> bytes:
    """One blob of a list: each item as its length (4 bytes, big-endian) and its bytes."""
    parts: list[bytes] = []
    for item in items:
        parts.append(len(item).to_bytes(4, "big"))
        parts.append(item)
    return b"".join(parts)


def unpack_list(blob: bytes) -> tuple[bytes, ...]:
    """The inverse of `pack_list`."""
    items: list[bytes] = []
    offset = 0
    while offset < len(blob):
        length = int.from_bytes(blob[offset : offset + 4], "big")
        items.append(blob[offset + 4 : offset + 4 + length])
        offset += 4 + length
    return tuple(items)
