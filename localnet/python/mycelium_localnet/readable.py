"""XDR in words: values, errors, addresses and result codes as a person reads them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from stellar_sdk import Address, StrKey, scval, xdr

from mycelium_localnet.envelopes import present

if TYPE_CHECKING:
    from collections.abc import Callable

_MAXIMUM_BYTES: Final = 32
"""Bytes of a value that are shown; of longer ones the beginning and the length."""

_Type = xdr.SCValType

_NUMBERS: Final[dict[xdr.SCValType, Callable[[xdr.SCVal], int]]] = {
    _Type.SCV_U32: scval.from_uint32,
    _Type.SCV_I32: scval.from_int32,
    _Type.SCV_U64: scval.from_uint64,
    _Type.SCV_I64: scval.from_int64,
    _Type.SCV_TIMEPOINT: scval.from_timepoint,
    _Type.SCV_DURATION: scval.from_duration,
    _Type.SCV_U128: scval.from_uint128,
    _Type.SCV_I128: scval.from_int128,
    _Type.SCV_U256: scval.from_uint256,
    _Type.SCV_I256: scval.from_int256,
}


def value_text(value: xdr.SCVal) -> str:
    """An SCVal: numbers in digits, strings in quotes, bytes in hex, symbols bare, addresses as G... or C...,
    vectors and maps in brackets."""
    kind = value.type
    if kind in _NUMBERS:
        return str(_NUMBERS[kind](value))
    if kind == _Type.SCV_VEC:
        return f"[{', '.join(map(value_text, vector(value)))}]"
    if value.map is not None:
        pairs = (f"{value_text(pair.key)}: {value_text(pair.val)}" for pair in value.map.sc_map)
        return f"{{{', '.join(pairs)}}}"
    if value.bytes is not None:
        return bytes_text(value.bytes.sc_bytes)
    if value.str is not None:
        return json.dumps(value.str.sc_string.decode("utf-8", "backslashreplace"), ensure_ascii=False)
    if value.sym is not None:
        return symbol(value)
    if value.address is not None:
        return Address.from_xdr_sc_address(value.address).address
    if value.error is not None:
        return error_text(value.error)
    if kind == _Type.SCV_BOOL:
        return "true" if value.b else "false"
    return "void" if kind == _Type.SCV_VOID else kind.name.removeprefix("SCV_").lower()


def bytes_text(data: bytes) -> str:
    """Bytes in hex; of many, the first 32 and how many there are."""
    if len(data) <= _MAXIMUM_BYTES:
        return f"0x{data.hex()}"
    return f"0x{data[:_MAXIMUM_BYTES].hex()}... ({len(data)} bytes)"


def symbol(value: xdr.SCVal) -> str:
    """The text of a symbol; "" for another kind of value."""
    return "" if value.sym is None else value.sym.sc_symbol.decode("utf-8", "replace")


def vector(value: xdr.SCVal) -> list[xdr.SCVal]:
    """The items of a vector; [] for another kind of value."""
    return [] if value.vec is None else value.vec.sc_vec


def contract_address(identity: bytes) -> str:
    """C... of a contract's id, 32 bytes."""
    return StrKey.encode_contract(identity)


def error_text(error: xdr.SCError) -> str:
    """An SCError as the host writes it, such as `Error(Storage, MissingValue)` or `Error(Contract, #7)`."""
    if error.contract_code is not None:
        return f"Error(Contract, #{error.contract_code.uint32})"
    return f"Error({error_kind(error)}, {camel(present(error.code).name, 'SCEC_')})"


def error_kind(error: xdr.SCError) -> str:
    """The first part of `error_text`, such as `Storage`."""
    return camel(error.type.name, "SCE_")


def camel(name: str, prefix: str) -> str:
    """`SCEC_MISSING_VALUE` as `MissingValue`."""
    return name.removeprefix(prefix).title().replace("_", "")


def result_codes(result: bytes) -> tuple[str, tuple[str, ...]]:
    """The names of a TransactionResult's code and of its operations' codes, in XDR's spelling."""
    decoded = xdr.TransactionResult.from_xdr_bytes(result).result
    return decoded.code.name, tuple(_operation_code(operation) for operation in decoded.results or ())


def _operation_code(operation: xdr.OperationResult) -> str:
    if operation.tr is None:
        return operation.code.name
    # The one arm that its tag chose; every arm is a union with a code of its own.
    arm = next(value for name, value in vars(operation.tr).items() if name != "type" and value is not None)
    name: str = arm.code.name
    return name
