"""Looks at a contract as it stands on the chain: which code it runs and which functions that code has."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from stellar_sdk.sep.contract_spec import ContractSpec

from mycelium_sdk.chain import operations
from mycelium_sdk.chain.artifact import memory_anchor_sha256, memory_anchor_wasm
from mycelium_sdk.chain.base import EntryStatus
from mycelium_sdk.errors import ChainError, ContractNotFound, WrongDomain

if TYPE_CHECKING:
    from mycelium_sdk.chain.base import ChainClient

__all__ = ["code_hash", "function_names"]


def code_hash(chain: ChainClient, contract_id: str) -> bytes:
    """SHA-256 of the code that the contract runs (32 bytes).

    Raises:
        ContractNotFound: there is no contract at the address.
        WrongDomain: it is one without code of its own, such as an asset's.
    """
    (state,) = chain.entries([operations.instance_key(contract_id)])
    if state.status is EntryStatus.ABSENT:
        raise ContractNotFound(
            f"there is no contract {contract_id} on this network",
            hint="check `[memory] anchor_address` and `[onchain] network`",
        )
    data = None if state.data is None else state.data.contract_data
    instance = None if data is None else data.val.instance
    if instance is None or instance.executable.wasm_hash is None:
        raise _not_ours(contract_id)
    return instance.executable.wasm_hash.hash


def function_names(chain: ChainClient, contract_id: str) -> frozenset[str]:
    """The names of the contract's functions, from the interface that its code carries (SEP-48).

    Raises:
        ContractNotFound: there is no contract at the address, or its code is gone.
        WrongDomain: its code has no readable interface.
        ChainError: the server served other code than the contract's.
    """
    wasm_hash = code_hash(chain, contract_id)
    if wasm_hash == memory_anchor_sha256():
        return _functions_of(contract_id, memory_anchor_wasm())
    (state,) = chain.entries([operations.code_key(wasm_hash)])
    code = None if state.data is None else state.data.contract_code
    if code is None:
        raise ContractNotFound(f"the code of the contract {contract_id} is not on this network")
    if hashlib.sha256(code.code).digest() != wasm_hash:
        raise ChainError(
            f"the server gave other code than that of the contract {contract_id}",
            hint="do not trust this server: use another one, by `[onchain] rpc_url`",
        )
    return _functions_of(contract_id, code.code)


def _functions_of(contract_id: str, wasm: bytes) -> frozenset[str]:
    try:
        functions = ContractSpec.from_wasm(wasm).functions
        return frozenset(function.name.sc_symbol.decode("ascii") for function in functions)
    except ValueError as error:  # InvalidWasmError is one
        raise _not_ours(contract_id) from error


def _not_ours(contract_id: str) -> WrongDomain:
    return WrongDomain(f"the contract {contract_id} is not a MemoryAnchor contract")
