"""A memory among its other versions and machines: history, older versions, sync, keeping the anchor alive."""

from __future__ import annotations

import contextlib
import math
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from mycelium_sdk import canonical
from mycelium_sdk.blobs.base import DEFAULT_MAX_BYTES
from mycelium_sdk.errors import (
    BackendError,
    BlobError,
    ChainUnavailable,
    InputError,
    Tampered,
    UnanchoredWrites,
    VerificationError,
    VersionConflict,
)
from mycelium_sdk.facts import LastAnchor
from mycelium_sdk.memory.context_store import Rehydration, load_with_context, times_of
from mycelium_sdk.memory.merging import three_way
from mycelium_sdk.memory.past import Difference, Past, Purged, unknown_version
from mycelium_sdk.memory.publishing import blob_folder
from mycelium_sdk.memory.rehydration import (
    anchored_blob,
    checked_conflict,
    checked_version,
    held,
    refuse_losing,
    require_anchor,
)
from mycelium_sdk.memory.shared_base import BaseDraft, BaseStore, SharedBase, noted
from mycelium_sdk.memory.sources import blob_at_uri
from mycelium_sdk.memory.standing import Standing
from mycelium_sdk.memory.verification import not_vouched
from mycelium_sdk.retry import RetryPolicy
from mycelium_sdk.steps import Step, reached

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from mycelium_sdk.assembly import AnchorDesk
    from mycelium_sdk.backends.base import BaseBackend
    from mycelium_sdk.backends.integrity import IntegrityReport
    from mycelium_sdk.chain.anchors import Anchor
    from mycelium_sdk.chain.history import AnchorHistory, PastAnchor
    from mycelium_sdk.chain.keeping import Kept, Offer
    from mycelium_sdk.context import AgentContext
    from mycelium_sdk.facts import ChainKey
    from mycelium_sdk.fetching.policy import FetchPolicy
    from mycelium_sdk.memory.anchoring import Anchoring
    from mycelium_sdk.memory.basis import Basis
    from mycelium_sdk.memory.publishing import Publish
    from mycelium_sdk.memory.sighting import Sighting
    from mycelium_sdk.memory.sources import Fetch
    from mycelium_sdk.memory.trust import TrustedChain
    from mycelium_sdk.state import StateStore
    from mycelium_sdk.stored import StoredRecord

__all__ = ["Portability", "Procedures", "Synced"]


@dataclass(frozen=True, slots=True)
class Synced:
    """What `sync` did: the version that memory and chain are at now (0: nothing to anchor), how many records
    there are, whether another machine's anchor was merged in, whether a new version was anchored, and what
    became of the context file if it was not used."""

    version: int
    records: int
    merged: bool
    anchored: bool
    note: str | None = None


class Procedures(Protocol):
    """What is needed of `Commitment`."""

    def alone(self) -> contextlib.AbstractContextManager[None]:
        """Nobody else anchors or loads from this home folder meanwhile."""
        ...

    def anchor(
        self,
        uri: str | None,
        publish: Publish | None,
        acl: bytes,
        *,
        overwrite: bool,
        wanted: Callable[[], bool],
    ) -> Anchoring | None:
        """See `AgentMemory.anchor`."""
        ...

    def recognise(self, seen: Sighting) -> None:
        """Record an own anchor that a crash left unrecorded."""
        ...

    def export_root(self) -> tuple[bytes, int, int, IntegrityReport]:
        """Root, number of records, change counter, and whether the rows are the store's own."""
        ...

    def last_of(self, seen: Sighting, root: bytes, records: int, counter: int) -> LastAnchor | None:
        """The anchor that the memory is based on; where that is not known any more, the one that it is."""
        ...

    def vouched_rows(self, seen: Sighting, root: bytes, report: IntegrityReport) -> IntegrityReport:
        """The same report; without the store's key, what is anchored is vouched for anew."""
        ...

    def adopt(self, seen: Sighting, change_counter: int) -> None:
        """Record that the memory is based on the anchor that was seen."""
        ...


