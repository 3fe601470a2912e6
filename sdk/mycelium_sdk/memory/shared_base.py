"""What a memory held when it last agreed with the chain, as keyed digests: the base of a three-way merge.

One file for each chain and owner, in the state folder: `MYCBASE1`, the version (8 bytes, big-endian), the
root (32 bytes), when it was anchored (Unix seconds, 8 bytes), and for each record 12 bytes of a digest of its
fragment, keyed with a secret of this home, and the sequence and time that it had here (8 bytes each, the time
in microseconds; -1 for what is not known, the sequence -2 for a record that was not here); sorted. It holds
no text, and nobody without the key can tell whether a text is in it.

It is written before the memory is based on the version, and the one before is kept beside it (`.before`), so
that a crash loses neither. It may be lost: the blob of that version serves too, without knowing what was
forgotten and remembered again since, and a merge without either removes nothing.
"""

from __future__ import annotations

import bisect
import contextlib
import hashlib
import os
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from mycelium_sdk.errors import BackendError
from mycelium_sdk.files import (
    create_private,
    ensure_private_folder,
    file_errors,
    is_there,
    read_private,
    replace_private,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from mycelium_sdk.facts import ChainKey
    from mycelium_sdk.records import Record
    from mycelium_sdk.stored import StoredRecord

__all__ = ["ABSENT", "BaseDraft", "BaseStore", "Known", "Noted", "SharedBase", "noted"]

Noted = tuple[str, int | None, float | None]
"""A fragment with the sequence and the time (Unix seconds) that its record has here, as far as is known."""

_MAGIC = b"MYCBASE1"
_HEAD = struct.Struct(">8sQ32sQ")
_DIGEST = 12
_ENTRY = struct.Struct(f">{_DIGEST}sqq")
_KEY_BYTES = 32
_MOST_BYTES = 1 << 30
_UNKNOWN = -1
_LARGEST = (1 << 63) - 1

ABSENT = -2
"""The sequence of a record that the version holds, and that was not here: no record has it."""
_MICROSECONDS = 1_000_000
_SECONDS = _LARGEST // _MICROSECONDS


class Known(NamedTuple):
    """What a base knows of a record that it holds: its sequence and its time (Unix seconds) here, None where
    they are not known."""

    sequence: int | None
    time: float | None


@dataclass(frozen=True, slots=True)
class SharedBase:
    """The records of `version` with `root`, anchored at `anchored_at` (Unix seconds; 0: not known)."""

    version: int
    root: bytes
    anchored_at: int
    _entries: bytes
    _key: bytes

    def __len__(self) -> int:
        return len(self._entries) // _ENTRY.size

    def find(self, fragment: str) -> Known | None:
        """What is known of the record with this fragment, None if the version did not hold it."""
        wanted = _digest(self._key, fragment)
        size, entries = _ENTRY.size, self._entries
        place = bisect.bisect_left(
            range(len(self)), wanted, key=lambda number: entries[number * size : number * size + _DIGEST]
        )
        if place == len(self):
            return None
        found, sequence, time = _ENTRY.unpack_from(entries, place * size)
        if found != wanted:
            return None
        return Known(
            None if sequence == _UNKNOWN else sequence, None if time == _UNKNOWN else time / _MICROSECONDS
        )


class BaseDraft:
    """A base in the making: what passes by of a memory with `root`, packed."""

    def __init__(self, key: bytes, root: bytes) -> None:
        self._key = key
        self.root = root
        self.complete = False
        self._entries = bytearray()

    def watch(self, records: Iterable[StoredRecord]) -> Iterator[StoredRecord]:
        """The same records, noted as they pass."""
        for stored in records:
            self._entries += _packed(self._key, (stored.fragment, stored.sequence, stored.time))
            yield stored
        self.complete = True

    def entries(self) -> bytes:
        """What was noted, sorted."""
        size, data = _ENTRY.size, bytes(self._entries)
        return b"".join(sorted(data[place : place + size] for place in range(0, len(data), size)))


class BaseStore:
    """The bases that one home keeps; `folder` is its state folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def keep(
        self, key: ChainKey, version: int, root: bytes, anchored_at: int, records: Iterable[Noted]
    ) -> None:
        """Keep what `version` holds."""
        base = self.made(version, root, anchored_at, records)
        self._write(key, version, _HEAD.pack(_MAGIC, version, root, anchored_at) + base._entries)  # noqa: SLF001

    def draft(self, root: bytes) -> BaseDraft:
        """A base of the memory with this root, to be filled while it is exported."""
        return BaseDraft(self._key(), root)

    def keep_draft(self, key: ChainKey, version: int, anchored_at: int, draft: BaseDraft) -> None:
        """Keep what was drafted, before it is anchored as `version`."""
        head = _HEAD.pack(_MAGIC, version, draft.root, anchored_at)
        self._write(key, version, head + draft.entries())

    def made(self, version: int, root: bytes, anchored_at: int, records: Iterable[Noted]) -> SharedBase:
        """The base of these records, without keeping it."""
        secret = self._key()
        entries = b"".join(sorted(_packed(secret, record) for record in records))
        return SharedBase(version, root, anchored_at, entries, secret)

    def from_blob(self, version: int, root: bytes, anchored_at: int, fragments: Iterable[str]) -> SharedBase:
        """The base that a version's blob gives, which knows nothing but what it holds."""
        return self.made(version, root, anchored_at, ((text, None, None) for text in fragments))

    def find(self, key: ChainKey, version: int, root: bytes) -> SharedBase | None:
        """What is kept of this version, None if that is nothing or damaged."""
        with contextlib.suppress(BackendError):
            for path in (self._file(key), _before(self._file(key))):
                found = _head(path)
                if found is not None and found[:3] == (_MAGIC, version, root):
                    entries = read_private(path, max_bytes=_MOST_BYTES)[_HEAD.size :]
                    if len(entries) % _ENTRY.size == 0:
                        return SharedBase(version, root, found[3], entries, self._key())
        return None

    def _write(self, key: ChainKey, version: int, data: bytes) -> None:
        """Keep the base of a version, and that of the version before: until this one is what the memory is
        based on, which may never be, that one counts."""
        path = self._file(key)
        kept = _head(path)
        if kept is not None and kept[1] != version:
            with file_errors(path, "rename"):
                path.replace(_before(path))
        replace_private(path, data)

    def _file(self, key: ChainKey) -> Path:
        name = hashlib.sha256("\0".join(key.values).encode()).hexdigest()[:32]
        return ensure_private_folder(self._folder / "bases") / f"{name}.base"

    def _key(self) -> bytes:
        path = ensure_private_folder(self._folder / "bases") / "key"
        if not is_there(path):
            with contextlib.suppress(FileExistsError, BackendError):
                create_private(path, os.urandom(_KEY_BYTES))
        return read_private(path, max_bytes=_KEY_BYTES)


def _before(path: Path) -> Path:
    return path.with_suffix(".before")


def _head(path: Path) -> tuple[bytes, int, bytes, int] | None:
    """What a base begins with; None if it is not there or cut off."""
    try:
        with file_errors(path, "read"), path.open("rb") as file:
            return _HEAD.unpack(file.read(_HEAD.size))
    except (BackendError, struct.error):
        return None


def _packed(key: bytes, noted: Noted) -> bytes:
    """Types and ranges are looked at, since rows may have been edited behind the store's back."""
    fragment, sequence, time = noted
    known = isinstance(sequence, int) and ABSENT <= sequence <= _LARGEST
    timed = isinstance(time, (int, float)) and -_SECONDS < time < _SECONDS
    return _ENTRY.pack(
        _digest(key, fragment),
        sequence if known else _UNKNOWN,
        round(time * _MICROSECONDS) if timed and time is not None else _UNKNOWN,
    )


def _digest(key: bytes, fragment: str) -> bytes:
    return hashlib.blake2b(fragment.encode("ascii"), key=key, digest_size=_DIGEST).digest()


def noted(anchored: Iterable[tuple[str, Record]], local: Iterable[StoredRecord]) -> Iterator[Noted]:
    """The anchored fragments, each with the sequence and time that it has here, if it is here."""
    ours = iter(local)
    own = next(ours, None)
    for text, record in anchored:
        place = (record.content, record.tags)
        while own is not None and (own.record.content, own.record.tags) < place:
            own = next(ours, None)
        here = own is not None and own.fragment == text
        yield (text, own.sequence, own.time) if own is not None and here else (text, ABSENT, None)
