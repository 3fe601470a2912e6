"""Publishing and anchoring: export once, publish, record the intent, send, settle.

The order is what makes a crash harmless. A blob is stored durably before the chain can point at it; the
intent is on disk before a transaction is sent; whatever a crash left in flight is finished or forgotten by
asking the chain.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from mycelium_sdk import canonical
from mycelium_sdk.blobs.uris import check_anchor_uri
from mycelium_sdk.chain.anchors import MAX_ACL_BYTES
from mycelium_sdk.chain.base import SignedTransaction
from mycelium_sdk.errors import (
    ContractFailed,
    InputError,
    NonCanonical,
    Rollback,
    Tampered,
    TransactionFailed,
    UnanchoredWrites,
    Unsettled,
    VersionConflict,
)
from mycelium_sdk.memory.publishing import Publication, Publish, blob_folder, publish_blob
from mycelium_sdk.memory.standing import Standing, standing_of
from mycelium_sdk.state import Intent, LastAnchor, StateStore
from mycelium_sdk.steps import Step, reached

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from mycelium_sdk.chain.base import AnchorReceipt, BeforeSend, Receipt
    from mycelium_sdk.memory.trust import Sighting, TrustedChain

__all__ = ["OLDER_THAN_ITS_ANCHOR", "AnchorWriter", "Anchorer", "Anchoring", "Export"]

OLDER_THAN_ITS_ANCHOR = (
    "load what was anchored: `mycelium memory rehydrate` (with --on-conflict merge to keep what is only here)"
)
"""What to do when the memory's file was lost or an old copy of it was put back."""


class AnchorWriter(Protocol):
    """What is needed of the contract's client to move an owner's anchor."""

    def set_anchor_if(
        self, expected_version: int, root: bytes, uri: str, acl: bytes, *, before_send: BeforeSend
    ) -> AnchorReceipt:
        """Anchor iff the chain's version is `expected_version`; see `MemoryAnchorClient.set_anchor_if`."""
        ...

    def resume(self, signed: SignedTransaction) -> Receipt:
        """Bring a transaction to its end that was signed before; see `ChainClient.resume`."""
        ...


@dataclass(frozen=True, slots=True)
class Export:
    """A memory exported once: canonical blob, root (32 bytes), number of records, change counter of the
    snapshot."""

    blob: bytes
    root: bytes
    records: int
    change_counter: int


@dataclass(frozen=True, slots=True)
class Anchoring:
    """What one anchoring did: the version, where the blob went, and the transaction."""

    version: int
    root: bytes
    uri: str
    receipt: AnchorReceipt


