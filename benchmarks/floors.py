"""The least that each kind of work can cost: SQLite, hashlib or the disk alone, with nothing checked."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sqlite3
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

K = 5
"""So many answers each question has."""


class BareTable:
    """SQLite alone, with the same durability: one table, nothing derived, nothing checked."""

    def __init__(self, path: Path, synchronous: str) -> None:
        self._connection = sqlite3.connect(path, isolation_level=None)
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute(f"PRAGMA synchronous = {synchronous}")
        self._connection.execute("CREATE TABLE memories(id INTEGER PRIMARY KEY, content TEXT)")

    def add(self, content: str) -> None:
        """One text, committed."""
        self._connection.execute("INSERT INTO memories(content) VALUES (?)", (content,))

    def add_many(self, contents: Sequence[str]) -> None:
        """Many texts, committed together."""
        self._connection.execute("BEGIN")
        self._connection.executemany(
            "INSERT INTO memories(content) VALUES (?)", ((content,) for content in contents)
        )
        self._connection.execute("COMMIT")

    def close(self) -> None:
        """Let go of the file."""
        self._connection.close()


class BarePage:
    """A page appended and synchronised: the least that a durable write can cost on this disk."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("wb", buffering=0)

    def write(self, _: object) -> None:
        """One page."""
        self._file.write(bytes(4096))
        os.fdatasync(self._file.fileno())

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()


class BareExport:
    """Fragments that are ready and in order in a table, read and hashed: the least an export can cost."""

    def __init__(self, path: Path, fragments: Iterator[str]) -> None:
        self._connection = sqlite3.connect(path, isolation_level=None)
        self._connection.execute("CREATE TABLE ready(place INTEGER PRIMARY KEY, fragment TEXT)")
        self._connection.execute("BEGIN")
        self._connection.executemany(
            "INSERT INTO ready(fragment) VALUES (?)", ((fragment,) for fragment in fragments)
        )
        self._connection.execute("COMMIT")

    def run(self) -> None:
        """Read all of it in pieces, join each piece, hash it."""
        digest = hashlib.sha256()
        rows = self._connection.execute("SELECT fragment FROM ready ORDER BY place")
        while piece := rows.fetchmany(500):
            digest.update(",".join([fragment for (fragment,) in piece]).encode("ascii"))

    def close(self) -> None:
        """Let go of the file."""
        self._connection.close()


class BareMatch:
    """SQLite's own full-text search, in memory: any memories that have one of a question's telling words, and
    the best ones by its own ranking."""

    def __init__(self, contents: Iterable[str]) -> None:
        self._connection = sqlite3.connect(":memory:", isolation_level=None)
        self._connection.execute("CREATE VIRTUAL TABLE memories USING fts5(content)")
        self._connection.execute("BEGIN")
        self._connection.executemany(
            "INSERT INTO memories(content) VALUES (?)", ((content,) for content in contents)
        )
        self._connection.execute("COMMIT")

    def any_matches(self, question: str) -> list[str]:
        """The first that there are."""
        return self._matches("SELECT content FROM memories WHERE memories MATCH ? LIMIT ?", question)

    def best_matches(self, question: str) -> list[str]:
        """The best."""
        return self._matches(
            "SELECT content FROM memories WHERE memories MATCH ? ORDER BY rank LIMIT ?", question
        )

    def _matches(self, sql: str, question: str) -> list[str]:
        wanted = " OR ".join(question.rstrip("?").split()[2:])  # without "What about"
        return [content for (content,) in self._connection.execute(sql, (wanted, K))]

    def close(self) -> None:
        """Let go of the memory."""
        self._connection.close()


def bare_import(path: Path, blob: Path) -> None:
    """Read a blob whole, decode it, and insert its texts: what an import does at the least."""
    records = json.loads(blob.read_bytes())["records"]
    with contextlib.closing(BareTable(path, "FULL")) as bare:
        bare.add_many([record["content"] for record in records])


def opened_bare(path: Path) -> None:
    """The same with SQLite alone."""
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("SELECT records FROM store").fetchone()
