"""Seals: what makes an edit of a memory file behind the store's back show.

Every row carries a MAC over all that is true of it. The store's one row carries the exclusive or of a second
keyed function of every row, under a MAC with the counters, so that rows cannot be dropped, copied or brought
back either. That second function is stored nowhere: the sum is masked anew by every write, since whoever sees
many sums, or what they are made of, could find other rows with the same sum.
"""

from __future__ import annotations

import hashlib
import hmac
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mycelium_sdk.backends.local.rows import STORED, Stored
from mycelium_sdk.errors import IntegrityKeyMissing, Tampered

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from mycelium_sdk.backends.local.keys import Keys

_MAC_BYTES = 16
_SHARE_BYTES = 32
_NONCE_BYTES = 16
_READ_TOGETHER = 500


class Sealer:
    """The keyed functions of one store."""

    def __init__(self, key: bytes) -> None:
        self._key = key
        # Copied for each row: that takes less than to begin anew.
        self._begin = hashlib.blake2b(
            digest_size=_MAC_BYTES + _SHARE_BYTES, key=key, person=b"mycelium row"
        ).copy

    def rows(self, rows: Iterable[Sequence[Any]]) -> tuple[list[bytes], list[int]]:
        """The MAC of each row, given as the fields of `Stored`, and the share of each of the store's sum.

        Raises `TypeError` or `ValueError` for a row of types that no store writes.
        """
        begin, number_of = self._begin, int.from_bytes
        macs, shares = [], []
        last, when = None, "None"
        for number, key, identity, copies, session, time, fragment in rows:
            if time != last or not time:  # what is remembered together has one time; 0.0 equals -0.0
                last, when = time, "None" if time is None else repr(float(time))
            # The lengths in the first line say where each part ends, so no two rows give the same bytes.
            if identity is None and session is None:
                message = f"{number} {copies} {when} {len(key)} -1 -1\n{fragment}".encode() + key
            else:
                message = (
                    f"{number} {copies} {when} {len(key)} {-1 if identity is None else len(identity)}"
                    f" {-1 if session is None else len(session)}\n{session or ''}{fragment}"
                ).encode() + key
                if identity is not None:
                    message += identity
            state = begin()
            state.update(message)
            out = state.digest()
            macs.append(out[:_MAC_BYTES])
            shares.append(number_of(out[_MAC_BYTES:], "big"))
        return macs, shares

    def row(self, row: Sequence[Any]) -> tuple[bytes, int]:
        """The same for one."""
        (mac,), (share,) = self.rows((row,))
        return mac, share

    def share_of(self, row: Sequence[Any], mac: object) -> int | None:
        """The row's share, None if the row is not what was sealed."""
        return self.shares_of((row,), (mac,))[0]

    def shares_of(self, rows: Sequence[Sequence[Any]], macs: Sequence[object]) -> list[int | None]:
        """The same for many, each with its MAC."""
        try:
            expected, shares = self.rows(rows)
        except (TypeError, ValueError):
            if len(rows) == 1:
                return [None]
            return [self.share_of(row, mac) for row, mac in zip(rows, macs, strict=True)]
        return [
            share if isinstance(mac, bytes) and hmac.compare_digest(mac, own) else None
            for mac, own, share in zip(macs, expected, shares, strict=True)
        ]

    def mask(self, nonce: bytes, value: int) -> int:
        """Hide the sum, or show it again."""
        pad = hashlib.blake2b(nonce, digest_size=_SHARE_BYTES, key=self._key, person=b"mycelium mask")
        return value ^ int.from_bytes(pad.digest(), "big")

    def tag(self, message: bytes, purpose: bytes) -> bytes:
        """The MAC of something that is no row; `purpose` keeps one kind from passing as another."""
        return hashlib.blake2b(message, digest_size=_MAC_BYTES, key=self._key, person=purpose).digest()


class Sealers:
    """The sealers of the stores that one memory file has been, by the id that the file names."""

    def __init__(self, keys: Keys, path: Path | None) -> None:
        self.keys = keys
        self._path = path
        self._known: dict[str, Sealer] = {}

    def forget(self) -> None:
        """Look for every key again."""
        self._known.clear()

    def of(self, store: str) -> Sealer:
        """Raises `IntegrityKeyMissing`."""
        known = self._known.get(store)
        if known is None:
            key = self.keys.find(store)
            if key is None:
                raise IntegrityKeyMissing(
                    f"the integrity key of {self._path} is not on this machine, so its rows cannot be told"
                    " from edited ones",
                    hint="`mycelium memory verify` adopts the memory if it is what was anchored; else take"
                    " along what is here, as it is: `mycelium memory export FILE`",
                )
            known = self._known[store] = Sealer(key)
        return known


