"""The past of a memory: its anchored versions, proved; what changed; removing published copies."""

from __future__ import annotations

import contextlib
import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mycelium_sdk import canonical
from mycelium_sdk.blobs.file_uri import is_file_uri, path_from_file_uri
from mycelium_sdk.blobs.files import context_path, file_digest, open_blob_file, read_blob_file
from mycelium_sdk.chain.history import AnchorHistory, PastAnchor, proved_history
from mycelium_sdk.errors import BlobError, BlobNotFound, InputError, NotAnchored, Tampered
from mycelium_sdk.files import file_errors, replace_private, sync_folder
from mycelium_sdk.memory.context_file import header
from mycelium_sdk.memory.publishing import blob_folder, latest_copies
from mycelium_sdk.memory.rehydration import checked_version
from mycelium_sdk.memory.sources import got_blob

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence, Set
    from pathlib import Path

    from mycelium_sdk.chain.history import HistorySource, NamedSource
    from mycelium_sdk.fetching.policy import FetchPolicy
    from mycelium_sdk.memory.sighting import Sighting
    from mycelium_sdk.memory.sources import Fetch
    from mycelium_sdk.records import Record
    from mycelium_sdk.state import StateStore

__all__ = ["Difference", "Past", "Purged", "unknown_version"]


@dataclass(frozen=True, slots=True)
class Difference:
    """What the second of two versions has that the first has not, and the other way round; in canonical
    order, a record that occurs more often there as often as it does."""

    added: tuple[Record, ...]
    removed: tuple[Record, ...]


@dataclass(frozen=True, slots=True)
class Purged:
    """A published file that was removed: the version it held (None: no anchor points to it), and its path.

    `replaced_by`: the version whose blob lies there now, since the file is one that follows the latest.
    """

    version: int | None
    path: str
    replaced_by: int | None = None


