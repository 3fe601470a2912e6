"""One memory and its anchor: the procedures that need both the backend and the chain."""

from __future__ import annotations

import contextlib
import hashlib
import threading
import time
from typing import TYPE_CHECKING

from mycelium_sdk import canonical
from mycelium_sdk.assembly import AnchorDesk
from mycelium_sdk.backends.integrity import Integrity, IntegrityReport
from mycelium_sdk.blobs.base import DEFAULT_MAX_BYTES
from mycelium_sdk.chain.base import EntryStatus
from mycelium_sdk.errors import ChainReset, Fork, InputError, Rollback, Tampered
from mycelium_sdk.memory.anchoring import (
    OLDER_THAN_ITS_ANCHOR,
    Anchorer,
    Anchoring,
    Export,
    check_anchor_arguments,
)
from mycelium_sdk.memory.locking import exclusive
from mycelium_sdk.memory.policy import AnchoringPolicy
from mycelium_sdk.memory.rehydration import (
    anchored_blob,
    checked_conflict,
    held,
    merged_blob,
    refuse_unanchored,
    require_anchor,
)
from mycelium_sdk.memory.standing import Standing, standing_of
from mycelium_sdk.memory.trust import TrustedChain
from mycelium_sdk.memory.verification import Verification, judge, vouched
from mycelium_sdk.state import ChainKey, LastAnchor
from mycelium_sdk.steps import Step, reached
from mycelium_sdk.verdicts import Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mycelium_sdk.backends.base import BaseBackend
    from mycelium_sdk.context import AgentContext
    from mycelium_sdk.memory.publishing import Publish
    from mycelium_sdk.memory.rehydration import Fetch
    from mycelium_sdk.memory.trust import Sighting
    from mycelium_sdk.state import StateStore

__all__ = ["Commitment"]

