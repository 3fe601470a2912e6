"""Where a blob comes from: the anchor's URI, by its scheme."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mycelium_sdk.blobs.file_uri import is_file_uri, path_from_file_uri
from mycelium_sdk.blobs.files import read_blob_file
from mycelium_sdk.errors import BlobNotFound, UntrustedSource

if TYPE_CHECKING:
    from mycelium_sdk.fetching.policy import FetchPolicy

__all__ = ["blob_at_uri"]

_GIVE = "give it: `mycelium memory inspect --blob FILE`"
_ASK = f"ask the owner for the blob and {_GIVE}; or "


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
