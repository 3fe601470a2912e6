"""What errors of the host and result codes mean, and what helps: one sentence each."""

from __future__ import annotations

from typing import Final

HOST_ERRORS: Final = {
    "Error(Auth, InvalidAction)": "an address did not authorize this call: sign the authorization entry that"
    " a simulation records, or make the address the transaction's source",
    "Error(Auth, InvalidInput)": "a signed authorization cannot be used: its signature is wrong, or its last"
    " ledger has passed or is too far away; sign the entry of a new simulation",
    "Error(Auth, ExistingValue)": "this authorization was used before: sign the entry of a new simulation",
    "Error(Budget, ExceededLimit)": "the call ran out of instructions or memory, or called itself too deeply:"
    " declare what a new simulation quotes, or do less in one transaction",
    "Error(Context, InvalidAction)": "a contract did what is not allowed at this point, such as calling a"
    " contract that is already being called",
    "Error(Context, MissingValue)": "a contract or what it stands on does not exist",
    "Error(Context, ExceededLimit)": "calls are nested too deeply, or there are too many of something",
    "Error(Crypto, InvalidInput)": "a signature, key, hash or curve point is not valid",
    "Error(Object, IndexBounds)": "an index is outside of a vector, map, string or byte string",
    "Error(Object, MissingValue)": "a map has no such key",
    "Error(Object, InvalidInput)": "a value is not of the form that the operation takes",
    "Error(Object, UnexpectedSize)": "a value is not of the size that the operation takes",
    "Error(Object, ArithDomain)": "a number is out of range",
    "Error(Storage, MissingValue)": "there is no such entry: nothing was stored under this key, it was"
    " removed or expired, or there is no such contract",
    "Error(Storage, ExistingValue)": "such an entry, or such a contract, exists already",
    "Error(Storage, ExceededLimit)": "the call touched an entry that is not in the transaction's footprint,"
    " or one that is too large: simulate again with these very arguments",
    "Error(Storage, InvalidAction)": "the call wrote an entry that the footprint has as read-only, or"
    " extended what cannot be: simulate again with these very arguments",
    "Error(Value, InvalidInput)": "an argument or a stored value cannot be used as what the code takes it"
    " for",
    "Error(Value, UnexpectedType)": "an argument or a stored value is of another type than the code takes",
    "Error(Value, UnexpectedSize)": "an argument or a stored value is of another size than the code takes",
    "Error(WasmVm, ArithDomain)": "the code divided by zero, or a number did not fit",
    "Error(WasmVm, IndexBounds)": "the code reached outside of its memory or a table",
    "Error(WasmVm, InvalidAction)": "the code gave up (a panic, a failed assertion, an unreachable"
    " instruction)",
    "Error(WasmVm, InvalidInput)": "this is not the Wasm of a contract that this network runs",
    "Error(WasmVm, MissingValue)": "the contract has no function of this name",
    "Error(WasmVm, UnexpectedSize)": "the function takes another number of arguments",
    "Error(WasmVm, UnexpectedType)": "the function takes or returns other types",
}
"""By the host's own spelling of an error."""

RESULTS: Final = {
    "INVOKE_HOST_FUNCTION_ENTRY_ARCHIVED": "the TTL of an entry has ended since the simulation: simulate"
    " again, which adds what restores the entry, or send a RestoreFootprint",
    "INVOKE_HOST_FUNCTION_RESOURCE_LIMIT_EXCEEDED": "the call used more than the transaction declared or the"
    " network allows: declare what a new simulation quotes, with instruction leeway",
    "INVOKE_HOST_FUNCTION_INSUFFICIENT_REFUNDABLE_FEE": "the resource fee left too little for rent and"
    " events: pay what a new simulation quotes",
    "EXTEND_FOOTPRINT_TTL_RESOURCE_LIMIT_EXCEEDED": "an entry is larger than the network allows",
    "EXTEND_FOOTPRINT_TTL_INSUFFICIENT_REFUNDABLE_FEE": "the resource fee left too little for the rent: pay"
    " what a new simulation quotes",
    "RESTORE_FOOTPRINT_RESOURCE_LIMIT_EXCEEDED": "the entries are larger than the bytes to read and write"
    " that the transaction declared: declare what a new simulation quotes",
    "RESTORE_FOOTPRINT_INSUFFICIENT_REFUNDABLE_FEE": "the resource fee left too little for the rent: pay"
    " what a new simulation quotes",
    "CREATE_ACCOUNT_UNDERFUNDED": "the source account does not have the amount above its reserve",
    "CREATE_ACCOUNT_LOW_RESERVE": "the amount is less than a new account's reserve (two base reserves)",
    "CREATE_ACCOUNT_ALREADY_EXIST": "the account is there already",
    "opNO_ACCOUNT": "the account that the operation acts for does not exist",
    "opBAD_AUTH": "the account that the operation acts for did not sign, or not with enough weight",
    "txINTERNAL_ERROR": "the host itself failed; this is a defect of this network, not of the transaction",
}
"""By the name of a result code; the others say what they mean."""
