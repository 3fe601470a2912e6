"""What may be written on the chain as the address of a blob.

The chain is public for ever, so a URI that carries a secret is never anchored.
"""

from __future__ import annotations

from urllib.parse import SplitResult, parse_qsl, urlsplit

from mycelium_sdk.chain.anchors import MAX_URI_BYTES
from mycelium_sdk.errors import InputError

__all__ = ["check_anchor_uri"]

_SCHEMES = ("file", "https", "s3", "ipfs")
_SECRET_PARAMETERS = frozenset(
    {
        "awsaccesskeyid",
        "signature",
        "sig",
        "token",
        "access_token",
        "key-pair-id",
        "policy",
        "expires",
        "se",
        "sp",
    }
)
_SECRET_PREFIXES = ("x-amz-", "x-goog-", "x-ms-")


def check_anchor_uri(uri: str) -> str:
    """Return `uri` if it may be anchored.

    Raises:
        InputError: it is no text, too long, of an unknown scheme, or carries a credential.
    """
    if not isinstance(uri, str):
        raise InputError(
            "the URI must be text", hint="pass uri as str, for example uri='https://host/blob.json'"
        )
    try:
        encoded = uri.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InputError("the URI is not valid Unicode", hint="percent-encode it") from error
    if len(encoded) > MAX_URI_BYTES:
        raise InputError(
            f"the URI has {len(encoded)} bytes; at most {MAX_URI_BYTES} fit into an anchor",
            hint="publish under a shorter address",
        )
    parts = _split(uri)
    if parts.scheme not in _SCHEMES:
        raise InputError(
            f"the URI's scheme is not one of {', '.join(_SCHEMES)}",
            hint="write the whole URI, for example https://host/blob.json or file:///home/me/blob.json",
        )
    _refuse_secrets(parts)
    return uri


def _split(uri: str) -> SplitResult:
    if any(character <= " " or character == "\x7f" for character in uri):
        raise InputError("the URI has white space or control characters", hint="percent-encode them")
    try:
        return urlsplit(uri)
    except ValueError as error:
        raise InputError("the URI cannot be read", hint="check it for stray brackets") from error


def _refuse_secrets(parts: SplitResult) -> None:
    if "@" in parts.netloc:
        raise InputError(
            "the URI carries a user name or password, and the chain is public for ever",
            hint="anchor a public URI without userinfo",
        )
    for name, _ in parse_qsl(parts.query, keep_blank_values=True):
        lowered = name.lower()
        if lowered in _SECRET_PARAMETERS or lowered.startswith(_SECRET_PREFIXES):
            raise InputError(
                "the URI looks presigned (its query carries a signature), and the chain is public for ever",
                hint="anchor the object's public URI, without the query",
            )
