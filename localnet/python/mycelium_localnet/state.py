"""The ledger's entries while a ledger is being closed: changes in layers, and what they look like in a meta.

The lowest layer looks things up in the chain file. A child layer holds what a fee, a transaction or an
operation changes; it is merged into its parent or dropped. The difference between a child and its parent is
the list of changes that the meta shows.
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Final, NamedTuple

from mycelium_localnet import keys, pack

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Mapping

_CREATED, _UPDATED, _REMOVED, _STATE, _RESTORED = (pack.u32(kind) for kind in range(5))


class Entry(NamedTuple):
    """`data`: LedgerEntry; `live_until` and `ttl_modified`: its TTL entry, None for entries without one."""

    data: bytes
    live_until: int | None
    ttl_modified: int | None


class State:
    """Entries as they stand in one layer, while ledger `sequence` is being closed."""

    __slots__ = ("_changed", "_parent", "sequence")

    def __init__(self, sequence: int, parent: Callable[[bytes], Entry | None]) -> None:
        self.sequence: Final = sequence
        self._parent = parent
        self._changed: dict[bytes, Entry | None] = {}

    def get(self, key: bytes) -> Entry | None:
        """An entry; None when there is none. Archived entries are found, expired temporary ones are not."""
        if key in self._changed:
            return self._changed[key]
        return self._parent(key)

    def put(self, key: bytes, data: bytes, live_until: int | None) -> None:
        """Write an entry, stamped with this ledger; the TTL is stamped if it moved."""
        before = self.get(key)
        modified = None
        if live_until is not None:
            same = before is not None and before.live_until == live_until
            modified = before.ttl_modified if before is not None and same else self.sequence
        self._changed[key] = Entry(pack.u32(self.sequence) + data[4:], live_until, modified)

    def extend(self, key: bytes, live_until: int) -> None:
        """Move only the TTL of an entry that is there."""
        before = self.get(key)
        if before is None:
            raise KeyError(key)
        self._changed[key] = Entry(before.data, live_until, self.sequence)

    def erase(self, key: bytes) -> None:
        """Remove an entry, with its TTL. Nothing happens when there is none."""
        if self.get(key) is not None:
            self._changed[key] = None

    def child(self) -> State:
        """A layer on top of this one."""
        return State(self.sequence, self.get)

    def merge(self, child: State) -> None:
        """Take over what a child changed."""
        self._changed.update(child._changed)

    def changes(self, restored: Mapping[bytes, int] | None = None) -> list[bytes]:
        """LedgerEntryChange each, against the parent: STATE before UPDATED and REMOVED, TTL entries included.

        `restored`: what came back from the archive in this layer, with the ledger it was given until then.
        Such an entry and its TTL have RESTORED in the place of STATE, and nothing else unless they changed
        after that.
        """
        found: list[bytes] = []
        for key, after in self._changed.items():
            before = self._parent(key)
            if before is not None and restored and key in restored:
                back = Entry(pack.u32(self.sequence) + before.data[4:], restored[key], self.sequence)
                found += _restored_changes(key, back, after)
            else:
                found += _entry_changes(key, before, after)
                found += _ttl_changes(key, before, after)
        return found

    def digest(self, previous: bytes) -> bytes:
        """The state's hash after this layer's changes, from the hash before: a commitment to every change
        ever made."""
        if not self._changed:
            return previous
        running = sha256(previous)
        for key in sorted(self._changed):
            entry = self._changed[key]
            running.update(pack.opaque(key))
            if entry is None:
                running.update(pack.ZERO)
            else:
                running.update(pack.ONE + pack.opaque(entry.data))
                running.update(pack.i64(-1 if entry.live_until is None else entry.live_until))
        return running.digest()

    def store(self, connection: sqlite3.Connection) -> None:
        """Write this layer's changes to the chain file, within the caller's transaction."""
        gone = [(key,) for key, entry in self._changed.items() if entry is None]
        if gone:
            connection.executemany("DELETE FROM entries WHERE key = ?", gone)
        connection.executemany(
            "INSERT INTO entries (key, entry, live_until, ttl_modified, type) VALUES (?, ?, ?, ?, ?)"
            " ON CONFLICT (key) DO UPDATE SET entry = excluded.entry, live_until = excluded.live_until,"
            " ttl_modified = excluded.ttl_modified",
            (
                (key, entry.data, entry.live_until, entry.ttl_modified, keys.entry_type(key))
                for key, entry in self._changed.items()
                if entry is not None
            ),
        )


def stored_state(connection: sqlite3.Connection, sequence: int) -> State:
    """The lowest layer, for closing ledger `sequence`."""

    def look_up(key: bytes) -> Entry | None:
        row = connection.execute(
            "SELECT entry, live_until, ttl_modified FROM entries WHERE key = ?", (key,)
        ).fetchone()
        if row is None or (row[1] is not None and row[1] < sequence and keys.is_temporary(key)):
            return None
        return Entry(*row)

    return State(sequence, look_up)


def ttl_entry(key: bytes, live_until: int, modified: int) -> bytes:
    """LedgerEntry of the TTL of the entry with `key`."""
    return pack.u32(modified) + pack.u32(keys.TTL) + keys.ttl_hash(key) + pack.u32(live_until) + pack.ZERO


def _ttl(key: bytes, entry: Entry | None) -> bytes | None:
    if entry is None or entry.live_until is None or entry.ttl_modified is None:
        return None
    return ttl_entry(key, entry.live_until, entry.ttl_modified)


def _restored_changes(key: bytes, back: Entry, after: Entry | None) -> list[bytes]:
    """RESTORED for an entry and its TTL as they came back, each before what became of it in the same
    layer."""
    found: list[bytes] = []
    for value, changes in (
        (back.data, _entry_changes(key, back, after)),
        (_ttl(key, back), _ttl_changes(key, back, after)),
    ):
        if value is not None:
            found.append(_RESTORED + value)
        found += changes[1:]
    return found


def _entry_changes(key: bytes, before: Entry | None, after: Entry | None) -> list[bytes]:
    return _difference(key, None if before is None else before.data, None if after is None else after.data)


def _ttl_changes(key: bytes, before: Entry | None, after: Entry | None) -> list[bytes]:
    ttl_key = pack.u32(keys.TTL) + keys.ttl_hash(key)
    return _difference(ttl_key, _ttl(key, before), _ttl(key, after))


def _difference(key: bytes, before: bytes | None, after: bytes | None) -> list[bytes]:
    if before == after:
        return []
    if before is None:
        return [_CREATED + after] if after is not None else []
    return [_STATE + before, _REMOVED + key if after is None else _UPDATED + after]
