"""Context files on this machine's disk: written beside a published blob, found beside the anchored one.

Nothing here keeps a memory from being anchored or loaded. What is wrong is said, and recall then does without
order, sessions and times.
"""

from __future__ import annotations

import array
import contextlib
import enum
import hashlib
import math
import os
import tempfile
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from mycelium_sdk import canonical
from mycelium_sdk.backends.values import Context
from mycelium_sdk.blobs.base import DEFAULT_MAX_BYTES
from mycelium_sdk.blobs.file_uri import is_file_uri, path_from_file_uri
from mycelium_sdk.blobs.files import FileBlobStore, context_path, open_blob_file, synchronise
from mycelium_sdk.errors import BlobError, BlobNotFound, ContextUnusable, PublishFailed, Tampered
from mycelium_sdk.files import file_errors, replace_private
from mycelium_sdk.memory.context_file import ContextFile, header, signature_part, signed_part
from mycelium_sdk.memory.rehydration import held

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from mycelium_sdk.backends.base import BaseBackend
    from mycelium_sdk.backends.values import Imported
    from mycelium_sdk.chain.anchors import Anchor
    from mycelium_sdk.memory.context_file import Sign
    from mycelium_sdk.records import Record
    from mycelium_sdk.stored import StoredRecord

__all__ = [
    "ContextDraft",
    "ContextUse",
    "ContextWarning",
    "Loaded",
    "Rehydration",
    "load_with_context",
    "times_of",
]

_IN_MEMORY = 1 << 18
_CHUNK_BYTES = 64 * 1024
_UNKNOWN = Context(0, None, None)


class ContextDraft:
    """A context file without its signature, taken from the snapshot that the blob was taken from.

    Above 256 KiB it waits in an unnamed file of `folder`. Close it.
    """

    def __init__(self, owner: str, root: bytes, stored: Iterable[StoredRecord], *, folder: Path) -> None:
        self._owner = owner
        self._spool = tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY, dir=str(folder))  # noqa: SIM115
        self._digest = hashlib.sha256()
        self._problem: str | None = None
        try:
            for chunk in signed_part(owner, root, stored):
                self._spool.write(chunk)
                self._digest.update(chunk)
            self._spool.flush()
        except (ContextUnusable, Tampered) as error:
            self._problem = error.message
        except OSError as error:
            self._problem = _unkept(error)
        except BaseException:
            self.close()
            raise

    def store(self, path: Path, sign: Sign) -> None:
        """Write the context file, durably and at once, unless it is there already.

        One that is there is replaced if it begins as this owner's does: another context of the same blob, or
        a damaged copy. Anything else is left alone. What `sign` raises passes through.

        Raises:
            PublishFailed, ContextUnusable: it could not be written.
        """
        if self._problem is not None:
            raise ContextUnusable(self._problem)
        ending = signature_part(self._digest.digest(), sign)
        if self._size() + len(ending) > DEFAULT_MAX_BYTES:
            raise ContextUnusable(f"it would be larger than {DEFAULT_MAX_BYTES} bytes")
        if self._is_at(path, ending):
            with file_errors(path, "write", PublishFailed):
                synchronise(path)
        else:
            replace_private(path, self._chunks(ending), kind=PublishFailed)

    def close(self) -> None:
        """Let go of the draft; harmless when repeated."""
        # What could not be written is written once more, and its error would take the place of what is told.
        with contextlib.suppress(OSError):
            self._spool.close()

    def _size(self) -> int:
        try:
            return self._spool.seek(0, os.SEEK_END)
        except OSError as error:
            raise ContextUnusable(_unkept(error)) from error

    def _chunks(self, ending: bytes) -> Iterator[bytes]:
        try:
            self._spool.seek(0)
            while chunk := self._spool.read(_CHUNK_BYTES):
                yield chunk
        except OSError as error:
            raise ContextUnusable(_unkept(error)) from error
        yield ending

    def _is_at(self, path: Path, ending: bytes) -> bool:
        """Whether exactly this is at the path. Raises PublishFailed if something else is that must stay."""
        beginning = header(self._owner).encode("ascii")
        try:
            with open_blob_file(path) as file, file_errors(path, "read", PublishFailed):
                if file.read(len(beginning)) == beginning:
                    file.seek(0)
                    same = all(file.read(len(chunk)) == chunk for chunk in self._chunks(ending))
                    return same and not file.read(1)
        except BlobNotFound:
            return False
        except (PublishFailed, ContextUnusable):
            raise
        except BlobError:
            if not os.path.lexists(path):  # the name cannot be, which writing explains
                return False
        raise PublishFailed(f"{path} exists and is not a context file of this owner; it was not touched")


