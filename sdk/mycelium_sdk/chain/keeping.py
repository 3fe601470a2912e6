"""Keeping an anchor alive: extending what is about to expire, and restoring what has been archived, by the
network's own operations.

Whoever pays may do it for anybody. The owner's entry is cheap; the contract's instance and its code, which
everybody who anchors there needs, cost more than a hundred anchors (chain.md section 5), so they are looked
after on request only, with the price told first.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stellar_sdk import xdr

from mycelium_sdk.chain import operations
from mycelium_sdk.chain.base import LEDGER_SECONDS, EntryStatus
from mycelium_sdk.chain.contracts import code_hash
from mycelium_sdk.errors import ChainError, NotAnchored

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from stellar_sdk import Keypair

    from mycelium_sdk.chain.anchor_client import MemoryAnchorClient
    from mycelium_sdk.chain.base import EntryState, Receipt, Work

__all__ = ["KEPT_BELOW", "KEPT_FOR", "AnchorKeeper", "Kept", "Offer", "Part"]

KEPT_BELOW = 30 * 86_400 // LEDGER_SECONDS
"""What has fewer ledgers left than this (30 days) is extended."""

KEPT_FOR = 120 * 86_400 // LEDGER_SECONDS
"""For so many ledgers (120 days), or as many as the network allows."""


class Part(enum.StrEnum):
    """What an anchor needs to be there: its own entry, the contract, the contract's code."""

    ANCHOR = "anchor"
    CONTRACT = "contract"
    CODE = "code"


@dataclass(frozen=True, slots=True)
class Offer:
    """One transaction that would be sent: `action` is "restore" or "extend"; `fee` in stroops is what the
    network asks at most for it."""

    action: str
    parts: tuple[Part, ...]
    fee: int


@dataclass(frozen=True, slots=True)
class Kept:
    """How long a part lives: `remaining` ledgers, `before` what it was; None for an archived one."""

    part: Part
    before: int | None
    remaining: int | None


@dataclass(frozen=True, slots=True)
class _Entry:
    part: Part
    key: xdr.LedgerKey
    state: EntryState


class AnchorKeeper:
    """Looks after the anchors of one contract."""

    def __init__(self, client: MemoryAnchorClient) -> None:
        self._client = client
        self._chain = client.chain

    def keep(
        self,
        owner: str,
        signer: Callable[[], Keypair],
        *,
        include_contract: bool = False,
        below: int = KEPT_BELOW,
        ledgers: int = KEPT_FOR,
        accept: Callable[[Offer], bool] = lambda _: True,
    ) -> tuple[list[Kept], list[Receipt]]:
        """Restore what is archived and extend what has fewer than `below` ledgers left to `ledgers`.

        `signer` gives the key of whoever pays, and is asked for it only if something is to be paid. Each
        transaction is put before `accept` first, and not sent if that says no. Afterwards the entries
        are read again: the network takes an extension that does nothing.

        Raises:
            NotAnchored: the owner has no anchor.
            ChainError: the network took a transaction, and it had no effect; or as `ChainClient.submit`.
        """
        receipts: list[Receipt] = []

        def send(action: str, work: Work, entries: Sequence[_Entry], least: int) -> None:
            payer = signer()
            fee = self._chain.simulate(work, source=payer.public_key).resource_fee
            parts = tuple(dict.fromkeys(entry.part for entry in entries))
            if accept(Offer(action, parts, fee)):
                receipts.append(self._chain.submit(work, payer))
                self._require(entries, least)

        before = self._look(owner, include_contract=include_contract)
        archived = [entry for entry in before if entry.state.status is EntryStatus.ARCHIVED]
        if archived:
            send("restore", operations.restore(_keys(archived)), archived, 1)
        target = min(ledgers, self._longest())
        least = min(below, target)
        present = self._look(owner, include_contract=include_contract) if archived else before
        short = [entry for entry in present if (left := entry.state.remaining) is not None and left < least]
        if short:
            send("extend", operations.extend(_keys(short), target), short, least)
        after = self._look(owner, include_contract=include_contract) if receipts else before
        kept = [
            Kept(old.part, old.state.remaining, new.state.remaining)
            for old, new in zip(before, after, strict=True)
        ]
        return kept, receipts

    def _require(self, entries: Sequence[_Entry], least: int) -> None:
        """Read these again; raise unless each lives for `least` ledgers. The ledger goes on meanwhile."""
        states = self._chain.entries(_keys(entries))
        grown = [
            state.remaining is not None
            and (state.remaining >= least or state.remaining > (entry.state.remaining or 0))
            for entry, state in zip(entries, states, strict=True)
        ]
        if not all(grown):
            raise ChainError(
                "the network took the transaction, and the time to live is as short as before",
                hint="ask another RPC server (`[onchain] rpc_url`), then try again",
            )

    def _look(self, owner: str, *, include_contract: bool) -> list[_Entry]:
        wanted = [(Part.ANCHOR, key) for key in self._client.entry_keys(owner)]
        if include_contract:
            contract = self._client.contract_id
            wanted.append((Part.CONTRACT, operations.instance_key(contract)))
            wanted.append((Part.CODE, operations.code_key(code_hash(self._chain, contract))))
        states = self._chain.entries([key for _, key in wanted])
        found = [_Entry(part, key, state) for (part, key), state in zip(wanted, states, strict=True)]
        if any(entry.part is Part.ANCHOR and entry.state.status is EntryStatus.ABSENT for entry in found):
            raise NotAnchored("this account has no anchor on this network and contract to keep alive")
        return [entry for entry in found if entry.state.status is not EntryStatus.ABSENT]

    def _longest(self) -> int:
        """The most ledgers that the network lets an entry live."""
        key = operations.setting_key(xdr.ConfigSettingID.CONFIG_SETTING_STATE_ARCHIVAL)
        (state,) = self._chain.entries([key])
        setting = None if state.data is None else state.data.config_setting
        archival = None if setting is None else setting.state_archival_settings
        if archival is None:
            raise ChainError("the server does not give the network's settings", hint="use another RPC server")
        return archival.max_entry_ttl.uint32 - 1


def _keys(entries: Sequence[_Entry]) -> list[xdr.LedgerKey]:
    return [entry.key for entry in entries]
