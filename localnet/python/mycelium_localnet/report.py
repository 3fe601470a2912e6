"""What a transaction cost and used: its fee in parts, and its resources, declared, used and allowed.

All amounts are in stroops (10^-7 XLM). `charged` is `inclusion + non_refundable + rent + events`, and
`charged + refund` is what was taken before the transaction was applied.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from stellar_sdk import xdr

from mycelium_localnet import _native, fees
from mycelium_localnet.envelopes import decode_transaction, present
from mycelium_localnet.readable import result_codes, symbol
from mycelium_localnet.resources import restores

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mycelium_localnet._native import NetworkSettings
    from mycelium_localnet.envelopes import Soroban, Transaction
    from mycelium_localnet.rows import TransactionRow

_NOTHING: Final = {
    "instructions": 0,
    "disk_read_entries": 0,
    "write_entries": 0,
    "disk_read_bytes": 0,
    "write_bytes": 0,
    "contract_events_size": 0,
    "transaction_size": 0,
}


@dataclass(frozen=True, slots=True)
class Resource:
    """One resource of a transaction. None: the transaction declares none, or nobody counts it.

    `used` of a failed transaction is what had been counted until then. `limit`: the network's for one
    transaction.
    """

    name: str
    declared: int | None
    used: int | None
    limit: int

    @property
    def exceeded(self) -> bool:
        """Whether more was used than the transaction declared or the network allows."""
        allowed = self.limit if self.declared is None else min(self.declared, self.limit)
        return self.used is not None and self.used > allowed


@dataclass(frozen=True, slots=True)
class TransactionReport:
    """The fee and the resources of one applied transaction; `str()` is a table.

    `hash`: 64 hex digits. `code`, `operation_codes`: names as in XDR. `bid`: the whole fee that was offered;
    `resource_fee`: the part of it for resources, 0 unless it is a Soroban transaction. `inclusion`: paid for
    being in a ledger. `non_refundable`: paid for what was declared, and `parts` of it by resource.
    `rent`, `events`: paid for what was used, 0 when the transaction failed. `refund`: given back at the end
    of the ledger. `charged`: the fee in the result. `resources` is empty unless it is a Soroban transaction.
    """

    hash: str
    ledger: int
    source: str
    successful: bool
    code: str
    operation_codes: tuple[str, ...]
    bid: int
    resource_fee: int
    inclusion: int
    non_refundable: int
    parts: tuple[tuple[str, int], ...]
    rent: int
    events: int
    refund: int
    charged: int
    resources: tuple[Resource, ...]

    def __str__(self) -> str:
        codes = ", ".join((self.code, *self.operation_codes))
        fee = [
            ("fee, stroops", ""),
            ("charged", _number(self.charged)),
            ("  inclusion", _number(self.inclusion)),
        ]
        if self.resources:
            fee.append(("  non-refundable", _number(self.non_refundable)))
            fee += [(f"    {name}", _number(amount)) for name, amount in self.parts]
            fee += [("  rent", _number(self.rent)), ("  events", _number(self.events))]
        fee += [("refund", _number(self.refund)), ("bid", _number(self.bid))]
        blocks = [f"transaction {self.hash}\nledger {self.ledger}, {codes}", _table(fee)]
        if self.resources:
            blocks.append(resource_table(self.resources))
        return "\n\n".join(blocks)


def report_of(row: TransactionRow, network_id: bytes, settings: NetworkSettings) -> TransactionReport:
    """The report of an applied transaction."""
    transaction = decode_transaction(row.envelope, network_id)
    soroban = transaction.soroban if transaction.is_soroban else None
    charged = xdr.TransactionResult.from_xdr_bytes(row.result).fee_charged.int64
    code, operation_codes = result_codes(row.result)
    meta = present(xdr.TransactionMeta.from_xdr_bytes(row.meta).v4)
    paid = meta.soroban_meta.ext.v1 if meta.soroban_meta else None
    fixed = refundable = rent = refund = 0
    parts: tuple[tuple[str, int], ...] = ()
    resources: tuple[Resource, ...] = ()
    if soroban is not None and paid is not None:
        fixed = paid.total_non_refundable_resource_fee_charged.int64
        refundable = paid.total_refundable_resource_fee_charged.int64
        rent = paid.rent_fee_charged.int64
        refund = soroban.resource_fee - fixed - refundable
        parts = tuple(_parts(transaction, soroban, settings))
        used = _metrics(row) if _is_call(transaction) else _restored(meta) if row.successful else {}
        resources = tuple(_resources(transaction, soroban, settings, used))
    return TransactionReport(
        hash=row.hash.hex(),
        ledger=row.ledger,
        source=row.source,
        successful=row.successful,
        code=code,
        operation_codes=operation_codes,
        bid=transaction.fee,
        resource_fee=0 if soroban is None else soroban.resource_fee,
        inclusion=charged - fixed - refundable,
        non_refundable=fixed,
        parts=parts,
        rent=rent,
        events=refundable - rent,
        refund=refund,
        charged=charged,
        resources=resources,
    )


def resource_table(resources: Sequence[Resource]) -> str:
    """Resources as a table; what was exceeded is marked."""
    rows = [("resource", "declared", "used", "limit", "")]
    rows += [
        (
            resource.name,
            _number(resource.declared),
            _number(resource.used),
            _number(resource.limit),
            "exceeded" if resource.exceeded else "",
        )
        for resource in resources
    ]
    return _table(rows)


def _parts(transaction: Transaction, soroban: Soroban, settings: NetworkSettings) -> list[tuple[str, int]]:
    """The non-refundable fee by resource. What a resource costs adds to what the others cost, so each is
    what it costs alone."""

    def cost(**declared: int) -> int:
        return _native.transaction_resource_fee(settings, **_NOTHING | declared)[0]

    nothing = cost()  # the size of a result in history, which the transaction's size includes
    reads = fees.disk_reads(soroban, restores=restores(transaction))
    return [
        ("instructions", cost(instructions=soroban.instructions) - nothing),
        ("entries read from disk", cost(disk_read_entries=reads) - nothing),
        ("entries written", cost(write_entries=len(soroban.read_write)) - nothing),
        ("bytes read from disk", cost(disk_read_bytes=soroban.disk_read_bytes) - nothing),
        ("bytes written", cost(write_bytes=soroban.write_bytes) - nothing),
        ("bandwidth and history", cost(transaction_size=len(transaction.envelope))),
    ]


def _resources(
    transaction: Transaction, soroban: Soroban, settings: NetworkSettings, used: dict[str, int]
) -> list[Resource]:
    reads = fees.disk_reads(soroban, restores=restores(transaction))
    written = len(soroban.read_write)
    size = len(transaction.envelope)
    return [
        Resource("instructions", soroban.instructions, used.get("cpu_insn"), settings.tx_max_instructions),
        Resource("bytes of memory", None, used.get("mem_byte"), settings.tx_memory_limit),
        Resource(
            "bytes read from disk",
            soroban.disk_read_bytes,
            used.get("ledger_read_byte"),
            settings.tx_max_disk_read_bytes,
        ),
        Resource(
            "bytes written", soroban.write_bytes, used.get("ledger_write_byte"), settings.tx_max_write_bytes
        ),
        Resource(
            "entries in the footprint",
            len(soroban.footprint),
            used.get("read_entry"),
            settings.tx_max_footprint_entries,
        ),
        Resource("entries read from disk", reads, used.get("disk_read"), settings.tx_max_disk_read_entries),
        Resource("entries written", written, used.get("write_entry"), settings.tx_max_write_entries),
        Resource(
            "bytes of events and return value",
            None,
            used.get("emit_event_byte"),
            settings.tx_max_contract_events_size_bytes,
        ),
        Resource("bytes of the transaction", None, size, settings.tx_max_size_bytes),
    ]


def _metrics(row: TransactionRow) -> dict[str, int]:
    """What a call used, by the network's names (`core_metrics` diagnostics)."""
    found: dict[str, int] = {}
    for data in row.diagnostic_events:
        body = present(xdr.DiagnosticEvent.from_xdr_bytes(data).event.body.v0)
        if len(body.topics) == 2 and symbol(body.topics[0]) == "core_metrics" and body.data.u64 is not None:
            found[symbol(body.topics[1])] = body.data.u64.uint64
    return found


def _restored(meta: xdr.TransactionMetaV4) -> dict[str, int]:
    """What an extension or a restoration used: the entries that came back were read and written, and an
    extension touches nothing but TTLs."""
    sizes = [
        len(change.restored.to_xdr_bytes())
        for operation in meta.operations
        for change in operation.changes.ledger_entry_changes
        if change.restored is not None and change.restored.data.ttl is None
    ]
    total, count = sum(sizes), len(sizes)
    bytes_used = {"ledger_read_byte": total, "ledger_write_byte": total}
    return bytes_used | {"cpu_insn": 0, "disk_read": count, "write_entry": count}


def _is_call(transaction: Transaction) -> bool:
    return transaction.operations[0].body.type == xdr.OperationType.INVOKE_HOST_FUNCTION


def _number(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"


def _table(rows: Sequence[tuple[str, ...]]) -> str:
    """Columns, the first one flush left, the others flush right."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = (
        "  ".join(
            cell.rjust(width) if place else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    )
    return "\n".join(line.rstrip() for line in lines)
