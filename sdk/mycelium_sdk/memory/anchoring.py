"""Publishing and anchoring: export once, publish, record the intent, send, settle.

The order is what makes a crash harmless. A blob is stored durably before the chain can point at it; the
intent is on disk before a transaction is sent; whatever a crash left in flight is finished or forgotten by
asking the chain.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from mycelium_sdk import canonical
from mycelium_sdk.blobs.base import DEFAULT_MAX_BYTES
from mycelium_sdk.blobs.uris import check_anchor_uri
from mycelium_sdk.chain.anchors import MAX_ACL_BYTES
from mycelium_sdk.errors import (
    BackendError,
    ChainReset,
    ChainUnavailable,
    Fork,
    InputError,
    LimitExceeded,
    NonCanonical,
    Rollback,
    Tampered,
    UnanchoredWrites,
    Unsettled,
    VersionConflict,
)
from mycelium_sdk.facts import Mark
from mycelium_sdk.memory.publishing import Publication, Publish, blob_folder, publish_blob
from mycelium_sdk.memory.settling import Resumer, Settler
from mycelium_sdk.memory.standing import OLDER_THAN_ITS_ANCHOR, Standing
from mycelium_sdk.steps import Step, reached

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from mycelium_sdk.chain.base import AnchorReceipt, BeforeSend, SignedTransaction
    from mycelium_sdk.facts import ChainKey
    from mycelium_sdk.memory.basis import Basis
    from mycelium_sdk.memory.context_store import ContextDraft
    from mycelium_sdk.memory.sighting import Sighting
    from mycelium_sdk.memory.trust import TrustedChain
    from mycelium_sdk.state import StateStore

__all__ = ["AnchorWriter", "Anchorer", "Anchoring", "Export"]


class AnchorWriter(Resumer, Protocol):
    """What is needed of the contract's client to move an owner's anchor."""

    def set_anchor_if(
        self, expected_version: int, root: bytes, uri: str, acl: bytes, *, before_send: BeforeSend
    ) -> AnchorReceipt:
        """Anchor iff the chain's version is `expected_version`; see `MemoryAnchorClient.set_anchor_if`."""
        ...

    def make_ready(self) -> bool:
        """Make the chain and the contract, where that is this program's business and they are not there;
        whether that was so."""
        ...

    def sign(self, message: bytes) -> bytes:
        """The owner's Ed25519 signature of a message, 64 bytes."""
        ...


@dataclass(frozen=True, slots=True)
class Export:
    """A memory exported once: canonical blob, root (32 bytes), number of records, change counter of the
    snapshot, and what the blob does not say of its records. `canonical`: the store vouches for every row, so
    that nobody need parse the blob to know that it can be loaded. Close it."""

    blob: bytes
    root: bytes
    records: int
    change_counter: int
    context: ContextDraft
    canonical: bool = False

    def close(self) -> None:
        """Let go of the context; harmless when repeated."""
        self.context.close()


@dataclass(frozen=True, slots=True)
class Anchoring:
    """What one anchoring did: the version, where the blob went, and the transaction.

    `settled`: the version of an anchoring that was interrupted earlier, if it was finished now.
    """

    version: int
    root: bytes
    uri: str
    receipt: AnchorReceipt
    settled: int | None = None


