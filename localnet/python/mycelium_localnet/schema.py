"""The tables of a chain file, and how lists of byte strings are kept in one column."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

APPLICATION_ID: Final = 0x4D594C43
"""`application_id` in the SQLite header ("MYLC"): tells a chain file from any other SQLite file."""

SCHEMA_VERSION: Final = 2
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

CHEAT_TABLES: Final = (
    # What an entry was before ledger `ledger` changed it; `entry` is NULL where there was none. The triggers
    # below keep it, so that nobody who writes entries can forget to. It is what reverting to a snapshot puts
    # back, and what an older state is read from. It is kept as long as the ledgers are.
    """
    CREATE TABLE former (
        key BLOB NOT NULL,                   -- LedgerKey
        ledger INTEGER NOT NULL,
        entry BLOB,                          -- LedgerEntry
        live_until INTEGER,
        ttl_modified INTEGER,
        type INTEGER NOT NULL                -- LedgerEntryType
    )
    """,
    "CREATE UNIQUE INDEX former_by_key ON former (key, ledger)",
    "CREATE INDEX former_by_ledger ON former (ledger)",
    # Entries change before the ledger that changes them is in its table; the first ledger only begins. (OR
    # IGNORE would yield to the conflict clause of the statement that fires the trigger.)
    """
    CREATE TRIGGER former_of_inserted AFTER INSERT ON entries WHEN EXISTS (SELECT 1 FROM ledgers) BEGIN
        INSERT INTO former (key, ledger, type)
        SELECT NEW.key, closing.ledger, NEW.type
        FROM (SELECT max(sequence) + 1 AS ledger FROM ledgers) AS closing
        WHERE NOT EXISTS (SELECT 1 FROM former WHERE key = NEW.key AND ledger = closing.ledger);
    END
    """,
    """
    CREATE TRIGGER former_of_updated AFTER UPDATE ON entries WHEN EXISTS (SELECT 1 FROM ledgers) BEGIN
        INSERT INTO former (key, ledger, entry, live_until, ttl_modified, type)
        SELECT OLD.key, closing.ledger, OLD.entry, OLD.live_until, OLD.ttl_modified, OLD.type
        FROM (SELECT max(sequence) + 1 AS ledger FROM ledgers) AS closing
        WHERE NOT EXISTS (SELECT 1 FROM former WHERE key = OLD.key AND ledger = closing.ledger);
    END
    """,
    """
    CREATE TRIGGER former_of_deleted AFTER DELETE ON entries WHEN EXISTS (SELECT 1 FROM ledgers) BEGIN
        INSERT INTO former (key, ledger, entry, live_until, ttl_modified, type)
        SELECT OLD.key, closing.ledger, OLD.entry, OLD.live_until, OLD.ttl_modified, OLD.type
        FROM (SELECT max(sequence) + 1 AS ledger FROM ledgers) AS closing
        WHERE NOT EXISTS (SELECT 1 FROM former WHERE key = OLD.key AND ledger = closing.ledger);
    END
    """,
    # What the chain can go back to. Entries come from `former`, history is what lies up to `ledger`; the rest
    # is small and kept here.
    """
    CREATE TABLE snapshots (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        ledger INTEGER NOT NULL,
        settings TEXT NOT NULL,              -- JSON object
        pending BLOB NOT NULL                -- list of lists: hash, source, envelope, received
    )
    """,
    # History that has grown too old is deleted, but not while a snapshot needs it; reading does not show it.
    """
    CREATE TRIGGER keep_ledgers BEFORE DELETE ON ledgers
    WHEN EXISTS (SELECT 1 FROM snapshots WHERE ledger >= OLD.sequence) BEGIN SELECT RAISE(IGNORE); END
    """,
    """
    CREATE TRIGGER keep_transactions BEFORE DELETE ON transactions
    WHEN EXISTS (SELECT 1 FROM snapshots WHERE ledger >= OLD.ledger) BEGIN SELECT RAISE(IGNORE); END
    """,
    """
    CREATE TRIGGER keep_events BEFORE DELETE ON events
    WHEN EXISTS (SELECT 1 FROM snapshots WHERE ledger >= OLD.ledger) BEGIN SELECT RAISE(IGNORE); END
    """,
    """
    CREATE TRIGGER forget_former AFTER DELETE ON ledgers
    WHEN NOT EXISTS (SELECT 1 FROM snapshots WHERE ledger < OLD.sequence) BEGIN
        DELETE FROM former WHERE ledger = OLD.sequence;
    END
    """,
    # Faults that were set and not used up yet. They belong to those who ask, not to the chain: no snapshot
    # and no dump holds them.
    """
    CREATE TABLE faults (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        kind TEXT NOT NULL,
        remaining INTEGER NOT NULL,          -- requests to hit
        hits INTEGER NOT NULL,               -- requests hit so far
        methods TEXT NOT NULL,               -- JSON list of names
        seed INTEGER NOT NULL,
        options TEXT NOT NULL,               -- JSON object, by kind
        held TEXT NOT NULL                   -- JSON list of transaction hashes that were taken and not closed
    )
    """,
)
"""Since version 2: what snapshots, dumps and faults need besides the chain itself."""


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
