"""Writing to the namespace so that what takes several requests happens as a whole, or is finished later."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from mycelium_sdk import canonical
from mycelium_sdk.backends.supermemory.documents import Memory, document_id, draft_of, identity
from mycelium_sdk.backends.supermemory.journal import INLINE, Change, Entry, entry_draft, new_id
from mycelium_sdk.backends.supermemory.refusals import Conflict, unavailable
from mycelium_sdk.backends.values import Context
from mycelium_sdk.errors import MyceliumError, StoreLocked, StoreUnavailable
from mycelium_sdk.stored import StoredRecord

if TYPE_CHECKING:
    from collections.abc import Collection, Container, Sequence

    from mycelium_sdk.backends.supermemory.line import Line
    from mycelium_sdk.backends.supermemory.mirror import Mirror
    from mycelium_sdk.backends.supermemory.service import Draft
    from mycelium_sdk.backends.supermemory.view import Reading, View
_FEW = 3
"""So many documents are asked for one by one; more are looked for in the listing."""

_ABANDONED = 900 * 1_000_000
"""An import that gave no sign of life for so many microseconds is not finished by whoever began it."""

_SIGN_OF_LIFE = 60.0  # seconds


class Written(NamedTuple):
    """A document of this process's that the service may not have finished with.

    `forgettings`: the journal's count when it was written. `attempts`: how often it was.
    """

    draft: Draft
    stored: StoredRecord
    forgettings: int
    attempts: int = 1


class Writer:
    """Adds, replaces and deletes. Not for several threads at once."""

    def __init__(self, line: Line, mirror: Mirror, owner: str) -> None:
        self._line = line
        self._mirror = mirror
        self._owner = owner
        self._own: str | None = None
        self._broken_off: set[str] = set()
        self._sequence = 0
        self.written: dict[str, Written] = {}
        """By id."""

    def sequence(self, view: View | None) -> int:
        """A number above all those that are known; of the clock, so that other machines' are not the same."""
        known = 0 if view is None else view.last_sequence
        self._sequence = max(self._now(), self._sequence + 1, known + 1)
        return self._sequence

    def placed(
        self, view: View, there: Container[str], texts: Sequence[str], told: Sequence[Context] | None
    ) -> list[StoredRecord]:
        """The memories of a blob that are not `there`, with ids that are free, and sequences in the order
        they were first written in. `told`: what the blob does not say of each of its records."""
        copies = Counter(texts)
        taken = set(view.by_id)
        names: dict[str, str] = {}
        for text in copies:
            if text not in there:
                same = identity(canonical.record_from_fragment(text))
                places = (document_id(same, place) for place in itertools.count())
                names[text] = next(name for name in places if name not in taken)
                taken.add(names[text])
        nothing = Context(0, None, None)
        contexts = {} if told is None else dict(zip(reversed(texts), reversed(told), strict=True))
        ordered = sorted(names, key=lambda text: contexts.get(text, nothing).sequence)
        return [
            StoredRecord(
                names[text],
                text,
                copies[text],
                self.sequence(view),
                contexts.get(text, nothing).session,
                contexts.get(text, nothing).time,
            )
            for text in ordered
        ]

    def present(self, ids: Sequence[str]) -> set[str]:
        """Which of these documents are there."""
        if self._line.service.knows_own_ids and len(ids) <= _FEW:
            return {name for name in ids if self._line.get(name) is not None}
        return set(ids) & self._mirror.look().by_id.keys()

    def commit(
        self, view: View, memories: Sequence[StoredRecord], plan: Sequence[Change], *, whole: bool
    ) -> None:
        """Add these memories and make these changes.

        `whole`: also the memories alone are all seen at once, or none. Raises before anything is written if
        the service cannot hold one of them.
        """
        drafts = [draft_of(one, self._owner) for one in memories]
        if not drafts:
            if plan:
                self._note(view, plan)
        elif plan or len(drafts) > (1 if whole else self._line.service.batch_size):
            self._load(view, drafts, plan)
        else:
            self._put(drafts)
        forgettings = view.forgettings
        for draft, stored in zip(drafts, memories, strict=True):
            self.written[draft.id] = Written(draft, stored, forgettings)

    def put(self, memories: Sequence[StoredRecord]) -> None:
        """Add memories whose documents are known not to be there, without having listed the others."""
        drafts = [draft_of(one, self._owner) for one in memories]
        self._put(drafts)
        for draft, stored in zip(drafts, memories, strict=True):
            self.written[draft.id] = Written(draft, stored, -1)

    def _put(self, drafts: Sequence[Draft]) -> None:
        try:
            self._line.add(drafts, self.present)
        except MyceliumError as error:
            # A service that cannot be reached cannot be asked to take back either.
            if len(drafts) > 1 and (isinstance(error, Conflict) or not isinstance(error, StoreUnavailable)):
                self._take_back([draft.id for draft in drafts])
            raise

    def _take_back(self, ids: Sequence[str]) -> None:
        wanted = set(ids)
        readings = self._mirror.look().by_id
        self._delete([readings[name] for name in wanted & readings.keys()])

    def _note(self, view: View, plan: Sequence[Change]) -> None:
        """Make changes take effect that need no new documents."""
        own = next((entry for entry in view.entries if entry.id == self._own), None)
        carried = [] if own is None else self._unfinished(view, own)
        amount = sum(change.writes + 1 for change in plan if not change.copies)
        if own is None:
            old = [entry for entry in view.entries if self._is_old(entry)]
            carried = [Change(entry.id, entry.sequence, entry.changes) for entry in old]
            amount += sum(entry.changes for entry in old)
        if len(carried) + len(plan) > INLINE:
            self._load(view, [], plan)
            return
        name = new_id() if own is None else own.id
        draft = entry_draft(
            name,
            self._owner,
            self.sequence(view),
            changes=amount + (0 if own is None else own.changes),
            plan=[*carried, *plan],
        )
        if own is not None and self._line.update(own.id, own.handle, draft.metadata):
            return
        self._own = name
        self._line.add([draft], self.present)

    def _unfinished(self, view: View, entry: Entry) -> list[Change]:
        there = {(one.document.id, _sequence_of(one)) for one in view.leftovers}
        there |= {(memory.id, memory.sequence) for memory in view.recopied}
        return [change for change in entry.plan if (change.id, change.sequence) in there]

    def _is_old(self, entry: Entry) -> bool:
        return entry.sequence < self._now() - _ABANDONED

    def _now(self) -> int:
        """Microseconds."""
        return int(self._line.policy.pace.now() * 1_000_000)

    def _load(self, view: View, drafts: Sequence[Draft], plan: Sequence[Change]) -> None:
        """Add documents that do not count until the entry of the journal is closed."""
        name = new_id()
        sequence = self.sequence(view)
        inline = plan if len(plan) <= INLINE else []
        rest = [] if inline else plan
        amount = sum(change.writes + 1 for change in plan if not change.copies)
        opening = entry_draft(name, self._owner, sequence, changes=amount, plan=inline, is_open=True)
        parts = [
            entry_draft(new_id(), self._owner, sequence, plan=rest[start : start + INLINE], part_of=name)
            for start in range(0, len(rest), INLINE)
        ]
        marked = [draft._replace(metadata={**draft.metadata, "myc_load": name}) for draft in drafts]
        self._broken_off.add(name)
        self._line.add([opening], self.present)
        entry = self._mirror.look().by_id.get(name)
        if entry is None:
            raise unavailable("does not show what was just written")
        handle = entry.document.handle
        try:
            self._add_alive(opening, handle, [*parts, *marked])
        except MyceliumError as error:
            if isinstance(error, Conflict) or not isinstance(error, StoreUnavailable):
                self.clear_the_way(self._mirror.look(), ())
            raise
        closed = entry_draft(name, self._owner, sequence, changes=amount, plan=inline)
        if not self._line.update(name, handle, closed.metadata):
            raise Conflict("another process took back what was being loaded", hint="load it again")
        self._broken_off.discard(name)

    def _add_alive(self, opening: Draft, handle: str, drafts: Sequence[Draft]) -> None:
        """Add documents, and say now and then that whoever opened the entry is still there."""
        pace = self._line.policy.pace
        said = pace.monotonic()
        size = self._line.service.batch_size
        for start in range(0, len(drafts), size):
            self._line.add(drafts[start : start + size], self.present)
            if pace.monotonic() - said > _SIGN_OF_LIFE:
                said = pace.monotonic()
                sign = {"myc_sequence": str(self.sequence(None))}
                self._line.update(opening.id, handle, {**opening.metadata, **sign})

    def finish(self, view: View) -> int:
        """Write and delete what the journal says has happened already; how many documents still wait."""
        for memory in view.recopied:
            if memory.stored is not None:
                draft = draft_of(memory.stored, self._owner, changes=memory.changes)
                self._line.update(memory.id, memory.handle, draft.metadata)
        left = self._delete(view.leftovers)
        if view.parts and not left:
            self._delete([view.by_id[entry.id] for entry in view.parts])
        return left

    def _delete(self, readings: Sequence[Reading]) -> int:
        """Delete documents; how many are still there."""
        handles = {one.document.id: one.document.handle for one in readings}
        refused = [
            name
            for name, handle in self._line.delete(list(handles.items()))
            if self._line.get(name, handle) is not None  # else it was gone already
        ]
        self._mirror.drop(handle for name, handle in handles.items() if name not in refused)
        for name in handles.keys() - refused:
            self.written.pop(name, None)
        return len(refused)

    def repair(self, memory: Memory, stored: StoredRecord) -> None:
        """Write a memory's document anew, whose text is no longer what was remembered."""
        draft = draft_of(stored, self._owner, changes=memory.changes)
        if not self._line.update(memory.id, memory.handle, draft.metadata, draft.content):
            self._line.add([draft], self.present)

    def rewrite(self, name: str, reading: Reading | None) -> None:
        """Write a document anew that the service failed to process."""
        written = self.written[name]
        draft = written.draft
        if reading is None or not self._line.update(
            name, reading.document.handle, draft.metadata, draft.content
        ):
            self._line.add([draft], self.present)
        self.written[name] = written._replace(attempts=written.attempts + 1)

    def clear_the_way(self, view: View, needed: Collection[str] | None) -> View:
        """Finish or take back what was left undone, before a write; the namespace then.

        `needed`: ids that nobody else may be loading; None for all. Raises `StoreLocked` while another
        process does.
        """
        abandoned = {
            entry.id for entry in view.open_entries if entry.id in self._broken_off or self._is_old(entry)
        }
        alive = {entry.id for entry in view.open_entries} - abandoned
        loading = {one.document.id for one in view.hidden if one.memory and one.memory.load in alive}
        if (alive and needed is None) or not loading.isdisjoint(needed or ()):
            raise StoreLocked(
                "another process is loading this memory",
                hint="wait for it to finish; one that broke off is forgotten after a quarter of an hour",
            )
        if abandoned:
            self._delete([one for one in view.hidden if one.memory and one.memory.load in abandoned])
            self._delete(
                [
                    one
                    for one in view.by_id.values()
                    if one.entry and (one.entry.id in abandoned or one.entry.part_of in abandoned)
                ]
            )
            self._broken_off -= abandoned
        if view.leftovers or view.recopied or view.parts:
            self.finish(view)
        elif not abandoned:
            return view
        return self._mirror.look()


def _sequence_of(reading: Reading) -> int:
    one = reading.memory or reading.entry
    return 0 if one is None else one.sequence
