"""What a transaction may cost: the limit on what a server asks, and what its quotes leave out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stellar_sdk import xdr
from stellar_sdk.operation import RestoreFootprint

from mycelium_sdk.chain import operations
from mycelium_sdk.errors import ChainError

if TYPE_CHECKING:
    from collections.abc import Callable

    from mycelium_sdk.chain.base import EntryState, Work

__all__ = ["DEFAULT_MAX_FEE", "check_fee", "unquoted_fee"]

_XDR_MAX_FEE = 2**32 - 1  # a transaction's fee is an unsigned 32-bit number
_STROOPS = 10**7  # in one XLM

DEFAULT_MAX_FEE = 20 * _STROOPS
"""The most that one transaction may cost, in stroops: 20 XLM. The dearest thing the SDK does by itself is to
put the MemoryAnchor contract on the public network, for 4.5 XLM; an anchor is below 0.1 XLM."""


def check_fee(fee: int, max_fee: int) -> None:
    """Refuse to sign for a fee beyond the limit; both in stroops.

    Raises:
        ChainError: `fee` is above `max_fee`, or above what a transaction can hold.
    """
    if fee > min(max_fee, _XDR_MAX_FEE):
        raise ChainError(
            f"the server asks {_xlm(fee)} XLM for this transaction, and the limit is {_xlm(max_fee)} XLM",
            hint="nothing was signed. Ask another RPC server what it costs; if the price is right, raise the "
            "limit: `[onchain] max_fee` or MYCELIUM_MAX_FEE, in stroops (`max_fee` of a chain client)",
        )


def unquoted_fee(
    work: Work, data: xdr.SorobanTransactionData, look: Callable[[xdr.LedgerKey], EntryState]
) -> int:
    """What the quote of a simulation leaves out, in stroops. `look` reads an entry of the network.

    The network charges a restore for each entry it reads from disk, and the simulation counts none: its
    margin carries a few keys, no more. Whatever is not needed is given back.

    Raises:
        ValueError: the network's settings cannot be read.
    """
    if not isinstance(work.operation, RestoreFootprint):
        return 0
    prices = look(operations.setting_key(xdr.ConfigSettingID.CONFIG_SETTING_CONTRACT_LEDGER_COST_V0)).data
    setting = None if prices is None else prices.config_setting
    if setting is None or setting.contract_ledger_cost is None:
        raise ValueError("the network's prices are not there")
    each = setting.contract_ledger_cost.fee_disk_read_ledger_entry.int64
    return max(0, each) * len(data.resources.footprint.read_write)


def _xlm(stroops: int) -> str:
    return f"{stroops // _STROOPS:,}.{stroops % _STROOPS:07}".rstrip("0").rstrip(".")
