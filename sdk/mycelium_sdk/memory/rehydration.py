"""Loading the anchored memory: find the blob, check it, and only then let the backend replace what it holds.

The order of checks is transport, size, root, and then the canonical form, which the backend's import applies
before it writes anything. A failed check loads nothing.
"""

from __future__ import annotations

import hashlib
import io
from typing import TYPE_CHECKING, Literal, Protocol

from mycelium_sdk import canonical
from mycelium_sdk.blobs.base import DEFAULT_MAX_BYTES
from mycelium_sdk.errors import (
    InputError,
    NotAnchored,
    Rollback,
    Tampered,
    UnanchoredWrites,
)
from mycelium_sdk.memory.publishing import blob_folder
from mycelium_sdk.memory.sources import got_blob
from mycelium_sdk.memory.standing import Standing

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from mycelium_sdk.chain.anchors import Anchor
    from mycelium_sdk.fetching.policy import FetchPolicy
    from mycelium_sdk.memory.sighting import Sighting
    from mycelium_sdk.memory.sources import Fetch
    from mycelium_sdk.records import Record
    from mycelium_sdk.state import StateStore
    from mycelium_sdk.stored import StoredRecord

__all__ = [
    "OnConflict",
    "anchored_blob",
    "checked_conflict",
    "checked_version",
    "fetched_blob",
    "merged_blob",
    "refuse_losing",
    "require_anchor",
]

OnConflict = Literal["refuse", "merge", "replace"]
"""What becomes of local writes that are not anchored."""


class MemoryRows(Protocol):
    """What is needed of a backend to merge into it."""

    def iter_records(self) -> Iterator[StoredRecord]:
        """Every record, in canonical order."""
        ...


def checked_conflict(on_conflict: str) -> OnConflict:
    """`on_conflict`, if it is one of the three words. Raises InputError."""
    if on_conflict not in ("refuse", "merge", "replace"):
        raise InputError(
            "on_conflict is none of refuse, merge, replace",
            hint="merge keeps what is only here, replace drops it, refuse (the default) loads nothing",
        )
    return on_conflict  # type: ignore[return-value]  # narrowed by the test above


def checked_version(version: object) -> int:
    """A version's number. Raises InputError."""
    if isinstance(version, bool) or not isinstance(version, int) or version < 1:
        raise InputError("a version is a whole number of at least 1", hint="versions count from 1")
    return version


def require_anchor(seen: Sighting) -> Anchor:
    """The anchor of a sighting. Raises NotAnchored where there is none."""
    if seen.anchor is None:
        raise NotAnchored("this owner has never anchored on this network and contract")
    return seen.anchor


def anchored_blob(
    seen: Sighting, fetch: Fetch | None, *, state: StateStore, blobs: Path, policy: FetchPolicy
) -> bytes:
    """The blob that the anchor commits to, checked against its root.

    The home folder's `blobs/` is looked in first, then `fetch(uri)` is called ("" where the anchor has no
    usable URI), else what is at the anchor's `file://` or `https://` URI, within the limits of `policy`.

    Raises:
        BlobNotFound: there is no way to the blob, or nothing is there. BlobUnavailable, UntrustedSource: see
            `fetch_https`.
        Rollback: the bytes hash to an older anchored root. Tampered: to no known one.
        LimitExceeded: the blob is larger than the limit for one's own memory.
    """
    anchor = require_anchor(seen)
    stored = blob_folder(blobs).find(anchor.root)
    if stored is not None:
        return stored
    return fetched_blob(seen, fetch, state=state, policy=policy, own=True)


def fetched_blob(
    seen: Sighting, fetch: Fetch | None, *, state: StateStore, policy: FetchPolicy, own: bool
) -> bytes:
    """What `fetch` gives for the anchor's URI, else what is there, checked against the anchor's root.

    `own`: whether the anchor is that of the caller's own memory (`blob_at_uri`). Raises what `anchored_blob`
    raises.
    """
    anchor = require_anchor(seen)
    blob = got_blob(anchor, fetch, policy, own=own)
    digest = hashlib.sha256(blob).digest()
    if digest != anchor.root:
        _refuse_root(digest, seen, anchor, state)
    return blob


def merged_blob(owner: str, blob: bytes, backend: MemoryRows, *, max_bytes: int = DEFAULT_MAX_BYTES) -> bytes:
    """The canonical blob of the anchored records and those that are only here.

    Nothing that either side holds is dropped, and a record that both hold occurs as often as in the blob.
    """
    anchored = canonical.parse_fragments(blob, owner, max_bytes=max_bytes)
    merged = io.BytesIO()
    for chunk in canonical.write_blob(owner, _merged(anchored, backend.iter_records())):
        merged.write(chunk)
    return merged.getvalue()


def _merged(
    anchored: Iterable[tuple[str, Record]], local: Iterable[StoredRecord]
) -> Iterator[tuple[str, int]]:
    """Fragments with their copies, in canonical order like what they are merged from."""
    ours = iter(local)
    own = next(ours, None)
    for text, record in anchored:
        while own is not None and _place(own.record) < _place(record):
            yield own.fragment, own.copies
            own = next(ours, None)
        if own is not None and own.fragment == text:  # of what both hold, the anchored copies count
            own = next(ours, None)
        yield text, 1
    while own is not None:
        yield own.fragment, own.copies
        own = next(ours, None)


def _place(record: Record) -> tuple[str, tuple[str, ...]]:
    return record.content, record.tags


def held(blob: bytes) -> int:
    """How many records a canonical blob holds; every record begins with this, and no text can contain it."""
    return blob.count(b'{"content":')


def refuse_losing(state: StateStore, seen: Sighting, root: bytes, records: int, standing: Standing) -> None:
    """Raise if loading would lose something that somebody remembered, forgot or changed here."""
    if standing is Standing.CLEAN or (not records and standing is not Standing.WRITTEN):
        return
    if standing is Standing.CHANGED:
        raise Tampered(
            "the memory was changed behind its back since it was anchored; nothing was loaded",
            hint="--on-conflict replace (on_conflict='replace') drops the change, merge keeps it",
        )
    if standing is Standing.WRITTEN or state.known_anchor(seen.key, root) is None:
        _refuse_unanchored(records)


def _refuse_unanchored(count: int) -> None:
    """Raise UnanchoredWrites: loading would lose local writes."""
    raise UnanchoredWrites(
        f"this memory ({count} {'record' if count == 1 else 'records'}) has writes that are not anchored;"
        " loading the anchored one would lose them",
        hint="keep them with --on-conflict merge (on_conflict='merge'), drop them with replace",
    )


def _refuse_root(digest: bytes, seen: Sighting, anchor: Anchor, state: StateStore) -> None:
    """Raise what a blob is that does not hash to its anchor's root: Rollback, or Tampered."""
    older = state.known_anchor(seen.key, digest)
    if older is not None:
        raise Rollback(
            f"the blob that was served is that of version {older.version}, but the chain commits to"
            f" version {anchor.version}; nothing was loaded",
            hint="get the blob from another copy; the one served is an older one",
        )
    raise Tampered(
        f"the blob that was served does not hash to the root of version {anchor.version}; nothing was loaded",
        hint="get the blob from another copy; the one served was changed, or is another version",
    )
