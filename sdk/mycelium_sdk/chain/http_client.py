"""The HTTP client for RPC servers: one attempt a request, a time limit for all of it, a cap on the answer.

`stellar_sdk`'s own client limits each single wait for bytes, so that a server which sends one byte a second
holds its caller for ever, and it keeps whatever comes. Environment proxies and certificate bundles count as
usual; redirects are not followed, and `~/.netrc` is not read: an RPC address may carry a key, and nobody else
should get it.
"""

from __future__ import annotations

import functools
import http.client
import io
import time
from typing import TYPE_CHECKING, Any, cast

import requests
import requests.adapters
import requests.auth
import requests.exceptions
import requests.utils
import stellar_sdk.exceptions
import urllib3
import urllib3.exceptions
from stellar_sdk.client.requests_client import RequestsClient
from stellar_sdk.client.response import Response

if TYPE_CHECKING:
    import socket

    from _typeshed import WriteableBuffer
    from urllib3.connection import HTTPConnection
    from urllib3.connectionpool import HTTPConnectionPool

__all__ = ["MAX_ANSWER_BYTES", "REQUEST_SECONDS", "HttpClient"]

REQUEST_SECONDS = 20.0
"""The time limit of a request: connecting, sending, and the whole answer."""

MAX_ANSWER_BYTES = 64 * 2**20
"""The most bytes of an answer. Real ones stay far below: ten thousand events are a few MiB."""

_CONNECT_SECONDS = 5.0  # for one address of a host; those of a host with many are tried one after the other
_CHUNK_BYTES = 64 * 2**10


class HttpClient(RequestsClient):
    """`stellar_sdk`'s client without retries of its own, and with limits. May be used from several threads.

    A request ends within `seconds` of the start of a connection attempt (the resolution of names and a host
    with several dead addresses come on top). Raises what `stellar_sdk` expects of a client:
    `ConnectionError`, with the cause chained, and `ContentSizeLimitExceededError` beyond `max_bytes`.
    """

    def __init__(self, *, seconds: float = REQUEST_SECONDS, max_bytes: int = MAX_ANSWER_BYTES) -> None:
        session = requests.Session()
        session.auth = _UrlCredentials()
        for scheme in ("http://", "https://"):
            session.mount(scheme, _TimedAdapter())
        super().__init__(num_retries=0, post_timeout=seconds, session=session)
        # A compressed answer could be small on the wire and large in memory.
        session.headers.update(self.headers | {"Accept-Encoding": "identity"})
        self._max_bytes = max_bytes

    def get(
        self, url: str, params: dict[str, str] | None = None, max_content_size: int | None = None
    ) -> Response:
        """One GET, whatever its status."""
        limit = self._max_bytes if max_content_size is None else min(max_content_size, self._max_bytes)
        return self._exchange("GET", url, limit, params=params)

    def post(
        self, url: str, data: dict[str, str] | None = None, json_data: dict[str, Any] | None = None
    ) -> Response:
        """One POST, whatever its status."""
        return self._exchange("POST", url, self._max_bytes, data=data, json=json_data)

    def _exchange(self, method: str, url: str, limit: int, **content: Any) -> Response:
        seconds = self.post_timeout
        # `requests` hands this kind of limit through; a number would be one for each wait.
        timeout: Any = urllib3.Timeout(total=seconds, connect=min(seconds, _CONNECT_SECONDS))
        try:
            with self._session.request(
                method, url, timeout=timeout, stream=True, allow_redirects=False, **content
            ) as answer:
                text = _read(answer, limit).decode("utf-8", "replace")
        except requests.exceptions.RequestException as error:
            raise stellar_sdk.exceptions.ConnectionError(error) from error
        return Response(answer.status_code, text, dict(answer.headers), answer.url)


def _read(answer: requests.Response, limit: int) -> bytes:
    """The body as it came; a failure is what `requests` itself would make of it."""
    body = bytearray()
    try:
        for chunk in answer.raw.stream(_CHUNK_BYTES, decode_content=False):
            body += chunk
            if len(body) > limit:
                raise stellar_sdk.exceptions.ContentSizeLimitExceededError(limit, len(body))
    except urllib3.exceptions.ReadTimeoutError as error:
        raise requests.exceptions.ReadTimeout(error) from error
    except urllib3.exceptions.SSLError as error:
        raise requests.exceptions.SSLError(error) from error
    except urllib3.exceptions.HTTPError as error:
        raise requests.exceptions.ChunkedEncodingError(error) from error
    return bytes(body)


class _UrlCredentials(requests.auth.AuthBase):
    """Sends what the configured address holds, and nothing that `~/.netrc` may have for its host."""

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        user, password = requests.utils.get_auth_from_url(request.url or "")
        return requests.auth.HTTPBasicAuth(user, password)(request) if user or password else request


class _TimedAdapter(requests.adapters.HTTPAdapter):
    """Its connections read each answer against one time limit. It never tries again."""

    def get_connection_with_tls_context(self, *args: Any, **kwargs: Any) -> HTTPConnectionPool:
        pool = cast("HTTPConnectionPool", super().get_connection_with_tls_context(*args, **kwargs))
        pool.ConnectionCls = _timed(pool.ConnectionCls)
        return pool


@functools.cache
def _timed(kind: type[HTTPConnection]) -> type[HTTPConnection]:
    """The same kind of connection, direct or through whatever proxy, with answers that have a time limit."""
    if kind.response_class is _TimedResponse:
        return kind
    return type(kind.__name__, (kind,), {"response_class": _TimedResponse})


class _TimedResponse(http.client.HTTPResponse):
    """An answer of which all, headers included, must come within the socket's present timeout.

    That timeout is what the request has left: `urllib3` sets it just before it waits for the answer.
    """

    def __init__(self, sock: socket.socket, *args: Any, **kwargs: Any) -> None:
        super().__init__(sock, *args, **kwargs)
        seconds = sock.gettimeout()
        if seconds is not None:
            self.fp = io.BufferedReader(_UntilDeadline(self.fp.detach(), sock, seconds))


class _UntilDeadline(io.RawIOBase):
    """Reads a socket; no read waits longer than what is left of the time for all of them."""

    def __init__(self, raw: io.RawIOBase, sock: socket.socket, seconds: float) -> None:
        super().__init__()
        self._raw = raw
        self._sock = sock
        self._deadline = time.monotonic() + seconds

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int | None:
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError("the answer did not come within its time limit")
        self._sock.settimeout(left)
        return self._raw.readinto(buffer)

    def close(self) -> None:
        super().close()
        self._raw.close()
