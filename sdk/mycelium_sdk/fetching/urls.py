"""The one parser of addresses that come from a chain or a redirect."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urljoin, urlsplit

from mycelium_sdk.errors import UntrustedSource

if TYPE_CHECKING:
    from mycelium_sdk.fetching.policy import FetchPolicy

__all__ = ["Target", "follow", "parse_https"]

_HTTPS_PORT = 443
_LONGEST = 8192
_SHOWN = 16
_HOST = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?\.?|\[[0-9A-Fa-f:.]+\]")
_PRINTABLE = re.compile(r"[!-~]+")


class Target(NamedTuple):
    """Where to get something: `host` as resolvers and certificates take it, `port`, `request`: path and
    query; `authority`: host and port as the Host field takes them."""

    host: str
    port: int
    request: str
    authority: str
    url: str


def parse_https(url: str, policy: FetchPolicy) -> Target:
    """What an `https` URL names.

    Raises `UntrustedSource` for another scheme, userinfo, a port that the policy does not allow, and for what
    different programs may read differently.
    """
    if len(url) > _LONGEST or not _PRINTABLE.fullmatch(url) or "\\" in url:
        raise UntrustedSource(
            "the blob's address is not a plain URL",
            hint="the owner has to anchor an address in ASCII: percent-encoded, the host's name in punycode",
        )
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise UntrustedSource("the blob's address cannot be read") from error
    if parts.scheme != "https":
        scheme = parts.scheme[:_SHOWN] or "an address without a scheme"
        raise UntrustedSource(f"blobs are fetched by https, and not by {scheme}")
    if "@" in parts.netloc:
        raise UntrustedSource("the blob's address carries a user name or password")
    name = parts.netloc.rpartition(":")[0] if port is not None or parts.netloc.endswith(":") else parts.netloc
    if not _HOST.fullmatch(name):
        raise UntrustedSource("the blob's address names no host that can be vetted")
    port = _HTTPS_PORT if port is None else port
    if policy.ports is not None and port not in policy.ports:
        raise UntrustedSource(
            f"blobs are not fetched from port {port}",
            hint=f"if you trust that server, add {port} to `[fetch] ports`; or get the blob yourself and"
            " put it into blobs/ of the home folder as ROOT.json",
        )
    host = name.strip("[]").rstrip(".").lower()
    authority = name if port == _HTTPS_PORT else f"{name}:{port}"
    request = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Target(host, port, request, authority, url)


def follow(target: Target, location: str, policy: FetchPolicy) -> Target:
    """Where a redirect leads, checked like the first address."""
    try:
        joined = urljoin(target.url, location)
    except ValueError as error:
        raise UntrustedSource("the redirect's address cannot be read") from error
    return parse_https(joined, policy)
