"""What the documents of a namespace mean together: which memories there are, and how often they changed."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from mycelium_sdk.backends.supermemory.documents import RECORD, SCHEMA, Memory, base_of, memory_of
from mycelium_sdk.backends.supermemory.journal import ENTRY, Change, Entry, entry_of
from mycelium_sdk.errors import NewerFile

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from mycelium_sdk.backends.supermemory.service import Document


class Reading:
    """A document and what it means: a memory, an entry of the journal, or neither."""

    __slots__ = ("document", "entry", "memory")

    def __init__(self, document: Document, owner: str) -> None:
        self.document = document
        self.memory: Memory | None = None
        self.entry: Entry | None = None
        meta = document.metadata
        kind = meta.get("myc_kind")
        if kind not in {RECORD, ENTRY} or meta.get("myc_owner") != owner:
            return
        schema = meta.get("myc_schema")
        if isinstance(schema, (int, float)) and schema > SCHEMA:
            raise NewerFile(
                "the namespace was written by a newer version of this software", hint="install that version"
            )
        if kind == RECORD:
            self.memory = memory_of(document)
        else:
            self.entry = entry_of(document)

    @property
    def foreign(self) -> bool:
        """Whether somebody else put it there."""
        return self.memory is None and self.entry is None


@dataclasses.dataclass(frozen=True, slots=True)
class View:
    """The memories that count, by id, and what else is in the namespace.

    `changes`: the change counter. `leftovers`: documents that no longer count and are to be deleted.
    `recopied`: memories whose new number of copies is not written yet. `hidden`: memories of an import that
    is not finished. `parts`: of closed entries, to be deleted when leftovers and recopied are done with.
    `entries`: the closed ones. `by_id`: every document of ours. `twins`: of an id, those with the same
    identity, which odd blobs bring. `last_sequence`: the highest of all documents of ours.
    """

    memories: Mapping[str, Memory]
    changes: int
    leftovers: tuple[Reading, ...]
    recopied: tuple[Memory, ...]
    hidden: tuple[Reading, ...]
    parts: tuple[Entry, ...]
    open_entries: tuple[Entry, ...]
    entries: tuple[Entry, ...]
    foreign: int
    by_id: Mapping[str, Reading]
    twins: Mapping[str, Sequence[str]]
    last_sequence: int

    def with_identity(self, id: str) -> Memory | None:  # noqa: A002 - the documents' word
        """The memory of this identity's document, or that written first of several."""
        names = (id, *self.twins.get(id, ()))
        found = [self.memories[name] for name in names if name in self.memories]
        return min(found, key=lambda memory: memory.sequence, default=None)

    @property
    def records(self) -> int:
        """How many records the blob has: each copy counts."""
        return sum(memory.copies for memory in self.memories.values())

    @property
    def forgettings(self) -> int:
        """What of the change counter is the journal's: it grows when anybody forgets something."""
        return sum(entry.changes for entry in self.entries)


def view_of(readings: Iterable[Reading]) -> View:
    """Apply the journal to what is there."""
    readings = list(readings)
    entries = [one.entry for one in readings if one.entry is not None]
    open_ids = {entry.id for entry in entries if entry.is_open}
    heads = {entry.id for entry in entries if entry.part_of is None}
    plan = {
        (change.id, change.sequence): change
        for entry in entries
        for change in entry.plan
        if not entry.is_open and (entry.part_of is None or entry.part_of in heads - open_ids)
    }
    memories: dict[str, Memory] = {}
    leftovers: list[Reading] = []
    hidden: list[Reading] = []
    recopied: list[Memory] = []
    counted: list[Entry] = []
    changes = 0
    for reading in readings:
        entry, memory = reading.entry, reading.memory
        if entry is not None and not entry.is_open:
            if _deleted(plan.get((entry.id, entry.sequence)), entry.changes):
                leftovers.append(reading)
            elif entry.part_of is None:
                counted.append(entry)
                changes += entry.changes
        if memory is None:
            continue
        change = plan.get((memory.id, memory.sequence))
        if memory.load in open_ids:
            hidden.append(reading)
        elif _deleted(change, memory.changes):
            leftovers.append(reading)
        else:
            if change is not None and change.writes == memory.changes:
                memory = _with_copies(memory, change.copies)
                recopied.append(memory)
            memories[memory.id] = memory
            changes += memory.changes
    return View(
        memories,
        changes,
        tuple(leftovers),
        tuple(recopied),
        tuple(hidden),
        tuple(one for one in entries if one.part_of is not None and one.part_of not in open_ids),
        tuple(entry for entry in entries if entry.is_open),
        tuple(counted),
        sum(one.foreign for one in readings),
        {one.document.id: one for one in readings if not one.foreign},
        _twins(memories),
        max((one.sequence for reading in readings if (one := reading.memory or reading.entry)), default=0),
    )


def _twins(ids: Iterable[str]) -> dict[str, list[str]]:
    twins: dict[str, list[str]] = {}
    for name in ids:
        base = base_of(name)
        if base != name:
            twins.setdefault(base, []).append(name)
    return twins


def _deleted(change: Change | None, writes: int) -> bool:
    return change is not None and change.copies == 0 and change.writes == writes


def _with_copies(memory: Memory, copies: int) -> Memory:
    stored = memory.stored and dataclasses.replace(memory.stored, copies=copies)
    return dataclasses.replace(memory, copies=copies, changes=memory.changes + 1, stored=stored)