class Anchorer:
    """Moves one owner's anchor. Callers hold the home folder's anchoring lock.

    `keep_base` is told the chain, the version, the root and the chain's time (Unix seconds) of what is about
    to be sent.
    """

    def __init__(
        self,
        trusted: TrustedChain,
        writer: AnchorWriter,
        state: StateStore,
        basis: Basis,
        owner: str,
        *,
        keep_base: Callable[[ChainKey, int, bytes, int], None],
    ) -> None:
        self.settler = Settler(trusted, writer, state, basis)
        self._owner = owner
        self._trusted = trusted
        self._writer = writer
        self._state = state
        self._basis = basis
        self._keep_base = keep_base

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
        wanted: Callable[[], bool],
    ) -> Anchoring | None:
        """Anchor what `export` gives; None if an earlier run's anchoring was finished now, and `wanted` says
        that nothing more is. See `AgentMemory.anchor` for the arguments and errors."""
        seen = self._trusted.look()
        if seen.anchor is None and self._writer.make_ready():
            seen = self._trusted.look()
        seen, finished = self.settler.settle(seen)
        reached(Step.LOOKED)
        if finished is not None and not wanted():
            return None
        with contextlib.closing(export()) as exported:
            reached(Step.EXPORTED)
            done = self._anchor_exported(
                seen,
                exported,
                uri=uri,
                publish=publish,
                acl=acl,
                overwrite=overwrite,
                blobs=blobs,
                public_network=public_network,
            )
        return done if finished is None else replace(done, settled=finished)

    def _anchor_exported(
        self,
        seen: Sighting,
        exported: Export,
        *,
        uri: str | None,
        publish: Publish | None,
        acl: bytes,
        overwrite: bool,
        blobs: Path,
        public_network: bool,
    ) -> Anchoring:
        self._require_loadable(exported)
        self._refuse_burying(seen, exported, overwrite=overwrite)
        if uri is None:
            publication = publish_blob(
                exported.blob, exported.root, publish, blobs=blobs, public_network=public_network
            )
        else:
            # The caller says where it is; a copy of one's own makes sure that it is anywhere at all.
            blob_folder(blobs).put(exported.blob, exported.root)
            publication = Publication(uri, blob_folder(blobs).path(exported.root))
        reached(Step.PUBLISHED)
        # After the blob that it stands beside, and before the chain points there: a crash in between leaves
        # what nobody anchored, while an anchor without its context would be found by other machines.
        publication.describe(exported.context, self._writer.sign)
        reached(Step.DESCRIBED)
        receipt = self._send(seen, exported, publication.uri, acl)
        publication.refresh_latest(exported.blob)
        return Anchoring(receipt.version, exported.root, publication.uri, receipt)

    def _send(self, seen: Sighting, exported: Export, uri: str, acl: bytes) -> AnchorReceipt:
        expected = seen.version
        intent = self._basis.intend(
            seen.key, exported.root, uri, expected_version=expected, change_counter=exported.change_counter
        )
        self._keep_base(seen.key, expected + 1, exported.root, seen.close_time)

        def record(signed: SignedTransaction) -> None:
            nonlocal intent
            intent = replace(
                intent,
                transaction_hash=signed.hash,
                envelope=signed.envelope,
                valid_until=signed.valid_until,
                signed_ledger=signed.signed_ledger,
            )
            self._state.put_intent(seen.key, intent)
            reached(Step.SIGNED)

        try:
            receipt = self._writer.set_anchor_if(expected, exported.root, uri, acl, before_send=record)
        except Unsettled:
            raise  # the intent stays: the next run asks again
        except Exception:
            with contextlib.suppress(BackendError):  # else the next run does it
                self._basis.abandon(seen.key, intent)
            raise
        reached(Step.SENT)
        self._require_shown(exported.root, receipt)
        self._basis.fulfil(seen.key, intent, receipt.version, anchored_at=receipt.close_time)
        reached(Step.RECORDED)
        return receipt

    def _require_shown(self, root: bytes, receipt: AnchorReceipt) -> None:
        """Look whether the anchor is what the receipt says, which is one server's word.

        A server that cannot be asked has time until the next look. Raises Unsettled where what is shown
        contradicts the receipt, or what was seen before; the evidence is kept.
        """
        try:
            self._trusted.confirm(Mark(receipt.version, root, receipt.ledger))
        except ChainUnavailable:
            return
        except (ChainReset, Fork, Rollback) as error:
            raise Unsettled(
                f"the server says that transaction {receipt.hash} made version {receipt.version}, and"
                f" contradicts that: {error.message}",
                hash=receipt.hash,
                hint="ask another RPC server: this one does not tell the truth",
            ) from error

    def _require_loadable(self, exported: Export) -> None:
        """Refuse to anchor what nobody could load: rows that were edited may make no canonical blob."""
        if len(exported.blob) > DEFAULT_MAX_BYTES:
            raise LimitExceeded(
                f"the memory's blob has {len(exported.blob):,} bytes; one of more than {DEFAULT_MAX_BYTES:,}"
                " could not be loaded",
                hint="forget what is not needed any more",
            )
        if exported.canonical:
            return
        try:
            canonical.check(exported.blob, self._owner, max_bytes=len(exported.blob))
        except NonCanonical as error:
            raise Tampered(
                "the memory's rows were changed behind its back: they make no canonical blob"
            ) from error

    def _refuse_burying(self, seen: Sighting, exported: Export, *, overwrite: bool) -> None:
        """Refuse unless the memory is based on what the chain holds now, and is what was written."""
        anchor = seen.anchor
        if overwrite or anchor is None or anchor.root == exported.root:
            return
        last = self._basis.last(seen.key)
        if last is None:
            nothing = "an empty memory" if exported.records == 0 else "a memory that never saw it"
            raise UnanchoredWrites(
                f"the chain holds version {anchor.version} of this owner's memory; anchoring {nothing} would"
                " bury it",
                hint="load it first: `mycelium memory rehydrate` (with --on-conflict merge to keep what is"
                " here); or say overwrite (--overwrite)",
            )
        if (last.version, last.root) != (anchor.version, anchor.root):
            raise VersionConflict(
                f"this memory is based on version {last.version}, and the chain is at version"
                f" {anchor.version}: another machine has anchored, or an older version was loaded here",
                expected=last.version,
                actual=anchor.version,
                hint="bring both together: `mycelium memory sync`; if the older version was loaded on"
                " purpose, say overwrite (--overwrite)",
            )
        standing = self._basis.standing(
            seen.key, last, root=exported.root, change_counter=exported.change_counter
        )
        if standing is Standing.CHANGED:
            raise Tampered(
                "the memory was changed behind its back since it was anchored; the change was not anchored"
            )
        if standing is Standing.EARLIER:
            raise Rollback(
                f"the memory's file is older than version {last.version}, which was anchored from it: it was"
                " lost, or an old copy was put back",
                hint=OLDER_THAN_ITS_ANCHOR + "; or say overwrite (--overwrite)",
            )


def check_anchor_arguments(uri: str | None, publish: Publish | None, acl: bytes) -> None:
    """Refuse what can never be anchored, before anything is published or sent. Raises InputError."""
    if uri is not None and publish is not None:
        raise InputError(
            "uri and publish are both given", hint="give one: publish stores the blob and names it itself"
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
