"""The one fetcher of what a chain points to: vetted addresses, verified TLS, hard limits.

It connects to the very address that was vetted, while certificate and Host field are those of the name, so a
name that resolves to something else a moment later makes no difference (DNS rebinding). All answers of a
resolver must be public, or none is used.
"""

from __future__ import annotations

import contextlib
import http.client
import io
import socket
import ssl
import time
from typing import TYPE_CHECKING

import certifi

from mycelium_sdk.bounded import TooSlow, within
from mycelium_sdk.errors import BlobUnavailable, LimitExceeded, UntrustedSource
from mycelium_sdk.fetching.addresses import is_allowed, parse_address
from mycelium_sdk.fetching.urls import Target, follow, parse_https

if TYPE_CHECKING:
    from collections.abc import Iterator

    from _typeshed import WriteableBuffer

    from mycelium_sdk.fetching.policy import FetchPolicy

__all__ = ["fetch_https", "open_https"]

_OK = 200
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_GONE = frozenset({404, 410})
_CHUNK = 1 << 16
_MOST_ADDRESSES = 4


def fetch_https(url: str, policy: FetchPolicy) -> bytes:
    """The body at an `https` URL, whole.

    Raises:
        UntrustedSource: the address, or one that it redirects to, is not fetched from; the answer is encoded.
        BlobUnavailable: no connection, no valid certificate, another status than 200, an answer that breaks
            off or that does not come in time.
        LimitExceeded: more than `max_bytes`.
    """
    body = bytearray()
    with open_https(url, policy) as chunks:
        for chunk in chunks:
            body += chunk
    return bytes(body)


@contextlib.contextmanager
def open_https(url: str, policy: FetchPolicy) -> Iterator[Iterator[bytes]]:
    """The body at an `https` URL in chunks, which can be read inside the block. Raises as `fetch_https`."""
    clock = _Clock(policy)
    target = parse_https(url, policy)
    for _ in range(policy.max_redirects + 1):
        with _requested(target, policy, clock) as answer:
            location = answer.getheader("Location")
            if answer.status not in _REDIRECTS or location is None:
                _require_plain(answer, policy)
                yield _chunks(answer, policy, clock)
                return
            target = follow(target, location, policy)
    raise UntrustedSource(f"the blob's address redirects more than {policy.max_redirects} times")


class _Clock:
    """What is left of the time for everything together."""

    def __init__(self, policy: FetchPolicy) -> None:
        self._deadline = time.monotonic() + policy.total_timeout

    def left(self, most: float) -> float:
        """Seconds to wait at most now. Raises `BlobUnavailable` if there are none left."""
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise _late()
        return min(left, most)


def _late() -> BlobUnavailable:
    return BlobUnavailable("the blob did not come within the time limit")


@contextlib.contextmanager
def _requested(target: Target, policy: FetchPolicy, clock: _Clock) -> Iterator[http.client.HTTPResponse]:
    """The answer to one GET, its header fields read."""
    with _connected(target, policy, clock) as sock:
        connection = http.client.HTTPConnection(target.host, target.port)
        connection.sock = sock
        connection.response_class = _timed(policy, clock)
        try:
            connection.request(
                "GET",
                target.request,
                headers={
                    "Host": target.authority,
                    "Accept": "*/*",
                    "Accept-Encoding": "identity",
                    "Connection": "close",
                    "User-Agent": "mycelium-memory",
                },
            )
            answer = connection.getresponse()
        except TimeoutError as error:
            raise _late() from error
        except (OSError, http.client.HTTPException) as error:
            raise BlobUnavailable("the server's answer is not one of HTTP, or broke off") from error
        with answer:
            yield answer


@contextlib.contextmanager
def _connected(target: Target, policy: FetchPolicy, clock: _Clock) -> Iterator[ssl.SSLSocket]:
    context = _tls(policy)
    error: OSError | None = None
    for address in _vetted(target, policy, clock)[:_MOST_ADDRESSES]:
        seconds = clock.left(policy.connect_timeout)
        try:
            plain = socket.create_connection((address, target.port), timeout=seconds)
        except OSError as cause:
            error = cause
            continue
        with plain:
            plain.settimeout(clock.left(policy.connect_timeout))
            try:
                sock = context.wrap_socket(plain, server_hostname=target.host)
            except ssl.SSLCertVerificationError as cause:
                raise BlobUnavailable(
                    f"the server's certificate is not valid for this address ({cause.verify_message})",
                    hint="check the address; `[fetch] ca_file` names other authorities to trust",
                ) from cause
            except OSError as cause:
                error = cause
                continue
            with sock:
                yield sock
                return
    raise BlobUnavailable("the server of the blob cannot be connected to") from error


