"""The whole chain in one file: entries, history, events, queue, clock and settings.

A dump is a first line, `mycelium-localnet dump VERSION`, a second one with the SHA-256 of the content in hex,
and the content, compressed (xz). The content is one row after the other, each as its length (4 bytes,
big-endian) and a list (`pack_list`) of the table's name and the values, which have a letter for their type in
front. Equal chains have equal contents. Snapshots and faults are not the chain's, and not in it.
"""

from __future__ import annotations

import lzma
import re
import sqlite3
import struct
from hashlib import sha256
from typing import TYPE_CHECKING, Final, TypeAlias

from mycelium_localnet import _native, genesis, options
from mycelium_localnet.cheats.renewal import clear
from mycelium_localnet.clock import Clock
from mycelium_localnet.errors import DumpError
from mycelium_localnet.headers import Header, digest
from mycelium_localnet.profiles import PROFILES
from mycelium_localnet.schedule import now
from mycelium_localnet.schema import pack_list, unpack_list

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

VERSION: Final = 1

# Each table with its rows and what puts one back. Entries and their former values come before the ledgers:
# without a ledger, writing entries leaves no former values of its own. When the next ledger is due is the
# machine's time, and left out.
_TABLES: Final = {
    "settings": (
        "SELECT key, value FROM settings WHERE key != 'due' ORDER BY key",
        "INSERT INTO settings (key, value) VALUES (?, ?)",
    ),
    "entries": (
        "SELECT key, entry, live_until, ttl_modified, type FROM entries ORDER BY key",
        "INSERT INTO entries (key, entry, live_until, ttl_modified, type) VALUES (?, ?, ?, ?, ?)",
    ),
    "former": (
        "SELECT key, ledger, entry, live_until, ttl_modified, type FROM former ORDER BY key, ledger",
        "INSERT INTO former (key, ledger, entry, live_until, ttl_modified, type) VALUES (?, ?, ?, ?, ?, ?)",
    ),
    "ledgers": (
        "SELECT sequence, hash, close_time, header, close_meta FROM ledgers ORDER BY sequence",
        "INSERT INTO ledgers (sequence, hash, close_time, header, close_meta) VALUES (?, ?, ?, ?, ?)",
    ),
    "transactions": (
        """
        SELECT ledger, application_order, hash, source, envelope, result, meta, successful, fee_bump,
            transaction_events, contract_events, diagnostic_events
        FROM transactions ORDER BY ledger, application_order
        """,
        """
        INSERT INTO transactions (ledger, application_order, hash, source, envelope, result, meta, successful,
            fee_bump, transaction_events, contract_events, diagnostic_events)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
        """,
    ),
    "events": (
        """
        SELECT ledger, tx_index, op_index, event_index, tx_hash, transaction_order, type, contract_id,
            topic_count, topics, value, in_successful_call
        FROM events ORDER BY ledger, tx_index, op_index, event_index
        """,
        """
        INSERT INTO events (ledger, tx_index, op_index, event_index, tx_hash, transaction_order, type,
            contract_id, topic_count, topics, value, in_successful_call)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
        """,
    ),
    "pending": (
        "SELECT hash, source, envelope, received FROM pending ORDER BY position",
        "INSERT INTO pending (hash, source, envelope, received) VALUES (?, ?, ?, ?)",
    ),
}
_HEAD = re.compile(rb"mycelium-localnet dump ([0-9]{1,9})\n")
_DIGEST = re.compile(rb"([0-9a-f]{64})\n")
_LEVEL = 3
_PIECE = 1 << 20
_MEMORY = 1 << 28

_Value: TypeAlias = int | str | bytes | None


def write(connection: sqlite3.Connection) -> bytes:
    """The dump of the chain, from the caller's transaction."""
    running, packer = sha256(), lzma.LZMACompressor(preset=_LEVEL)
    parts: list[bytes] = []
    for row in _content(connection):
        running.update(row)
        parts.append(packer.compress(row))
    parts.append(packer.flush())
    return b"mycelium-localnet dump %d\n%s\n" % (VERSION, running.hexdigest().encode()) + b"".join(parts)


