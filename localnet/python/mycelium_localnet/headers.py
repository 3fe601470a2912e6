"""Ledger headers and close metas: building them, chaining them, and finding them again.

A header names its predecessor by hash, its transaction set, its results, and the state (`bucketListHash`).
The network hashes its bucket list for the last; here it is a running hash over every entry that ever changed,
which commits to the same thing and needs no bucket list.

An empty ledger follows from its predecessor alone: same close time, same state. So skipping ledgers computes
every header, one after the other, but stores only every 256th, and any other is computed again when it is
asked for. A row whose `close_meta` is NULL is an empty ledger as well; its meta follows from its header.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import islice
from typing import TYPE_CHECKING, Final

from mycelium_localnet import pack
from mycelium_localnet.rows import LedgerRow

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator, Sequence

RETENTION: Final = 120_960
"""How many ledgers are kept: the RPC's default retention, 7 days of 5 seconds each."""

ROW_DISTANCE: Final = 256
"""Skipped ledgers between two stored ones; what reading a skipped ledger may have to compute."""

_LAYOUT = struct.Struct(">I 32s 32s Q I I 32s 32s I q q I Q I I I 128s I")
_SKIP_DISTANCES = (50, 5_000, 50_000, 500_000)

# GeneralizedTransactionSet, V1: a classic phase of components, then a Soroban phase with one parallel
# component. Both empty: no component, and a component without base fee and stages.
_TX_SET_HEAD = pack.ONE
_EMPTY_PHASES = b"\0\0\0\2" + pack.ZERO + pack.ZERO + pack.ONE + pack.ZERO + pack.ZERO


@dataclass(frozen=True, slots=True)
class Header:
    """A LedgerHeader. Amounts in stroops, `close_time` in Unix seconds; no upgrades, no extension."""

    protocol: int
    previous: bytes
    tx_set_hash: bytes
    close_time: int
    result_hash: bytes
    state_hash: bytes
    sequence: int
    total_coins: int
    fee_pool: int
    base_fee: int
    base_reserve: int
    max_tx_set_size: int
    skip_list: bytes
    """Four hashes, one after the other."""

    def pack(self) -> bytes:
        """The LedgerHeader as XDR."""
        before = (self.protocol, self.previous, self.tx_set_hash, self.close_time, 0, 0, self.result_hash)
        middle = (self.state_hash, self.sequence, self.total_coins, self.fee_pool, 0, 0, self.base_fee)
        return _LAYOUT.pack(*before, *middle, self.base_reserve, self.max_tx_set_size, self.skip_list, 0)

    @classmethod
    def unpack(cls, data: bytes) -> Header:
        """The inverse of `pack`."""
        fields = _LAYOUT.unpack(data)
        return cls(*fields[:4], *fields[6:11], *fields[13:17])


def digest(data: bytes) -> bytes:
    """SHA-256: ledgers, transaction sets and results are named by it."""
    return sha256(data).digest()


def tx_set(previous: bytes, classic: Sequence[bytes], soroban: Sequence[bytes], base_fee: int) -> bytes:
    """GeneralizedTransactionSet of envelopes on top of the ledger with hash `previous`.

    Each kind is sorted by the hash of its envelopes, as the network's sets are. Classic ones form one
    component, Soroban ones one stage of one cluster, that is in sequence; both at `base_fee` stroops an
    operation.
    """
    if not classic and not soroban:
        return _TX_SET_HEAD + previous + _EMPTY_PHASES
    fee = pack.ONE + base_fee.to_bytes(8, "big")
    parts = [_TX_SET_HEAD, previous, b"\0\0\0\2", pack.ZERO]
    parts += [pack.ONE, pack.ZERO, fee, pack.array(sorted(classic, key=digest))] if classic else [pack.ZERO]
    parts += (
        [pack.ONE, fee, pack.ONE, pack.ONE, pack.array(sorted(soroban, key=digest))]
        if soroban
        else [pack.ONE, pack.ZERO, pack.ZERO]
    )
    return b"".join(parts)


def close_meta(header: bytes, transactions: bytes, processing: Sequence[bytes], fee_write_1kb: int) -> bytes:
    """LedgerCloseMeta V2. `transactions`: GeneralizedTransactionSet; `processing`: TransactionResultMetaV1
    each, in the order of application; `fee_write_1kb`: stroops, as the network reports it."""
    return b"".join(
        (
            pack.u32(2),
            pack.ONE + pack.ZERO + pack.i64(fee_write_1kb),
            digest(header) + header + pack.ZERO,
            transactions,
            pack.array(processing),
            pack.ZERO,  # no upgrades
            pack.ZERO,  # no consensus messages
            bytes(8),  # size of the live Soroban state, which counts as empty
            pack.ZERO,  # no evicted keys
        )
    )


def results_hash(pairs: Sequence[bytes]) -> bytes:
    """`txSetResultHash` of TransactionResultPairs in the order of application."""
    return digest(pack.array(pairs))