class Portability:
    """The procedures of one memory; see the methods of `AgentMemory` with the same names."""

    def __init__(
        self,
        ctx: AgentContext,
        backend: BaseBackend,
        state: StateStore,
        basis: Basis,
        desk: AnchorDesk,
        *,
        trusted: TrustedChain,
        policy: FetchPolicy,
        keeps_alive: bool,
        procedures: Procedures,
    ) -> None:
        self._ctx = ctx
        self._backend = backend
        self._state = state
        self._basis = basis
        self._desk = desk
        self._trusted = trusted
        self._policy = policy
        self._procedures = procedures
        self._past = Past(ctx.address, state, ctx.home.blobs, policy, desk.history_sources)
        self.bases = BaseStore(ctx.home.state_file.parent)
        self._draft: BaseDraft | None = None
        self._keeps_alive = keeps_alive
        self._kept_at: float | None = None

    # -- the past

    def history(self) -> AnchorHistory:
        """See `AgentMemory.history`."""
        return self._history(self._trusted.look())

    def _history(self, seen: Sighting) -> AnchorHistory:
        require_anchor(seen)
        found = self._past.history(seen, self._desk.entry_state(self._ctx.address).last_modified)
        if found.verified:
            self._trusted.past.learn(seen, found)
        return found

    def difference(self, first: int, second: int | None, fetch: Fetch | None) -> Difference:
        """See `AgentMemory.diff`."""
        history = self._history(self._trusted.look())
        wanted = [first] if second is None else [first, second]
        found = [self._found(history, version) for version in wanted]  # before any blob is looked for
        old, *rest = (self._past.records(self._past.blob(past, fetch)) for past in found)
        if rest:
            return self._past.difference(old, rest[0])
        here = (one.record for one in self._backend.iter_records() for _ in range(one.copies))
        return self._past.difference(old, here)

    def _found(self, history: AnchorHistory, version: int) -> PastAnchor:
        past = history.find(checked_version(version))
        if past is None:
            raise unknown_version(version, history)
        return past

    def purge(self, versions: Iterable[int] | None) -> list[Purged]:
        """See `AgentMemory.purge`."""
        with self._procedures.alone():
            seen = self._trusted.look()
            last = self._basis.last(seen.key)
            needed = set() if last is None else {last.root}
            return self._past.purge(self._history(seen), versions, needed=needed)

    def rehydrate_version(self, version: int, fetch: Fetch | None, on_conflict: str) -> Rehydration:
        """See `AgentMemory.rehydrate_with_report` with a version that is not the latest."""
        if checked_conflict(on_conflict) == "merge":
            raise InputError(
                "an older version is loaded as it was, so nothing can be merged into it",
                hint="say replace to drop what is only here, or anchor it first",
            )
        with self._procedures.alone():
            seen = self._trusted.look()
            latest = require_anchor(seen)
            self._procedures.recognise(seen)
            history = self._history(seen)
            past = history.find(version)
            if past is None:
                raise unknown_version(version, history)
            counter = self._require_nothing_to_lose(seen, on_conflict)
            blob = self._past.blob(past, fetch)
            reached(Step.FETCHED)
            # Based on nothing in between, so that a crash leaves no older version that looks like new writes.
            with self._basis.let_go(seen.key):
                loaded, context, note = load_with_context(
                    self._backend,
                    past.anchor,
                    blob,
                    blob,
                    blobs=self._ctx.home.blobs,
                    expected_changes=counter,
                )
            reached(Step.LOADED)
            anchored_at = float(past.anchor.timestamp or 0)
            older = past.anchor
            based = LastAnchor(version, older.root, older.uri_text, loaded.change_counter, anchored_at)
            self._basis.adopt(seen.key, based)
            said = (
                f"this is version {version}, on purpose; the latest is version {latest.version}, and"
                " anchoring on top of this one needs overwrite"
            )
            told = said if note is None else f"{said}; {note}"
            return Rehydration(version, loaded.records, context, told)

    def _require_nothing_to_lose(self, seen: Sighting, on_conflict: str) -> int:
        """The change counter at which nothing would be lost by loading, as far as `on_conflict` cares."""
        try:
            root, records, counter, report = self._procedures.export_root()
        except Tampered:
            if on_conflict != "replace":
                raise
            return self._backend.change_counter()
        if on_conflict == "refuse":
            integrity = self._procedures.vouched_rows(seen, root, report)
            if not integrity:
                raise not_vouched(integrity, "nothing was loaded", anchored=True)
            last = self._procedures.last_of(seen, root, records, counter)
            standing = self._basis.standing(seen.key, last, root=root, change_counter=counter)
            refuse_losing(self._state, seen, root, records, standing)
        return counter

    # -- several machines

    def sync(self, fetch: Fetch | None, publish: Publish | None, is_dirty: Callable[[], bool]) -> Synced:
        """See `AgentMemory.sync`."""
        merged, note = False, None

        def attempt() -> bool:
            nonlocal merged, note
            with self._procedures.alone():
                pulled, said = self._pull(fetch)
            merged, note = merged or pulled, said or note
            return self._procedures.anchor(None, publish, b"", overwrite=False, wanted=is_dirty) is not None

        # Another machine was quicker, also with the first anchor of all, which is merged in next; or somebody
        # wrote here while the two were being merged.
        overtaken = (VersionConflict, UnanchoredWrites)
        retries = RetryPolicy(attempts=_ATTEMPTS, total_seconds=_PATIENCE_SECONDS)
        anchored = retries.call(attempt, on=overtaken)
        newest = self._basis.newest(self._ctx.network.passphrase, self._desk.contract_id)
        version = 0 if newest is None else newest[1].version
        return Synced(version, self._backend.count(), merged, anchored, note)

    def _pull(self, fetch: Fetch | None) -> tuple[bool, str | None]:
        """Merge in what the chain holds; whether that was needed, and the note on the context file."""
        seen = self._trusted.look()
        anchor = seen.anchor
        if anchor is None:
            return False, None
        self._procedures.recognise(seen)
        root, records, counter, report = self._procedures.export_root()
        integrity = self._procedures.vouched_rows(seen, root, report)
        if not integrity:
            raise not_vouched(integrity, "nothing was loaded", anchored=True)
        if root == anchor.root:
            self._procedures.adopt(seen, counter)
            return False, None
        last = self._procedures.last_of(seen, root, records, counter)
        standing = self._basis.standing(seen.key, last, root=root, change_counter=counter)
        if standing is Standing.CHANGED:
            raise Tampered("the memory was changed behind its back since it was anchored; nothing was loaded")
        at_latest = last is not None and (last.version, last.root) == (anchor.version, anchor.root)
        if at_latest and standing is Standing.WRITTEN:
            return False, None
        # A memory that is older than its anchor lacks what it never forgot: nothing counts as forgotten.
        base = None
        if last is not None and standing in (Standing.CLEAN, Standing.WRITTEN):
            # Only what the anchor comes after can have been forgotten in it.
            base = (
                self._base(seen.key, last)
                if self._trusted.past.comes_after(seen, last.version, last.root)
                else None
            )
        blob = anchored_blob(seen, fetch, state=self._state, blobs=self._ctx.home.blobs, policy=self._policy)
        reached(Step.FETCHED)
        writes = 0 if last is None else self._basis.writes_since(seen.key, last)
        wanted = self._merged(anchor, blob, base)
        loaded, _, note = load_with_context(
            self._backend, anchor, blob, wanted, blobs=self._ctx.home.blobs, expected_changes=counter
        )
        reached(Step.LOADED)
        self.keep_base(seen.key, anchor.version, anchor.root, anchor.timestamp or 0, blob)
        # What is not as it was anchored counts as written on top of the anchor.
        as_anchored = canonical.root(wanted) == anchor.root
        written = loaded.records - held(blob) if last is None else writes
        own_writes = 0 if as_anchored else max(1, written)
        self._procedures.adopt(seen, loaded.change_counter - own_writes)
        return True, note

    def _merged(self, anchor: Anchor, blob: bytes, base: SharedBase | None) -> bytes:
        owner = self._ctx.address
        times = times_of(owner, anchor, blob, self._ctx.home.blobs)
        pairs = canonical.parse_fragments(blob, owner, max_bytes=DEFAULT_MAX_BYTES)
        anchored = (
            (text, record, None if times is None or math.isnan(times[place]) else times[place])
            for place, (text, record) in enumerate(pairs)
        )
        with self._backend.snapshot() as view:
            texts = three_way(anchored, view.stored(), base)
            return b"".join(canonical.write_blob(owner, ((text, 1) for text in texts)))

    def _base(self, key: ChainKey, last: LastAnchor) -> SharedBase | None:
        """What the memory held when it was last based on an anchor; None if nobody knows any more."""
        found = self.bases.find(key, last.version, last.root)
        if found is not None:
            return found
        blob = blob_folder(self._ctx.home.blobs).find(last.root)
        if blob is None and last.uri:
            try:
                blob = blob_at_uri(last.uri, last.root, self._policy, own=True)
            except (BlobError, VerificationError):
                return None
        if blob is None or canonical.root(blob) != last.root:
            return None
        pairs = canonical.parse_fragments(blob, self._ctx.address, max_bytes=DEFAULT_MAX_BYTES)
        try:
            return self.bases.from_blob(
                last.version, last.root, int(last.anchored_at), (text for text, _ in pairs)
            )
        except BackendError:  # a base may be lost
            return None

    def drafting_base(self, root: bytes, records: Iterable[StoredRecord]) -> Iterable[StoredRecord]:
        """The same records, noted as they pass, in case that the memory with this root is anchored."""
        try:
            self._draft = self.bases.draft(root)
        except BackendError:  # a base may be lost
            self._draft = None
            return records
        return self._draft.watch(records)

    def keep_anchored_base(self, key: ChainKey, version: int, root: bytes, close_time: int) -> None:
        """Keep what was noted, if that is about to be anchored as `version`. Nothing depends on it."""
        draft, self._draft = self._draft, None
        if draft is not None and draft.complete and draft.root == root:
            with contextlib.suppress(BackendError):
                self.bases.keep_draft(key, version, close_time, draft)

    def keep_base(self, key: ChainKey, version: int, root: bytes, anchored_at: int, blob: bytes) -> None:
        """Keep what the version with this blob holds, with the sequences that its memories have here."""
        owner = self._ctx.address
        anchored = canonical.parse_fragments(blob, owner, max_bytes=DEFAULT_MAX_BYTES)
        with contextlib.suppress(BackendError), self._backend.snapshot() as view:
            self.bases.keep(key, version, root, anchored_at, noted(anchored, view.stored()))

    # -- keeping the anchor alive

    def keep_alive(self, accept: Callable[[Offer], bool], *, include_contract: bool) -> list[Kept]:
        """See `AgentMemory.keep_alive`."""
        if not self._ctx.has_chain:
            self._trusted.look()  # which says what is missing
        kept, _ = self._desk.keeper().keep(
            self._ctx.address, self._ctx.keypair, include_contract=include_contract, accept=accept
        )
        return kept

    def keep_alive_by_policy(self) -> None:
        """Extend what is about to expire, if the policy says so and the chain was not asked lately.

        A chain that cannot be asked is asked again the next time.
        """
        now = time.monotonic()
        if not self._keeps_alive or (self._kept_at is not None and now - self._kept_at < _ONE_LOOK_SECONDS):
            return
        with contextlib.suppress(ChainUnavailable):
            self.keep_alive(lambda _: True, include_contract=False)
            self._kept_at = now


_ATTEMPTS = 10
_ONE_LOOK_SECONDS = 3600.0
_PATIENCE_SECONDS = 120.0
