"""What an earlier run left in flight: finished or forgotten, by asking the chain."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple, Protocol

from mycelium_sdk.chain.base import SignedTransaction
from mycelium_sdk.errors import ChainUnavailable, ContractFailed, TransactionFailed, Unsettled
from mycelium_sdk.memory.basis import fulfilled

if TYPE_CHECKING:
    from mycelium_sdk.chain.base import Receipt
    from mycelium_sdk.facts import Intent, LastAnchor
    from mycelium_sdk.memory.basis import Basis
    from mycelium_sdk.memory.sighting import Sighting
    from mycelium_sdk.memory.trust import TrustedChain
    from mycelium_sdk.state import StateStore

__all__ = ["Resumer", "Settled", "Settler"]


class Resumer(Protocol):
    """What is needed of the contract's client to ask for a transaction's fate."""

    def resume(self, signed: SignedTransaction) -> Receipt:
        """Bring a transaction to its end that was signed before; see `ChainClient.resume`."""
        ...


class _Decided(NamedTuple):
    """An intent, and whether the version that it was for is what it intended."""

    intent: Intent
    version: int
    anchored_at: float
    made: bool


class Settled(NamedTuple):
    """What the chain holds once nothing is in flight any more, and the version that was finished, if any."""

    seen: Sighting
    version: int | None


class Settler:
    """Knows what became of an intent. Whoever writes holds the home folder's anchoring lock."""

    def __init__(self, trusted: TrustedChain, writer: Resumer, state: StateStore, basis: Basis) -> None:
        self._trusted = trusted
        self._writer = writer
        self._state = state
        self._basis = basis

    def settle(self, seen: Sighting) -> Settled:
        """Finish or forget what an earlier run left in flight; what the chain holds then.

        The transaction of that run is sent again, the very same one, so nothing can happen twice.

        Raises:
            Unsettled: it was sent and its outcome is still not known.
            ChainUnavailable: it was applied, and the server does not show what it made yet.
        """
        made = self.recognise(seen)
        intent = self._state.intent(seen.key)
        if intent is None or made is not None:
            return Settled(seen, made)
        signed = _signed(intent)
        if signed is not None:
            try:
                receipt = self._writer.resume(signed)
            except (TransactionFailed, ContractFailed):
                pass  # it can never take effect
            except Unsettled:
                # The server's history may begin after it. Once it can no longer be applied, the anchor tells
                # all the same: it is not there, or others came after it.
                if seen.close_time <= signed.valid_until:
                    raise
            else:
                seen = self._trusted.look()
                made = self.recognise(seen)
                if made is None and seen.version <= intent.expected_version:
                    raise ChainUnavailable(
                        f"the server says that transaction {signed.hash} was applied, and does not show the"
                        " anchor that it made",
                        hint="it is behind: try again in a moment, or ask another RPC server",
                    )
                if made is None:
                    made = self._fulfil_overtaken(seen, intent, receipt)
                if made is not None:
                    return Settled(seen, made)
        self._basis.abandon(seen.key, intent)
        return Settled(seen, None)

    def _fulfil_overtaken(self, seen: Sighting, intent: Intent, receipt: Receipt) -> int | None:
        """Record what took effect, as its transaction tells, before others came; the version, if it tells."""
        made = intent.expected_version + 1
        told = None if receipt.value is None or receipt.value.u64 is None else receipt.value.u64.uint64
        older = seen.anchor is not None and seen.anchor.previous is None  # which does not compare
        if told != made and (told is not None or older):
            return None
        self._basis.fulfil(seen.key, intent, made, anchored_at=receipt.close_time)
        return made

    def unrecorded(self, seen: Sighting) -> LastAnchor | None:
        """The anchor on the chain, if it is one's own and a crash left it unrecorded, or it is just being
        recorded."""
        found = self._decided(seen)
        return None if found is None or not found.made else fulfilled(*found[:3])

    def recognise(self, seen: Sighting) -> int | None:
        """Record an own anchor that a crash left unrecorded, or leave behind one that was never made; the
        version of the first."""
        found = self._decided(seen)
        if found is None:
            return None
        if not found.made:
            self._basis.abandon(seen.key, found.intent)
            return None
        self._basis.fulfil(seen.key, found.intent, found.version, anchored_at=found.anchored_at)
        return found.version

    def _decided(self, seen: Sighting) -> _Decided | None:
        """What became of the intent, where what was seen and its past tell; None where they do not."""
        intent = self._state.intent(seen.key)
        if intent is None or seen.version <= intent.expected_version:
            return None
        version = intent.expected_version + 1
        anchor = self._trusted.past.proved(seen, version)
        if anchor is None:
            return None
        made = anchor.root == intent.root
        if not made and anchor.previous is None:
            return None  # an older deployment does not compare: the transaction may still take effect
        anchored_at = time.time() if anchor.timestamp is None else float(anchor.timestamp)
        return _Decided(intent, version, anchored_at, made)


def _signed(intent: Intent) -> SignedTransaction | None:
    if intent.transaction_hash is None or intent.envelope is None or intent.valid_until is None:
        return None
    return SignedTransaction(
        intent.transaction_hash, intent.envelope, intent.valid_until, intent.signed_ledger or 0
    )
