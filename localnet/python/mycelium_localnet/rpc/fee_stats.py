"""What inclusion has cost lately: getFeeStats."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from mycelium_localnet.headers import Header

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .context import Context, Result
    from .params import Params

CLASSIC_LEDGERS: Final = 10
SOROBAN_LEDGERS: Final = 50
_PERCENTILES: Final = (10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 99)


def get_fee_stats(context: Context, _params: Params) -> Result:
    """Inclusion fees, in stroops an operation, of the last 50 ledgers' Soroban and the last 10 ledgers' other
    transactions. All zeros where there were none, as on the network.

    A ledger takes in nobody who offers less than its base fee, and charges nobody more: only how many paid
    it can differ.
    """
    with context.chain.read() as view:
        latest, oldest = view.latest(), view.oldest().sequence
        kinds = view.kinds(max(oldest, latest.sequence - SOROBAN_LEDGERS + 1))
    base_fee = Header.unpack(latest.header).base_fee
    soroban = sum(is_soroban for _ledger, is_soroban in kinds)
    recent = latest.sequence - CLASSIC_LEDGERS
    classic = sum(not is_soroban and ledger > recent for ledger, is_soroban in kinds)
    kept = latest.sequence - oldest + 1
    return {
        "sorobanInclusionFee": distribution([base_fee] * soroban, min(kept, SOROBAN_LEDGERS)),
        "inclusionFee": distribution([base_fee] * classic, min(kept, CLASSIC_LEDGERS)),
        "latestLedger": latest.sequence,
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
