"""What inclusion has cost lately: getFeeStats."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from stellar_sdk.xdr import TransactionMeta

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mycelium_localnet.rows import TransactionRow
    from mycelium_localnet.view import ReadView

    from .context import Context, Result
    from .params import Params

CLASSIC_LEDGERS: Final = 10
SOROBAN_LEDGERS: Final = 50
_PERCENTILES: Final = (10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 99)
_BATCH: Final = 200


def get_fee_stats(context: Context, _params: Params) -> Result:
    """Inclusion fees, in stroops an operation, of the last 50 ledgers' Soroban and the last 10 ledgers' other
    transactions. All zeros where there were none, as on the network."""
    with context.chain.read() as view:
        latest, oldest = view.latest().sequence, view.oldest().sequence
        first = max(oldest, latest - SOROBAN_LEDGERS + 1)
        fees = [(row.ledger, *_inclusion_fee(row)) for row in _transactions(view, first)]
    soroban = [fee for _ledger, is_soroban, fee in fees if is_soroban]
    classic = [
        fee for ledger, is_soroban, fee in fees if not is_soroban and ledger > latest - CLASSIC_LEDGERS
    ]
    kept = latest - oldest + 1
    return {
        "sorobanInclusionFee": distribution(soroban, min(kept, SOROBAN_LEDGERS)),
        "inclusionFee": distribution(classic, min(kept, CLASSIC_LEDGERS)),
        "latestLedger": latest,
    }


def distribution(fees: Sequence[int], ledgers: int) -> dict[str, object]:
    """The statistics of some fees: nearest-rank percentiles, and of the most frequent fees the lowest as the
    mode."""
    ranked = sorted(fees)
    count = len(ranked)
    if not ranked:
        ranked, ledgers = [0], 0
    frequent = Counter(ranked)
    answer: dict[str, object] = {
        "max": str(ranked[-1]),
        "min": str(ranked[0]),
        "mode": str(min(frequent, key=lambda fee: (-frequent[fee], fee))),
    }
    for percent in _PERCENTILES:
        answer[f"p{percent}"] = str(ranked[(percent * len(ranked) + 99) // 100 - 1])
    return answer | {"transactionCount": str(count), "ledgerCount": ledgers}


def _transactions(view: ReadView, first: int) -> list[TransactionRow]:
    found: list[TransactionRow] = []
    after = (first, 0)
    while True:
        batch = view.transactions(after, _BATCH)
        found += batch
        if len(batch) < _BATCH:
            return found
        after = (batch[-1].ledger, batch[-1].application_order)


def _inclusion_fee(row: TransactionRow) -> tuple[bool, int]:
    """Whether it is a Soroban transaction, and its fee without the resource fee, an operation."""
    charged = int.from_bytes(row.result[:8], "big")  # feeCharged is the first field of a TransactionResult
    meta = TransactionMeta.from_xdr_bytes(row.meta).v4
    extension = meta.soroban_meta.ext.v1 if meta and meta.soroban_meta else None
    if extension is not None:
        resources = (
            extension.total_non_refundable_resource_fee_charged.int64
            + extension.total_refundable_resource_fee_charged.int64
        )
        return True, charged - resources
    # Then the code, and for txSUCCESS and txFAILED the results, one an operation.
    code = int.from_bytes(row.result[8:12], "big", signed=True)
    operations = int.from_bytes(row.result[12:16], "big") if code in (0, -1) else 1
    return False, charged // operations
