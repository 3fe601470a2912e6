"""The tables that are made from the memories, and can be made anew from them at any time.

Each function is a part of a transaction that changes the truth. `temp.doomed(id)` names the memories that are
being forgotten; their rows are still there.

tags        which memories have a tag.
sessions    which memories were remembered in a session.
indexing    whose terms the search index has, and the highest id of a segment so far.
segments    what the search index covers, in pieces: see `segments`.
postings    where in a segment a term stands; in how many memories.
coherence   each segment's part of the measure that `coherence` takes.
embedding   whose vectors these are: the embedder's name, and its vector of a probe text.
vectors     little-endian float32, of length 1 (or all zero).
"""

# ruff: noqa: S608 - statements are put together from constants; every value is a parameter

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import sqlite3

TABLES = (
    "CREATE TABLE tags(tag TEXT NOT NULL, id INTEGER NOT NULL, PRIMARY KEY (tag, id)) WITHOUT ROWID",
    """CREATE TABLE sessions(
        session TEXT NOT NULL, id INTEGER NOT NULL, PRIMARY KEY (session, id)) WITHOUT ROWID""",
    """CREATE TABLE indexing(
        one INTEGER PRIMARY KEY CHECK (one = 1), analyzer TEXT NOT NULL, made INTEGER NOT NULL)""",
    """CREATE TABLE segments(
        id INTEGER PRIMARY KEY, first INTEGER NOT NULL, last INTEGER NOT NULL, documents INTEGER NOT NULL,
        length INTEGER NOT NULL, compared INTEGER NOT NULL, near INTEGER NOT NULL, far INTEGER NOT NULL,
        lengths BLOB NOT NULL, runs BLOB NOT NULL)""",
    """CREATE TABLE postings(
        segment INTEGER NOT NULL, term TEXT NOT NULL, documents INTEGER NOT NULL, places BLOB NOT NULL,
        PRIMARY KEY (segment, term)) WITHOUT ROWID""",
    """CREATE TABLE coherence(
        stretch INTEGER NOT NULL, segment INTEGER NOT NULL, compared INTEGER NOT NULL, near INTEGER NOT NULL,
        far INTEGER NOT NULL, PRIMARY KEY (stretch, segment)) WITHOUT ROWID""",
    """CREATE TABLE embedding(
        one INTEGER PRIMARY KEY CHECK (one = 1), name TEXT NOT NULL, probe BLOB NOT NULL)""",
    "CREATE TABLE vectors(id INTEGER PRIMARY KEY, vector BLOB NOT NULL)",
    "INSERT INTO indexing VALUES (1, '', 0)",
)

_DOOMED = "IN (SELECT id FROM temp.doomed)"


def forget(connection: sqlite3.Connection) -> None:
    """Forget what search index and vectors know of the doomed memories."""
    from mycelium_sdk.backends.local import indexing  # brings the analyzer, which no other write needs

    indexing.forget(connection)
    connection.execute(f"DELETE FROM vectors WHERE id {_DOOMED}")


def empty(connection: sqlite3.Connection) -> None:
    """Forget everything, tags and sessions as well."""
    empty_search(connection, "")
    for table in ("vectors", "tags", "sessions"):
        connection.execute(f"DELETE FROM {table}")


def empty_search(connection: sqlite3.Connection, analyzer: str) -> None:
    """Forget the whole search index; `analyzer` is whose terms come next."""
    for table in ("segments", "postings", "coherence"):
        connection.execute(f"DELETE FROM {table}")
    connection.execute("UPDATE indexing SET analyzer = ?", (analyzer,))
