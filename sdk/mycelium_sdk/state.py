"""The state folder's one SQLite file: last anchors, high-water marks, known roots and intents.

These facts live outside the memory file on purpose: restoring an old copy of a memory must not restore what
was known about the chain when that copy was made.

A chain is (network passphrase, chain id where the network serves one, contract id); every fact here is per
chain and owner. Writes are single transactions with full synchronisation, made before a result is acted on.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from mycelium_sdk.facts import ChainKey, Conflict, Intent, KnownAnchor, LastAnchor, Mark
from mycelium_sdk.private_database import PrivateDatabase

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable
    from pathlib import Path
    from types import TracebackType

__all__ = ["ChainKey", "Conflict", "Intent", "KnownAnchor", "LastAnchor", "Mark", "StateStore"]

_APPLICATION_ID = 0x4D79_5374  # "MySt"

_VERSION_1 = """
CREATE TABLE last_anchors(
    network TEXT NOT NULL, contract TEXT NOT NULL, owner TEXT NOT NULL, chain_id TEXT NOT NULL,
    version INTEGER NOT NULL, root BLOB NOT NULL, uri TEXT, change_counter INTEGER NOT NULL,
    anchored_at REAL NOT NULL, updated_at REAL NOT NULL,
    PRIMARY KEY (network, contract, owner, chain_id)
) WITHOUT ROWID;
CREATE TABLE marks(
    network TEXT NOT NULL, contract TEXT NOT NULL, owner TEXT NOT NULL, chain_id TEXT NOT NULL,
    version INTEGER NOT NULL, root BLOB NOT NULL, ledger INTEGER NOT NULL, updated_at REAL NOT NULL,
    PRIMARY KEY (network, contract, owner, chain_id)
) WITHOUT ROWID;
CREATE TABLE known_anchors(
    network TEXT NOT NULL, contract TEXT NOT NULL, owner TEXT NOT NULL, chain_id TEXT NOT NULL,
    version INTEGER NOT NULL, root BLOB NOT NULL, uri TEXT,
    PRIMARY KEY (network, contract, owner, chain_id, version, root)
) WITHOUT ROWID;
CREATE TABLE conflicts(
    id INTEGER PRIMARY KEY,
    network TEXT NOT NULL, contract TEXT NOT NULL, owner TEXT NOT NULL, chain_id TEXT NOT NULL,
    verdict TEXT NOT NULL, seen_version INTEGER, seen_root BLOB, seen_ledger INTEGER,
    mark_version INTEGER, mark_root BLOB, mark_ledger INTEGER, noticed_at REAL NOT NULL
);
CREATE TABLE intents(
    network TEXT NOT NULL, contract TEXT NOT NULL, owner TEXT NOT NULL, chain_id TEXT NOT NULL,
    root BLOB NOT NULL, uri TEXT NOT NULL, expected_version INTEGER NOT NULL, change_counter INTEGER NOT NULL,
    transaction_hash TEXT, envelope TEXT, valid_until INTEGER, signed_ledger INTEGER,
    PRIMARY KEY (network, contract, owner, chain_id)
) WITHOUT ROWID;
"""

_VERSION_2 = """
ALTER TABLE last_anchors ADD COLUMN link BLOB;
ALTER TABLE last_anchors ADD COLUMN link_before BLOB;
ALTER TABLE intents ADD COLUMN link BLOB;
ALTER TABLE intents ADD COLUMN link_before BLOB
"""

_VERSION_3 = """
ALTER TABLE marks ADD COLUMN entry BLOB;
ALTER TABLE marks ADD COLUMN proved_from INTEGER
"""

_NO_MORE = " until "
"""With the time, ends the chain id of a chain that somebody said is no more; no chain's own id has spaces."""

_MARK = "version, root, ledger, entry, proved_from"
_WHERE = "network = ? AND contract = ? AND owner = ? AND chain_id = ?"


