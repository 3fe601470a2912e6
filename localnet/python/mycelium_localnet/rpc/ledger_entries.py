"""The current state: getLedgerEntries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from stellar_sdk.xdr import LedgerKey

from mycelium_localnet import keys

from .faults import invalid_params
from .params import check_format
from .wire import decode_param, text

if TYPE_CHECKING:
    from .context import Context, Result
    from .params import Params

MAXIMUM_KEYS: Final = 200


def get_ledger_entries(context: Context, params: Params) -> Result:
    """The entries of up to 200 ledger keys, in the order of the keys; what does not exist is left out.

    `liveUntilLedgerSeq` is 0 for archived entries and absent for those without a TTL.
    """
    check_format(params)
    if not params.has("keys"):
        raise invalid_params("keys is missing")
    wanted = params.texts("keys")
    if len(wanted) > MAXIMUM_KEYS:
        raise invalid_params(f"key count ({len(wanted)}) exceeds maximum supported ({MAXIMUM_KEYS})")
    # A key that is asked for twice is answered once, as a stellar-core does.
    asked = dict.fromkeys(_key(source, index) for index, source in enumerate(wanted))
    with context.chain.read() as view:
        latest = view.latest().sequence
        found = [(key, view.entry(key)) for key in asked]
    return {
        "entries": [_entry(key, *held, latest) for key, held in found if held is not None],
        "latestLedger": latest,
    }


def _key(source: str, index: int) -> bytes:
    _value, key = decode_param(
        LedgerKey, source, f"cannot unmarshal key value {source[:100]!r} at index {index}"
    )
    if keys.entry_type(key) == keys.TTL:
        raise invalid_params("ledger ttl entries cannot be queried directly")
    return key


def _entry(key: bytes, entry: bytes, live_until: int | None, latest: int) -> dict[str, object]:
    # A LedgerEntry is lastModifiedLedgerSeq, then LedgerEntryData, then an extension that is always the empty
    # one here (nothing sponsors entries): 4 bytes in front, 4 bytes behind.
    answer: dict[str, object] = {
        "key": text(key),
        "xdr": text(entry[4:-4]),
        "extXdr": text(entry[-4:]),
        "lastModifiedLedgerSeq": int.from_bytes(entry[:4], "big"),
    }
    if live_until is not None:
        answer["liveUntilLedgerSeq"] = live_until if live_until >= latest else 0
    return answer
