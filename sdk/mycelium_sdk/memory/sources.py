"""Where a blob comes from: a caller's function, or the anchor's URI, by its scheme."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from mycelium_sdk.blobs.file_uri import is_file_uri, path_from_file_uri
from mycelium_sdk.blobs.files import read_blob_file
from mycelium_sdk.errors import BlobError, BlobNotFound, InputError, LimitExceeded, UntrustedSource
from mycelium_sdk.memory.awaitables import is_asynchronous

if TYPE_CHECKING:
    from mycelium_sdk.chain.anchors import Anchor
    from mycelium_sdk.fetching.policy import FetchPolicy

__all__ = ["Fetch", "blob_at_uri", "got_blob"]

Fetch = Callable[[str], bytes]
"""A function that gets a blob by its URI."""

_GIVE = "give it: `mycelium memory inspect --blob FILE`"
_ASK = f"ask the owner for the blob and {_GIVE}; or "


def got_blob(anchor: Anchor, fetch: Fetch | None, policy: FetchPolicy, *, own: bool) -> bytes:
    """What `fetch` gives for the anchor's URI ("" where it has no usable one), else what is there: bytes
    within the policy's limit, whose root nobody has checked.

    Raises BlobError if `fetch` fails, InputError if it gives no bytes, LimitExceeded if too many; else as
    `blob_at_uri`.
    """
    if fetch is None:
        return blob_at_uri(anchor.uri_text, anchor.root, policy, own=own)
    return _called(fetch, anchor.uri_text or "", max_bytes=policy.max_bytes)


def blob_at_uri(uri: str | None, root: bytes, policy: FetchPolicy, *, own: bool) -> bytes:
    """The bytes at an anchor's URI (None if that is no text), unchecked but for their number.

    `own`: whether the anchor is that of the caller's own memory. A path on this machine that a stranger names
    is never read.

    Raises:
        BlobNotFound: the anchor has no URI, or one of a kind that is not fetched, or nothing is there.
        BlobError, BlobUnavailable, UntrustedSource, LimitExceeded: see `fetch_https` and `read_blob_file`.
    """
    name = f"{root.hex()}.json"
    if not own and uri and uri[:6].lower() != "https:":
        raise _not_fetched_for_strangers(uri)
    if not uri:
        raise BlobNotFound(
            "the anchor carries no usable address for its blob, and the blobs folder does not hold it",
            hint=f"{'' if own else _ASK}copy the published blob into the home folder's blobs/, named by the"
            f" root: {name}; or pass fetch= a function that returns it",
        )
    if is_file_uri(uri):
        return read_blob_file(path_from_file_uri(uri), max_bytes=policy.max_bytes)
    if uri[:6].lower() == "https:":
        from mycelium_sdk.fetching import fetch_https

        return fetch_https(uri, policy)
    raise BlobNotFound(
        "the anchor's address is neither a file on this machine nor one of https",
        hint="get the blob from there and put it into the home folder's blobs/, named by the root:"
        f" {name}; or pass fetch= a function that gets it by its URI",
    )


def _called(fetch: Fetch, uri: str, *, max_bytes: int) -> bytes:
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
    if len(blob) > max_bytes:
        raise LimitExceeded(f"the blob has {len(blob)} bytes; the limit is {max_bytes}")
    return blob


def _not_fetched_for_strangers(uri: str) -> UntrustedSource:
    give = f"{_GIVE}, or fetch= a function that returns it"
    if is_file_uri(uri):
        return UntrustedSource(
            "the anchor names a file on this machine, which is read for its owner only",
            hint=f"ask the owner to publish by https; or get the file from them and {give}",
        )
    return UntrustedSource(
        "the anchor's address is not one of https", hint=f"get the blob from there yourself and {give}"
    )
