"""Making the secondary agree with the primary: one by one as it is queued, or as a whole."""

from __future__ import annotations

import contextlib
import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

from mycelium_sdk import canonical
from mycelium_sdk.backends.values import Addition, Context, Selection
from mycelium_sdk.errors import BackendError, InputError, LimitExceeded, StoreLocked
from mycelium_sdk.locking import exclusive, shared

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from mycelium_sdk.backends.base import BaseBackend
    from mycelium_sdk.backends.tiered.queue import Entry, Queue
    from mycelium_sdk.stored import StoredRecord

__all__ = ["Extra", "Repaired", "Upkeep", "digest"]

Extra = Literal["refuse", "adopt", "remove"]
"""What `repair` does with memories that only the secondary holds and that the primary did not forget."""

_BATCH = 200
_BUSY = "another process is bringing the secondary up to date"
_UNHOLDABLE = (InputError, LimitExceeded)
"""What a store raises for a record that it cannot hold faithfully."""

_QUIET_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Repaired:
    """What `repair` did: memories `added` to the secondary, `removed` from it, `adopted` by the primary;
    `equal`: whether both have the same root now."""

    added: int
    removed: int
    adopted: int
    equal: bool


class _Copy(NamedTuple):
    id: str
    copies: int


def digest(fragment: str) -> bytes:
    """What a memory is called in the queue: SHA-256 of its fragment."""
    return hashlib.sha256(fragment.encode("ascii")).digest()


