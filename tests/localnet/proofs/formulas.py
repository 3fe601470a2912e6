"""The network's fee formulas, written again from what is published: CAP-46-07 (fees), CAP-62 (live state in
memory), CAP-65 (modules in memory), CAP-66 (disk reads), and the network settings as JSON. Nothing here is
the chain's own code.

Amounts are stroops, sizes bytes, times ledgers.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stellar_sdk import xdr

import mycelium_localnet

SETTINGS = Path(mycelium_localnet.__file__).with_name("network-settings.p28.json")

# Constants of the protocol that are no settings: a result's size in history, a TTL entry's size, the floor of
# the rent rate, the discount of code, the unit of instructions, and the scale of linear cost terms.
RESULT_SIZE = 300
TTL_SIZE = 48
MINIMUM_RENT_PER_KB = 1_000
CODE_DISCOUNT = 3
INSTRUCTIONS_UNIT = 10_000
KB = 1_024
COST_SCALE = 128

# What a module takes in memory, by the number of each of its parts: places of `ContractCostType`.
MODULE_PARTS = {
    "n_instructions": 23,
    "n_functions": 24,
    "n_globals": 25,
    "n_table_entries": 26,
    "n_types": 27,
    "n_data_segments": 28,
    "n_elem_segments": 29,
    "n_imports": 30,
    "n_exports": 31,
    "n_data_segment_bytes": 32,
}


def up(amount: int, unit: int) -> int:
    """`amount / unit`, rounded up."""
    return -(-amount // unit)


@dataclass(frozen=True)
class Held:
    """An entry at one time: its LedgerEntry, and the ledger until which it lives (None for classic ones)."""

    data: bytes
    live_until: int | None


@dataclass(frozen=True)
class Formulas:
    """The formulas with the rates of a settings file. `state_size`: bytes of live Soroban state."""

    settings: dict[str, Any]
    state_size: int = 0

    @classmethod
    def load(cls) -> Formulas:
        entries = json.loads(SETTINGS.read_text(encoding="utf-8"))["updated_entry"]
        return cls({name: value for entry in entries for name, value in entry.items()})

    def rate(self, setting: str, name: str) -> int:
        return int(self.settings[setting][name])

    # The part that is not given back: it follows from what is declared.

    def instructions(self, declared: int) -> int:
        rate = self.rate("contract_compute_v0", "fee_rate_per_instructions_increment")
        return up(declared * rate, INSTRUCTIONS_UNIT)

    def disk_read_entries(self, count: int) -> int:
        return count * self.rate("contract_ledger_cost_v0", "fee_disk_read_ledger_entry")

    def disk_read_bytes(self, size: int) -> int:
        return up(size * self.rate("contract_ledger_cost_v0", "fee_disk_read1_kb"), KB)

    def write_entries(self, count: int) -> int:
        return count * self.rate("contract_ledger_cost_v0", "fee_write_ledger_entry")

    def write_bytes(self, size: int) -> int:
        return up(size * self.rate("contract_ledger_cost_ext_v0", "fee_write1_kb"), KB)

    def size(self, envelope: int) -> int:
        history = self.rate("contract_historical_data_v0", "fee_historical1_kb")
        bandwidth = self.rate("contract_bandwidth_v0", "fee_tx_size1_kb")
        return up((envelope + RESULT_SIZE) * history, KB) + up(envelope * bandwidth, KB)

    def parts(self, envelope: bytes) -> dict[str, int]:
        """The non-refundable fee of a TransactionEnvelope, by resource."""
        v1 = xdr.TransactionEnvelope.from_xdr_bytes(envelope).v1
        assert v1 is not None
        data = v1.tx.ext.soroban_data
        assert data is not None
        resources, footprint = data.resources, data.resources.footprint
        restored = [] if data.ext.resource_ext is None else data.ext.resource_ext.archived_soroban_entries
        if v1.tx.operations[0].body.type == xdr.OperationType.RESTORE_FOOTPRINT:
            reads = len(footprint.read_write)
        else:
            in_memory = (xdr.LedgerEntryType.CONTRACT_DATA, xdr.LedgerEntryType.CONTRACT_CODE)
            keys = [*footprint.read_only, *footprint.read_write]
            reads = len(restored) + sum(key.type not in in_memory for key in keys)
        return {
            "instructions": self.instructions(resources.instructions.uint32),
            "entries read from disk": self.disk_read_entries(reads),
            "entries written": self.write_entries(len(footprint.read_write)),
            "bytes read from disk": self.disk_read_bytes(resources.disk_read_bytes.uint32),
            "bytes written": self.write_bytes(resources.write_bytes.uint32),
            "bandwidth and history": self.size(len(envelope)),
        }

    # The part that is given back when it is not used.

    def events(self, size: int) -> int:
        """`size`: of contract events and the return value."""
        return up(size * self.rate("contract_events_v0", "fee_contract_events1_kb"), KB)

    def rent_per_kb(self) -> int:
        """For a kilobyte in one rent period: linear up to the target size, steeper beyond it."""
        low = self.rate("contract_ledger_cost_v0", "rent_fee1_kb_soroban_state_size_low")
        high = self.rate("contract_ledger_cost_v0", "rent_fee1_kb_soroban_state_size_high")
        target = self.rate("contract_ledger_cost_v0", "soroban_state_target_size_bytes")
        growth = self.rate("contract_ledger_cost_v0", "soroban_state_rent_fee_growth_factor")
        if self.state_size < target:
            rate = low + up((high - low) * self.state_size, target)
        else:
            rate = high + up((high - low) * (self.state_size - target) * growth, target)
        return max(rate, MINIMUM_RENT_PER_KB)

    def rent(self, changes: list[tuple[bytes, Held | None, Held | None]], ledger: int) -> int:
        """Rent for what became of entries in `ledger`: `(LedgerKey, before, after)` each. An archived entry
        that is restored counts as one that was not there."""
        total = moved = 0
        for key, before, after in changes:
            old_until = 0 if before is None else before.live_until
            new_until = 0 if after is None else after.live_until
            if old_until is None or new_until is None:
                continue  # a classic entry
            old, new = self._size(before), self._size(after)
            fee = 0
            start = ledger - 1 if before is None else old_until
            if new_until > start:
                fee += self._rent(key, new, new_until - start)
            if before is not None and new > old and old_until >= ledger:
                fee += self._rent(key, new - old, old_until - ledger + 1)
            is_code = key[:4] == int(xdr.LedgerEntryType.CONTRACT_CODE).to_bytes(4, "big")
            total += up(fee, CODE_DISCOUNT) if is_code else fee
            moved += new_until > old_until
        return total + self.write_entries(moved) + self.write_bytes(moved * TTL_SIZE)

    def _rent(self, key: bytes, size: int, ledgers: int) -> int:
        is_data = key[:4] == int(xdr.LedgerEntryType.CONTRACT_DATA).to_bytes(4, "big")
        temporary = is_data and key[-4:] == bytes(4)
        name = "temp_rent_rate_denominator" if temporary else "persistent_rent_rate_denominator"
        return up(size * self.rent_per_kb() * ledgers, KB * self.rate("state_archival", name))

    def _size(self, held: Held | None) -> int:
        """What rent is paid for: the entry, and for code what its module takes in memory."""
        if held is None:
            return 0
        code = xdr.LedgerEntry.from_xdr_bytes(held.data).data.contract_code
        return len(held.data) + (0 if code is None else self._module(code))

    def _module(self, code: xdr.ContractCodeEntry) -> int:
        assert code.ext.v1 is not None
        costs = self.settings["contract_cost_params_memory_bytes"]
        total = 0
        for name, place in MODULE_PARTS.items():
            count = getattr(code.ext.v1.cost_inputs, name).uint32
            cost = costs[place]
            total += int(cost["const_term"]) + int(cost["linear_term"]) * count // COST_SCALE
        return total