def _vetted(target: Target, policy: FetchPolicy, clock: _Clock) -> list[str]:
    """The addresses of the host, all of them such that may be connected to."""
    literal = parse_address(target.host)
    if literal is None:
        # Resolvers have time limits of their own, or none.
        try:
            found = within(clock.left(policy.connect_timeout), lambda: _resolved(target, policy))
        except TooSlow as error:
            raise BlobUnavailable("the name of the blob's server could not be resolved in time") from error
    else:
        found = [str(literal)]
    for text in found:
        address = parse_address(text)
        if address is None or not is_allowed(address, policy.networks):
            raise UntrustedSource(
                "the blob's address leads to a network that is not public",
                hint="if you trust that network, name it in `[fetch] allow_networks`; or get the blob"
                " yourself and put it into blobs/ of the home folder as ROOT.json",
            )
    return found


def _resolved(target: Target, policy: FetchPolicy) -> list[str]:
    try:
        found = list(policy.resolver(target.host, target.port))
    except (OSError, UnicodeError) as error:
        raise BlobUnavailable("the name of the blob's server cannot be resolved") from error
    if not found:
        raise BlobUnavailable("the name of the blob's server has no address")
    return found


def _tls(policy: FetchPolicy) -> ssl.SSLContext:
    # Not the default context: that one looks into environment variables.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_verify_locations(cafile=certifi.where() if policy.ca_file is None else policy.ca_file)
    except OSError as error:  # `ssl.SSLError` is one
        raise BlobUnavailable(
            "the file of certificate authorities cannot be used", hint="check `[fetch] ca_file`"
        ) from error
    return context


def _require_plain(answer: http.client.HTTPResponse, policy: FetchPolicy) -> None:
    if answer.status in _GONE:
        raise BlobUnavailable("the blob is not where the anchor says (the server does not know it)")
    if answer.status != _OK:
        raise BlobUnavailable(f"the server answered with status {answer.status} instead of the blob")
    if (answer.getheader("Content-Encoding") or "identity").strip().lower() != "identity":
        raise UntrustedSource("the server sent the blob encoded, though it was asked not to")
    if answer.length is not None and answer.length > policy.max_bytes:
        raise _too_large(policy)


def _chunks(answer: http.client.HTTPResponse, policy: FetchPolicy, clock: _Clock) -> Iterator[bytes]:
    read = 0
    while True:
        clock.left(policy.read_timeout)
        try:
            chunk = answer.read1(_CHUNK)
        except TimeoutError as error:
            raise _late() from error
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise BlobUnavailable("the server's answer broke off") from error
        if not chunk:
            break
        read += len(chunk)
        if read > policy.max_bytes:
            raise _too_large(policy)
        yield chunk
    if answer.length:
        raise BlobUnavailable("the server's answer broke off")


def _too_large(policy: FetchPolicy) -> LimitExceeded:
    return LimitExceeded(
        f"the blob has more than {policy.max_bytes:,} bytes, which is the limit",
        hint="raise max_bytes of the FetchPolicy, or [fetch] max_bytes, only if you know the source",
    )


def _timed(policy: FetchPolicy, clock: _Clock) -> type[http.client.HTTPResponse]:
    class Timed(http.client.HTTPResponse):
        """An answer whose every wait for bytes is limited, and all of them together."""

        def __init__(self, sock: socket.socket, *args: object, **kwargs: object) -> None:
            super().__init__(sock, *args, **kwargs)  # type: ignore[arg-type]
            raw = self.fp.detach()
            self.fp = io.BufferedReader(_Waits(raw, sock, policy, clock))

    return Timed


class _Waits(io.RawIOBase):
    """Reads a socket; no read waits longer than the policy says."""

    def __init__(self, raw: io.RawIOBase, sock: socket.socket, policy: FetchPolicy, clock: _Clock) -> None:
        super().__init__()
        self._raw = raw
        self._sock = sock
        self._policy = policy
        self._clock = clock

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int | None:
        self._sock.settimeout(self._clock.left(self._policy.read_timeout))
        return self._raw.readinto(buffer)

    def close(self) -> None:
        super().close()
        self._raw.close()
