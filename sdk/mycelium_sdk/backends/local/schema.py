"""What a memory file looks like inside, and how one is told from every other file.

Truth: `store` (one row), `memories`. Derived, and made anew from the truth at any time: `tags`, `indexing`,
`terms`, `search`, `vocabulary`, `embedding`, `vectors`.

memories    id: never given twice. order_key: canonical order and identity. identity: for a record with
repeated tags
            (older blobs have them) the order key that it would have without, else NULL. fragment: the record,
            exactly.
store       changes: the change counter. sequence: the highest sequence and id given. records: sum of all
copies. indexing    the memories up to the id `through` are in the search index, made by `analyzer`; how many,
how many terms. terms       what `search` was told of a memory, and must be told again to make it forget.
embedding   whose vectors these are: the embedder's name, and its vector of a probe text. vectors
little-endian float32, of length 1 (or all zero).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mycelium_sdk.errors import BackendError, ForeignFile, NewerFile
from mycelium_sdk.files import file_errors, require_private

if TYPE_CHECKING:
    import sqlite3
    from pathlib import Path

APPLICATION_ID = 0x4D79_4D65  # "MyMe"
VERSION = 1

_STATEMENTS = (
    """CREATE TABLE store(
        one INTEGER PRIMARY KEY CHECK (one = 1), owner TEXT NOT NULL,
        changes INTEGER NOT NULL, sequence INTEGER NOT NULL, records INTEGER NOT NULL)""",
    """CREATE TABLE memories(
        id INTEGER PRIMARY KEY, order_key BLOB NOT NULL UNIQUE, identity BLOB, fragment TEXT NOT NULL,
        copies INTEGER NOT NULL, sequence INTEGER NOT NULL, session TEXT, time REAL)""",
    "CREATE INDEX memories_identity ON memories(identity) WHERE identity IS NOT NULL",
    "CREATE INDEX memories_session ON memories(session, sequence) WHERE session IS NOT NULL",
    "CREATE TABLE tags(tag TEXT NOT NULL, id INTEGER NOT NULL, PRIMARY KEY (tag, id)) WITHOUT ROWID",
    "CREATE INDEX tags_id ON tags(id)",
    """CREATE TABLE indexing(
        one INTEGER PRIMARY KEY CHECK (one = 1), analyzer TEXT NOT NULL,
        through INTEGER NOT NULL, documents INTEGER NOT NULL, length INTEGER NOT NULL)""",
    "CREATE TABLE terms(id INTEGER PRIMARY KEY, length INTEGER NOT NULL, terms TEXT NOT NULL)",
    "CREATE VIRTUAL TABLE search USING fts5(terms, content='terms', content_rowid='id', tokenize='ascii')",
    "CREATE VIRTUAL TABLE vocabulary USING fts5vocab('search', 'row')",
    """CREATE TABLE embedding(
        one INTEGER PRIMARY KEY CHECK (one = 1), name TEXT NOT NULL, probe BLOB NOT NULL)""",
    "CREATE TABLE vectors(id INTEGER PRIMARY KEY, vector BLOB NOT NULL)",
    "INSERT INTO indexing VALUES (1, '', 0, 0, 0)",
)

_MAGIC = b"SQLite format 3\x00"


def check_file(path: Path) -> None:
    """Refuse a file that is not a memory file of this version, without opening it as a database.

    A memory file gets its application id in its first transaction, in rollback mode, so a file that is not
    empty has it in its header even if the process that made it was killed.
    """
    require_private(path)
    with file_errors(path, "read"), path.open("rb") as file:
        head = file.read(100)
    if not head:
        return
    if not head.startswith(_MAGIC) or int.from_bytes(head[68:72], "big") != APPLICATION_ID:
        raise ForeignFile(
            f"{path} is not a memory file: another program made it", hint="choose another path for the memory"
        )
    _check_version(path, int.from_bytes(head[60:64], "big"))


def prepare(connection: sqlite3.Connection, path: Path | None, owner: str) -> None:
    """Make the tables in an empty file, or check that the file is this owner's.

    Raises `NewerFile`, `ForeignFile`; `sqlite3.OperationalError` while another process is in the way.
    """
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version == 0:
        version = _create(connection, owner)
    _check_version(path, version)
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
    if connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal" and path is not None:
        connection.execute("PRAGMA journal_mode = WAL")


def _create(connection: sqlite3.Connection, owner: str) -> int:
    connection.execute("BEGIN IMMEDIATE")
    try:
        version: int = connection.execute("PRAGMA user_version").fetchone()[0]
        if version == 0:  # not made by another process meanwhile
            for statement in _STATEMENTS:
                connection.execute(statement)
            connection.execute("INSERT INTO store VALUES (1, ?, 0, 0, 0)", (owner,))
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {VERSION}")
            version = VERSION
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    return version


def _check_version(path: Path | None, version: int) -> None:
    if version > VERSION:
        raise NewerFile(
            f"{path} was written by a newer version (format {version}, this one knows {VERSION})",
            hint="upgrade mycelium-memory",
        )
