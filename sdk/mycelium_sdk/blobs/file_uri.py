"""`file://` URIs to paths and back (RFC 8089), strictly.

A host other than empty or `localhost`, a query or a fragment is refused: such a URI means something else
to somebody, and a memory must not depend on who reads it.
"""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote_to_bytes, urlsplit

from mycelium_sdk.errors import BlobError

__all__ = ["is_file_uri", "path_from_file_uri", "path_to_file_uri"]


def is_file_uri(uri: str) -> bool:
    """Whether the scheme of `uri` is `file`, in any case of letters."""
    return uri[:5].lower() == "file:"


def path_to_file_uri(path: Path) -> str:
    """The portable `file://` URI of `path`, made absolute and percent-encoded."""
    return path.absolute().as_uri()


def path_from_file_uri(uri: str) -> Path:
    """The absolute path a `file://` URI names.

    Raises:
        BlobError: it is not a plain `file://` URI of this machine.
    """
    hint = (
        "a file URI looks like file:///home/me/memory.json, percent-encoded, without host, query or fragment"
    )
    try:
        parts = urlsplit(uri)
    except ValueError as error:
        raise BlobError("the file URI cannot be read", hint=hint) from error
    if parts.scheme != "file" or not uri[5:].startswith("//"):
        raise BlobError("this is not a file:// URI", hint=hint)
    if parts.netloc not in ("", "localhost"):
        raise BlobError("the file URI names another host", hint=hint)
    if "?" in uri or "#" in uri:
        raise BlobError("the file URI has a query or a fragment", hint=hint)
    raw = unquote_to_bytes(parts.path)
    if b"\x00" in raw or not raw.startswith(b"/"):
        raise BlobError("the file URI does not name an absolute path", hint=hint)
    try:
        return Path(raw.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise BlobError("the file URI is not UTF-8 after decoding", hint=hint) from error