class Upkeep:
    """Carries out the queue. One at a time, in whichever process."""

    def __init__(self, primary: BaseBackend, secondary: BaseBackend, queue: Queue) -> None:
        self._primary = primary
        self._secondary = secondary
        self._queue = queue
        self._alone = queue.path.with_name(queue.path.name + ".lock")
        self._writers = queue.path.with_name(queue.path.name + ".writers")

    def writing(self) -> contextlib.AbstractContextManager[None]:
        """Held by whoever changes the primary, from announcing it until it is concluded."""
        return shared(self._writers)

    def follow(self) -> None:
        """Carry out what is queued. Raises what the secondary raises; what was not done stays queued."""
        with exclusive(self._alone, busy=_BUSY):
            quiet = self._quiet()
            whole = self._queue.whole()
            if 0 < whole.replaced <= quiet:
                self._follow_all(quiet, secure=whole.secure)
            while entries := self._queue.next(_BATCH, quiet=quiet):
                self._follow(entries)

    def repair(self, extra: Extra) -> Repaired:
        """See `TieredBackend.repair`."""
        if extra not in get_args(Extra):
            raise InputError(
                "extra is none of refuse, adopt, remove",
                hint="adopt takes what only the secondary has into the primary, remove drops it, refuse (the"
                " default) changes nothing",
            )
        with exclusive(self._alone, busy=_BUSY):
            self._queue.retry_refused()
            quiet = self._quiet()
            if self._primary.root() == self._secondary.root():
                self._queue.settle_everything(quiet)
                return Repaired(0, 0, 0, equal=True)
            here, there = _digests(self._primary), _digests(self._secondary)
            only_there = there.keys() - here.keys()
            replaced = self._queue.whole().replaced
            unknown = set() if replaced else only_there - self._queue.queued(only_there)
            adopted = 0
            if unknown and extra == "refuse":
                raise BackendError(
                    f"the primary lacks {len(unknown)} of the secondary's memories; nothing was changed",
                    hint="repair(extra='adopt') takes them into the primary, extra='remove' drops them",
                )
            if unknown and extra == "adopt":
                adopted = self._adopt([there[name].id for name in unknown])
                only_there -= unknown
                here = _digests(self._primary)
            added, refused = self._equalise(here, there, only_there, secure=False)
            self._queue.settle_everything(quiet)
            self._refuse(refused)
            equal = self._primary.root() == self._secondary.root()
            return Repaired(added, len(only_there), adopted, equal=equal)

    def _quiet(self) -> int:
        """A change up to which every writer is done, 0 if they never rest."""
        with contextlib.suppress(StoreLocked), exclusive(self._writers, timeout=_QUIET_SECONDS):
            return self._queue.whole().change
        return 0

    # -- one by one

    def _follow(self, entries: Sequence[Entry]) -> None:
        here = self._in_primary(entries)
        for secure in (False, True):
            gone = {one.digest for one in entries if one.digest not in here and one.secure is secure}
            if gone:
                self._remove(self._secondary.ids_of_digests(gone).values(), secure=secure)
        wanted = [entry for entry in entries if entry.digest in here]
        refused = self._add([here[entry.digest] for entry in wanted])
        self._queue.settle([entry for entry in entries if entry.digest not in refused])
        for entry in wanted:
            if entry.digest in refused:
                self._queue.refuse(entry, refused[entry.digest])

    def _in_primary(self, entries: Sequence[Entry]) -> dict[bytes, StoredRecord]:
        stored = self._primary.records([entry.place for entry in entries if entry.place is not None])
        found = {digest(one.fragment): one for one in stored}
        missing = {entry.digest for entry in entries if entry.place is None} - found.keys()
        if missing:
            ids = self._primary.ids_of_digests(missing)
            found.update((digest(one.fragment), one) for one in self._primary.records(list(ids.values())))
        return found

    def _add(self, memories: Iterable[StoredRecord]) -> dict[bytes, str]:
        """Add these to the secondary, in the order they were written; why not, for what it cannot hold."""
        ordered = sorted(memories, key=lambda one: one.sequence)
        if not ordered:
            return {}
        try:
            self._secondary.add([_addition(one) for one in ordered])
        except _UNHOLDABLE:
            return self._add_each(ordered)
        return {}

    def _add_each(self, memories: Iterable[StoredRecord]) -> dict[bytes, str]:
        refused: dict[bytes, str] = {}
        for one in memories:
            try:
                self._secondary.add([_addition(one)])
            except _UNHOLDABLE as error:
                refused[digest(one.fragment)] = error.message
        return refused

    def _remove(self, ids: Iterable[str], *, secure: bool) -> None:
        for name in ids:
            self._secondary.remove(Selection(id=name), secure=secure)

    # -- as a whole

    def _follow_all(self, quiet: int, *, secure: bool) -> None:
        here = _digests(self._primary)
        if here:
            there = _digests(self._secondary)
            _, refused = self._equalise(here, there, there.keys() - here.keys(), secure=secure)
        else:
            self._secondary.clear(secure=secure)
            refused = {}
        self._queue.settle_everything(quiet)
        self._refuse(refused)

    def _equalise(
        self,
        here: Mapping[bytes, _Copy],
        there: Mapping[bytes, _Copy],
        doomed: Collection[bytes],
        *,
        secure: bool,
    ) -> tuple[int, dict[bytes, str]]:
        """Remove the doomed from the secondary and add what it lacks; how many, and why not all."""
        alone = _Copy("", 1)
        if any(there.get(name, alone).copies != copy.copies for name, copy in here.items()):
            try:
                return self._load(), {}
            except _UNHOLDABLE:
                pass  # one by one, then, as far as that goes
        self._remove([there[name].id for name in doomed], secure=secure)
        missing = [copy.id for name, copy in here.items() if name not in there]
        refused: dict[bytes, str] = {}
        for start in range(0, len(missing), _BATCH):
            refused.update(self._add(self._primary.records(missing[start : start + _BATCH])))
        several = {name for name, copy in here.items() if copy.copies > 1 and name not in refused}
        refused.update(
            dict.fromkeys(several, "it occurs several times, which only an import can bring about")
        )
        return len(missing) - len(refused), refused

    def _load(self) -> int:
        with self._primary.snapshot() as view:
            contexts = [
                Context(one.sequence, one.session, one.time)
                for one in view.stored()
                for _ in range(one.copies)
            ]
            chunks = canonical.write_blob(self._primary.owner, view.fragments())
            return self._secondary.load(chunks, contexts=contexts).records

    def _refuse(self, refused: Mapping[bytes, str]) -> None:
        if refused:
            change = self._queue.announce(refused)
            self._queue.conclude(change)
            for entry in self._queue.next(len(refused), quiet=0):
                if entry.digest in refused:
                    self._queue.refuse(entry, refused[entry.digest])

    def _adopt(self, ids: Sequence[str]) -> int:
        memories = sorted(self._secondary.records(ids), key=lambda one: one.sequence)
        self._primary.add([_addition(one) for one in memories])
        return len(memories)


def _addition(stored: StoredRecord) -> Addition:
    return Addition(stored.record, stored.session, stored.time)


def _digests(backend: BaseBackend) -> dict[bytes, _Copy]:
    return {digest(one.fragment): _Copy(one.id, one.copies) for one in _stored(backend)}


def _stored(backend: BaseBackend) -> Iterator[StoredRecord]:
    with backend.snapshot() as view:
        yield from view.stored()
