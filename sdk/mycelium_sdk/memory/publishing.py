"""Turning the `publish` argument of `anchor()` into a stored blob, its context file, and the URI that is
anchored."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from mycelium_sdk.blobs.file_uri import is_file_uri, path_from_file_uri
from mycelium_sdk.blobs.files import FileBlobStore, context_path, open_blob_file, read_blob_file, synchronise
from mycelium_sdk.blobs.uris import check_anchor_uri
from mycelium_sdk.errors import BlobError, InputError, LimitExceeded, MyceliumError, PublishFailed
from mycelium_sdk.files import file_errors, replace_private
from mycelium_sdk.memory.awaitables import is_asynchronous

if TYPE_CHECKING:
    from mycelium_sdk.config import Configuration
    from mycelium_sdk.memory.context_file import Sign
    from mycelium_sdk.memory.context_store import ContextDraft

__all__ = [
    "Publication",
    "Publish",
    "PublishingWarning",
    "blob_folder",
    "configured_publish",
    "latest_copies",
    "named_path",
    "publish_blob",
    "require_target",
]

_DIGITS = 16  # of the root, in the name of a blob beside a file that a person named

Publish = Callable[[bytes], str] | str | os.PathLike[str]
"""A function that stores a blob and returns its URI, or a folder, a file or a `file://` URI."""


class PublishingWarning(UserWarning):
    """The blob was stored where only this machine finds it, or something beside it could not be written."""


@dataclass(frozen=True, slots=True)
class Publication:
    """Where a blob went: the URI to anchor ('' for none), its file on this machine or where that would be
    looked for, and the person's file that follows the latest blob."""

    uri: str
    file: Path
    latest: Path | None = None

    def describe(self, draft: ContextDraft, sign: Sign) -> None:
        """Put the context file beside the blob; where that fails, warn and go on: it helps recall and proves
        nothing. What `sign` raises passes through."""
        try:
            draft.store(context_path(self.file), sign)
        except BlobError as error:
            warnings.warn(
                "the blob's context file could not be written, so other machines will not know the order,"
                f" sessions and times of its memories: {error.message}",
                PublishingWarning,
                stacklevel=2,
            )

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


def latest_copies(file: Path, root: bytes) -> list[Path]:
    """Where the person's file may lie that follows the latest blob, if the blob `file` with this root was
    published beside one. See `_publish_path`, which names it."""
    middle = f".{root.hex()[:_DIGITS]}"
    stem = file.stem.removesuffix(middle)
    if not stem or stem == file.stem:
        return []
    named = file.with_name(stem + file.suffix)
    return [named, file.with_name(stem)] if file.suffix == ".json" else [named]


def blob_folder(folder: Path) -> FileBlobStore:
    """The home folder's own store, where every anchored blob is found by its root."""
    return FileBlobStore(folder)


def publish_blob(
    blob: bytes, root: bytes, publish: Publish | None, *, blobs: Path, public_network: bool
) -> Publication:
    """Store `blob` as `publish` says, durably, and return what to anchor.

    Without `publish` the blob goes to the folder `blobs`. A function gets the blob alone; its context file
    then stays in `blobs`. What lies on this machine is read back and compared. On a public network a path of
    this machine is anchored only when it was given as a `file://` URI; otherwise the anchor's URI stays
    empty, with a warning.

    Raises:
        InputError: `publish` is of no known form.
        PublishFailed: the blob could not be stored, or the function raised (its exception is the cause; a
            BlobError of its own passes as it is).
    """
    own = blob_folder(blobs).path(root)
    if publish is None:
        uri = blob_folder(blobs).put(blob, root)
        return Publication(_local_uri(uri, public_network=public_network), own)
    if callable(publish):
        uri = _published_by(publish, blob)
        if is_file_uri(uri):
            _require_there(uri, root, len(blob))
        return Publication(uri, own)
    path, text = named_path(publish), _path_text(publish)
    assert path is not None  # noqa: S101 - it is no function
    publication = _publish_path(blob, root, path, as_folder=text.endswith(("/", os.sep)))
    if is_file_uri(text):
        return publication
    return replace(publication, uri=_local_uri(publication.uri, public_network=public_network))


