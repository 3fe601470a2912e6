"""Taking memories in from elsewhere: all are checked before the first is written, and all or none are kept.

A reasonable number of plain memories goes the way of `remember_many`. More of them, or what only a blob can
hold (copies, records that `remember` refuses), go the way of a blob: what is here and what is new are merged
in canonical order and replace what is here, in one transaction, so that memory is bounded whatever comes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mycelium_sdk import canonical
from mycelium_sdk.backends.base import DEFAULT_MAX_BLOB_BYTES
from mycelium_sdk.errors import InputError, IntegrityKeyMissing, Tampered, UnanchoredWrites
from mycelium_sdk.memory.scratch import Scratch
from mycelium_sdk.records import Record

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from mycelium_sdk.backends.base import BaseBackend, Progress
    from mycelium_sdk.interchange import Entry
    from mycelium_sdk.memory.scratch import Staged
    from mycelium_sdk.stored import StoredRecord

__all__ = ["Import", "import_entries"]

_FEW = 20_000
_SMALL = 64 * 1024 * 1024
_ATTEMPTS = 3
_REPORTED_EVERY = 5000


@dataclass(frozen=True, slots=True)
class Import:
    """What an import did, or would do: distinct memories that are new (`imported`), that were here already
    (`present`), that were only here and were `dropped` by `replace`, and how many entries repeat one before
    them in the same source (`repeated`)."""

    imported: int
    present: int
    repeated: int
    dropped: int = 0


def import_entries(
    backend: BaseBackend,
    entries: Iterable[Entry],
    *,
    replace: bool = False,
    dry_run: bool = False,
    progress: Progress | None = None,
) -> Import:
    """Add the memories that are not here yet, all or none; with `replace`, drop what is not among them.

    New ones come in the order of their sequences if all have one, else in the order given; those that are
    here already keep id, session and time. `dry_run` writes nothing. The counts are exact unless somebody
    else writes at the same moment.

    Raises:
        InputError, VerificationError: what the entries raise, or the backend refuses. Nothing was changed.
        Tampered, IntegrityKeyMissing: the memory cannot be vouched for, so nothing is merged with it.
        UnanchoredWrites: others wrote to the memory all the time. Nothing was changed.
    """
    with Scratch() as scratch:
        staged = scratch.stage(_checked(backend, entries, progress))
        if staged.plain and not replace and staged.memories <= _FEW and staged.size <= _SMALL:
            return _remember(backend, scratch, staged, dry_run=dry_run)
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                return _merge(backend, scratch, staged, replace=replace, dry_run=dry_run, progress=progress)
            except UnanchoredWrites:
                if attempt == _ATTEMPTS:
                    raise
        raise AssertionError("unreachable: the last attempt returns or raises")


def _checked(
    backend: BaseBackend, entries: Iterable[Entry], progress: Progress | None
) -> Iterator[tuple[Entry, bool]]:
    """Each entry, and whether `remember` would accept it as it is."""
    for number, entry in enumerate(entries, 1):
        yield entry, not entry.exact or (entry.copies == 1 and _acceptable(entry.record, backend))
        if progress is not None and number % _REPORTED_EVERY == 0:
            progress("reading", number, None)


def _acceptable(record: Record, backend: BaseBackend) -> bool:
    try:
        return Record.from_input(record.content, record.tags, max_bytes=backend.max_record_bytes) == record
    except InputError:
        return False


def _remember(backend: BaseBackend, scratch: Scratch, staged: Staged, *, dry_run: bool) -> Import:
    found = list(scratch.staged())
    known = backend.ids_of([record for record, _, _ in found]) if found else []
    present = sum(one is not None for one in known)
    if found and not dry_run:
        backend.remember_many(
            {"content": record.content, "tags": record.tags, "session": session, "time": time}
            for record, session, time in found
        )
    return Import(len(found) - present, present, staged.repeated)


def _merge(
    backend: BaseBackend,
    scratch: Scratch,
    staged: Staged,
    *,
    replace: bool,
    dry_run: bool,
    progress: Progress | None,
) -> Import:
    with backend.snapshot() as view:
        stats = view.stats
        fresh = scratch.compare(_counted(view.stored(), stats.records, progress))
    dropped = scratch.lacking() if replace else 0
    found = Import(fresh, staged.memories - fresh, staged.repeated, dropped)
    if dry_run or not (replace or fresh or scratch.more_copies()):
        return found
    if replace:
        scratch.compare(())
    else:
        _require_vouched(backend, progress)
    backend.load(
        canonical.write_blob(backend.owner, scratch.merged_fragments()),
        max_bytes=DEFAULT_MAX_BLOB_BYTES,
        expected_changes=stats.change_counter,
        contexts=scratch.merged_contexts(),
        progress=progress,
    )
    return found


def _counted(things: Iterable[StoredRecord], total: int, progress: Progress | None) -> Iterator[StoredRecord]:
    for number, thing in enumerate(things, 1):
        yield thing
        if progress is not None and number % _REPORTED_EVERY == 0:
            progress("comparing", number, total)


def _require_vouched(backend: BaseBackend, progress: Progress | None) -> None:
    """Raise if what is here was changed behind the store's back: merging would make it genuine."""
    from mycelium_sdk.backends.integrity import Integrity

    report = backend.check(progress)
    if report.state is Integrity.UNKNOWN:
        raise IntegrityKeyMissing(
            "nothing on this machine vouches for the memory, so nothing was imported",
            hint="`mycelium memory verify` adopts it if it is what is anchored",
        )
    if not report:
        raise Tampered("the memory was changed behind its back; nothing was imported")
