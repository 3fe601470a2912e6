"""What a memory file looks like inside, and how one is told from every other file.

Truth: `store` (one row) and `memories`. Everything else is in `derived`.

memories    in canonical order, so that an export is one scan. key: the order key, or its beginning and a
            digest of it (`rows`). id: the order of arrival; never given twice. identity: see `rows`.
            fragment: the record, exactly; NULL for a long one, which is in `long`. mac: the row's seal.
long        long fragments, by id: a page of `memories` would hold too little else.
texts       a view: `memories` with the long fragments in their places.
store       id: which integrity key seals it. changes: the change counter. sequence: the highest id given.
            records: sum of all copies. plain: whether the fragments, each once and by key, are the blob; else
            some occur more than once, or may have keys that were cut at the same place. nonce, total, mac:
            see `seals`. links: what this file was given when it was anchored or loaded (`links`).
root        the root of the state with that change counter, sealed: what answers "was anything written?".
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from mycelium_sdk.backends.local import derived
from mycelium_sdk.backends.local.seals import Head
from mycelium_sdk.errors import BackendError, ForeignFile, NewerFile
from mycelium_sdk.files import file_errors, require_private
from mycelium_sdk.watched_file import identity, missing

if TYPE_CHECKING:
    import sqlite3
    from pathlib import Path

    from mycelium_sdk.backends.local.seals import Sealers

APPLICATION_ID = 0x4D79_4D65  # "MyMe"
VERSION = 3

STORE = """CREATE TABLE store(
        one INTEGER PRIMARY KEY CHECK (one = 1), id TEXT NOT NULL, owner TEXT NOT NULL,
        changes INTEGER NOT NULL, sequence INTEGER NOT NULL, records INTEGER NOT NULL, plain INTEGER NOT NULL,
        nonce BLOB NOT NULL, total BLOB NOT NULL, mac BLOB NOT NULL, links BLOB NOT NULL)"""

IDS = "CREATE UNIQUE INDEX memories_ids ON memories(id)"
"""Apart from the table, so that many memories can be put in first: the order of their ids is not theirs."""

MEMORIES = (
    """CREATE TABLE memories(
        key BLOB PRIMARY KEY, id INTEGER NOT NULL, identity BLOB, copies INTEGER NOT NULL,
        session TEXT, time REAL, mac BLOB NOT NULL, fragment TEXT) WITHOUT ROWID""",
    IDS,
    """CREATE VIEW texts AS SELECT m.id, m.key, m.identity, m.copies, m.session, m.time, m.mac,
        coalesce(m.fragment, (SELECT l.fragment FROM long l WHERE l.id = m.id)) AS fragment
        FROM memories m""",
    "CREATE INDEX memories_identity ON memories(identity) WHERE identity IS NOT NULL",
)

_TRUTH = (
    STORE,
    "CREATE TABLE long(id INTEGER PRIMARY KEY, fragment TEXT NOT NULL)",
    *MEMORIES,
    """CREATE TABLE root(
        one INTEGER PRIMARY KEY CHECK (one = 1), changes INTEGER NOT NULL, root BLOB NOT NULL,
        mac BLOB NOT NULL)""",
)


_MAGIC = b"SQLite format 3\x00"
_LOOKS = 10
_BETWEEN_LOOKS = 0.02

_looking = threading.Lock()
_looked_at: set[tuple[int, int] | None] = set()


def check_file(path: Path) -> None:
    """Refuse a file that is not a memory file of a version that is known, without opening it as a database.

    A memory file gets its application id in its first transaction, in rollback mode, so a file that is not
    empty has it in its header even if the process that made it was killed.

    Looks into each file once in a process, before the first connection: to open a file and close it lets go
    of every lock that the process holds on it (POSIX), and what others write would be lost.
    """
    require_private(path)
    with _looking:
        found = identity(path)
        if found not in _looked_at:
            _require_memory_file(path)
            _looked_at.add(found)


def never_look_again(path: Path) -> None:
    """Say that the file, perhaps a new one, has a connection now: `check_file` must not open it any more."""
    with _looking:
        _looked_at.add(identity(path))


def _require_memory_file(path: Path) -> None:
    for _ in range(_LOOKS):
        with file_errors(path, "read"), path.open("rb") as file:
            head = file.read(100)
        if not head:
            return
        if head.startswith(_MAGIC) and int.from_bytes(head[68:72], "big") == APPLICATION_ID:
            check_version(path, int.from_bytes(head[60:64], "big"))
            return
        # Perhaps another process is just making it, and its pages are not all written.
        time.sleep(_BETWEEN_LOOKS)
    raise _foreign(path)


def _foreign(path: Path | None) -> ForeignFile:
    return ForeignFile(
        f"{path} is not a memory file: it is damaged, or another program made it",
        hint="move it away, then `mycelium memory rehydrate`; or choose another path for the memory",
    )


def prepare(
    connection: sqlite3.Connection, path: Path | None, owner: str, sealers: Sealers, *, make: bool = True
) -> None:
    """Make the tables in an empty file, upgrade those of an older one, and check that it is this owner's.

    `make`: else an empty file is none. Raises `NewerFile`, `ForeignFile`, `BackendError`;
    `sqlite3.OperationalError` while another process is in the way.
    """
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version == 0:
        if path is not None and not make:
            raise missing(path)
        version = _create(connection, path, owner, sealers)
    check_version(path, version)
    row = connection.execute("SELECT owner FROM store").fetchone()
    if row is None:
        raise BackendError(
            f"{path} is damaged: it does not say whose memory it is", hint="choose another path"
        )
    if row[0] != owner:
        raise ForeignFile(
            f"{path} is the memory of another owner, {row[0]}, not of {owner}",
            hint="choose another path, or use the wallet of that owner",
        )
    if version < VERSION:
        from mycelium_sdk.backends.local.upgrade import upgrade

        upgrade(connection, path, sealers)
    if connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal" and path is not None:
        connection.execute("PRAGMA journal_mode = WAL")


def make_tables(connection: sqlite3.Connection, head: Head, sealers: Sealers) -> None:
    """Make every table; `head` is what the store's row begins with."""
    for statement in (*_TRUTH, *derived.TABLES):
        connection.execute(statement)
    connection.execute("INSERT INTO store VALUES (1, '', ?, 0, 0, 0, 1, x'', x'', x'', x'')", (head.owner,))
    head.write(connection, sealers.of(head.store))
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {VERSION}")


def _create(connection: sqlite3.Connection, path: Path | None, owner: str, sealers: Sealers) -> int:
    connection.execute("BEGIN IMMEDIATE")
    try:
        version: int = connection.execute("PRAGMA user_version").fetchone()[0]
        if version == 0:  # not made by another process meanwhile
            if connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                raise _foreign(path)  # noqa: TRY301 - rolled back below
            make_tables(connection, Head(sealers.keys.make(), owner, 0, 0, 0), sealers)
            version = VERSION
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    return version


def check_version(path: Path | None, version: int) -> None:
    """Raise `NewerFile` for a format that is not known yet."""
    if version > VERSION:
        raise NewerFile(
            f"{path} was written by a newer version (format {version}, this one knows {VERSION})",
            hint="upgrade mycelium-memory",
        )
