"""Loading the anchored memory: find the blob, check it, and only then let the backend replace what it holds.

The order of checks is transport, size, root, and then the canonical form, which the backend's import applies
before it writes anything. A failed check loads nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Literal, Protocol

from mycelium_sdk import canonical
from mycelium_sdk.blobs.base import DEFAULT_MAX_BYTES
from mycelium_sdk.blobs.file_uri import is_file_uri, path_from_file_uri
from mycelium_sdk.blobs.files import read_blob_file
from mycelium_sdk.errors import (
    BlobError,
    BlobNotFound,
    InputError,
    LimitExceeded,
    NotAnchored,
    Rollback,
    Tampered,
    UnanchoredWrites,
)
from mycelium_sdk.memory.awaitables import is_asynchronous
from mycelium_sdk.memory.publishing import blob_folder

if TYPE_CHECKING:
    from pathlib import Path

    from mycelium_sdk.chain.anchors import Anchor
    from mycelium_sdk.memory.trust import Sighting
    from mycelium_sdk.records import Record
    from mycelium_sdk.state import StateStore
    from mycelium_sdk.stored import StoredRecord

__all__ = ["Fetch", "OnConflict", "anchored_blob", "checked_conflict", "merged_blob", "require_anchor"]

Fetch = Callable[[str], bytes]
"""A function that gets a blob by its URI."""

OnConflict = Literal["refuse", "merge", "replace"]
"""What becomes of local writes that are not anchored."""


class MemoryRows(Protocol):
    """What is needed of a backend to merge into it."""

    def all_records(self) -> Iterable[StoredRecord]:
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


def require_anchor(seen: Sighting) -> Anchor:
    """The anchor of a sighting. Raises NotAnchored where there is none."""
    if seen.anchor is None:
        raise NotAnchored("this owner has never anchored on this network and contract")
    return seen.anchor


def anchored_blob(seen: Sighting, fetch: Fetch | None, *, state: StateStore, blobs: Path) -> bytes:
    """The blob that the anchor commits to, checked against its root.

    The home folder's `blobs/` is looked in first, then `fetch(uri)` is called ("" where the anchor has no
    usable URI), else a `file://` URI is read.

    Raises:
        BlobNotFound: there is no way to the blob, or nothing is there.
        Rollback: the bytes hash to an older anchored root. Tampered: to no known one.
        LimitExceeded: the blob is larger than the limit for one's own memory.
    """
    anchor = require_anchor(seen)
    stored = blob_folder(blobs).find(anchor.root)
    if stored is not None:
        return stored
    blob = _fetched(anchor, fetch)
    if len(blob) > DEFAULT_MAX_BYTES:
        raise LimitExceeded(f"the blob has {len(blob)} bytes; the limit is {DEFAULT_MAX_BYTES}")
    digest = hashlib.sha256(blob).digest()
    if digest != anchor.root:
        _refuse_root(digest, seen, anchor, state)
    return blob


def merged_blob(owner: str, blob: bytes, backend: MemoryRows, *, max_bytes: int = DEFAULT_MAX_BYTES) -> bytes:
    """The canonical blob of the anchored records and those that are only here.

    Nothing that either side holds is dropped, and a record that both hold occurs as often as in the blob.
    """
    anchored = list(canonical.parse(blob, owner, max_bytes=max_bytes))
    known = set(anchored)
    local: list[Record] = []
    for stored in backend.all_records():
        if stored.record not in known:
            local.extend([stored.record] * stored.copies)
    return canonical.encode(owner, [*anchored, *local])


def held(blob: bytes) -> int:
    """How many records a canonical blob holds; every record begins with this, and no text can contain it."""
    return blob.count(b'{"content":')


def refuse_unanchored(count: int) -> None:
    """Raise UnanchoredWrites: loading would lose local writes."""
    raise UnanchoredWrites(
        f"this memory ({count} records) has writes that are not anchored; loading the anchored one would"
        " lose them",
        hint="keep them with --on-conflict merge (on_conflict='merge'), drop them with replace",
    )


def _fetched(anchor: Anchor, fetch: Fetch | None) -> bytes:
    uri = anchor.uri_text
    if fetch is not None:
        return _called(fetch, uri or "")
    if not uri:
        raise BlobNotFound(
            "the anchor carries no usable address for its blob, and the blobs folder does not hold it",
            hint="copy the published blob into the home folder's blobs/, or pass fetch= a function that"
            " returns it",
        )
    if is_file_uri(uri):
        return read_blob_file(path_from_file_uri(uri), max_bytes=DEFAULT_MAX_BYTES)
    raise BlobNotFound(
        "the blob's address is not a file on this machine",
        hint="pass fetch= a function that gets it by its URI",
    )


def _called(fetch: Fetch, uri: str) -> bytes:
    try:
        blob = fetch(uri)
    except Exception as error:
        raise BlobError(
            f"the fetch function failed ({type(error).__name__}); nothing was loaded",
            hint="its exception is the cause shown above",
        ) from error
    if is_asynchronous(blob):
        raise InputError(
            "the fetch function is asynchronous; nothing was loaded",
            hint="use AsyncAgentMemory, which awaits it, or pass a plain function",
        )
    if not isinstance(blob, bytes):
        raise InputError(
            "the fetch function returned no bytes", hint="return the blob exactly as it was published"
        )
    return blob


def _refuse_root(digest: bytes, seen: Sighting, anchor: Anchor, state: StateStore) -> None:
    older = state.known_anchor(seen.key, digest)
    if older is not None:
        raise Rollback(
            f"the blob that was served is that of version {older.version}, but the chain commits to"
            f" version {anchor.version}; nothing was loaded"
        )
    raise Tampered(
        f"the blob that was served does not hash to the root of version {anchor.version}; nothing was loaded",
        hint="get the blob from another copy; the one served was changed, or is another version",
    )
