"""The seam between verified memory and the places where published blobs live.

A store keeps bytes under a name derived from their root and gives them back. It vouches for nothing: whoever
reads a blob hashes it and compares with the chain.
"""

from __future__ import annotations

from typing import Protocol

__all__ = ["DEFAULT_MAX_BYTES", "BlobStore"]

DEFAULT_MAX_BYTES = 1 << 30
"""The size limit for one's own blobs, in bytes (1 GiB)."""


class BlobStore(Protocol):
    """Puts and gets whole blobs by URI."""

    def put(self, blob: bytes, root: bytes) -> str:
        """Store `blob` durably under a name made from `root` (32 bytes) and return its URI.

        Putting the same blob again changes nothing. A blob stored under that name is never replaced by
        different genuine bytes.

        Raises:
            BlobError: the blob could not be stored durably.
        """
        ...

    def get(self, uri: str, *, max_bytes: int = DEFAULT_MAX_BYTES) -> bytes:
        """Return the bytes at `uri`.

        Raises:
            BlobNotFound: nothing is stored there.
            BlobError: it could not be read.
            LimitExceeded: it is larger than `max_bytes`.
        """
        ...
