"""Changes of the state that no transaction makes: each closes a ledger, whose state hash commits to it.

Such a ledger holds no transactions, and its meta shows nothing of the change. What is pending stays so.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from mycelium_localnet import closing, headers, keys, options
from mycelium_localnet.accounts import Account, new_account, starting_sequence
from mycelium_localnet.clock import Clock
from mycelium_localnet.context import LedgerContext
from mycelium_localnet.errors import InvalidRequestError
from mycelium_localnet.friendbot import public_key_of
from mycelium_localnet.headers import Header
from mycelium_localnet.state import stored_state

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable

    from mycelium_localnet.context import Network
    from mycelium_localnet.state import State

_MAXIMUM_COINS: Final = (1 << 63) - 1


def set_balance(connection: sqlite3.Connection, network: Network, address: str, balance: int) -> None:
    """Give an account `balance` stroops, and make it if it is not there, within the caller's transaction.
    The coins of the network grow or shrink by the difference.

    Raises InvalidRequestError for an address that is not a G..., and for more coins than a ledger can count.
    """
    public_key = public_key_of(address)

    def change(state: State) -> int:
        account = Account.load(state, public_key)
        if account is None:
            first = starting_sequence(state.sequence)
            state.put(keys.account(public_key), new_account(public_key, balance, first), None)
            return balance
        difference = balance - account.balance
        account.add_balance(difference)
        account.save(state)
        return difference

    _close_with(connection, network, change)


def expire(connection: sqlite3.Connection, network: Network, wanted: list[bytes]) -> bool:
    """End the TTL of persistent entries (LedgerKeys) with the last closed ledger, so that they are archived,
    within the caller's transaction. False, and no ledger closed, when none of them is live."""
    (last,) = connection.execute("SELECT max(sequence) FROM ledgers").fetchone()
    query = "SELECT live_until FROM entries WHERE key = ?"
    live = [
        key
        for key in wanted
        if (row := connection.execute(query, (key,)).fetchone()) is not None and (row[0] or 0) >= last
    ]
    if not live:
        return False

    def change(state: State) -> int:
        for key in live:
            state.extend(key, last)
        return 0

    _close_with(connection, network, change)
    return True


def _close_with(connection: sqlite3.Connection, network: Network, change: Callable[[State], int]) -> None:
    """Close a ledger in which `change` happens; it returns how many stroops came into being by it."""
    last = headers.latest(connection, network.settings.fee_per_write_1kb)
    header = Header.unpack(last.header)
    clock = Clock.from_settings(options.load(connection))
    context = LedgerContext.of(network, header, last.sequence + 1, clock.close_time(last.close_time))
    state = stored_state(connection, context.sequence)
    coins = change(state)
    state.store(connection)
    if header.total_coins + coins > _MAXIMUM_COINS:
        raise InvalidRequestError(
            "there cannot be so many coins",
            hint=f"all accounts together hold at most {_MAXIMUM_COINS} stroops",
        )
    changed = replace(
        header, state_hash=state.digest(header.state_hash), total_coins=header.total_coins + coins
    )
    closing.close(connection, last, changed, context, ())