class Past:
    """One owner's versions on one chain, and the copies of them that this home holds."""

    def __init__(
        self,
        owner: str,
        state: StateStore,
        blobs: Path,
        policy: FetchPolicy,
        sources: Callable[[], Sequence[HistorySource | NamedSource]],
    ) -> None:
        self._owner = owner
        self._state = state
        self._blobs = blobs
        self._policy = policy
        self._sources = sources

    def history(self, seen: Sighting, ledger: int | None) -> AnchorHistory:
        """Every version that is still known of, newest first; `ledger` wrote the latest one.

        Raises NotAnchored; Tampered, WrongOwner, Fork or Rollback if somebody serves a false history.
        """
        if seen.anchor is None:
            raise NotAnchored("this owner has never anchored on this network and contract")
        return proved_history(PastAnchor(seen.anchor, ledger), self._sources())

    def blob(self, past: PastAnchor, fetch: Fetch | None = None) -> bytes:
        """The blob of a version, from `blobs/`, `fetch`, or its URI; it hashes to the version's root.

        Raises Tampered if it does not; otherwise as `anchored_blob`.
        """
        anchor = past.anchor
        stored = blob_folder(self._blobs).find(anchor.root)
        if stored is not None:
            return stored
        try:
            found = got_blob(anchor, fetch, self._policy, own=True)
        except BlobNotFound as error:
            raise BlobNotFound(
                f"version {anchor.version} cannot be read: {error.message}",
                hint=f"if it was purged its copies are gone; else {error.hint}",
            ) from error
        if hashlib.sha256(found).digest() != anchor.root:
            raise Tampered(
                f"the blob that was served does not hash to the root of version {anchor.version}",
                hint="it may be that of another version; get it from another copy",
            )
        return found

    def difference(self, first: Iterable[Record], second: Iterable[Record]) -> Difference:
        """What changed from the one to the other; both are in canonical order."""
        added: list[Record] = []
        removed: list[Record] = []
        old, new = iter(first), iter(second)
        before, after = next(old, None), next(new, None)
        while before is not None or after is not None:
            if after is None or (before is not None and _place(before) < _place(after)):
                assert before is not None  # noqa: S101 - one of both is there
                removed.append(before)
                before = next(old, None)
            elif before is None or _place(after) < _place(before):
                added.append(after)
                after = next(new, None)
            else:
                before, after = next(old, None), next(new, None)
        return Difference(tuple(added), tuple(removed))

    def records(self, blob: bytes) -> Iterable[Record]:
        """The records of one's own blob."""
        return canonical.parse(blob, self._owner, max_bytes=len(blob))

    def purge(
        self, history: AnchorHistory, versions: Iterable[int] | None, *, needed: Set[bytes]
    ) -> list[Purged]:
        """Remove the copies of these versions, and their context files, from this home's `blobs/` and from
        where a `file://` URI says; without `versions`, all but the latest. What is removed is checked to be
        what it should be. What is the latest version on some chain, is just being anchored, or is what the
        memory is based on (the `needed` roots) is never removed. A person's file beside a `file://` blob that
        still is the copy of one of these versions gets the latest version's blob, or is removed where that is
        not at hand.

        Raises InputError for a version that is the latest or not in the history.
        """
        latest = history.anchors[0].anchor
        chosen = self._chosen(history, versions)
        kept = {one.anchor.root for one in history.anchors if one.anchor.version not in chosen}
        kept |= {latest.root} | needed | self._state.needed_roots(self._owner)
        gone: list[Purged] = []
        for version, past in chosen.items():
            if past.anchor.root in kept:
                continue  # the same memory was anchored again, or on another chain, and that copy is needed
            for path in dict.fromkeys(self._copies(past)):
                if file_digest(path) == past.anchor.root:
                    context = context_path(path)
                    if _is_context(context, self._owner):
                        _remove(context)  # first: without its blob nobody would look for it again
                    _remove(path)
                    gone.append(Purged(version, str(path)))
        doomed = {
            past.anchor.root: version for version, past in chosen.items() if past.anchor.root not in kept
        }
        return gone + self._purge_followers(history, doomed)

    def _purge_followers(self, history: AnchorHistory, doomed: dict[bytes, int]) -> list[Purged]:
        """Bring the files up to date that followed the latest blob and stayed behind at one of `doomed`."""
        latest = history.anchors[0]
        named = [(path, past.anchor.root) for past in history.anchors for path in self._published_files(past)]
        gone: list[Purged] = []
        for path in dict.fromkeys(copy for file, root in named for copy in latest_copies(file, root)):
            version = doomed.get(file_digest(path) or b"")
            if version is None:
                continue
            source = next(
                (one for one in self._copies(latest) if file_digest(one) == latest.anchor.root), None
            )
            if source is None:
                _remove(path)
                gone.append(Purged(version, str(path)))
            else:
                with file_errors(path, "replace", BlobError):
                    replace_private(path, read_blob_file(source))
                gone.append(Purged(version, str(path), latest.anchor.version))
        return gone

    def _chosen(self, history: AnchorHistory, versions: Iterable[int] | None) -> dict[int, PastAnchor]:
        latest = history.anchors[0].anchor.version
        known = {one.anchor.version: one for one in history.anchors}
        if versions is None:
            return {version: past for version, past in known.items() if version != latest}
        chosen: dict[int, PastAnchor] = {}
        for version in map(checked_version, versions):
            if version == latest:
                raise InputError(
                    f"version {version} is the latest, and its blob is needed to load the memory",
                    hint="anchor a newer version first",
                )
            if version not in known:
                raise InputError(
                    f"version {version} is not in the history that is known here",
                    hint="`mycelium memory history` shows what is",
                )
            chosen[version] = known[version]
        return chosen

    def _copies(self, past: PastAnchor) -> Iterable[Path]:
        yield blob_folder(self._blobs).path(past.anchor.root)
        yield from self._published_files(past)

    @staticmethod
    def _published_files(past: PastAnchor) -> Iterable[Path]:
        uri = past.anchor.uri_text
        if uri and is_file_uri(uri):
            with contextlib.suppress(BlobError):
                yield path_from_file_uri(uri)


def unknown_version(version: int, history: AnchorHistory) -> InputError:
    """Why a version is not to be had."""
    oldest, newest = history.anchors[-1].anchor.version, history.anchors[0].anchor.version
    if version > newest:
        problem = f"version {version} is not anchored: the latest is {newest}"
        hint = "`mycelium memory history` lists them"
    else:
        problem = f"version {version} is not in the history that is known here: {oldest} to {newest}"
        hint = "older events may have been dropped by the RPC server; an indexer keeps them"
    return InputError(problem, hint="; ".join([hint, *history.notes]))


def _is_context(path: Path, owner: str) -> bool:
    """Whether a context file of this owner lies there."""
    beginning = header(owner).encode("ascii")
    try:
        with open_blob_file(path) as file:
            return file.read(len(beginning)) == beginning
    except (BlobError, OSError):
        return False


def _remove(path: Path) -> None:
    with file_errors(path, "remove", BlobError):
        path.unlink(missing_ok=True)
        sync_folder(path.parent)


def _place(record: Record) -> tuple[str, tuple[str, ...]]:
    return record.content, record.tags
