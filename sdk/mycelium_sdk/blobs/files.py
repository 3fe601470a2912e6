"""Blobs as files: content-addressed names, written durably, read without following links."""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
from typing import TYPE_CHECKING, BinaryIO

from mycelium_sdk.blobs.base import DEFAULT_MAX_BYTES
from mycelium_sdk.blobs.file_uri import path_from_file_uri, path_to_file_uri
from mycelium_sdk.errors import BlobError, BlobNotFound, LimitExceeded, MyceliumError
from mycelium_sdk.files import replace_private, sync_folder

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["FileBlobStore", "context_path", "file_digest", "open_blob_file", "read_blob_file", "synchronise"]

_CHUNK_BYTES = 1 << 20


def context_path(blob: Path) -> Path:
    """Where the context file of the blob at this path lies."""
    return blob.with_name(f"{blob.name}.context.json")


@contextlib.contextmanager
def open_blob_file(path: Path) -> Iterator[BinaryIO]:
    """The regular file at `path`, open for reading; a link, a device or a folder is refused.

    Raises:
        BlobNotFound: no such file.
        BlobError: not a regular file, or unreadable.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError as error:
        raise BlobNotFound(
            "the published blob is not where the anchor says",
            hint="restore the file from a copy, or pass fetch= a function that gets the blob from elsewhere",
        ) from error
    except OSError as error:
        raise BlobError(
            f"the published blob cannot be opened ({error.strerror})",
            hint="it must be a regular file that this user may read, not a link",
        ) from error
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise BlobError(
                "the published blob is not a regular file", hint="point at the blob's file itself"
            )
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            yield file
    finally:
        os.close(descriptor)


def file_digest(path: Path) -> bytes | None:
    """SHA-256 of the regular file at `path`, read as a stream; None where there is none that can be read."""
    try:
        with open_blob_file(path) as file:
            digest = hashlib.sha256()
            while chunk := file.read(_CHUNK_BYTES):
                digest.update(chunk)
    except (BlobError, OSError):
        return None
    return digest.digest()


def read_blob_file(path: Path, *, max_bytes: int = DEFAULT_MAX_BYTES) -> bytes:
    """The bytes of the regular file at `path`; a link, a device or a folder is refused.

    Raises:
        BlobNotFound: no such file.
        BlobError: not a regular file, or unreadable.
        LimitExceeded: larger than `max_bytes`.
    """
    with open_blob_file(path) as file:
        try:
            size = os.fstat(file.fileno()).st_size
            if size > max_bytes:
                raise LimitExceeded(
                    f"the published blob has {size:,} bytes; the limit is {max_bytes:,}",
                    hint="if it should be smaller, it was damaged or replaced: get it from another copy",
                )
            data = file.read(size + 1)  # so much memory is taken, whatever there is to read
        except OSError as error:
            raise _unreadable(error) from error
    if len(data) > size:
        raise BlobError("the published blob grew while it was read", hint="try again when it is complete")
    return data


def synchronise(path: Path) -> None:
    """Put a file that was found, and its name, on the disk.

    Whoever wrote it may have been killed before that, or have copied it without. Raises `OSError`.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    sync_folder(path.parent)


def _unreadable(error: OSError) -> BlobError:
    return BlobError(f"the published blob cannot be read ({error.strerror})", hint="check the disk")


class FileBlobStore:
    """A folder of blobs named `<prefix><hex of the root><suffix>`.

    `digits` is how many of the root's 64 hex digits stand in the name: all of them in a folder of blobs,
    16 beside a file that a person named.
    """

    def __init__(self, folder: Path, *, prefix: str = "", suffix: str = ".json", digits: int = 64) -> None:
        self._folder = folder
        self._prefix = prefix
        self._suffix = suffix
        self._digits = digits

    def path(self, root: bytes) -> Path:
        """Where the blob with `root` lies, or would lie."""
        return self._folder / f"{self._prefix}{root.hex()[: self._digits]}{self._suffix}"

    def put(self, blob: bytes, root: bytes) -> str:
        """Store `blob` (fsync, then rename) and return its `file://` URI. See `BlobStore.put`.

        One that is there already is on the disk as well when this returns.
        """
        path = self.path(root)
        there = self._holds(path, root)
        try:
            if there:
                synchronise(path)
            else:
                replace_private(path, blob, kind=BlobError)
        except MyceliumError as error:
            raise BlobError(f"the blob could not be published: {error}", hint=error.hint) from error
        except OSError as error:
            raise BlobError(
                f"the blob could not be published ({error.strerror})",
                hint=f"check that {path.parent} exists, is writable and has room",
            ) from error
        if not self._holds(path, root):
            raise BlobError(
                "the published blob reads back differently", hint="check the disk; nothing was anchored"
            )
        return path_to_file_uri(path)

    def get(self, uri: str, *, max_bytes: int = DEFAULT_MAX_BYTES) -> bytes:
        """The bytes of the file that a `file://` URI names. See `BlobStore.get`."""
        return read_blob_file(path_from_file_uri(uri), max_bytes=max_bytes)

    def find(self, root: bytes) -> bytes | None:
        """The stored blob for `root`, or None where there is none or it does not hash to `root`."""
        try:
            blob = read_blob_file(self.path(root))
        except BlobError:
            return None
        return blob if hashlib.sha256(blob).digest() == root else None

    @staticmethod
    def _holds(path: Path, root: bytes) -> bool:
        """Whether the file there is the blob with `root`.

        A file of that name with other bytes is a damaged copy, which publishing again replaces.
        """
        try:
            with open_blob_file(path) as file:
                digest = hashlib.sha256()
                while chunk := file.read(_CHUNK_BYTES):  # its writer has the blob in memory already
                    digest.update(chunk)
                return digest.digest() == root
        except BlobNotFound:
            return False
        except OSError as error:
            raise _unreadable(error) from error