@dataclass(slots=True)
class Head:
    """The store's one row (`schema`). `total` is the exclusive or of the shares of all rows."""

    store: str
    owner: str
    changes: int
    sequence: int
    records: int
    plain: int = 1
    total: int = 0
    links: bytes = b""

    @classmethod
    def read(cls, connection: sqlite3.Connection, sealer_of: Callable[[str], Sealer]) -> tuple[Head, Sealer]:
        """The row as the last write left it. Raises `Tampered`, `IntegrityKeyMissing`."""
        *fields, nonce, masked, mac, links = connection.execute(
            "SELECT id, owner, changes, sequence, records, plain, nonce, total, mac, links FROM store"
        ).fetchone()
        head = cls(*fields)
        head.links = links
        sealer = sealer_of(head.store)
        genuine = (
            all(isinstance(part, bytes) for part in (nonce, masked, mac, links))
            and (len(nonce), len(masked)) == (_NONCE_BYTES, _SHARE_BYTES)
            and hmac.compare_digest(mac, head._mac(sealer, nonce, masked))
        )
        if not genuine:
            raise Tampered("the memory's counters were changed behind its back")
        head.total = sealer.mask(nonce, int.from_bytes(masked, "big"))
        return head, sealer

    @classmethod
    def unchecked(cls, connection: sqlite3.Connection) -> Head:
        """The row as it is, for what replaces everything. No id that is there is given again, and no link is
        believed."""
        head = cls(
            *connection.execute("SELECT id, owner, changes, sequence, records, plain FROM store").fetchone()
        )
        highest = connection.execute("SELECT max(id) FROM memories").fetchone()[0]
        head.sequence = max(head.sequence, highest or 0)
        return head

    def write(self, connection: sqlite3.Connection, sealer: Sealer) -> None:
        """Put the row back, sealed."""
        nonce = os.urandom(_NONCE_BYTES)
        masked = sealer.mask(nonce, self.total).to_bytes(_SHARE_BYTES, "big")
        connection.execute(
            "UPDATE store SET id = ?, changes = ?, sequence = ?, records = ?, plain = ?, nonce = ?,"
            " total = ?, mac = ?, links = ?",
            (
                self.store, self.changes, self.sequence, self.records, self.plain,
                nonce, masked, self._mac(sealer, nonce, masked), self.links,
            ),
        )  # fmt: skip

    def _mac(self, sealer: Sealer, nonce: bytes, masked: bytes) -> bytes:
        counters = f"{self.store} {self.owner} {self.changes} {self.sequence} {self.records} {self.plain}\n"
        # What comes before the links has one length only for its counters, so nothing can be moved over.
        return sealer.tag(counters.encode() + nonce + masked + self.links, b"mycelium head")


def sealed_rows(
    connection: sqlite3.Connection, condition: str = "1", parameters: tuple[object, ...] = ()
) -> Iterator[tuple[Stored, bytes]]:
    """Rows of `texts` with their MACs; `condition` is SQL put together from constants."""
    rows = connection.execute(
        f"SELECT {STORED}, mac FROM texts WHERE {condition}",  # noqa: S608 - constants
        parameters,
    )
    for row in rows:
        yield Stored(*row[:7]), row[7]


def genuine(
    connection: sqlite3.Connection, sealer_of: Callable[[str], Sealer], numbers: Sequence[int]
) -> list[Stored]:
    """The memories with these ids, in this order, without those that are not there.

    Raises `Tampered` if one is not what was sealed.
    """
    sealer = sealer_of(connection.execute("SELECT id FROM store").fetchone()[0])
    found: dict[int, Stored] = {}
    for first in range(0, len(numbers), _READ_TOGETHER):
        part = tuple(numbers[first : first + _READ_TOGETHER])
        for stored, mac in sealed_rows(connection, f"id IN ({','.join('?' * len(part))})", part):
            if sealer.share_of(stored, mac) is None:
                raise edited(stored.id)
            found[stored.id] = stored
    return [found[number] for number in numbers if number in found]


def edited(number: int) -> Tampered:
    """The error for a row that is not what was sealed."""
    return Tampered(f"memory {number} was changed behind the store's back")
