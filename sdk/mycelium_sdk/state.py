"""The state folder's one SQLite file: last anchors, high-water marks, known roots and intents.

These facts live outside the memory file on purpose: restoring an old copy of a memory must not restore what
was known about the chain when that copy was made.

A chain is (network passphrase, chain id where the network serves one, contract id); every fact here is per
chain and owner. Writes are single transactions with full synchronisation, made before a result is acted on.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mycelium_sdk.errors import ForeignFile, NewerFile
from mycelium_sdk.files import open_private_sqlite
from mycelium_sdk.sqlite_errors import explained

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator
    from pathlib import Path
    from types import TracebackType

__all__ = ["ChainKey", "Intent", "KnownAnchor", "LastAnchor", "Mark", "StateStore"]

_APPLICATION_ID = 0x4D79_5374  # "MySt"
_SCHEMA_VERSION = 1
_BUSY_SECONDS = 30.0

_SCHEMA = """
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

_WHERE = "network = ? AND contract = ? AND owner = ? AND chain_id = ?"


@dataclass(frozen=True, slots=True)
class ChainKey:
    """Which chain and whose memory: network passphrase, contract id, owner, chain id ('' where none is
    served)."""

    network: str
    contract: str
    owner: str
    chain_id: str = ""

    @property
    def values(self) -> tuple[str, str, str, str]:
        """The columns in the tables' order."""
        return (self.network, self.contract, self.owner, self.chain_id)


@dataclass(frozen=True, slots=True)
class LastAnchor:
    """The anchor that the local memory is based on: made here, or verified and loaded here.

    `change_counter` is the memory's when its root was `root`; `anchored_at` is in Unix seconds.
    """

    version: int
    root: bytes
    uri: str | None
    change_counter: int
    anchored_at: float


@dataclass(frozen=True, slots=True)
class Mark:
    """The highest anchor ever seen on a chain: version, root, and the ledger it was seen at."""

    version: int
    root: bytes
    ledger: int


@dataclass(frozen=True, slots=True)
class KnownAnchor:
    """An anchor that was once verified: its version, root and URI."""

    version: int
    root: bytes
    uri: str | None


@dataclass(frozen=True, slots=True)
class Intent:
    """An anchoring in flight: what is being anchored, on top of which version, at which change counter.

    `transaction_hash` (hex), `envelope` (base64 of its XDR) and `valid_until` (Unix seconds of ledger time)
    are of the transaction, and None until it was signed.
    """

    root: bytes
    uri: str
    expected_version: int
    change_counter: int
    transaction_hash: str | None = None
    envelope: str | None = None
    valid_until: int | None = None
    signed_ledger: int | None = None


