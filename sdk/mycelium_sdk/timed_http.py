"""The HTTP session beneath every client: one attempt a request, a time limit for all of it, a capped answer.

What `requests` offers limits each single wait for bytes, so that a server which sends one byte a second holds
its caller for ever, and it keeps whatever comes. Environment proxies and certificate bundles count as usual;
redirects are the caller's business, and `~/.netrc` is not read: an address may carry a key, and nobody else
should get it. The texts of the libraries' errors quote addresses: `without_address` is what may be chained.
"""

from __future__ import annotations

import functools
import http.client
import io
import os
import ssl
import time
from typing import TYPE_CHECKING, Any, cast

import requests
import requests.adapters
import requests.auth
import requests.exceptions
import requests.utils
import urllib3
import urllib3.exceptions

if TYPE_CHECKING:
    import socket

    from _typeshed import WriteableBuffer
    from urllib3.connection import HTTPConnection
    from urllib3.connectionpool import HTTPConnectionPool

__all__ = [
    "MAX_ANSWER_BYTES",
    "REQUEST_SECONDS",
    "AnswerTooLarge",
    "is_certificates_fault",
    "new_session",
    "read_answer",
    "time_limit",
    "without_address",
]

REQUEST_SECONDS = 20.0
"""The time limit of a request: connecting, sending, and the whole answer."""

MAX_ANSWER_BYTES = 64 * 2**20
"""The most bytes of an answer."""

_CONNECT_SECONDS = 5.0  # for one address of a host; those of a host with many are tried one after the other
_CHUNK_BYTES = 64 * 2**10

_left_to_parents: list[requests.adapters.BaseAdapter] = []
"""In a forked child: what holds its parent's connections, so that they are not closed."""


def is_certificates_fault(error: BaseException) -> bool:
    """Whether a certificate was refused, anywhere below: each library wraps the error of the one beneath."""
    waiting: list[object] = [error]
    seen: set[int] = set()
    while waiting:
        found = waiting.pop()
        if isinstance(found, ssl.SSLCertVerificationError):
            return True
        if isinstance(found, BaseException) and id(found) not in seen:
            seen.add(id(found))
            waiting += [*found.args, found.__cause__, found.__context__, getattr(found, "reason", None)]
    return False


def without_address(error: BaseException) -> requests.exceptions.RequestException:
    """The same failure as a cause that any traceback may show: its kind, the kinds of what it came from, and
    what the operating system or TLS said, which knows hosts only.

    It is of the same class of `requests`, and `is_certificates_fault` judges it alike.
    """
    if isinstance(error, _AddressFree):
        return error
    errors = _downwards(error)
    kind = next((one for one in type(error).__mro__ if one.__module__ == "requests.exceptions"), None)
    if kind is None:
        unusable = isinstance(error, ValueError)  # as urllib3 and codecs find an address to be
        kind = requests.exceptions.InvalidURL if unusable else requests.exceptions.ConnectionError
    root = errors[-1]
    bare = isinstance(root, OSError) and type(root).__module__ in {"builtins", "ssl", "socket"}
    words = f": {root.strerror or root}" if bare and isinstance(root, OSError) else ""
    told = _address_free(kind)(", ".join(type(one).__name__ for one in errors) + words)
    if bare:
        told.__cause__ = type(root)(*root.args)
    return told


def _downwards(error: BaseException) -> list[BaseException]:
    """An error and what it came from, each library's within the next one's."""
    errors: list[BaseException] = []
    found: object = error
    while isinstance(found, BaseException) and found not in errors:
        errors.append(found)
        beneath = [getattr(found, "reason", None), *found.args, found.__cause__, found.__context__]
        found = next((one for one in beneath if isinstance(one, BaseException)), None)
    return errors


class _AddressFree(requests.exceptions.RequestException):
    """Names no address."""


@functools.cache
def _address_free(kind: type[requests.exceptions.RequestException]) -> type[_AddressFree]:
    return type(
        kind.__name__, (_AddressFree, kind) if kind is not _AddressFree.__base__ else (_AddressFree,), {}
    )


class AnswerTooLarge(requests.exceptions.RequestException):
    """The answer has more bytes than the limit, `limit`; `size` of them had come."""

    def __init__(self, limit: int, size: int) -> None:
        super().__init__(f"the answer has more than {limit} bytes")
        self.limit = limit
        self.size = size


def new_session() -> requests.Session:
    """A session without retries; its requests take `time_limit` as their timeout."""
    session = _Session()
    session.auth = _UrlCredentials()
    # A compressed answer could be small on the wire and large in memory.
    session.headers["Accept-Encoding"] = "identity"
    return session


def time_limit(seconds: float) -> Any:
    """The timeout of one request, answer included.

    `requests` hands this kind of limit through; a number would be one for each wait.
    """
    return urllib3.Timeout(total=seconds, connect=min(seconds, _CONNECT_SECONDS))


def read_answer(answer: requests.Response, limit: int) -> bytes:
    """The body of a streamed answer as it came; a failure is what `requests` itself would make of it.

    Raises `AnswerTooLarge` beyond `limit` bytes.
    """
    body = bytearray()
    try:
        for chunk in answer.raw.stream(_CHUNK_BYTES, decode_content=False):
            body += chunk
            if len(body) > limit:
                raise AnswerTooLarge(limit, len(body))
    except urllib3.exceptions.ReadTimeoutError as error:
        raise requests.exceptions.ReadTimeout(error) from error
    except urllib3.exceptions.SSLError as error:
        raise requests.exceptions.SSLError(error) from error
    except urllib3.exceptions.HTTPError as error:
        raise requests.exceptions.ChunkedEncodingError(error) from error
    return bytes(body)


class _Session(requests.Session):
    """A session whose connections a forked child leaves to its parent: on one that both used, each would read
    the other's answers."""

    def __init__(self) -> None:
        super().__init__()
        self._begin()

    def get_adapter(self, url: str) -> requests.adapters.BaseAdapter:
        self._leave_to_parent()
        return super().get_adapter(url)

    def get_redirect_target(self, resp: requests.Response) -> None:
        """None is followed here, and to prepare for it `requests` would read all of the body, of any size."""

    def close(self) -> None:
        self._leave_to_parent()
        super().close()

    def _begin(self) -> None:
        self._process = os.getpid()
        for scheme in ("http://", "https://"):
            self.mount(scheme, _TimedAdapter())

    def _leave_to_parent(self) -> None:
        if self._process != os.getpid():
            _left_to_parents.extend(self.adapters.values())
            self._begin()


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
