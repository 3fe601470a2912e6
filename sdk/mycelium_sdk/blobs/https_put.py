"""Publishing by an HTTP PUT to one address, for readers to get from another."""

from __future__ import annotations

import hashlib
import time
from typing import TYPE_CHECKING

from mycelium_sdk.blobs.uris import check_anchor_uri
from mycelium_sdk.errors import BlobError, BlobUnavailable, InputError, PublishFailed, VerificationError
from mycelium_sdk.fetching.policy import FetchPolicy

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["HttpsPut"]

_PLACE = "{root}"
_SECONDS = 600.0
_ANSWER_BYTES = 1 << 16
_ACCEPTED = range(200, 300)
_READ_BACKS = 5
_FIRST_PAUSE = 0.5


class HttpsPut:
    """Give it as `publish=`: puts the blob to `put_url` and has `public_uri` anchored.

    In both, `{root}` stands for the root in hexadecimal, and must be in the public one, so that an older
    version stays where its anchor says. `put_url` may also be a function from the root (32 bytes) to a URL,
    for presigned ones, which are good for one name. It is never anchored, shown or logged: it may carry a
    signature. `headers` go with the PUT. Before anything is anchored the blob is read back from the public
    address, within the limits of `policy` (default: those for one's own memory), a few times if need be, and
    compared.

    Raises `InputError` for addresses that cannot be used. Called, it raises `PublishFailed`.
    """

    def __init__(
        self,
        put_url: str | Callable[[bytes], str],
        public_uri: str,
        *,
        headers: Mapping[str, str] | None = None,
        policy: FetchPolicy | None = None,
    ) -> None:
        if _PLACE not in public_uri:
            raise InputError(
                "the public address is the same for every version, and would be overwritten",
                hint="put {root} into it: https://host/memory/{root}.json",
            )
        if isinstance(put_url, str) and not put_url.startswith("https://"):
            raise InputError("blobs are put by https only", hint="put_url begins with https://")
        if not public_uri.startswith("https://"):
            raise InputError("the public address is not one of https", hint="public_uri begins with https://")
        check_anchor_uri(public_uri.replace(_PLACE, "0" * 64))
        self._put_url = put_url
        self._public_uri = public_uri
        self._headers = dict(headers or {})
        self._policy = FetchPolicy.for_own() if policy is None else policy

    def __repr__(self) -> str:
        return f"HttpsPut(public_uri={self._public_uri!r})"

    def __call__(self, blob: bytes) -> str:
        """Put the blob and read it back; its public URI."""
        root = hashlib.sha256(blob).digest()
        uri = self._public_uri.replace(_PLACE, root.hex())
        self._put(self._target(root), blob)
        self._require_there(uri, root)
        return uri

    def _target(self, root: bytes) -> str:
        if isinstance(self._put_url, str):
            return self._put_url.replace(_PLACE, root.hex())
        url = self._put_url(root)
        if not isinstance(url, str) or not url.startswith("https://"):
            raise PublishFailed("the function for put_url gave no https address", hint="return a URL as text")
        return url

    def _put(self, url: str, blob: bytes) -> None:
        import requests.exceptions

        from mycelium_sdk.timed_http import (
            AnswerTooLarge,
            is_certificates_fault,
            new_session,
            read_answer,
            time_limit,
        )

        headers = {"Content-Type": "application/json", **self._headers}
        ca_file = self._policy.ca_file
        try:
            with (
                new_session() as session,
                session.put(
                    url,
                    data=blob,
                    headers=headers,
                    timeout=time_limit(_SECONDS),
                    stream=True,
                    allow_redirects=False,
                    verify=True if ca_file is None else str(ca_file),
                ) as answer,
            ):
                read_answer(answer, _ANSWER_BYTES)
                status = answer.status_code
        except AnswerTooLarge:
            status = answer.status_code
        except (requests.exceptions.RequestException, ValueError) as error:
            # Neither said nor chained: it quotes the URL, which may carry a signature.
            if is_certificates_fault(error):
                raise PublishFailed(
                    "the certificate of the server to publish to is not trusted; nothing was anchored",
                    hint="check put_url; HttpsPut(..., policy=FetchPolicy(ca_file=...)) names other"
                    " authorities to trust, as `[fetch] ca_file` does where a memory is loaded",
                ) from None
            raise PublishFailed(
                "the server to publish to could not be reached; nothing was anchored",
                hint="check put_url and the connection, then anchor again",
            ) from None
        if status not in _ACCEPTED:
            raise PublishFailed(
                f"the server to publish to answered with status {status}; nothing was anchored",
                hint="check put_url and its credentials: a presigned URL may have expired",
            )

    def _require_there(self, uri: str, root: bytes) -> None:
        from mycelium_sdk.fetching import fetch_https

        pause = _FIRST_PAUSE
        for attempt in range(1, _READ_BACKS + 1):
            try:
                found = hashlib.sha256(fetch_https(uri, self._policy)).digest()
            except BlobUnavailable as error:
                if attempt == _READ_BACKS:
                    raise PublishFailed(
                        f"the blob was put, and cannot be read at its public address: {error.message}",
                        hint="make it readable there, then anchor again; nothing was anchored",
                    ) from error
            except (BlobError, VerificationError) as error:
                raise PublishFailed(
                    f"the blob was put, and is not read from its public address: {error.message}",
                    hint="anchor an address that readers can fetch from; nothing was anchored",
                ) from error
            else:
                if found == root:
                    return
                if attempt == _READ_BACKS:
                    raise PublishFailed(
                        "what is read at the public address is not what was put; nothing was anchored",
                        hint="check that put_url and public_uri are the same object",
                    )
            time.sleep(pause)
            pause *= 2