_VERIFY_ATTEMPTS = 3


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
        policy: AnchoringPolicy | None,
    ) -> None:
        self._ctx = ctx
        self._backend = backend
        self._state = state
        self._policy = AnchoringPolicy() if policy is None else policy
        self._desk = AnchorDesk(ctx, anchor_address)
        self._trusted = TrustedChain(
            self._desk, state, ctx.address, ctx.network.passphrase, self._desk.witnesses
        )
        self._anchorer = Anchorer(self._trusted, self._desk, state, ctx.address)
        self._lock = threading.Lock()
        self._holder: int | None = None

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
            publish = self._configured_publish()
        check_anchor_arguments(uri, publish, acl)
        with self._alone():
            if not wanted():
                return None
            if not overwrite:
                self._require_vouched_rows()
            return self._anchorer.anchor(
                self._export,
                uri=uri,
                publish=publish,
                acl=acl,
                overwrite=overwrite,
                blobs=self._ctx.home.blobs,
                public_network=self._ctx.network.public,
            )

    def verify(self) -> Verification:
        """See `AgentMemory.verify`.

        Takes no lock at first, so that it answers while a blob is being published; what another thread or
        process does meanwhile would look like a contradiction, so the answer counts only if nothing was done.
        """
        for _ in range(_VERIFY_ATTEMPTS):
            before = self._progress()
            answer = self._verify_once()
            if answer or self._progress() == before:
                return answer
        with self._alone():  # they never rest: have them wait
            return self._verify_once()

    def _progress(self) -> tuple[object, ...]:
        """What changes when somebody writes, anchors or loads here."""
        passphrase, contract = self._ctx.network.passphrase, self._desk.contract_id
        key = self._state.newest_chain(passphrase, contract, self._ctx.address)
        last = None if key is None else self._state.last_anchor(key)
        return last, None if key is None else self._state.intent(key), self._backend.change_counter()

    def _verify_once(self) -> Verification:
        try:
            root, records, counter = self._export_root()
        except Tampered as error:
            return self._unreadable(error)
        try:
            seen = self._trusted.look()
        except (ChainReset, Rollback, Fork) as error:
            return Verification(error.verdict or Verdict.DIVERGED, root, records, None, (error.message,))
        status = self._desk.entry_state(self._ctx.address).status if seen.anchor else EntryStatus.ABSENT
        last = self._settled_last(seen)
        verdict = judge(
            local_root=root,
            standing=standing_of(root, counter, last),
            anchor=seen.anchor,
            last=last,
            archived=status is EntryStatus.ARCHIVED,
        )
        integrity = self._checked_rows(seen, root)
        if seen.anchor is not None:
            verdict = vouched(verdict, integrity)
        if verdict is Verdict.IN_SYNC:
            self._adopt(seen, counter)
        warnings = integrity.findings
        if status is EntryStatus.EXPIRING:
            warnings = (*warnings, "the anchor's time to live ends soon")
        advice = OLDER_THAN_ITS_ANCHOR if verdict is Verdict.ROLLBACK else None
        return Verification(verdict, root, records, seen.anchor, warnings, advice)

    def _unreadable(self, error: Tampered) -> Verification:
        """The verdict on a memory whose rows make no blob any more."""
        anchor = self._trusted.look().anchor
        return Verification(Verdict.TAMPERED, bytes(32), self._backend.count(), anchor, (error.message,))

    def _checked_rows(self, seen: Sighting, root: bytes) -> IntegrityReport:
        """Whether the rows are the store's own; without its key, what is anchored is vouched for anew."""
        report = self._report()
        if report.state is Integrity.UNKNOWN and seen.anchor is not None and seen.anchor.root == root:
            self._backend.adopt(root)
            return self._report()
        return report

    def _report(self) -> IntegrityReport:
        try:
            return self._backend.check()
        except Tampered as error:  # not even readable
            return IntegrityReport(Integrity.BROKEN, findings=(error.message,))

    def rehydrate(self, fetch: Fetch | None, on_conflict: str) -> dict[str, int]:
        """See `AgentMemory.rehydrate`."""
        conflict = checked_conflict(on_conflict)
        with self._alone():
            seen = self._trusted.look()
            anchor = require_anchor(seen)
            last = self._settled_last(seen)
            try:
                root, records, counter = self._export_root()
            except Tampered:
                if conflict != "replace":
                    raise
                root, records, counter = bytes(32), 0, self._backend.change_counter()
            integrity = self._checked_rows(seen, root)
            if root == anchor.root and integrity:
                self._adopt(seen, counter)
                return {"version": anchor.version, "records": records}
            if conflict != "replace" and not integrity:
                raise Tampered(
                    "the memory was changed behind its back, or cannot be vouched for; nothing was loaded",
                    hint="load what is anchored: --on-conflict replace (on_conflict='replace')",
                )
            if conflict == "refuse":
                self._refuse_losing(seen, root, records, standing_of(root, counter, last))
            blob = anchored_blob(seen, fetch, state=self._state, blobs=self._ctx.home.blobs)
            reached(Step.FETCHED)
            merging = conflict == "merge"
            wanted = merged_blob(self._ctx.address, blob, self._backend) if merging else blob
            # Refused if anything was written since the export above: it was in neither side of the merge.
            loaded = self._backend.load(wanted, max_bytes=DEFAULT_MAX_BYTES, expected_changes=counter)
            reached(Step.LOADED)
            # What a merge added counts as written on top of the anchor.
            own_writes = 0 if canonical.root(wanted) == anchor.root else max(1, loaded.records - held(blob))
            self._adopt(seen, loaded.change_counter - own_writes)
            reached(Step.RECORDED)
            return {"version": anchor.version, "records": loaded.records}

    def trust_chain_anew(self) -> bool:
        """See `AgentMemory.trust_chain_anew`."""
        key = ChainKey(self._ctx.network.passphrase, self._desk.contract_id, self._ctx.address)
        with self._alone():
            try:
                self._trusted.look()
            except (ChainReset, Rollback, Fork):
                self._state.forget_chain(key)
                return True
            return False

    def heartbeat_due(self, last: LastAnchor | None) -> bool:
        """Whether the policy wants a dirty memory anchored now.

        The last anchor is the later of `last` and the chain's, which is asked only if `last` is old enough.
        """
        writes = self._backend.change_counter() - (last.change_counter if last else 0)
        now = time.time()
        anchored_at = last.anchored_at if last else None
        if not self._policy.due(writes=writes, last_anchor=anchored_at, now=now):
            return False
        anchor = self._trusted.look().anchor
        if anchor is None or anchor.timestamp is None:
            return True
        newest = max(float(anchor.timestamp), anchored_at or 0.0)
        return self._policy.due(writes=writes, last_anchor=newest, now=now)

    def _export(self) -> Export:
        with self._backend.snapshot() as view:
            blob = b"".join(canonical.write_blob(self._ctx.address, view.fragments()))
            stats = view.stats
        return Export(blob, hashlib.sha256(blob).digest(), stats.records, stats.change_counter)

    def _export_root(self) -> tuple[bytes, int, int]:
        with self._backend.snapshot() as view:
            root = canonical.root(canonical.write_blob(self._ctx.address, view.fragments()))
            return root, view.stats.records, view.stats.change_counter

    def _refuse_losing(self, seen: Sighting, root: bytes, records: int, standing: Standing) -> None:
        """Raise if loading would lose something that somebody remembered, forgot or changed here."""
        if standing is Standing.CLEAN or (not records and standing is not Standing.WRITTEN):
            return
        if standing is Standing.CHANGED:
            raise Tampered(
                "the memory was changed behind its back since it was anchored; nothing was loaded",
                hint="--on-conflict replace (on_conflict='replace') drops the change, merge keeps it",
            )
        if standing is Standing.WRITTEN or self._state.known_anchor(seen.key, root) is None:
            refuse_unanchored(records)

    def _require_vouched_rows(self) -> None:
        """Raise if rows were changed behind the store's back, or nobody can tell."""
        report = self._report()
        if report.state is Integrity.UNKNOWN:
            report = self._checked_rows(self._trusted.look(), self._export_root()[0])
        if not report:
            raise Tampered(
                "the memory was changed behind its back, or cannot be vouched for; nothing was anchored",
                hint="`mycelium memory verify` says more; `mycelium memory rehydrate --on-conflict replace`"
                " loads what is anchored; or say overwrite",
            )

    def _configured_publish(self) -> str | None:
        """`[memory] publish`: a path of it is relative to the configuration's folder."""
        publish = self._ctx.configuration.memory.publish
        if publish is None or "://" in publish:
            return publish
        slash = "/" if publish.endswith("/") else ""
        return f"{self._ctx.configuration.resolve(publish)}{slash}"

    def _settled_last(self, seen: Sighting) -> LastAnchor | None:
        """What the memory is based on, after recognising an own anchor that a crash left unrecorded."""
        self._anchorer.recognise(seen)
        return self._state.last_anchor(seen.key)

    def _adopt(self, seen: Sighting, change_counter: int) -> None:
        """Record that the memory is based on the anchor that was seen and verified."""
        anchor = require_anchor(seen)
        anchored_at = time.time() if anchor.timestamp is None else float(anchor.timestamp)
        last = LastAnchor(anchor.version, anchor.root, anchor.uri_text, change_counter, anchored_at)
        self._state.record(seen.key, last, ledger=seen.ledger)

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """Wait until nobody else anchors or loads from this home folder, and keep others waiting."""
        if self._holder == threading.get_ident():
            raise InputError(
                "a publish or fetch function called back into the procedure that called it",
                hint="let it only store or get the blob; anchor again afterwards",
            )
        path = self._ctx.home.state_file.with_name(f"anchoring-{self._ctx.address}.lock")
        with self._lock, exclusive(path):
            self._holder = threading.get_ident()
            try:
                yield
            finally:
                self._holder = None
