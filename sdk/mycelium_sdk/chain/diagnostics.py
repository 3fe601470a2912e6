"""Reads what the network says about success and failure: result codes, return values, the host's error
events.

Everything here decodes structures; no message is searched for words.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stellar_sdk import scval, xdr

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["HostFailure", "host_failure", "return_value", "transaction_result_code"]


@dataclass(frozen=True, slots=True)
class HostFailure:
    """Why the host ended a call. `contract_error` is the number, where the contract itself failed.

    `kind` and `code` are the host's names, e.g. `STORAGE` and `MISSING_VALUE`; `code` is empty for a
    contract's own error.
    """

    kind: str
    code: str
    contract_error: int | None

    @property
    def missing_value(self) -> bool:
        """Something that had to be in storage is not there: an entry, or the contract itself."""
        return (self.kind, self.code) == ("STORAGE", "MISSING_VALUE")

    @property
    def existing_value(self) -> bool:
        """Something that must not be there yet is, e.g. a contract at the address of a new one."""
        return (self.kind, self.code) == ("STORAGE", "EXISTING_VALUE")


def host_failure(events: Sequence[str] | None) -> HostFailure | None:
    """The outermost error among base64 `DiagnosticEvent`s, which the host emits in the order they happen.

    The host logs a failed call as an event whose topics begin with the symbol `error` and the error itself.
    """
    for text in reversed(events or ()):
        body = xdr.DiagnosticEvent.from_xdr(text).event.body.v0
        if body is None or len(body.topics) < 2:
            continue
        name, error = body.topics[0], body.topics[1].error
        if name.type is not xdr.SCValType.SCV_SYMBOL or error is None or scval.from_symbol(name) != "error":
            continue
        if error.contract_code is not None:
            return HostFailure("CONTRACT", "", error.contract_code.uint32)
        code = "" if error.code is None else error.code.name.removeprefix("SCEC_")
        return HostFailure(error.type.name.removeprefix("SCE_"), code, None)
    return None


def transaction_result_code(result: xdr.TransactionResult) -> str:
    """The network's name of the result: the operation's code where that is what failed, else the
    transaction's."""
    code = result.result.code
    if code is xdr.TransactionResultCode.txFAILED and result.result.results:
        operation = result.result.results[0]
        if operation.tr is None:
            return operation.code.name
        if operation.tr.invoke_host_function_result is not None:
            return operation.tr.invoke_host_function_result.code.name
        if operation.tr.restore_footprint_result is not None:
            return operation.tr.restore_footprint_result.code.name
    return code.name


def return_value(meta: xdr.TransactionMeta) -> xdr.SCVal | None:
    """What the invoked function returned, from the meta of protocol 23 and later (V4) or before (V3)."""
    if meta.v4 is not None:
        return None if meta.v4.soroban_meta is None else meta.v4.soroban_meta.return_value
    if meta.v3 is not None and meta.v3.soroban_meta is not None:
        return meta.v3.soroban_meta.return_value
    return None
