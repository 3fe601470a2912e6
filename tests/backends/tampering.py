"""A small memory, and what somebody who can write its file may do to it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from mycelium_sdk.backends.base import BaseBackend

TEXTS = [
    ("apples are red", ["fruit"], "market"),
    ("bananas are yellow", ["fruit"], None),
    ("the sky is blue", None, "walk"),
    ("cherries are red, " + "and small " * 20, ["fruit", "stone"], "market"),
    ("plums are blue", ["fruit", "stone"], None),
]


def fill(store: BaseBackend) -> list[str]:
    """Remember the texts; their ids are 1 to 5."""
    return store.remember_many(
        {"content": text, "tags": tags, "session": session} for text, tags, session in TEXTS
    )


def edit(path: Path, *statements: str) -> None:
    """Run SQL on the file, behind its store's back."""
    with closing(sqlite3.connect(path, isolation_level=None)) as editor:
        for statement in statements:
            assert editor.execute(statement).rowcount != 0, "the edit touched nothing"


def rewrite_cells(path: Path, change: Callable[[list[int]], list[int]]) -> None:
    """Change which cells the one leaf of the table of memories has, as only writing to the pages can."""
    with closing(sqlite3.connect(path)) as connection:
        ((page,),) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'memories'")
        ((size,),) = connection.execute("PRAGMA page_size")
    data = bytearray(path.read_bytes())
    start = (page - 1) * size
    assert data[start] == 0x0A, "not a leaf"
    count = int.from_bytes(data[start + 3 : start + 5], "big")
    cells = [int.from_bytes(data[at : at + 2], "big") for at in range(start + 8, start + 8 + 2 * count, 2)]
    cells = change(cells)
    data[start + 3 : start + 5] = len(cells).to_bytes(2, "big")
    data[start + 8 : start + 8 + 2 * len(cells)] = b"".join(cell.to_bytes(2, "big") for cell in cells)
    path.write_bytes(data)


def recall_all(store: BaseBackend) -> set[str]:
    """What a query for words of all of them gives."""
    return {hit["content"] for hit in store.recall("apples bananas sky cherries plums red blue yellow", k=50)}


ROW_EDITS = {
    "content": "UPDATE memories SET fragment = replace(fragment, 'red', 'bad') WHERE id = 1",
    "content with its place": "UPDATE memories SET fragment = replace(fragment, 'red', 'bad'),"
    " key = CAST(replace(CAST(key AS TEXT), 'red', 'bad') AS BLOB) WHERE id = 1",
    "tags": "UPDATE memories SET fragment = replace(fragment, 'fruit', 'stone') WHERE id = 1",
    "place": "UPDATE memories SET key = x'61' WHERE id = 1",
    "id": "UPDATE memories SET id = 77 WHERE id = 1",
    "identity": "UPDATE memories SET identity = x'6100' WHERE id = 1",
    "copies": "UPDATE memories SET copies = 2 WHERE id = 1",
    "session": "UPDATE memories SET session = 'walk' WHERE id = 1",
    "session dropped": "UPDATE memories SET session = NULL WHERE id = 1",
    "session given": "UPDATE memories SET session = 'market' WHERE id = 2",
    "time": "UPDATE memories SET time = time - 86400 WHERE id = 1",
    "time dropped": "UPDATE memories SET time = NULL WHERE id = 1",
    "mac": "UPDATE memories SET mac = zeroblob(16) WHERE id = 1",
    "another row's mac": "UPDATE memories SET mac = (SELECT mac FROM memories WHERE id = 2) WHERE id = 1",
    "a row put in": "INSERT INTO memories SELECT x'6162', 6, identity, copies, session, time, mac,"
    " replace(fragment, 'red', 'bad') FROM memories WHERE id = 1",
    "no record": "UPDATE memories SET fragment = 'red' WHERE id = 1",
    "not ASCII": "UPDATE memories SET fragment = replace(fragment, 'red', 'réd') WHERE id = 1",
    "no text": "UPDATE memories SET fragment = CAST(x'ff726564' AS TEXT) WHERE id = 1",
    "bytes": "UPDATE memories SET fragment = CAST(fragment AS BLOB) WHERE id = 1",
    "session of bytes": "UPDATE memories SET session = CAST(session AS BLOB) WHERE id = 1",
    "key of text": "UPDATE memories SET key = CAST(key AS TEXT) WHERE id = 1",
    "time of text": "UPDATE memories SET time = 'yesterday' WHERE id = 1",
    "copies of text": "UPDATE memories SET copies = 'one' WHERE id = 1",
    "mac of text": "UPDATE memories SET mac = 'mac' WHERE id = 1",
}