def next_skip_list(sequence: int, skip_list: bytes, state_hash: bytes) -> bytes:
    """The skip list of ledger `sequence`, from its predecessor's, as the network moves it on."""
    slots = [skip_list[at : at + 32] for at in range(0, 128, 32)]
    depth = -1
    offset = 0
    for distance in _SKIP_DISTANCES:
        rest = sequence - offset
        if rest % distance or (offset and rest <= 0):
            break
        depth += 1
        offset += distance
    for slot in range(depth, 0, -1):
        slots[slot] = slots[slot - 1]
    if depth >= 0:
        slots[0] = state_hash
    return b"".join(slots)


def empty_successors(header: bytes) -> Iterator[tuple[int, bytes, bytes]]:
    """The endless empty ledgers behind a header, as `(sequence, hash, header)`: same close time, same
    state."""
    first = Header.unpack(header)
    current = replace(first, result_hash=results_hash(()))
    name = digest(header)
    version = first.protocol.to_bytes(4, "big")
    middle = current.pack()[68:148]  # close time, no upgrades, value kind, result hash, state hash
    sequence = first.sequence
    skip_list = first.skip_list
    tail = current.pack()[152:192]
    ending = tail + skip_list + pack.ZERO
    hashed = sha256
    while True:
        sequence += 1
        if sequence % 50 == 0:
            skip_list = next_skip_list(sequence, skip_list, first.state_hash)
            ending = tail + skip_list + pack.ZERO
        set_hash = hashed(_TX_SET_HEAD + name + _EMPTY_PHASES).digest()
        data = version + name + set_hash + middle + sequence.to_bytes(4, "big") + ending
        name = hashed(data).digest()
        yield sequence, name, data


def empty_close_meta(header: bytes, fee_write_1kb: int) -> bytes:
    """The close meta of a ledger without transactions."""
    return close_meta(header, tx_set(Header.unpack(header).previous, (), (), 0), (), fee_write_1kb)


def latest(connection: sqlite3.Connection, fee_write_1kb: int) -> LedgerRow:
    """The last closed ledger."""
    return _row(connection.execute(f"{_STORED} ORDER BY sequence DESC LIMIT 1").fetchone(), fee_write_1kb)


def oldest_sequence(connection: sqlite3.Connection) -> int:
    """The number of the oldest ledger that is kept. There may be an older row, from which skipped ledgers
    follow."""
    # Each on its own: SQLite finds one of them at once, but reads every row for both together.
    first, last = connection.execute(
        "SELECT (SELECT min(sequence) FROM ledgers), (SELECT max(sequence) FROM ledgers)"
    ).fetchone()
    return max(int(first), int(last) - RETENTION + 1)


def span(connection: sqlite3.Connection, start: int, limit: int, fee_write_1kb: int) -> list[LedgerRow]:
    """Up to `limit` ledgers from `start` upwards, stored or computed; [] when `start` is not kept or not
    closed."""
    if limit < 1 or start < oldest_sequence(connection):
        return []
    before = connection.execute("SELECT max(sequence) FROM ledgers WHERE sequence <= ?", (start,)).fetchone()[
        0
    ]
    stored = connection.execute(f"{_STORED} WHERE sequence >= ? ORDER BY sequence", (before,))
    ledgers: list[LedgerRow] = []
    previous: _Row | None = None
    for row in stored:
        if previous is not None:
            skipped = islice(empty_successors(previous[3]), row[0] - previous[0] - 1)
            ledgers += (
                _row((sequence, name, previous[2], header, None), fee_write_1kb)
                for sequence, name, header in skipped
                if start <= sequence < start + limit
            )
        if start <= row[0] < start + limit:
            ledgers.append(_row(row, fee_write_1kb))
        if row[0] >= start + limit - 1:
            break
        previous = row
    stored.close()
    return ledgers


def trim(connection: sqlite3.Connection) -> None:
    """Forget what is older than the history that is kept, within the caller's transaction. Nothing while
    there is a snapshot."""
    # A snapshot keeps all that there was when it was taken, the oldest ledger as well, and so what is to be
    # looked at here. (Deleting would visit every old row, in vain, with each ledger that closes.)
    if connection.execute("SELECT 1 FROM snapshots LIMIT 1").fetchone() is not None:
        return
    first = connection.execute("SELECT min(sequence) FROM ledgers").fetchone()[0]
    kept = oldest_sequence(connection)
    if first >= kept:
        return
    connection.execute(
        "DELETE FROM ledgers WHERE sequence < (SELECT max(sequence) FROM ledgers WHERE sequence <= ?)",
        (kept,),
    )
    connection.execute("DELETE FROM transactions WHERE ledger < ?", (kept,))
    connection.execute("DELETE FROM events WHERE ledger < ?", (kept,))


_Row = tuple[int, bytes, int, bytes, bytes | None]
_STORED: Final = "SELECT sequence, hash, close_time, header, close_meta FROM ledgers"


def _row(row: _Row, fee_write_1kb: int) -> LedgerRow:
    sequence, name, close_time, header, meta = row
    if meta is None:
        meta = empty_close_meta(header, fee_write_1kb)
    return LedgerRow(sequence, name, close_time, header, meta)