class StateStore:
    """The facts about chains that one home folder keeps. Safe for several threads and processes.

    Raises:
        ForeignFile, NewerFile: the file is another program's, or a newer release's.
        StoreLocked: another process holds it longer than half a minute.
    """

    def __init__(self, path: Path) -> None:
        self._database = PrivateDatabase(
            path, application_id=_APPLICATION_ID, migrations=(_VERSION_1, _VERSION_2, _VERSION_3)
        )

    def close(self) -> None:
        """Close the file. Closing twice is harmless."""
        self._database.close()

    def __enter__(self) -> StateStore:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # -- what the local memory is based on: `LastAnchors`

    def newest_chain(self, network: str, contract: str, owner: str) -> ChainKey | None:
        """See `LastAnchors`."""
        row = self._row(
            "SELECT chain_id FROM last_anchors WHERE network = ? AND contract = ? AND owner = ?"
            " ORDER BY updated_at DESC LIMIT 1",
            (network, contract, owner),
        )
        return None if row is None else ChainKey(network, contract, owner, row[0])

    def last_anchor(self, key: ChainKey) -> LastAnchor | None:
        """See `LastAnchors`."""
        row = self._row(
            "SELECT version, root, uri, change_counter, anchored_at, link, link_before FROM last_anchors"
            f" WHERE {_WHERE}",
            key.values,
        )
        return None if row is None else LastAnchor(*row)

    def record_last(self, key: ChainKey, anchor: LastAnchor) -> None:
        """See `LastAnchors`."""
        with self._database.writing() as connection:
            self._record_last(connection, key, anchor)

    def forget_last(self, network: str, contract: str, owner: str) -> None:
        """See `LastAnchors`."""
        with self._database.writing() as connection:
            _delete_all(connection, "last_anchors", network, contract, owner)

    def record(self, key: ChainKey, anchor: LastAnchor) -> None:
        """The memory is based on `anchor`: `record_last` and `settle` in one."""
        with self._database.writing() as connection:
            self._record_last(connection, key, anchor)
            self._settle(connection, key, anchor)

    def settle(self, key: ChainKey, anchor: LastAnchor) -> None:
        """Keep the root of `anchor` among the known ones. The mark is not its business: looks raise it.

        An intent that this anchor fulfils or overtakes is done with; one for a later version stays.
        """
        with self._database.writing() as connection:
            self._settle(connection, key, anchor)

    @staticmethod
    def _record_last(connection: sqlite3.Connection, key: ChainKey, anchor: LastAnchor) -> None:
        connection.execute(
            "INSERT INTO last_anchors(network, contract, owner, chain_id, version, root, uri, change_counter,"
            " anchored_at, updated_at, link, link_before) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
            " ON CONFLICT DO UPDATE SET"
            " version = excluded.version, root = excluded.root, uri = excluded.uri,"
            " change_counter = excluded.change_counter, anchored_at = excluded.anchored_at,"
            " updated_at = excluded.updated_at, link = excluded.link, link_before = excluded.link_before"
            " WHERE excluded.version >= version",
            (
                *key.values, anchor.version, anchor.root, anchor.uri, anchor.change_counter,
                anchor.anchored_at, time.time(), anchor.link, anchor.link_before,
            ),
        )  # fmt: skip

    @staticmethod
    def _settle(connection: sqlite3.Connection, key: ChainKey, anchor: LastAnchor) -> None:
        connection.execute(
            "INSERT OR REPLACE INTO known_anchors VALUES (?, ?, ?, ?, ?, ?, ?)",
            (*key.values, anchor.version, anchor.root, anchor.uri),
        )
        connection.execute(
            f"DELETE FROM intents WHERE {_WHERE} AND expected_version < ?",
            (*key.values, anchor.version),
        )

    # -- the high-water mark

    def known(self, network: str, contract: str, owner: str) -> dict[str, Mark]:
        """The highest anchor seen on each chain of this network, contract and owner, by chain id."""
        with self._database.reading() as connection:
            rows = connection.execute(
                f"SELECT chain_id, {_MARK} FROM marks WHERE network = ? AND contract = ? AND owner = ?",
                (network, contract, owner),
            ).fetchall()
        return {chain_id: Mark(*mark) for chain_id, *mark in rows}

    def mark(self, key: ChainKey) -> Mark | None:
        """The highest anchor ever seen on this chain."""
        row = self._row(f"SELECT {_MARK} FROM marks WHERE {_WHERE}", key.values)
        return None if row is None else Mark(*row)

    def raise_mark(
        self, key: ChainKey, mark: Mark, uri: str | None = None, *, after: Mark | None = None
    ) -> bool:
        """Remember that `mark` was seen, and the anchor's URI, iff the mark still is `after` (None: there is
        none), which `mark` was checked against; whether it was so. It never moves down."""
        with self._database.writing() as connection:
            row = connection.execute(f"SELECT {_MARK} FROM marks WHERE {_WHERE}", key.values).fetchone()
            current = None if row is None else Mark(*row)
            if current != after or (current is not None and mark.version < current.version):
                return False
            self._put_mark(connection, key, mark)
            # An older blob that is served later is recognised by its root.
            connection.execute(
                "INSERT INTO known_anchors VALUES (?, ?, ?, ?, ?, ?, ?)"
                " ON CONFLICT DO UPDATE SET uri = coalesce(uri, excluded.uri)",
                (*key.values, mark.version, mark.root, uri),
            )
            return True

    def prove(self, key: ChainKey, mark: Mark, *, proved_from: int) -> None:
        """Remember that the anchors from that version on are proved to lead to `mark`."""
        with self._database.writing() as connection:
            connection.execute(
                f"UPDATE marks SET proved_from = min(coalesce(proved_from, version), ?) WHERE {_WHERE}"
                " AND version = ? AND root = ?",
                (proved_from, *key.values, mark.version, mark.root),
            )

    def known_roots(self, key: ChainKey) -> dict[int, set[bytes]]:
        """The roots that were ever verified on this chain, by version: several contradict each other."""
        with self._database.reading() as connection:
            rows = connection.execute(
                f"SELECT version, root FROM known_anchors WHERE {_WHERE}", key.values
            ).fetchall()
        roots: dict[int, set[bytes]] = {}
        for version, root in rows:
            roots.setdefault(version, set()).add(root)
        return roots

    def know(self, key: ChainKey, anchors: Iterable[tuple[int, bytes, str | None]]) -> None:
        """Remember anchors, (version, root, URI), that a history proved."""
        with self._database.writing() as connection:
            connection.executemany(
                "INSERT INTO known_anchors VALUES (?, ?, ?, ?, ?, ?, ?)"
                " ON CONFLICT DO UPDATE SET uri = coalesce(uri, excluded.uri)",
                [(*key.values, *anchor) for anchor in anchors],
            )

    def known_anchor(self, key: ChainKey, root: bytes) -> KnownAnchor | None:
        """The newest anchor with this root that was ever verified on this chain."""
        row = self._row(
            f"SELECT version, root, uri FROM known_anchors WHERE {_WHERE} AND root = ?"
            " ORDER BY version DESC LIMIT 1",
            (*key.values, root),
        )
        return None if row is None else KnownAnchor(*row)

    def anchors_of(self, owner: str) -> list[tuple[str, KnownAnchor]]:
        """(network passphrase, anchor) of all that were ever verified, on any chain."""
        with self._database.reading() as connection:
            rows = connection.execute(
                "SELECT DISTINCT network, version, root, uri, contract FROM known_anchors WHERE owner = ?"
                " ORDER BY version DESC, network, contract",
                (owner,),
            ).fetchall()
        return [(network, KnownAnchor(*anchor)) for network, *anchor in rows]

    def needed_roots(self, owner: str) -> set[bytes]:
        """The roots of the newest anchors on every chain, of those in flight, and of those that the memory is
        based on: their blobs are needed."""
        with self._database.reading() as connection:
            rows = connection.execute(
                "SELECT root FROM marks WHERE owner = ?1 UNION SELECT root FROM intents WHERE owner = ?1"
                " UNION SELECT root FROM last_anchors WHERE owner = ?1",
                (owner,),
            ).fetchall()
        return {root for (root,) in rows}

    def keep_evidence(self, key: ChainKey, verdict: str, seen: Mark | None, mark: Mark | None) -> None:
        """Keep what was seen when the chain contradicted what is known: each contradiction once, however
        often it is seen."""
        with self._database.writing() as connection:
            connection.execute(
                "INSERT INTO conflicts(network, contract, owner, chain_id, verdict, seen_version, seen_root,"
                " seen_ledger, mark_version, mark_root, mark_ledger, noticed_at)"
                " SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12 WHERE NOT EXISTS (SELECT 1"
                " FROM conflicts WHERE network = ?1 AND contract = ?2 AND owner = ?3 AND chain_id = ?4"
                " AND verdict = ?5 AND seen_version IS ?6 AND seen_root IS ?7 AND mark_version IS ?9"
                " AND mark_root IS ?10)",
                (*key.values, verdict, *_columns(seen), *_columns(mark), time.time()),
            )

    def evidence_count(self, key: ChainKey) -> int:
        """How many contradictions of this chain are kept."""
        row = self._row(f"SELECT count(*) FROM conflicts WHERE {_WHERE}", key.values)
        return 0 if row is None else int(row[0])

    def conflicts(self, network: str, contract: str, owner: str) -> tuple[Conflict, ...]:
        """What is kept of contradictions on any chain of this network and contract, the newest first."""
        with self._database.reading() as connection:
            rows = connection.execute(
                "SELECT verdict, noticed_at FROM conflicts"
                " WHERE network = ? AND contract = ? AND owner = ? ORDER BY id DESC",
                (network, contract, owner),
            ).fetchall()
        return tuple(Conflict(*row) for row in rows)

    def start_anew(self, key: ChainKey, mark: Mark | None, uri: str | None, last: LastAnchor | None) -> None:
        """Drop the marks of every chain of this network, contract and owner, on a person's explicit word, and
        begin again with `mark`, whose anchor has that URI, and `last`, on the chain of `key`, at once.

        What the memory was based on is dropped with them, and what is in flight on other chains than that
        one, where it may still take effect. The roots that were verified stay, as those of a chain that is no
        more: nothing that was anchored there counts as anchored on what takes its place. The evidence of
        conflicts stays.
        """
        network, contract, owner, present = key.values
        with self._database.writing() as connection:
            for table in ("marks", "last_anchors"):
                _delete_all(connection, table, network, contract, owner)
            connection.execute(
                "DELETE FROM intents WHERE network = ? AND contract = ? AND owner = ? AND chain_id <> ?",
                (network, contract, owner, present),
            )
            connection.execute(
                "UPDATE known_anchors SET chain_id = chain_id || ?"
                " WHERE network = ? AND contract = ? AND owner = ?",
                (f"{_NO_MORE}{time.time_ns()}", network, contract, owner),
            )
            if mark is not None:
                self._put_mark(connection, key, mark)
                connection.execute(
                    "INSERT INTO known_anchors VALUES (?, ?, ?, ?, ?, ?, ?)",
                    (*key.values, mark.version, mark.root, uri),
                )
            if last is not None:
                self._record_last(connection, key, last)
                self._settle(connection, key, last)

    # -- what is in flight

    def intent(self, key: ChainKey) -> Intent | None:
        """The anchoring in flight on this chain."""
        row = self._row(
            "SELECT root, uri, expected_version, change_counter, transaction_hash, envelope, valid_until,"
            f" signed_ledger, link, link_before FROM intents WHERE {_WHERE}",
            key.values,
        )
        return None if row is None else Intent(*row)

    def in_flight(self, network: str, contract: str, owner: str) -> dict[str, Intent]:
        """The anchorings in flight on each chain of this network and contract, by chain id."""
        with self._database.reading() as connection:
            rows = connection.execute(
                "SELECT chain_id FROM intents WHERE network = ? AND contract = ? AND owner = ?",
                (network, contract, owner),
            ).fetchall()
        found = {chain: self.intent(ChainKey(network, contract, owner, chain)) for (chain,) in rows}
        return {chain: intent for chain, intent in found.items() if intent is not None}

    def put_intent(self, key: ChainKey, intent: Intent) -> None:
        """Record what is about to be sent, durably, replacing an earlier intent of this chain."""
        with self._database.writing() as connection:
            connection.execute(
                "INSERT OR REPLACE INTO intents(network, contract, owner, chain_id, root, uri,"
                " expected_version, change_counter, transaction_hash, envelope, valid_until, signed_ledger,"
                " link, link_before) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    *key.values, intent.root, intent.uri, intent.expected_version,
                    intent.change_counter, intent.transaction_hash, intent.envelope, intent.valid_until,
                    intent.signed_ledger, intent.link, intent.link_before,
                ),
            )  # fmt: skip

    def drop_intent(self, key: ChainKey) -> None:
        """Forget what was in flight: it is known not to have happened."""
        with self._database.writing() as connection:
            connection.execute(f"DELETE FROM intents WHERE {_WHERE}", key.values)

    # -- inside

    @staticmethod
    def _put_mark(connection: sqlite3.Connection, key: ChainKey, mark: Mark) -> None:
        connection.execute(
            "INSERT OR REPLACE INTO marks(network, contract, owner, chain_id, version, root, ledger, entry,"
            " proved_from, updated_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (*key.values, mark.version, mark.root, mark.ledger, mark.entry, mark.proved_from, time.time()),
        )

    def _row(self, sql: str, values: tuple[Any, ...]) -> tuple[Any, ...] | None:
        with self._database.reading() as connection:
            row: tuple[Any, ...] | None = connection.execute(sql, values).fetchone()
            return row


def _delete_all(connection: sqlite3.Connection, table: str, network: str, contract: str, owner: str) -> None:
    connection.execute(
        f"DELETE FROM {table} WHERE network = ? AND contract = ? AND owner = ?", (network, contract, owner)
    )


def _columns(mark: Mark | None) -> tuple[int | None, bytes | None, int | None]:
    return (None, None, None) if mark is None else (mark.version, mark.root, mark.ledger)