class StateStore:
    """The facts about chains that one home folder keeps. Safe for several threads and processes.

    Raises:
        ForeignFile, NewerFile: the file is another program's, or a newer release's.
        StoreLocked: another process holds it longer than half a minute.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.RLock()
        self._inherited: list[sqlite3.Connection] = []
        self._open()

    def _open(self) -> None:
        self._process = os.getpid()
        self._connection = open_private_sqlite(self._path, timeout=_BUSY_SECONDS)
        try:
            self._prepare()
        except BaseException:
            self._connection.close()
            raise

    def _leave_to_parent(self) -> None:
        """In a forked child: a connection of its own, since to use or close the parent's would harm its
        file."""
        if self._process != os.getpid():
            self._lock = threading.RLock()  # a thread that only the parent has may hold the old one
            self._inherited.append(self._connection)
            self._open()

    def close(self) -> None:
        """Close the file. Closing twice is harmless."""
        with self._lock:
            self._connection.close()

    def __enter__(self) -> StateStore:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # -- what the local memory is based on

    def last_anchor(self, key: ChainKey) -> LastAnchor | None:
        """The anchor the local memory is based on, on this chain."""
        row = self._row(
            f"SELECT version, root, uri, change_counter, anchored_at FROM last_anchors WHERE {_WHERE}",
            key.values,
        )
        return None if row is None else LastAnchor(*row)

    def newest_chain(self, network: str, contract: str, owner: str) -> ChainKey | None:
        """The chain of that network and contract used last, for answers that must not ask the chain."""
        row = self._row(
            "SELECT chain_id FROM last_anchors WHERE network = ? AND contract = ? AND owner = ?"
            " ORDER BY updated_at DESC LIMIT 1",
            (network, contract, owner),
        )
        return None if row is None else ChainKey(network, contract, owner, row[0])

    def known(self, network: str, contract: str, owner: str) -> dict[str, Mark]:
        """The highest anchor seen on each chain of this network, contract and owner, by chain id."""
        with self._reading() as connection:
            rows = connection.execute(
                "SELECT chain_id, version, root, ledger FROM marks"
                " WHERE network = ? AND contract = ? AND owner = ?",
                (network, contract, owner),
            ).fetchall()
        return {chain_id: Mark(*mark) for chain_id, *mark in rows}

    def record(self, key: ChainKey, anchor: LastAnchor, *, ledger: int) -> None:
        """Settle: the memory is based on `anchor`, verified at `ledger`.

        An intent that this anchor fulfils or overtakes is done with; one for a later version stays.
        """
        with self._writing() as connection:
            # Another process may have recorded a newer one meanwhile, which stands.
            connection.execute(
                "INSERT INTO last_anchors VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET"
                " version = excluded.version, root = excluded.root, uri = excluded.uri,"
                " change_counter = excluded.change_counter, anchored_at = excluded.anchored_at,"
                " updated_at = excluded.updated_at WHERE excluded.version >= version",
                (
                    *key.values, anchor.version, anchor.root, anchor.uri,
                    anchor.change_counter, anchor.anchored_at, time.time(),
                ),
            )  # fmt: skip
            self._raise_mark(connection, key, Mark(anchor.version, anchor.root, ledger))
            connection.execute(
                "INSERT OR REPLACE INTO known_anchors VALUES (?, ?, ?, ?, ?, ?, ?)",
                (*key.values, anchor.version, anchor.root, anchor.uri),
            )
            connection.execute(
                f"DELETE FROM intents WHERE {_WHERE} AND expected_version < ?",
                (*key.values, anchor.version),
            )

    # -- the high-water mark

    def mark(self, key: ChainKey) -> Mark | None:
        """The highest anchor ever seen on this chain."""
        row = self._row(f"SELECT version, root, ledger FROM marks WHERE {_WHERE}", key.values)
        return None if row is None else Mark(*row)

    def raise_mark(self, key: ChainKey, mark: Mark) -> None:
        """Remember that `mark` was seen. It never moves down."""
        with self._writing() as connection:
            self._raise_mark(connection, key, mark)

    def known_anchor(self, key: ChainKey, root: bytes) -> KnownAnchor | None:
        """The newest anchor with this root that was ever verified on this chain."""
        row = self._row(
            f"SELECT version, root, uri FROM known_anchors WHERE {_WHERE} AND root = ?"
            " ORDER BY version DESC LIMIT 1",
            (*key.values, root),
        )
        return None if row is None else KnownAnchor(*row)

    def keep_evidence(self, key: ChainKey, verdict: str, seen: Mark | None, mark: Mark | None) -> None:
        """Keep what was seen when the chain contradicted what is known."""
        with self._writing() as connection:
            connection.execute(
                "INSERT INTO conflicts(network, contract, owner, chain_id, verdict, seen_version, seen_root,"
                " seen_ledger, mark_version, mark_root, mark_ledger, noticed_at)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (*key.values, verdict, *_columns(seen), *_columns(mark), time.time()),
            )

    def evidence_count(self, key: ChainKey) -> int:
        """How many contradictions of this chain are kept."""
        row = self._row(f"SELECT count(*) FROM conflicts WHERE {_WHERE}", key.values)
        return 0 if row is None else int(row[0])

    def forget_chain(self, key: ChainKey) -> None:
        """Drop the marks of every chain of this network, contract and owner, on a person's explicit word.

        What the memory was based on is dropped with them. The roots that were verified, and the evidence of
        conflicts, stay.
        """
        with self._writing() as connection:
            for table in ("marks", "last_anchors", "intents"):
                connection.execute(
                    f"DELETE FROM {table} WHERE network = ? AND contract = ? AND owner = ?",
                    key.values[:3],
                )

    # -- what is in flight

    def intent(self, key: ChainKey) -> Intent | None:
        """The anchoring in flight on this chain."""
        row = self._row(
            "SELECT root, uri, expected_version, change_counter, transaction_hash, envelope, valid_until,"
            " signed_ledger"
            f" FROM intents WHERE {_WHERE}",
            key.values,
        )
        return None if row is None else Intent(*row)

    def put_intent(self, key: ChainKey, intent: Intent) -> None:
        """Record what is about to be sent, durably, replacing an earlier intent of this chain."""
        with self._writing() as connection:
            connection.execute(
                "INSERT OR REPLACE INTO intents VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    *key.values, intent.root, intent.uri, intent.expected_version,
                    intent.change_counter, intent.transaction_hash, intent.envelope, intent.valid_until,
                    intent.signed_ledger,
                ),
            )  # fmt: skip

    def drop_intent(self, key: ChainKey) -> None:
        """Forget what was in flight: it is known not to have happened."""
        with self._writing() as connection:
            connection.execute(f"DELETE FROM intents WHERE {_WHERE}", key.values)

    # -- the file

    def _prepare(self) -> None:
        connection = self._connection
        with explained(self._path):
            application, version, tables = self._identity()
            if application not in (0, _APPLICATION_ID) or (application == 0 and tables):
                raise ForeignFile(
                    f"{self._path} belongs to another program", hint="move it away; it was not touched"
                )
            if version > _SCHEMA_VERSION:
                raise NewerFile(
                    f"{self._path} was written by a newer release", hint="upgrade mycelium-memory"
                )
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
        if version < _SCHEMA_VERSION:
            with self._writing():
                if self._identity()[1] < _SCHEMA_VERSION:  # another process may have been first
                    for statement in _SCHEMA.split(";"):
                        connection.execute(statement)
                    connection.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
                    connection.execute(f"PRAGMA user_version = {_SCHEMA_VERSION}")

    def _identity(self) -> tuple[int, int, int]:
        """Application id, version and number of tables, of one state: another process may be making them."""
        sql = (
            "SELECT (SELECT application_id FROM pragma_application_id),"
            " (SELECT user_version FROM pragma_user_version), (SELECT count(*) FROM sqlite_master)"
        )
        application, version, tables = self._connection.execute(sql).fetchone()
        return application, version, tables

    @staticmethod
    def _raise_mark(connection: sqlite3.Connection, key: ChainKey, mark: Mark) -> None:
        connection.execute(
            "INSERT INTO marks VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
            " ON CONFLICT DO UPDATE SET version = excluded.version, root = excluded.root,"
            " ledger = excluded.ledger, updated_at = excluded.updated_at"
            " WHERE excluded.version > version OR (excluded.version = version AND excluded.ledger > ledger)",
            (*key.values, mark.version, mark.root, mark.ledger, time.time()),
        )

    def _row(self, sql: str, values: tuple[Any, ...]) -> tuple[Any, ...] | None:
        with self._reading() as connection:
            row: tuple[Any, ...] | None = connection.execute(sql, values).fetchone()
            return row

    @contextlib.contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        self._leave_to_parent()
        with self._lock, explained(self._path):
            yield self._connection

    @contextlib.contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        self._leave_to_parent()
        with self._lock, explained(self._path):
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise


def _columns(mark: Mark | None) -> tuple[int | None, bytes | None, int | None]:
    return (None, None, None) if mark is None else (mark.version, mark.root, mark.ledger)