def named_path(publish: Publish | None) -> Path | None:
    """The file or folder that `publish` names; None if it is a function or nothing.

    Raises InputError if it is of no known form.
    """
    if publish is None or callable(publish):
        return None
    text = _path_text(publish)
    if is_file_uri(text):
        return path_from_file_uri(text)
    if "://" in text:
        raise InputError(
            "only folders, files and file:// URIs can be published to by name",
            hint="upload the blob and give its address with --uri (uri=), or pass a function as publish=",
        )
    return _expanded(text)


def configured_publish(configuration: Configuration) -> str | None:
    """`[memory] publish`: a path of it is relative to the configuration's folder."""
    publish = configuration.memory.publish
    if publish is None or "://" in publish:
        return publish
    slash = "/" if publish.endswith("/") else ""
    return f"{configuration.resolve(publish)}{slash}"


def require_target(publish: Publish | None) -> None:
    """Refuse a folder that is not there, a file in one, or what is neither file nor folder (a pipe, a
    device), before anything is made for it or sent.

    Raises InputError if `publish` is of no known form, PublishFailed if nothing can be published there.
    """
    path = named_path(publish)
    if path is None:
        return
    with file_errors(path, "publish to", PublishFailed):
        if _path_text(publish).endswith(("/", os.sep)):
            _require_folder(path)
            return
        if not stat.S_ISDIR(path.absolute().parent.stat().st_mode):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        mode = path.stat().st_mode if path.exists() else stat.S_IFREG
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        raise PublishFailed(f"{path} is not a regular file", hint="name a file or a folder to publish to")


def _require_folder(path: Path) -> None:
    if not path.is_dir():
        if path.exists():
            raise PublishFailed(f"{path} is not a folder", hint="leave out the slash, or publish elsewhere")
        raise PublishFailed(f"the folder {path} does not exist", hint="make it, or publish elsewhere")


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
        with file_errors(path, "publish to", PublishFailed):
            _require_folder(path)
        store = FileBlobStore(path.absolute())
        return Publication(store.put(blob, root), store.path(root))
    _require_own_blob(path, blob)
    suffix = path.suffix or ".json"
    prefix = f"{path.stem if path.suffix else path.name}."
    store = FileBlobStore(path.absolute().parent, prefix=prefix, suffix=suffix, digits=_DIGITS)
    return Publication(store.put(blob, root), store.path(root), latest=path.absolute())


def _require_own_blob(path: Path, blob: bytes) -> None:
    """Refuse to replace a file that is not an earlier blob of the same owner."""
    if not os.path.lexists(path):
        return
    beginning = blob[: blob.index(b"[") + 1]
    try:
        with open_blob_file(path) as file:  # waits for nobody, should a pipe be there
            same = file.read(len(beginning)) == beginning
    except (BlobError, OSError):
        same = False
    if not same:
        raise PublishFailed(
            f"{path} exists and is not a published memory of this owner; it was not touched",
            hint="publish under another name",
        )


def _published_by(publish: Callable[[bytes], str], blob: bytes) -> str:
    try:
        uri = publish(blob)
    except BlobError:  # it says already what is wrong with publishing, as `HttpsPut` does
        raise
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


def _require_there(uri: str, root: bytes, size: int) -> None:
    """Read back what a function says it stored on this machine."""
    path = path_from_file_uri(uri)
    try:
        found = hashlib.sha256(read_blob_file(path, max_bytes=size)).digest()
        with file_errors(path, "read", BlobError):
            synchronise(path)
    except (BlobError, LimitExceeded) as error:
        raise PublishFailed(
            f"what the publish function stored cannot be read back: {error.message}",
            hint="return the file:// URI of the very file that holds the blob; nothing was anchored",
        ) from error
    if found != root:
        raise PublishFailed(
            "what the publish function stored is not the blob; nothing was anchored",
            hint="store the bytes exactly as they are given",
        )


def _local_uri(uri: str, *, public_network: bool) -> str:
    if not public_network:
        return check_anchor_uri(uri)
    warnings.warn(
        "the blob was stored on this machine only and the anchor carries no address for it: other machines"
        " need copies of the file and of the .context.json beside it, or publish= a function that uploads it",
        PublishingWarning,
        stacklevel=2,
    )
    return ""
