"""What a server shows that is on another branch, or lies: the last ledgers went differently there.

From the common ancestor on, ledgers have other hashes, which are chained as they should be, and every 32-byte
value that a contract stored or published (roots, hashes) is another one. Keys, owners, versions, results and
transaction hashes stay.
"""

from __future__ import annotations

from dataclasses import replace
from enum import Enum
from hashlib import sha256
from typing import TYPE_CHECKING

from stellar_sdk import xdr

from mycelium_localnet import headers, keys
from mycelium_localnet.envelopes import present
from mycelium_localnet.headers import Header
from mycelium_localnet.rows import LedgerRow
from mycelium_localnet.view import ReadView

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator, Sequence

    from mycelium_localnet.rows import EventPosition, EventRow, TransactionRow


class ForkedView(ReadView):
    """The chain whose last `length` ledgers are on the branch that `seed` names."""

    __slots__ = ("_ancestor", "_forged", "_seed")

    def __init__(self, connection: sqlite3.Connection, fee_write_1kb: int, length: int, seed: int) -> None:
        super().__init__(connection, fee_write_1kb)
        last = headers.latest(connection, fee_write_1kb).sequence
        self._ancestor = max(headers.oldest_sequence(connection), last - length)
        self._seed = b"mycelium fork %d\0" % seed
        self._forged = {row.sequence: row for row in self._branch()}

    def latest(self) -> LedgerRow:
        true = super().latest()
        return self._forged.get(true.sequence, true)

    def ledgers(self, start: int, limit: int) -> list[LedgerRow]:
        return [self._forged.get(row.sequence, row) for row in super().ledgers(start, limit)]

    def entry(self, key: bytes) -> tuple[bytes, int | None] | None:
        found = super().entry(key)
        if found is None or keys.entry_type(key) != keys.CONTRACT_DATA or not self._differs(found[0]):
            return found
        entry = xdr.LedgerEntry.from_xdr_bytes(found[0])
        self._bend(present(entry.data.contract_data).val)
        return entry.to_xdr_bytes(), found[1]

    def transaction(self, transaction_hash: bytes) -> TransactionRow | None:
        found = super().transaction(transaction_hash)
        return None if found is None else self._transaction(found)

    def transactions(self, after: tuple[int, int], limit: int) -> list[TransactionRow]:
        return [self._transaction(row) for row in super().transactions(after, limit)]

    def events(
        self, *, after: EventPosition, end_ledger: int, contract_ids: Sequence[str] = ()
    ) -> Iterator[EventRow]:
        true = super().events(after=after, end_ledger=end_ledger, contract_ids=contract_ids)
        return (self._event(row) for row in true)

    def _differs(self, entry: bytes) -> bool:
        """Whether the branch wrote the entry: a LedgerEntry begins with the ledger that did."""
        return int.from_bytes(entry[:4], "big") > self._ancestor

    def _branch(self) -> Iterator[LedgerRow]:
        ancestor, *true = super().ledgers(self._ancestor, 1 << 31)
        previous = ancestor.hash
        for row in true:
            meta = xdr.LedgerCloseMeta.from_xdr_bytes(row.close_meta)
            v2 = present(meta.v2)
            self._bend(v2.tx_processing)
            present(v2.tx_set.v1_tx_set).previous_ledger_hash = xdr.Hash(previous)
            header = Header.unpack(row.header)
            data = replace(
                header,
                previous=previous,
                tx_set_hash=headers.digest(v2.tx_set.to_xdr_bytes()),
                state_hash=self._other(header.state_hash),
            ).pack()
            previous = headers.digest(data)
            v2.ledger_header.hash = xdr.Hash(previous)
            v2.ledger_header.header = xdr.LedgerHeader.from_xdr_bytes(data)
            yield LedgerRow(row.sequence, previous, row.close_time, data, meta.to_xdr_bytes())

    def _transaction(self, row: TransactionRow) -> TransactionRow:
        if row.ledger <= self._ancestor:
            return row
        meta = xdr.TransactionMeta.from_xdr_bytes(row.meta)
        self._bend(meta)
        return replace(
            row,
            meta=meta.to_xdr_bytes(),
            contract_events=tuple(
                tuple(self._contract_event(event) for event in operation) for operation in row.contract_events
            ),
        )

    def _contract_event(self, data: bytes) -> bytes:
        event = xdr.ContractEvent.from_xdr_bytes(data)
        self._bend(event)
        return event.to_xdr_bytes()

    def _event(self, row: EventRow) -> EventRow:
        if row.ledger <= self._ancestor:
            return row
        return replace(row, topics=tuple(map(self._value, row.topics)), value=self._value(row.value))

    def _value(self, data: bytes) -> bytes:
        value = xdr.SCVal.from_xdr_bytes(data)
        self._bend(value)
        return value.to_xdr_bytes()

    def _bend(self, node: object) -> None:
        """Change every 32-byte value in a tree of XDR objects, in place."""
        if isinstance(node, list):
            for item in node:
                self._bend(item)
        elif isinstance(node, xdr.LedgerEntry) and node.last_modified_ledger_seq.uint32 <= self._ancestor:
            return  # what a change says was there before, and both branches have
        elif isinstance(node, xdr.DiagnosticEvent):
            return  # no ledger commits to these, and they name contracts by 32 bytes
        elif isinstance(node, xdr.SCVal) and node.bytes is not None:
            if len(node.bytes.sc_bytes) == 32:
                node.bytes = xdr.SCBytes(self._other(node.bytes.sc_bytes))
        elif not isinstance(node, Enum) and type(node).__module__.startswith("stellar_sdk.xdr."):
            for value in vars(node).values():
                self._bend(value)

    def _other(self, value: bytes) -> bytes:
        return sha256(self._seed + value).digest()
