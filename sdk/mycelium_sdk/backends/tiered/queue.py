"""What the secondary lacks, kept durably: which memories are to be compared, and what it refuses to hold.

An entry names a memory by the SHA-256 of its fragment and says nothing else of it. It means "make the
secondary agree with the primary about this one", so it may be carried out twice, late, or after others. It is
announced before the primary changes, so that a crash leaves an entry too many and never one too few, and
concluded afterwards: whoever carries out entries leaves those alone whose writer is still at work.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from mycelium_sdk.private_database import PrivateDatabase

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

__all__ = ["Entry", "Lag", "Queue", "Whole"]

_APPLICATION_ID = 0x4D79_5469  # "MyTi"

_SCHEMA = """
CREATE TABLE entries(
    digest BLOB PRIMARY KEY, change INTEGER NOT NULL, concluded INTEGER NOT NULL, place TEXT,
    secure INTEGER NOT NULL, refused TEXT
) WITHOUT ROWID;
CREATE INDEX entries_by_change ON entries(change);
CREATE TABLE whole(
    one INTEGER PRIMARY KEY CHECK (one = 1), change INTEGER NOT NULL, replaced INTEGER NOT NULL,
    secure INTEGER NOT NULL, compared INTEGER NOT NULL, failures INTEGER NOT NULL, retry_at REAL NOT NULL,
    error TEXT
);
INSERT INTO whole VALUES (1, 0, 0, 0, 0, 0, 0, NULL)
"""

_FIRST_RETRY_SECONDS = 1.0
_LAST_RETRY_SECONDS = 300.0


class Entry(NamedTuple):
    """One memory to compare. `change`: when it was queued; `place`: its id in the primary, where known;
    `secure`: whether no copy may stay in the secondary if it is to go there."""

    digest: bytes
    change: int
    place: str | None
    secure: bool


class Whole(NamedTuple):
    """`change`: the number of the last change; `replaced`: that of the last replacement of everything which
    the secondary has not followed, else 0; `compared`: whether the secondary is known to hold nothing that
    the primary forgot, but for what is queued; `retry_at`: Unix seconds before which it is not asked."""

    change: int
    replaced: int
    secure: bool
    compared: bool
    retry_at: float
    error: str | None


@dataclass(frozen=True, slots=True)
class Lag:
    """What the secondary lacks, as far as is known without asking it. True if it lacks anything.

    `waiting`: memories that are still to be brought to it or removed from it. `everything`: the whole memory
    was replaced, and it has not followed. `refused`: what it cannot hold faithfully, as pairs of the
    memory's id in the primary (None if it is gone) and the reason. `compared`: whether the two were ever
    compared; where not, `repair()` does it. `error`: why the last attempt failed; the next one is made from
    `retry_at` on, in Unix seconds.
    """

    waiting: int
    everything: bool
    refused: tuple[tuple[str | None, str], ...]
    compared: bool
    error: str | None
    retry_at: float | None

    def __bool__(self) -> bool:
        return bool(self.waiting or self.everything or self.refused or not self.compared)


class Queue:
    """The entries of one memory, in one file that several processes share."""

    def __init__(self, path: Path) -> None:
        self._database = PrivateDatabase(path, application_id=_APPLICATION_ID, migrations=[_SCHEMA])

    @property
    def path(self) -> Path:
        """The file."""
        return self._database.path

    def announce(self, digests: Iterable[bytes], *, secure: bool = False) -> int:
        """Say durably that the primary is about to change in these; the number of the change."""
        with self._database.writing() as connection:
            sql = "UPDATE whole SET change = change + 1 RETURNING change"
            (change,) = connection.execute(sql).fetchone()
            connection.executemany(
                "INSERT INTO entries VALUES (?1, ?2, 0, NULL, ?3, NULL) ON CONFLICT DO UPDATE SET"
                " change = ?2, concluded = 0, place = NULL, secure = max(secure, ?3), refused = NULL",
                [(digest, change, secure) for digest in digests],
            )
        return int(change)

    def announce_replacement(self, *, secure: bool = False) -> tuple[int, int]:
        """Say durably that the primary is about to be replaced as a whole; the numbers of this change and of
        the replacement that the secondary has not followed so far, 0 for none."""
        with self._database.writing() as connection:
            (before,) = connection.execute("SELECT replaced FROM whole").fetchone()
            (change,) = connection.execute(
                "UPDATE whole SET change = change + 1, replaced = change + 1, secure = max(secure, ?)"
                " RETURNING change",
                (secure,),
            ).fetchone()
        return int(change), int(before)

    def conclude(self, change: int, places: Iterable[tuple[bytes, str]] = ()) -> None:
        """The primary has changed; `places`: which ids it gave."""
        with self._database.writing() as connection:
            connection.executemany(
                "UPDATE entries SET place = ?2 WHERE digest = ?1 AND change = ?3",
                [(digest, place, change) for digest, place in places],
            )
            connection.execute("UPDATE entries SET concluded = 1 WHERE change = ?", (change,))

    def cancel_replacement(self, change: int, before: int) -> None:
        """The primary was not replaced after all; `before` is what stood there."""
        with self._database.writing() as connection:
            connection.execute("UPDATE whole SET replaced = ? WHERE replaced = ?", (before, change))

    def next(self, limit: int, *, quiet: int) -> list[Entry]:
        """The entries queued first that can be carried out: concluded, or not later than the change `quiet`,
        at which no writer was at work."""
        with self._database.reading() as connection:
            rows = connection.execute(
                "SELECT digest, change, place, secure FROM entries"
                " WHERE refused IS NULL AND (concluded OR change <= ?) ORDER BY change, digest LIMIT ?",
                (quiet, limit),
            ).fetchall()
        return [Entry(digest, change, place, bool(secure)) for digest, change, place, secure in rows]

    def settle(self, entries: Sequence[Entry]) -> None:
        """These are done, unless they were queued again meanwhile."""
        with self._database.writing() as connection:
            connection.executemany(
                "DELETE FROM entries WHERE digest = ? AND change = ?",
                [(entry.digest, entry.change) for entry in entries],
            )

    def settle_everything(self, change: int) -> None:
        """The secondary was made equal to the primary as it was at `change` or later."""
        with self._database.writing() as connection:
            connection.execute("DELETE FROM entries WHERE change <= ? AND refused IS NULL", (change,))
            connection.execute("UPDATE whole SET compared = 1")
            connection.execute("UPDATE whole SET replaced = 0, secure = 0 WHERE replaced <= ?", (change,))

    def refuse(self, entry: Entry, reason: str) -> None:
        """The secondary cannot hold this one; it is not tried again until it changes or is repaired."""
        with self._database.writing() as connection:
            connection.execute(
                "UPDATE entries SET refused = ? WHERE digest = ? AND change = ?",
                (reason, entry.digest, entry.change),
            )

    def retry_now(self) -> None:
        """End the pause after a failure."""
        with self._database.writing() as connection:
            connection.execute("UPDATE whole SET failures = 0, retry_at = 0")

    def retry_refused(self) -> None:
        """Have the refused ones tried again."""
        with self._database.writing() as connection:
            connection.execute("UPDATE entries SET refused = NULL WHERE refused IS NOT NULL")

    def failed(self, reason: str) -> None:
        """An attempt failed; the pause until the next doubles, up to five minutes."""
        with self._database.writing() as connection:
            (failures,) = connection.execute("SELECT failures FROM whole").fetchone()
            pause = min(_LAST_RETRY_SECONDS, _FIRST_RETRY_SECONDS * 2.0 ** min(failures, 16))
            connection.execute(
                "UPDATE whole SET failures = failures + 1, retry_at = ?, error = ?",
                (time.time() + pause, reason),
            )

    def succeeded(self) -> None:
        """The secondary answered."""
        with self._database.reading() as connection:
            (failures,) = connection.execute("SELECT failures FROM whole").fetchone()
        if failures:
            with self._database.writing() as connection:
                connection.execute("UPDATE whole SET failures = 0, retry_at = 0, error = NULL")

    def trust(self) -> None:
        """The secondary holds nothing that the primary forgot, but for what is queued."""
        with self._database.writing() as connection:
            connection.execute("UPDATE whole SET compared = 1")

    def whole(self) -> Whole:
        """What is known of the whole."""
        with self._database.reading() as connection:
            row = connection.execute(
                "SELECT change, replaced, secure, compared, retry_at, error FROM whole"
            ).fetchone()
        change, replaced, secure, compared, retry_at, error = row
        return Whole(change, replaced, bool(secure), bool(compared), retry_at, error)

    def queued(self, digests: Iterable[bytes]) -> set[bytes]:
        """Those of these that have an entry."""
        sql = "SELECT 1 FROM entries WHERE digest = ?"
        with self._database.reading() as connection:
            return {digest for digest in digests if connection.execute(sql, (digest,)).fetchone()}

    def waiting(self) -> int:
        """How many entries are to be carried out."""
        with self._database.reading() as connection:
            sql = "SELECT count(*) FROM entries WHERE refused IS NULL"
            return int(connection.execute(sql).fetchone()[0])

    def refused(self) -> list[tuple[bytes, str]]:
        """The refused ones, with the reason."""
        with self._database.reading() as connection:
            sql = "SELECT digest, refused FROM entries WHERE refused IS NOT NULL ORDER BY digest"
            return list(connection.execute(sql).fetchall())

    def close(self) -> None:
        """Let go of the file."""
        self._database.close()