def read(connection: sqlite3.Connection, data: bytes) -> None:
    """Put the chain of a dump in the place of the one that is there, within the caller's transaction, which
    must not be committed when this raises. Snapshots and faults of the old one are gone, and intervals begin
    anew.

    Raises DumpError for what is no dump, one of a later version, and a damaged one.
    """
    name, packed = _open(data)
    running = sha256()
    clear(connection)
    try:
        for table, values in _rows(packed, running.update):
            connection.execute(_TABLES[table][1], values)
        if running.hexdigest() != name:
            raise _damaged("its content is not what its checksum says")
        _check(connection)
    except DumpError:
        raise
    except (
        lzma.LZMAError, sqlite3.IntegrityError, sqlite3.DataError, sqlite3.ProgrammingError, struct.error,
        _native.HostError, ArithmeticError, LookupError, TypeError, ValueError,
    ) as error:  # fmt: skip
        raise _damaged("its content cannot be read") from error


def _open(data: bytes) -> tuple[str, bytes]:
    """The digest that a dump names, and its packed content."""
    head = _HEAD.match(data)
    if head is None:
        raise DumpError(
            "this is not a dump of a local chain", hint="give what Chain.dump or localnet_dump wrote"
        )
    version = int(head[1])
    if version > VERSION:
        raise DumpError(
            f"a later version of mycelium-localnet made the dump (format {version}, this is {VERSION})",
            hint="upgrade mycelium-localnet",
        )
    name = _DIGEST.match(data, head.end())
    if version != VERSION or name is None:
        raise _damaged("its head is broken")
    return name[1].decode(), data[name.end() :]


def _content(connection: sqlite3.Connection) -> Iterator[bytes]:
    for table, (select, _insert) in _TABLES.items():
        for row in connection.execute(select):
            packed = pack_list([table.encode(), *map(_pack, row)])
            yield len(packed).to_bytes(4, "big") + packed


def _rows(packed: bytes, seen: Callable[[bytes], object]) -> Iterator[tuple[str, list[_Value]]]:
    """Table and values of each row; `seen` is told every byte of the content."""
    rest = b""
    for piece in _unpacked(packed):
        seen(piece)
        rest += piece
        start = 0
        while len(rest) - start >= 4:
            end = start + 4 + int.from_bytes(rest[start : start + 4], "big")
            if end > len(rest):
                break
            table, *values = unpack_list(rest[start + 4 : end])
            yield table.decode("ascii"), [_unpack(value) for value in values]
            start = end
        rest = rest[start:]
    if rest:
        raise ValueError("the last row ends early")


def _unpacked(packed: bytes) -> Iterator[bytes]:
    """The content in pieces: a small file may hold a huge one."""
    unpacker = lzma.LZMADecompressor(format=lzma.FORMAT_XZ, memlimit=_MEMORY)
    data = packed
    while not unpacker.eof:
        piece = unpacker.decompress(data, max_length=_PIECE)
        data = b""
        if not piece and unpacker.needs_input:
            raise ValueError("the content ends early")
        yield piece
    if unpacker.unused_data:
        raise ValueError("something follows the content")


def _pack(value: _Value) -> bytes:
    if value is None:
        return b"n"
    if isinstance(value, int):
        return b"i%d" % value
    return b"t" + value.encode() if isinstance(value, str) else b"b" + value


def _unpack(value: bytes) -> _Value:
    kind, rest = value[:1], value[1:]
    if kind == b"i":
        return int(rest)
    if kind == b"t":
        return rest.decode()
    if kind == b"b":
        return rest
    if value != b"n":
        raise ValueError("a value has no known type")
    return None


def _check(connection: sqlite3.Connection) -> None:
    """Whether what was read is a chain, whoever made the file; raises what comes of it if not."""
    identity = options.load_identity(connection)
    settings = options.load(connection)
    if settings["chain_id"] != identity.chain_id.hex():
        raise ValueError("the chain id is another one's")
    if identity.profile not in PROFILES:
        raise ValueError("there is no such profile")
    Clock.from_settings(settings)
    options.save_schedule(connection, options.load_schedule(connection).started(now()))
    query = "SELECT sequence, hash, header FROM ledgers ORDER BY sequence DESC LIMIT 1"
    sequence, name, header = connection.execute(query).fetchone()
    if Header.unpack(header).sequence != sequence or digest(header) != name:
        raise ValueError("the last ledger is none")
    genesis.load_settings(connection)


def _damaged(why: str) -> DumpError:
    return DumpError(f"the dump is damaged: {why}", hint="make it again from the chain that it is of")
