"""AgentMemory: what an agent remembers, kept locally, committed to on a chain, and loaded again elsewhere.

What needs a chain is in `commitment` and below it, and is imported when it is first used, so that remembering
and recalling start as quickly as SQLite does.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from mycelium_sdk import canonical
from mycelium_sdk.backend_choice import open_backend
from mycelium_sdk.context import AgentContext
from mycelium_sdk.errors import BackendError
from mycelium_sdk.memory.portable import PortableMemory
from mycelium_sdk.threads import ThreadLock

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from types import TracebackType

    from mycelium_sdk.backends.base import BaseBackend, Hit
    from mycelium_sdk.facts import LastAnchor
    from mycelium_sdk.memory.anchoring import Anchoring
    from mycelium_sdk.memory.basis import Basis
    from mycelium_sdk.memory.commitment import Commitment
    from mycelium_sdk.memory.context_store import Rehydration
    from mycelium_sdk.memory.policy import AnchoringPolicy
    from mycelium_sdk.memory.published import PublishedVersion
    from mycelium_sdk.memory.publishing import Publish
    from mycelium_sdk.memory.sources import Fetch
    from mycelium_sdk.memory.verification import Verification
    from mycelium_sdk.state import StateStore

__all__ = ["AgentMemory"]


class AgentMemory(PortableMemory):
    """One owner's memory.

    `ctx`: whose memory and on which network (default: everything from configuration). `backend`: "auto" or
    "local", or a backend instance, which the caller closes. `anchor_address`: the contract's C-address
    (default: from configuration, and on `local` the network's own deployment). `backend_kwargs`: arguments of
    the named backend.

    Safe to use from many threads. Nothing is asked of a chain, and no passphrase is needed, until an
    operation needs it. Close it, or use it as a context manager; then it raises `BackendError`.

    Raises:
        WalletNotFound, ConfigError: no wallet, or a setting that cannot be used; the hint names the fix.
        BackendError: the memory's file cannot be used.
    """

    def __init__(
        self,
        ctx: AgentContext | None = None,
        backend: str | BaseBackend = "auto",
        anchor_address: str | None = None,
        backend_kwargs: Mapping[str, Any] | None = None,
        policy: AnchoringPolicy | None = None,
    ) -> None:
        self._ctx = AgentContext() if ctx is None else ctx
        self._owns_context = ctx is None
        self._policy = policy
        self._anchor_address = anchor_address
        self._lock = ThreadLock()
        self._state_store: StateStore | None = None
        self._opened_basis: Basis | None = None
        self._opened_commitment: Commitment | None = None
        self._closed = False
        self._opened_backend, self._owns_backend = open_backend(backend, self._ctx, backend_kwargs)

    # -- remembering and recalling

    def remember(self, content: str, tags: Iterable[str] | None = None, session: str | None = None) -> str:
        """Keep a memory and return its id. An equal one (same content, same set of tags) is kept once.

        `session` names the conversation it belongs to. Raises InputError before anything is written.
        """
        return self._backend.remember(content, tags, session=session)

    def recall(
        self,
        query: str,
        k: int = 5,
        tags: Iterable[str] | None = None,
        session: str | None = None,
        offset: int = 0,
    ) -> list[Hit]:
        """The memories that best match `query`, best first: dicts with id, content, tags, score and more.

        At most `k` of those that match, after the first `offset`. `tags`: only memories that carry all of
        them;
        `session`: only that conversation's. Scores are in (0, 1].
        """
        return self._backend.recall(query, k, tags=tags, session=session, offset=offset)

    def forget(
        self,
        id: str | None = None,  # noqa: A002 - the name users know
        *,
        tag: str | None = None,
        secure: bool = False,
    ) -> int:
        """Forget one memory by id, or all that carry `tag`; how many were forgotten.

        With `secure` no copy of the text is left in the store's files. Blobs already published still hold it:
        `versions_holding`, asked before, names them.
        """
        return self._backend.forget(id, tag=tag, secure=secure)

    def versions_holding(
        self,
        id: str | None = None,  # noqa: A002 - the name users know
        *,
        tag: str | None = None,
    ) -> list[PublishedVersion]:
        """Which published versions hold one of the memories that `forget` with these arguments would forget.

        Looked into are this home folder's `blobs/` and the `file://` copies of the anchors that were verified
        here; those that cannot be looked into are named too, with `seen` false. Does not ask the chain.
        """
        from mycelium_sdk.memory.published import published_with, selected

        doomed = {one.fragment.encode("ascii") for one in selected(self._backend, id=id, tag=tag)}
        return published_with(doomed, self._state.anchors_of(self.owner), self._ctx.home.blobs, self.owner)

    # -- the commitment

    def memory_root(self) -> bytes:
        """SHA-256 of the memory's canonical blob, 32 bytes, computed from the rows."""
        with self._backend.snapshot() as view:
            return canonical.root(canonical.write_blob(self.owner, view.fragments()))

    @property
    def is_dirty(self) -> bool:
        """Whether there are writes that are not anchored on this network and contract, or it is not known yet
        whether there are, since an anchoring is in flight.

        Does not ask the chain.
        """
        newest = self._basis.newest(self._ctx.network.passphrase, self.contract_id)
        if newest is None:
            return self._backend.count() > 0
        key, last = newest
        intent = self._state.intent(key)
        sent = intent is not None and intent.transaction_hash is not None
        if sent and intent is not None and intent.expected_version >= last.version:
            return True  # what is anchored is not known yet, also where the memory is again as it was before
        if self._backend.change_counter() == last.change_counter and self._basis.is_its_store(key, last):
            return False
        return self.memory_root() != last.root

    @property
    def last_anchor(self) -> LastAnchor | None:
        """The anchor this memory is based on, as recorded here. Does not ask the chain."""
        newest = self._basis.newest(self._ctx.network.passphrase, self.contract_id)
        return None if newest is None else newest[1]

    def anchor(
        self,
        uri: str | None = None,
        publish: Publish | None = None,
        acl: bytes = b"",
        *,
        overwrite: bool = False,
    ) -> int:
        """Publish the memory and commit to it on the chain; the new version.

        `publish`: where the blob goes: a folder, a file, a `file://` URI, or a function `bytes -> URI`.
        `uri`: where the caller has put it. With neither it goes to the home folder's `blobs/`. `overwrite`
        anchors although the chain holds an anchor that this memory is not based on.

        Raises:
            InputError: uri, publish or acl cannot be used. Nothing was published.
            PublishFailed: the blob could not be stored. Nothing was anchored.
            VersionConflict: another machine anchored. UnanchoredWrites: this memory never saw the chain's
                anchor.
            Unsettled: sent, and the outcome is not known; it is settled by the next call.
            ChainError, Rollback, Fork: see `verify`.
        """
        return self.anchor_with_receipt(uri, publish, acl, overwrite=overwrite).version

    def anchor_with_receipt(
        self,
        uri: str | None = None,
        publish: Publish | None = None,
        acl: bytes = b"",
        *,
        overwrite: bool = False,
    ) -> Anchoring:
        """The same as `anchor`, giving root, URI and the transaction's receipt as well."""
        done = self._commitment.anchor(uri, publish, acl, overwrite=overwrite)
        assert done is not None  # noqa: S101 - it was wanted
        return done

    def get_anchor(self) -> dict[str, Any] | None:
        """What the chain holds for this owner: root, uri, acl, version, previous, timestamp; None if nothing.

        Bytes, except `uri`: text, None if it is not UTF-8. Raises as `verify` does.
        """
        anchor = self._commitment.look().anchor
        return None if anchor is None else anchor.as_dict()

    def verify(self) -> Verification:
        """Recompute the root from the rows and compare it with the chain; true iff they agree.

        Raises:
            ChainUnavailable: the chain could not be asked, which is no answer about the memory.
        """
        return self._commitment.verify()

    def rehydrate(
        self, fetch: Fetch | None = None, on_conflict: str = "refuse", version: int | None = None
    ) -> dict[str, int]:
        """Load the anchored memory: `{"version": 4, "records": 127}`.

        `fetch`: a function `uri -> bytes`. Without it the home folder's `blobs/`, and what is at the anchor's
        `file://` or `https://` URI, are read.
        `on_conflict` says what becomes of writes here that are not anchored: "refuse" (load nothing), "merge"
        (keep them beside what is loaded) or "replace" (drop them).

        `version`: an older one, on purpose; `anchor` then needs `overwrite`.

        Raises (nothing is loaded):
            InputError: that version is not in the history that is known.
            NotAnchored: there is nothing to load. UnanchoredWrites: see `on_conflict`.
            BlobNotFound, BlobUnavailable, BlobError: no way to the blob. UntrustedSource: it lies where
                nothing is fetched from.
            Tampered, Rollback, NonCanonical, WrongOwner, LimitExceeded: what came is not what the chain
                commits to.
            ChainError, Fork: see `verify`.

        Order, sessions and times of memories that are new here come from the context file beside the blob,
        in `blobs/` or at the `file://` URI. One that does not fit is not used, with a `ContextWarning`;
        without one the memory is loaded all the same.
        """
        done = self._commitment.rehydrate(fetch, on_conflict, version)
        if done.context == "REFUSED" and done.note is not None:
            from mycelium_sdk.memory.context_store import ContextWarning

            warnings.warn(done.note, ContextWarning, stacklevel=2)
        return {"version": done.version, "records": done.records}

    def rehydrate_with_report(
        self, fetch: Fetch | None = None, on_conflict: str = "refuse", version: int | None = None
    ) -> Rehydration:
        """The same as `rehydrate`, giving what became of the context file as well, in place of a warning."""
        return self._commitment.rehydrate(fetch, on_conflict, version)

    def trust_chain_anew(self, *, to_load: bool = False) -> bool:
        """Forget what was seen on this network and contract, and start from what the chain serves now.

        The explicit word after CHAIN_RESET, ROLLBACK or FORK; without such a contradiction nothing is
        forgotten and the answer is False. Evidence of what was contradicted is kept. The memory itself is not
        touched: where the chain was set back to an anchor of this memory's own past, what came after it
        counts as not anchored; on another chain, or a fork, the memory is based on nothing until it is loaded
        or merged (`sync`).

        `to_load`: the memory is to be loaded from there; without it, a local chain that is not there is made.

        Raises Fork where the servers of a cross-check contradict each other, and NotAnchored where there is
        nothing `to_load`: nothing is forgotten then.
        """
        return self._commitment.trust_chain_anew(to_load=to_load)

    # -- anchoring by policy

    def on_job_complete(self, uri: str | None = None, publish: Publish | None = None) -> int | None:
        """Anchor iff there are writes that are not anchored; the version, or None."""
        if not self.is_dirty:
            return None
        done = self._commitment.anchor(uri, publish, b"", overwrite=False, wanted=lambda: self.is_dirty)
        return None if done is None else done.version

    def heartbeat(self, uri: str | None = None, publish: Publish | None = None) -> int | None:
        """Anchor iff dirty and the policy says it is due; the version, or None.

        With nothing to anchor, the anchor's life is extended where the policy says so.
        """
        if not self._heartbeat_due():
            if self.last_anchor is not None:
                self._commitment.portability.keep_alive_by_policy()
            return None
        done = self._commitment.anchor(uri, publish, b"", overwrite=False, wanted=self._heartbeat_due)
        return None if done is None else done.version

    def _heartbeat_due(self) -> bool:
        return self.is_dirty and self._commitment.heartbeat_due()

    # -- about itself

    @property
    def owner(self) -> str:
        """The owner's G-address."""
        return self._ctx.address

    @property
    def backend(self) -> BaseBackend:
        """Where the records live."""
        return self._opened_backend

    @property
    def context(self) -> AgentContext:
        """Whose memory this is and on which network."""
        return self._ctx

    @property
    def contract_id(self) -> str:
        """The C-address of the contract that anchors this memory."""
        return self._ctx.anchor_address(self._anchor_address)

    def count(self) -> int:
        """How many records there are."""
        return self._backend.count()

    def close(self) -> None:
        """Release files and connections. Closing twice is harmless."""
        with self._lock:
            self._closed = True
            if self._owns_backend:
                self._opened_backend.close()
            if self._state_store is not None:
                self._state_store.close()
            if self._owns_context:
                self._ctx.close()

    def __enter__(self) -> AgentMemory:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"AgentMemory(owner={self.owner!r}, network={self._ctx.network.name!r})"

    # -- inside

    def _require_open(self) -> None:
        if self._closed:
            raise BackendError("the memory is closed", hint="open it again")

    @property
    def _backend(self) -> BaseBackend:
        self._require_open()
        return self._opened_backend

    @property
    def _state(self) -> StateStore:
        with self._lock:
            self._require_open()
            if self._state_store is None:
                from mycelium_sdk.state import StateStore

                self._state_store = StateStore(self._ctx.home.state_file)
            return self._state_store

    @property
    def _basis(self) -> Basis:
        with self._lock:
            self._require_open()
            if self._opened_basis is None:
                from mycelium_sdk.memory.basis import Basis

                self._opened_basis = Basis(self._backend, self._state)
            return self._opened_basis

    @property
    def _commitment(self) -> Commitment:
        with self._lock:
            self._require_open()
            if self._opened_commitment is None:
                from mycelium_sdk.memory.commitment import Commitment

                self._opened_commitment = Commitment(
                    self._ctx,
                    self._anchor_address,
                    self._backend,
                    self._state,
                    self._basis,
                    policy=self._policy,
                )
            return self._opened_commitment
