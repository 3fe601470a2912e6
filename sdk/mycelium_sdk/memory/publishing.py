"""Turning the `publish` argument of `anchor()` into a stored blob and the URI that is anchored."""

from __future__ import annotations

import os
import stat
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from mycelium_sdk.blobs.file_uri import is_file_uri, path_from_file_uri
from mycelium_sdk.blobs.files import FileBlobStore
from mycelium_sdk.blobs.uris import check_anchor_uri
from mycelium_sdk.errors import InputError, MyceliumError, PublishFailed
from mycelium_sdk.files import file_errors, replace_private
from mycelium_sdk.memory.awaitables import is_asynchronous

__all__ = ["Publication", "Publish", "PublishingWarning", "blob_folder", "publish_blob"]

Publish = Callable[[bytes], str] | str | os.PathLike[str]
"""A function that stores a blob and returns its URI, or a folder, a file or a `file://` URI."""


class PublishingWarning(UserWarning):
    """The blob was stored where only this machine finds it."""


@dataclass(frozen=True, slots=True)
class Publication:
    """Where a blob went: the URI to anchor ('' for none), and the person's file that follows the latest
    blob."""

    uri: str
    latest: Path | None = None

    def refresh_latest(self, blob: bytes) -> None:
        """Replace the person's file by the blob that is now anchored; where that fails, warn and go on."""
        if self.latest is None:
            return
        try:
            replace_private(self.latest, blob)
        except MyceliumError as error:
            warnings.warn(
                f"the memory is anchored, but its copy could not be renewed: {error.message}",
                PublishingWarning,
                stacklevel=2,
            )


def blob_folder(folder: Path) -> FileBlobStore:
    """The home folder's own store, where every anchored blob is found by its root."""
    return FileBlobStore(folder)


def publish_blob(
    blob: bytes, root: bytes, publish: Publish | None, *, blobs: Path, public_network: bool
) -> Publication:
    """Store `blob` as `publish` says, durably, and return what to anchor.

    Without `publish` the blob goes to the folder `blobs`. On a public network a path of this machine is
    anchored only when it was given as a `file://` URI; otherwise the anchor's URI stays empty, with a
    warning.

    Raises:
        InputError: `publish` is of no known form.
        PublishFailed: the blob could not be stored, or the function raised (its exception is the cause).
    """
    if publish is None:
        uri = blob_folder(blobs).put(blob, root)
        return Publication(_local_uri(uri, public_network=public_network))
    if callable(publish):
        return Publication(_published_by(publish, blob))
    text = _path_text(publish)
    if is_file_uri(text):
        return _publish_path(blob, root, path_from_file_uri(text), as_folder=text.endswith("/"))
    if "://" in text:
        raise InputError(
            "only folders, files and file:// URIs can be published to by name",
            hint="upload the blob and give its address as the URI, or pass publish= a function that does",
        )
    publication = _publish_path(blob, root, _expanded(text), as_folder=text.endswith(("/", os.sep)))
    return Publication(_local_uri(publication.uri, public_network=public_network), publication.latest)


def _path_text(publish: object) -> str:
    if isinstance(publish, os.PathLike):
        publish = os.fspath(publish)
    if not isinstance(publish, str) or not publish.strip() or "\0" in publish:
        raise InputError("publish names nothing", hint="give a folder, a file, a file:// URI or a function")
    return publish


def _expanded(text: str) -> Path:
    try:
        return Path(text).expanduser()
    except RuntimeError as error:
        raise InputError("publish names a home folder of nobody", hint="write the path in full") from error


def _publish_path(blob: bytes, root: bytes, path: Path, *, as_folder: bool) -> Publication:
    with file_errors(path, "publish to", PublishFailed):
        is_folder = stat.S_ISDIR(path.stat().st_mode) if path.exists() else False
    if as_folder or is_folder:
        if not is_folder:
            raise PublishFailed(f"the folder {path} does not exist", hint="make it, or publish elsewhere")
        return Publication(FileBlobStore(path.absolute()).put(blob, root))
    _require_own_blob(path, blob)
    suffix = path.suffix or ".json"
    prefix = f"{path.stem if path.suffix else path.name}."
    store = FileBlobStore(path.absolute().parent, prefix=prefix, suffix=suffix, digits=16)
    return Publication(store.put(blob, root), latest=path.absolute())


def _require_own_blob(path: Path, blob: bytes) -> None:
    """Refuse to replace a file that is not an earlier blob of the same owner."""
    if not os.path.lexists(path):
        return
    beginning = blob[: blob.index(b"[") + 1]
    try:
        with path.open("rb") as file:
            same = path.is_file() and not path.is_symlink() and file.read(len(beginning)) == beginning
    except OSError:
        same = False
    if not same:
        raise PublishFailed(
            f"{path} exists and is not a published memory of this owner; it was not touched",
            hint="publish under another name",
        )


def _published_by(publish: Callable[[bytes], str], blob: bytes) -> str:
    try:
        uri = publish(blob)
    except Exception as error:  # a caller's function may raise anything; it becomes the cause
        raise PublishFailed(
            f"the publish function failed ({type(error).__name__}); nothing was anchored",
            hint="its exception is the cause shown above; mend it and anchor again",
        ) from error
    if is_asynchronous(uri):
        raise PublishFailed(
            "the publish function is asynchronous; nothing was anchored",
            hint="use AsyncAgentMemory, which awaits it, or pass a plain function",
        )
    if not isinstance(uri, str) or not uri:
        raise PublishFailed(
            "the publish function returned no URI; nothing was anchored", hint="return the blob's URI as text"
        )
    return check_anchor_uri(uri)


def _local_uri(uri: str, *, public_network: bool) -> str:
    if not public_network:
        return check_anchor_uri(uri)
    warnings.warn(
        "the blob was stored on this machine only and the anchor carries no address for it: other machines"
        " need a copy of the file, or publish= a function that uploads it",
        PublishingWarning,
        stacklevel=2,
    )
    return ""
