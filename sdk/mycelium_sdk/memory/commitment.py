"""One memory and its anchor: the procedures that need both the backend and the chain."""

from __future__ import annotations

import contextlib
import hashlib
import io
import math
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from mycelium_sdk import canonical
from mycelium_sdk.assembly import AnchorDesk
from mycelium_sdk.backends.integrity import Integrity, IntegrityReport
from mycelium_sdk.chain.base import EntryStatus
from mycelium_sdk.errors import (
    ChainReset,
    ChainUnavailable,
    Fork,
    InputError,
    Rollback,
    StoreLocked,
    Tampered,
)
from mycelium_sdk.facts import LastAnchor
from mycelium_sdk.fetching.policy import FetchPolicy
from mycelium_sdk.locking import exclusive
from mycelium_sdk.memory.anchoring import (
    Anchorer,
    Anchoring,
    Export,
    check_anchor_arguments,
)
from mycelium_sdk.memory.context_store import ContextDraft, Rehydration, load_with_context
from mycelium_sdk.memory.own_files import refuse_own_files
from mycelium_sdk.memory.policy import AnchoringPolicy
from mycelium_sdk.memory.portability import Portability
from mycelium_sdk.memory.publishing import configured_publish, require_target
from mycelium_sdk.memory.rehydration import (
    anchored_blob,
    checked_conflict,
    checked_version,
    held,
    merged_blob,
    refuse_losing,
    require_anchor,
)
from mycelium_sdk.memory.starting_anew import trust_chain_anew
from mycelium_sdk.memory.trust import TrustedChain
from mycelium_sdk.memory.verification import (
    Verification,
    advice_on,
    judge,
    not_vouched,
    unproved,
    vouched,
    warn_of_overwriting,
)
from mycelium_sdk.steps import Step, reached
from mycelium_sdk.threads import ThreadLock
from mycelium_sdk.verdicts import Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mycelium_sdk.backends.base import BaseBackend
    from mycelium_sdk.context import AgentContext
    from mycelium_sdk.memory.basis import Basis
    from mycelium_sdk.memory.publishing import Publish
    from mycelium_sdk.memory.sighting import Sighting
    from mycelium_sdk.memory.sources import Fetch
    from mycelium_sdk.state import StateStore

__all__ = ["Commitment"]

_VERIFY_ATTEMPTS = 3
_PATIENCE_SECONDS = 60.0


