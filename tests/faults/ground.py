"""What is true on a chain whatever its doors say, what was sent to it, and waiting that takes no time."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stellar_sdk import TransactionEnvelope, scval, xdr

from mycelium_localnet import Chain
from mycelium_sdk.chain import operations
from mycelium_sdk.chain.addresses import local_contract_id
from mycelium_sdk.chain.anchors import Anchor, anchor_from_event, anchor_from_value
from mycelium_sdk.chain.base import VALIDITY_SECONDS
from mycelium_sdk.chain.submit import Submitter
from mycelium_sdk.chain.transport import Transport
from mycelium_sdk.retry import Pace, RetryPolicy
from mycelium_sdk.wallet import Wallet

if TYPE_CHECKING:
    from pathlib import Path

    import pytest
    from stellar_sdk import Keypair
    from stellar_sdk.client.response import Response

    from mycelium_sdk.chain.base import SignedTransaction, Work
    from mycelium_sdk.wallet import Secret


_unlocked: dict[str, Secret] = {}


@dataclass
class Clock:
    """Time that passes by being waited for, or by being told to."""

    seconds: float = 0.0

    def wait(self, seconds: float) -> None:
        self.seconds += seconds

    def policy(self) -> RetryPolicy:
        """The default policy, on this clock. The time of day stays the machine's, as a chain's own does."""
        return RetryPolicy(
            pace=Pace(now=time.time, monotonic=lambda: self.seconds, sleep=self.wait, chance=lambda: 0.0)
        )


@dataclass
class Traffic:
    """The transactions that chain clients of this process signed, by account, and those that they sent, with
    repetitions: their hashes."""

    passphrase: str
    signed: list[tuple[str, str]] = field(default_factory=list)
    sent: list[str] = field(default_factory=list)

    def note(self, request: dict[str, Any]) -> None:
        if request.get("method") == "sendTransaction":
            envelope = TransactionEnvelope.from_xdr(request["params"]["transaction"], self.passphrase)
            self.sent.append(envelope.hash_hex())


class Truth:
    """An embedded chain seen past its doors, which its faults are set on."""

    def __init__(self, path: Path, owner: str) -> None:
        self.chain = Chain.open(path)
        self.owner = owner
        self.contract_id = local_contract_id(self.chain.passphrase)
        self.chain_id = self.chain.chain_id

    def applied(self, source: str | None = None) -> list[str]:
        """The hashes of the transactions of `source` (default: the owner) that took effect, in order."""
        with self.chain.read() as view:
            rows = view.transactions((0, 0), 1_000_000)
        return [row.hash.hex() for row in rows if row.successful and row.source == (source or self.owner)]

    def anchor(self) -> Anchor | None:
        """The owner's anchor, archived or not."""
        found, _ = self._entry()
        return found

    def is_archived(self) -> bool:
        """Whether the owner's entry is there and archived."""
        found, live = self._entry()
        return found is not None and not live

    def _entry(self) -> tuple[Anchor | None, bool]:
        key = operations.data_key(self.contract_id, scval.to_address(self.owner))
        with self.chain.read() as view:
            found, latest = view.entry(key.to_xdr_bytes()), view.latest().sequence
        if found is None:
            return None, False
        assert found[1] is not None
        data = xdr.LedgerEntry.from_xdr_bytes(found[0]).data.contract_data
        assert data is not None
        return anchor_from_value(self.owner, data.val), found[1] >= latest

    def anchorings(self) -> list[tuple[str, Anchor]]:
        """Every anchor of the owner with the hash of the transaction that made it, from the first on."""
        with self.chain.read() as view:
            end = view.latest().sequence + 1
            rows = list(view.events(after=(0, -1, 0, 0), end_ledger=end, contract_ids=[self.contract_id]))
        anchors = [
            (
                row.tx_hash.hex(),
                anchor_from_event(
                    [xdr.SCVal.from_xdr_bytes(topic) for topic in row.topics],
                    xdr.SCVal.from_xdr_bytes(row.value),
                ),
            )
            for row in rows
            if row.type == "contract" and row.in_successful_call
        ]
        return [(name, anchor) for name, anchor in anchors if anchor.owner == self.owner]

    def version(self) -> int:
        """The owner's version, 0 for none. The events, the entry and the count of versions must agree."""
        anchorings, anchor = self.anchorings(), self.anchor()
        versions = [each.version for _, each in anchorings]
        assert versions == list(range(1, len(versions) + 1)), "versions are not counted one by one"
        assert anchor == (anchorings[-1][1] if anchorings else None)
        assert len({name for name, _ in anchorings}) == len(anchorings), "a transaction anchored twice"
        return len(versions)

    def let_pass(self, seconds: int = VALIDITY_SECONDS + 1) -> None:
        """Move the chain's time, so that whatever was signed before is too late, and close a ledger."""
        with self.chain.read() as view:
            closed = view.latest().close_time
        self.chain.set_time(max(closed, int(time.time())) + seconds)
        self.chain.close_ledger()

    def close(self) -> None:
        self.chain.close()


def without_waiting(patch: pytest.MonkeyPatch) -> Clock:
    """Have every chain client made from now on wait on a clock of its own."""
    clock = Clock()
    patch.setattr("mycelium_sdk.chain.rpc.RetryPolicy", clock.policy)
    return clock


def with_traffic(patch: pytest.MonkeyPatch, passphrase: str) -> Traffic:
    """Have every chain client note what it signs and sends."""
    traffic, post, prepare = Traffic(passphrase), Transport.post, Submitter._prepare

    def noting(
        self: Transport,
        url: str,
        data: dict[str, str] | None = None,
        json_data: dict[str, Any] | None = None,
    ) -> Response:
        traffic.note(json_data or {})
        return post(self, url, data, json_data)

    def signing(self: Submitter, work: Work, signer: Keypair) -> SignedTransaction:
        signed = prepare(self, work, signer)
        traffic.signed.append((signer.public_key, signed.hash))
        return signed

    patch.setattr(Transport, "post", noting)
    patch.setattr(Submitter, "_prepare", signing)
    return traffic


def unlocked_once(patch: pytest.MonkeyPatch) -> None:
    """Derive each wallet's key once: that takes longer than most of what is tested with it."""
    unlock = Wallet.unlock

    def remembered(self: Wallet, passphrase: str) -> Secret:
        if self.address not in _unlocked:
            _unlocked[self.address] = unlock(self, passphrase)
        return _unlocked[self.address]

    patch.setattr(Wallet, "unlock", remembered)