class ContextWarning(UserWarning):
    """A context file was there and was not used, since it is not what the owner signed for the blob."""


class ContextUse(enum.StrEnum):
    """What became of the context file when a memory was loaded."""

    NOT_NEEDED = "NOT_NEEDED"
    """No memory was new here."""
    USED = "USED"
    """The new memories have their order, sessions and times."""
    MISSING = "MISSING"
    """There is none beside the blob."""
    REFUSED = "REFUSED"
    """There is one, and it is not what the owner signed for this blob."""


@dataclass(frozen=True, slots=True)
class Rehydration:
    """What loading the anchored memory did: its version, how many records there are now, what became of the
    context file, and where it was not used though it was needed, a note that says why."""

    version: int
    records: int
    context: ContextUse = ContextUse.NOT_NEEDED
    note: str | None = None


class Loaded(NamedTuple):
    """`imported`: what the backend holds now. The others are `Rehydration`'s."""

    imported: Imported
    context: ContextUse
    note: str | None = None


def load_with_context(
    backend: BaseBackend,
    anchor: Anchor,
    blob: bytes,
    wanted: bytes,
    *,
    blobs: Path,
    expected_changes: int,
) -> Loaded:
    """Have the backend load `wanted`: the anchored `blob`, or one that holds all of its records and others
    that are here already. Memories that are new here get what the context file says of them.

    The context file is looked for in `blobs`, then beside the anchor's `file://` URI; the first that fits is
    used. Raises what `BaseBackend.load` raises.
    """
    found = False
    refused: str | None = None
    for path in dict.fromkeys(_places(anchor, blobs)):
        try:
            with open_blob_file(path) as file:
                found = True
                signed = ContextFile(file, backend.owner, anchor.root).contexts(held(blob))
                contexts = signed if wanted is blob else _in_merged(backend.owner, blob, wanted, signed)
                imported = backend.load(
                    wanted, max_bytes=DEFAULT_MAX_BYTES, expected_changes=expected_changes, contexts=contexts
                )
        except BlobNotFound:
            continue
        except ContextUnusable as error:
            refused = error.message
        except BlobError as error:
            found, refused = True, error.message
        else:
            changed = imported.change_counter != expected_changes
            return Loaded(imported, ContextUse.USED if changed else ContextUse.NOT_NEEDED)
    imported = backend.load(wanted, max_bytes=DEFAULT_MAX_BYTES, expected_changes=expected_changes)
    if imported.change_counter == expected_changes:
        return Loaded(imported, ContextUse.NOT_NEEDED)
    return Loaded(imported, ContextUse.REFUSED if found else ContextUse.MISSING, _note(refused))


def times_of(owner: str, anchor: Anchor, blob: bytes, blobs: Path) -> array.array[float] | None:
    """When each of the anchored records was remembered, in the blob's order (Unix seconds, not-a-number where
    it is not known), by the first context file that fits; None if there is none."""
    for path in dict.fromkeys(_places(anchor, blobs)):
        try:
            with open_blob_file(path) as file:
                contexts = ContextFile(file, owner, anchor.root).contexts(held(blob))
                times = (math.nan if one.time is None else one.time for one in contexts)
                return array.array("d", times)
        except BlobError:
            continue
    return None


def _places(anchor: Anchor, blobs: Path) -> Iterator[Path]:
    yield context_path(FileBlobStore(blobs).path(anchor.root))
    uri = anchor.uri_text
    if uri and is_file_uri(uri):
        with contextlib.suppress(BlobError):
            yield context_path(path_from_file_uri(uri))


def _in_merged(owner: str, blob: bytes, merged: bytes, contexts: Iterator[Context]) -> Iterator[Context]:
    """The contexts of the blob's records, in their places among the records of the merged blob, which may
    lack some; what is said of the others is never used, since they are here already."""
    anchored = canonical.parse(blob, owner, max_bytes=DEFAULT_MAX_BYTES)
    following = next(anchored, None)
    for record in canonical.parse(merged, owner, max_bytes=DEFAULT_MAX_BYTES):
        while following is not None and _place(following) < _place(record):
            following = next(anchored, None)
            next(contexts)
        if record == following:
            following = next(anchored, None)
            yield next(contexts)
        else:
            yield _UNKNOWN
    for _ in contexts:  # to its end, where it is checked
        pass


def _unkept(error: OSError) -> str:
    return f"it cannot be kept on the disk ({error.strerror})"


def _place(record: Record) -> tuple[str, tuple[str, ...]]:
    return record.content, record.tags


def _note(refused: str | None) -> str:
    why = (
        "no context file was found beside the blob"
        if refused is None
        else f"the context file beside the blob was not used: {refused}"
    )
    return f"{why}; the order, sessions and times of the new memories are not known, and recall does without"