class Commitment:
    """What `AgentMemory` does with a chain; its methods say what they take, give and raise.

    Threads and processes of one home folder anchor and load one after the other; looking and verifying wait
    for nobody.
    """

    def __init__(
        self,
        ctx: AgentContext,
        anchor_address: str | None,
        backend: BaseBackend,
        state: StateStore,
        basis: Basis,
        *,
        policy: AnchoringPolicy | None,
    ) -> None:
        self._ctx = ctx
        self._backend = backend
        self._state = state
        self._basis = basis
        self._policy = AnchoringPolicy() if policy is None else policy
        self._desk = AnchorDesk(ctx, anchor_address)
        self._trusted = TrustedChain(
            self._desk,
            state,
            ctx.address,
            ctx.network.passphrase,
            self._desk.witnesses,
            based_on=lambda: basis.newest(ctx.network.passphrase, self._desk.contract_id),
        )
        self._fetching = FetchPolicy.for_own().configured(ctx.configuration.fetch)
        self.portability = Portability(
            ctx,
            backend,
            state,
            basis,
            self._desk,
            trusted=self._trusted,
            policy=self._fetching,
            keeps_alive=self._policy.keep_alive,
            procedures=self,
        )
        keep_base = self.portability.keep_anchored_base
        self._anchorer = Anchorer(self._trusted, self._desk, state, basis, ctx.address, keep_base=keep_base)
        self._lock = ThreadLock()

    def recognise(self, seen: Sighting) -> None:
        """Record an own anchor that a crash left unrecorded."""
        self._anchorer.settler.recognise(seen)

    def look(self) -> Sighting:
        """The anchor on the chain, checked against what was verified before."""
        return self._trusted.look()

    def anchor(
        self,
        uri: str | None,
        publish: Publish | None,
        acl: bytes,
        *,
        overwrite: bool,
        wanted: Callable[[], bool] = lambda: True,
    ) -> Anchoring | None:
        """See `AgentMemory.anchor`. None if `wanted`, asked when nobody else is anchoring, says no."""
        if publish is None and uri is None:
            publish = configured_publish(self._ctx.configuration)
        check_anchor_arguments(uri, publish, acl)
        refuse_own_files(publish, self._ctx, self._backend)
        require_target(publish)
        with self.alone():
            if not wanted():
                return None
            return self._anchorer.anchor(
                lambda: self._export(vouched=not overwrite),
                uri=uri,
                publish=publish,
                acl=acl,
                overwrite=overwrite,
                blobs=self._ctx.home.blobs,
                public_network=self._ctx.network.public,
                wanted=wanted,
            )

    def verify(self) -> Verification:
        """See `AgentMemory.verify`.

        Takes no lock at first, so that it answers while a blob is being published; what another thread or
        process does meanwhile would look like a contradiction, so the answer counts only if nothing was done.
        """
        settled: int | None = None
        for _ in range(_VERIFY_ATTEMPTS):
            before = self._progress()
            answer = self._verify_once(before)
            settled = answer.settled or settled
            if answer or self._progress() == before:
                return replace(answer, settled=settled)
        with self.alone():  # they never rest: have them wait
            answer = self._verify_once(None)
            return replace(answer, settled=answer.settled or settled)

    def _progress(self) -> tuple[object, ...]:
        """What changes when somebody writes, anchors or loads here."""
        newest = self._basis.newest(self._ctx.network.passphrase, self._desk.contract_id)
        intent = None if newest is None else self._state.intent(newest[0])
        return newest, intent, self._backend.change_counter()

    def _verify_once(self, progress: tuple[object, ...] | None) -> Verification:
        """`progress` is what was done before, None where nobody else can do anything."""
        try:
            root, records, counter, report = self.export_root()
        except Tampered as error:
            return self._unreadable(error)
        try:
            seen = self._trusted.look()
            unrecorded = self._anchorer.settler.unrecorded(seen)
            last = unrecorded or self.last_of(seen, root, records, counter)
            integrity = self.vouched_rows(seen, root, report)
            warnings = integrity.findings
            if last is not None and not self._is_past(seen, last):
                warnings = (*warnings, unproved(last.version, seen.version))
        except (ChainReset, Rollback, Fork) as error:
            return Verification(error.verdict or Verdict.DIVERGED, root, records, None, (error.message,))
        status = self._desk.entry_state(self._ctx.address).status if seen.anchor else EntryStatus.ABSENT
        verdict = judge(
            local_root=root,
            standing=self._basis.standing(seen.key, last, root=root, change_counter=counter),
            anchor=seen.anchor,
            last=last,
            archived=status is EntryStatus.ARCHIVED,
        )
        verdict = vouched(verdict, integrity)
        settled = None
        if unrecorded is not None or verdict is Verdict.IN_SYNC:
            in_sync_at = counter if verdict is Verdict.IN_SYNC else None
            settled = self._record_seen(seen, in_sync_at, progress)
        if status is EntryStatus.EXPIRING:
            soon = "the anchor's time to live ends soon; `mycelium memory keep-alive` extends it"
            warnings = (*warnings, soon)
        advice = advice_on(verdict, seen.version, last, root=root, records=records, integrity=integrity)
        return Verification(verdict, root, records, seen.anchor, warnings, advice, settled)

    def _is_past(self, seen: Sighting, last: LastAnchor) -> bool:
        try:
            return self._trusted.past.comes_after(seen, last.version, last.root)
        except ChainUnavailable:
            return False

    def _record_seen(
        self, seen: Sighting, in_sync_at: int | None, progress: tuple[object, ...] | None
    ) -> int | None:
        """Record what `verify` found: an own anchor that was not recorded, and that the memory, when its
        change counter was `in_sync_at`, was what is anchored. The version that was unrecorded, if there was.

        Nothing, if somebody else anchors or loads, or did so since `progress`: they record better.
        """
        with contextlib.ExitStack() as stack:
            if progress is not None:
                if self._lock.mine:
                    return None
                try:
                    stack.enter_context(self.alone(wait=False))
                except StoreLocked:
                    return None
                if self._progress() != progress:
                    return None
            version = self._anchorer.settler.recognise(seen)
            if in_sync_at is not None:
                self.adopt(seen, in_sync_at)
            return version

    def _unreadable(self, error: Tampered) -> Verification:
        """The verdict on a memory whose rows make no blob any more."""
        warnings: tuple[str, ...] = (error.message,)
        try:
            anchor = self._trusted.look().anchor
        except (ChainReset, Rollback, Fork) as contradiction:
            anchor, warnings = None, (*warnings, contradiction.message)
        return Verification(Verdict.TAMPERED, bytes(32), self._backend.count(), anchor, warnings)

    def last_of(self, seen: Sighting, root: bytes, records: int, counter: int) -> LastAnchor | None:
        """The anchor that the memory is based on; where that is not known any more, the one that it is."""
        last = self._basis.last(seen.key)
        if last is None and records:
            with contextlib.suppress(ChainUnavailable):  # then nothing is known of it
                last = self._trusted.past.as_base(
                    seen, root, change_counter=counter, newest=self._newest_time
                )
        return last

    def _newest_time(self) -> float:
        return max((one.time or math.inf for one in self._backend.iter_records()), default=math.inf)

    def vouched_rows(self, seen: Sighting, root: bytes, report: IntegrityReport) -> IntegrityReport:
        """Whether the rows are the store's own; without its key, what was anchored is vouched for anew."""
        if report.state is Integrity.UNKNOWN and self._trusted.past.with_root(seen, root):
            self._backend.adopt(root)
            return self._backend.check()
        return report

    def rehydrate(self, fetch: Fetch | None, on_conflict: str, version: int | None = None) -> Rehydration:
        """See `AgentMemory.rehydrate_with_report`."""
        conflict = checked_conflict(on_conflict)
        if version is not None and checked_version(version) != self._trusted.look().version:
            return self.portability.rehydrate_version(version, fetch, on_conflict)
        with self.alone():
            seen = self._trusted.look()
            anchor = require_anchor(seen)
            self._anchorer.settler.recognise(seen)
            try:
                root, records, counter, report = self.export_root()
            except Tampered as error:
                if conflict != "replace":
                    raise
                root, records, counter = bytes(32), 0, self._backend.change_counter()
                report = IntegrityReport(Integrity.BROKEN, findings=(error.message,))
            integrity = self.vouched_rows(seen, root, report)
            if root == anchor.root and integrity:
                self.adopt(seen, counter)
                return Rehydration(anchor.version, records)
            if conflict != "replace" and not integrity:
                raise not_vouched(integrity, "nothing was loaded", anchored=True)
            if conflict == "refuse":
                last = self.last_of(seen, root, records, counter)
                standing = self._basis.standing(seen.key, last, root=root, change_counter=counter)
                refuse_losing(self._state, seen, root, records, standing)
            blob = anchored_blob(
                seen, fetch, state=self._state, blobs=self._ctx.home.blobs, policy=self._fetching
            )
            reached(Step.FETCHED)
            merging = conflict == "merge"
            wanted = merged_blob(self._ctx.address, blob, self._backend) if merging else blob
            # Refused if anything was written since the export above: it was in neither side of the merge.
            loaded, context, note = load_with_context(
                self._backend, anchor, blob, wanted, blobs=self._ctx.home.blobs, expected_changes=counter
            )
            reached(Step.LOADED)
            # What a merge added counts as written on top of the anchor.
            as_anchored = wanted is blob or canonical.root(wanted) == anchor.root
            own_writes = 0 if as_anchored else max(1, loaded.records - held(blob))
            self.adopt(seen, loaded.change_counter - own_writes)
            return Rehydration(anchor.version, loaded.records, context, note)

    def trust_chain_anew(self, *, to_load: bool) -> bool:
        """See `AgentMemory.trust_chain_anew`."""
        ready = self._desk.make_ready
        with self.alone():
            return trust_chain_anew(
                self._trusted, self._state, self._basis, self.export_root, ready, to_load=to_load
            )

    def heartbeat_due(self) -> bool:
        """Whether the policy wants a dirty memory anchored now.

        The last anchor is the later of this memory's and the chain's, which is asked only if the first is old
        enough.
        """
        newest = self._basis.newest(self._ctx.network.passphrase, self._desk.contract_id)
        last = None if newest is None else newest[1]
        writes = self._backend.change_counter() if newest is None else self._basis.writes_since(*newest)
        now = time.time()
        anchored_at = last.anchored_at if last else None
        if not self._policy.due(writes=writes, last_anchor=anchored_at, now=now):
            return False
        anchor = self._trusted.look().anchor
        if anchor is None or anchor.timestamp is None:
            return True
        latest = max(float(anchor.timestamp), anchored_at or 0.0)
        return self._policy.due(writes=writes, last_anchor=latest, now=now)

    def _export(self, *, vouched: bool) -> Export:
        """The memory as it is now. Raises Tampered, if it has to be `vouched` for, and is not."""
        exported, report = self._export_as_it_is()
        if not report and not vouched:
            warn_of_overwriting(report)
            if report.state is Integrity.UNKNOWN:
                exported.close()
                self._backend.adopt(exported.root)
                return self._export(vouched=True)
        if report or not vouched:
            return exported
        exported.close()
        anchored = self._basis.newest(self._ctx.network.passphrase, self._desk.contract_id) is not None
        if report.state is Integrity.UNKNOWN:
            seen = self._trusted.look()
            if self.vouched_rows(seen, exported.root, report):
                return self._export(vouched=True)
            anchored = seen.anchor is not None
        raise not_vouched(report, "nothing was anchored", anchored=anchored)

    def _export_as_it_is(self) -> tuple[Export, IntegrityReport]:
        data, digest = io.BytesIO(), hashlib.sha256()
        with self._backend.export_checked() as (chunks, view, integrity):
            for chunk in chunks:
                data.write(chunk)
                digest.update(chunk)
            report, stats, root = integrity(), view.stats, digest.digest()
            folder = self._ctx.home.state_file.parent
            stored = self.portability.drafting_base(root, view.stored())
            context = ContextDraft(self._ctx.address, root, stored, folder=folder)
        kept = report.state is Integrity.KEPT
        blob = data.getvalue()  # the very bytes, not a copy, since nothing is written any more
        return Export(blob, root, stats.records, stats.change_counter, context, canonical=kept), report

    def export_root(self) -> tuple[bytes, int, int, IntegrityReport]:
        """Root, number of records and change counter of the rows, and whether they are the store's own."""
        with self._backend.export_checked() as (chunks, view, integrity):
            root = canonical.root(chunks)
            return root, view.stats.records, view.stats.change_counter, integrity()

    def adopt(self, seen: Sighting, change_counter: int) -> None:
        """Record that the memory is based on the anchor that was seen and verified."""
        anchor = require_anchor(seen)
        anchored_at = time.time() if anchor.timestamp is None else float(anchor.timestamp)
        adopted = LastAnchor(anchor.version, anchor.root, anchor.uri_text, change_counter, anchored_at)
        self._basis.adopt(seen.key, adopted)

    @contextlib.contextmanager
    def alone(self, *, wait: bool = True) -> Iterator[None]:
        """Wait until nobody else anchors or loads from this home folder, and keep others waiting.

        Raises `StoreLocked` after a minute; at once, unless `wait`.
        """
        if self._lock.mine:
            raise InputError(
                "a publish or fetch function called back into the procedure that called it",
                hint="let it only store or get the blob; anchor again afterwards",
            )
        path = self._ctx.home.state_file.with_name(f"anchoring-{self._ctx.address}.lock")
        patience = _PATIENCE_SECONDS if wait else 0.0
        if not self._lock.acquire(timeout=patience):
            raise StoreLocked("another thread is anchoring this memory", hint="wait for it to finish")
        try:
            with exclusive(path, timeout=patience):
                yield
        finally:
            self._lock.release()
