"""What contracts call things: names of arguments and of errors, from the specification inside their code
(SEP-48)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stellar_sdk import xdr
from stellar_sdk.sep.contract_spec import ContractSpec
from stellar_sdk.sep.exceptions import InvalidWasmError

from mycelium_localnet.envelopes import present

if TYPE_CHECKING:
    from mycelium_localnet.view import ReadView


class Specs:
    """The specifications of the contracts of one state, each read when it is asked for. Contracts are named
    by their ids, 32 bytes. One that was upgraded is read by the code it has now."""

    def __init__(self, view: ReadView) -> None:
        self._view = view
        self._known: dict[bytes, ContractSpec] = {}

    def adopt(self, contract: bytes, code_hash: bytes) -> None:
        """Read a contract that is not in the state by this code: one whose constructor failed."""
        if self._code_hash(contract) is None:
            self._known[contract] = self._read(code_hash)

    def arguments(self, contract: bytes, function: str) -> list[str] | None:
        """The names of a function's arguments; None when the contract has no specification of it."""
        for found in self._of(contract).functions:
            if _text(found.name.sc_symbol) == function:
                return [_text(argument.name) for argument in found.inputs]
        return None

    def error(self, contract: bytes, code: int) -> str | None:
        """`Enum.CASE` of a contract's error code, the possible ones when several have it; None when none
        has."""
        names = [
            f"{_text(enum.name)}.{_text(case.name)}"
            for enum in self._of(contract).error_enums
            for case in enum.cases
            if case.value.uint32 == code
        ]
        return " or ".join(names) or None

    def _of(self, contract: bytes) -> ContractSpec:
        if contract not in self._known:
            code_hash = self._code_hash(contract)
            self._known[contract] = ContractSpec() if code_hash is None else self._read(code_hash)
        return self._known[contract]

    def _read(self, code_hash: bytes) -> ContractSpec:
        key = xdr.LedgerKey(
            xdr.LedgerEntryType.CONTRACT_CODE,
            contract_code=xdr.LedgerKeyContractCode(xdr.Hash(code_hash)),
        )
        found = self._view.entry(key.to_xdr_bytes())
        if found is None:
            return ContractSpec()
        entry = xdr.LedgerEntry.from_xdr_bytes(found[0])
        try:
            return ContractSpec.from_wasm(present(entry.data.contract_code).code)
        except InvalidWasmError:
            # The host runs code whatever its custom sections hold.
            return ContractSpec()

    def _code_hash(self, contract: bytes) -> bytes | None:
        address = xdr.SCAddress(
            xdr.SCAddressType.SC_ADDRESS_TYPE_CONTRACT, contract_id=xdr.ContractID(xdr.Hash(contract))
        )
        key = xdr.LedgerKey(
            xdr.LedgerEntryType.CONTRACT_DATA,
            contract_data=xdr.LedgerKeyContractData(
                address,
                xdr.SCVal(xdr.SCValType.SCV_LEDGER_KEY_CONTRACT_INSTANCE),
                xdr.ContractDataDurability.PERSISTENT,
            ),
        )
        found = self._view.entry(key.to_xdr_bytes())
        if found is None:
            return None
        value = present(xdr.LedgerEntry.from_xdr_bytes(found[0]).data.contract_data).val
        wasm_hash = present(value.instance).executable.wasm_hash
        return None if wasm_hash is None else wasm_hash.hash


def created_code(function: xdr.HostFunction) -> bytes | None:
    """The hash of the code that a host function creates a contract with; None for other functions and for
    the contracts of assets."""
    create = function.create_contract_v2 or function.create_contract
    if create is None or create.executable.wasm_hash is None:
        return None
    return create.executable.wasm_hash.hash


def _text(name: bytes) -> str:
    return name.decode("utf-8", "replace")