class Anchorer:
    """Moves one owner's anchor. Callers hold the home folder's anchoring lock."""

    def __init__(self, trusted: TrustedChain, writer: AnchorWriter, state: StateStore, owner: str) -> None:
        self._owner = owner
        self._trusted = trusted
        self._writer = writer
        self._state = state

    def settle(self, seen: Sighting) -> Sighting:
        """Finish or forget what an earlier run left in flight; what the chain holds then.

        The transaction of that run is sent again, the very same one, so nothing can happen twice.

        Raises:
            Unsettled: it was sent and its outcome is still not known.
        """
        intent = self._state.intent(seen.key)
        if intent is None or self.recognise(seen):
            return seen
        signed = _signed(intent)
        if signed is not None:
            try:
                self._writer.resume(signed)
            except (TransactionFailed, ContractFailed):
                pass  # it can never take effect
            except Unsettled:
                # The server's history may begin after it. Once it can no longer be applied, the anchor tells
                # all the same: it is not there, or others came after it.
                if seen.close_time <= signed.valid_until:
                    raise
            else:
                seen = self._trusted.look()
                if self.recognise(seen):
                    return seen
        self._state.drop_intent(seen.key)
        return seen

    def recognise(self, seen: Sighting) -> bool:
        """Record an own anchor that a crash left unrecorded; whether the chain holds such a one."""
        intent, anchor = self._state.intent(seen.key), seen.anchor
        if intent is None or anchor is None:
            return False
        if (anchor.version, anchor.root) != (intent.expected_version + 1, intent.root):
            return False
        self._state.record(seen.key, _settled(intent, anchor.timestamp), ledger=seen.ledger)
        return True

    def anchor(
        self,
        export: Callable[[], Export],
        *,
        uri: str | None,
        publish: Publish | None,
        acl: bytes,
        overwrite: bool,
        blobs: Path,
        public_network: bool,
    ) -> Anchoring:
        """Anchor what `export` gives. See `AgentMemory.anchor` for the arguments and errors."""
        seen = self.settle(self._trusted.look())
        reached(Step.LOOKED)
        exported = export()
        reached(Step.EXPORTED)
        self._require_loadable(exported)
        self._refuse_burying(seen, exported, overwrite=overwrite)
        if uri is None:
            publication = publish_blob(
                exported.blob, exported.root, publish, blobs=blobs, public_network=public_network
            )
        else:
            # The caller says where it is; a copy of one's own makes sure that it is anywhere at all.
            blob_folder(blobs).put(exported.blob, exported.root)
            publication = Publication(uri)
        reached(Step.PUBLISHED)
        receipt = self._send(seen, exported, publication.uri, acl)
        publication.refresh_latest(exported.blob)
        return Anchoring(receipt.version, exported.root, publication.uri, receipt)

    def _send(self, seen: Sighting, exported: Export, uri: str, acl: bytes) -> AnchorReceipt:
        expected = seen.version

        def record(signed: SignedTransaction | None) -> None:
            sent = (
                ()
                if signed is None
                else (signed.hash, signed.envelope, signed.valid_until, signed.signed_ledger)
            )
            intent = Intent(exported.root, uri, expected, exported.change_counter, *sent)
            self._state.put_intent(seen.key, intent)
            reached(Step.INTENDED if signed is None else Step.SIGNED)

        record(None)
        try:
            receipt = self._writer.set_anchor_if(expected, exported.root, uri, acl, before_send=record)
        except Unsettled:
            raise  # the intent stays: the next run asks again
        except BaseException as error:
            if isinstance(error, Exception):
                self._state.drop_intent(seen.key)
            raise
        reached(Step.SENT)
        last = LastAnchor(receipt.version, exported.root, uri, exported.change_counter, receipt.close_time)
        self._state.record(seen.key, last, ledger=receipt.ledger)
        reached(Step.RECORDED)
        return receipt

    def _require_loadable(self, exported: Export) -> None:
        """Refuse to anchor what nobody could load: rows that were edited may make no canonical blob."""
        try:
            for _ in canonical.parse(exported.blob, self._owner, max_bytes=len(exported.blob)):
                pass
        except NonCanonical as error:
            raise Tampered(
                "the memory's rows were changed behind its back: they make no canonical blob",
                hint="load what is anchored: `mycelium memory rehydrate --on-conflict replace`",
            ) from error

    def _refuse_burying(self, seen: Sighting, exported: Export, *, overwrite: bool) -> None:
        """Refuse unless the memory is based on what the chain holds now, and is what was written."""
        anchor = seen.anchor
        if overwrite or anchor is None or anchor.root == exported.root:
            return
        last = self._state.last_anchor(seen.key)
        if last is None:
            nothing = "an empty memory" if exported.records == 0 else "a memory that never saw it"
            raise UnanchoredWrites(
                f"the chain holds version {anchor.version} of this owner's memory; anchoring {nothing} would"
                " bury it",
                hint="load it first: `mycelium memory rehydrate` (with --on-conflict merge to keep what is"
                " here); or say overwrite",
            )
        if (last.version, last.root) != (anchor.version, anchor.root):
            raise VersionConflict(
                f"this memory is based on version {last.version}, and the chain is at version"
                f" {anchor.version}: another machine has anchored",
                expected=last.version,
                actual=anchor.version,
            )
        standing = standing_of(exported.root, exported.change_counter, last)
        if standing is Standing.CHANGED:
            raise Tampered(
                "the memory was changed behind its back since it was anchored; the change was not anchored",
                hint="load what is anchored: `mycelium memory rehydrate`; or say overwrite",
            )
        if standing is Standing.EARLIER:
            raise Rollback(
                f"the memory's file is older than version {last.version}, which was anchored from it: it was"
                " lost, or an old copy was put back",
                hint=OLDER_THAN_ITS_ANCHOR + "; or say overwrite",
            )


def check_anchor_arguments(uri: str | None, publish: Publish | None, acl: bytes) -> None:
    """Refuse what can never be anchored, before anything is published or sent. Raises InputError."""
    if uri is not None and publish is not None:
        raise InputError(
            "uri and publish are both given", hint="publish= stores the blob and makes the URI itself"
        )
    if uri == "":
        raise InputError(
            "the URI is empty", hint="leave it out, and the blob is kept in the home folder's blobs/"
        )
    if uri is not None:
        check_anchor_uri(uri)
    if not isinstance(acl, bytes):
        raise InputError("acl must be bytes", hint="for example acl=b''")
    if len(acl) > MAX_ACL_BYTES:
        raise InputError(
            f"acl has {len(acl)} bytes; at most {MAX_ACL_BYTES} fit into an anchor", hint="shorten it"
        )


def _settled(intent: Intent, timestamp: int | None) -> LastAnchor:
    anchored_at = float(timestamp) if timestamp is not None else time.time()
    return LastAnchor(
        intent.expected_version + 1, intent.root, intent.uri, intent.change_counter, anchored_at
    )


def _signed(intent: Intent) -> SignedTransaction | None:
    if intent.transaction_hash is None or intent.envelope is None or intent.valid_until is None:
        return None
    return SignedTransaction(
        intent.transaction_hash, intent.envelope, intent.valid_until, intent.signed_ledger or 0
    )
