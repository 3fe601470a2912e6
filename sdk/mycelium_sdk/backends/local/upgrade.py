"""Memory files of earlier versions, made into today's in one transaction.

Version 1 had no seals, so what it holds is taken as it is: whether it was edited before, only its anchor can
tell. Ids, sessions, times and the change counter stay; what is derived is made anew when it is needed.
Version 2 had no links, and no index of ids that was not part of the table; its seals stay as they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mycelium_sdk.backends.local import schema
from mycelium_sdk.backends.local.rows import Stored, alike, row_again
from mycelium_sdk.backends.local.seals import Head, edited
from mycelium_sdk.backends.local.writing import insert

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator
    from pathlib import Path

    from mycelium_sdk.backends.local.seals import Sealers

_DERIVED_1 = ("vocabulary", "search", "terms", "indexing", "tags", "embedding", "vectors")


def upgrade(connection: sqlite3.Connection, path: Path | None, sealers: Sealers) -> None:
    """Bring an older file up to date, unless another process has done so meanwhile.

    Raises `Tampered`, changing nothing, for a file whose rows were edited into what is no record; `NewerFile`
    if a newer version was the other process.
    """
    connection.execute("BEGIN IMMEDIATE")
    try:
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        schema.check_version(path, version)
        if version == 1:
            _from_1(connection, sealers)
        elif version == 2:
            _from_2(connection)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _from_1(connection: sqlite3.Connection, sealers: Sealers) -> None:
    for table in _DERIVED_1:
        connection.execute(f"DROP TABLE {table}")
    for index in ("memories_identity", "memories_session"):
        connection.execute(f"DROP INDEX {index}")
    for table in ("memories", "store"):
        connection.execute(f"ALTER TABLE {table} RENAME TO {table}_1")
    owner, changes, sequence = connection.execute("SELECT owner, changes, sequence FROM store_1").fetchone()
    head = Head(sealers.keys.make(), owner, changes, sequence, 0)
    schema.make_tables(connection, head, sealers)
    sealer = sealers.of(head.store)
    tags: list[tuple[str, int]] = []

    def rows() -> Iterator[Stored]:
        last = b""
        for number, fragment, copies, session, time in connection.execute(
            "SELECT id, fragment, copies, session, time FROM memories_1 ORDER BY order_key"
        ):
            stored = Stored(number, b"", None, copies, session, time, fragment)
            row = row_again(stored)
            if row is None:
                raise edited(number)
            stored = stored._replace(key=row.key, identity=row.identity)
            if copies > 1 or alike(last, row.key):
                head.plain = 0
            last = row.key
            head.records += copies
            tags.extend((tag, number) for tag in row.tags)
            yield stored

    insert(connection, sealer, head, rows())
    connection.executemany("INSERT INTO tags VALUES (?, ?)", tags)
    connection.execute("INSERT INTO sessions SELECT session, id FROM memories WHERE session IS NOT NULL")
    head.write(connection, sealer)
    for table in ("memories_1", "store_1"):
        connection.execute(f"DROP TABLE {table}")


def _from_2(connection: sqlite3.Connection) -> None:
    connection.execute("ALTER TABLE store RENAME TO store_2")
    connection.execute(schema.STORE)
    connection.execute("INSERT INTO store SELECT *, x'' FROM store_2")  # the column that is new is the last
    connection.execute("DROP TABLE store_2")
    connection.execute("DROP VIEW texts")
    connection.execute("DROP INDEX memories_identity")
    connection.execute("ALTER TABLE memories RENAME TO memories_2")
    for statement in schema.MEMORIES:
        connection.execute(statement)
    connection.execute("INSERT INTO memories SELECT * FROM memories_2 ORDER BY key")
    connection.execute("DROP TABLE memories_2")
    connection.execute(f"PRAGMA user_version = {schema.VERSION}")
