"""What may be fetched, from where, and how much of it."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from mycelium_sdk.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

    from mycelium_sdk.config import Fetch
    from mycelium_sdk.fetching.addresses import Network

__all__ = ["OWN_MAX_BYTES", "STRANGERS_MAX_BYTES", "FetchPolicy", "Resolver"]

STRANGERS_MAX_BYTES = 64 << 20
"""The size limit for a stranger's blob, 64 MiB (formats.md section 5)."""

OWN_MAX_BYTES = 1 << 30
"""The size limit for one's own, 1 GiB."""

_OWN_SECONDS = 600.0

Resolver = Callable[[str, int], Sequence[str]]
"""Host name and port to addresses; raises `OSError` if there are none."""


def resolve(host: str, port: int) -> list[str]:
    """The addresses that the system gives for a name."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


@dataclass(frozen=True, slots=True)
class FetchPolicy:
    """The limits of fetching a blob; strict by default: a stranger's.

    `max_bytes`: the most bytes of a body. `connect_timeout`, `read_timeout`: seconds for one connection with
    its handshake, and for each wait for bytes; `total_timeout`: for everything together, redirects included.
    `ports`: those that may be connected to, None for any. `allow_networks`: networks that may be connected to
    although they are not public, as text such as "10.0.0.0/8". `ca_file`: certificates of authorities (PEM)
    to trust instead of the usual ones. `resolver`: how names become addresses. Nothing that comes from the
    chain changes any of this, and nothing of the environment does: no proxies, no `~/.netrc`.
    """

    max_bytes: int = STRANGERS_MAX_BYTES
    connect_timeout: float = 5.0
    read_timeout: float = 10.0
    total_timeout: float = 60.0
    max_redirects: int = 3
    ports: tuple[int, ...] | None = (443,)
    allow_networks: tuple[str, ...] = ()
    ca_file: Path | None = None
    resolver: Resolver = field(default=resolve, repr=False)

    def __post_init__(self) -> None:
        for name in ("max_bytes", "connect_timeout", "read_timeout", "total_timeout"):
            if not getattr(self, name) > 0:
                raise InputError(f"{name} of a FetchPolicy must be above 0")
        if self.max_redirects < 0:
            raise InputError("max_redirects of a FetchPolicy is below 0", hint="0 follows none")
        _networks(self.allow_networks)

    @classmethod
    def for_own(cls) -> FetchPolicy:
        """For the owner's own blobs: larger, longer, any port."""
        return cls(max_bytes=OWN_MAX_BYTES, total_timeout=_OWN_SECONDS, ports=None)

    def configured(self, fetch: Fetch) -> FetchPolicy:
        """The same with what `[fetch]` of the configuration says."""
        return replace(
            self,
            max_bytes=self.max_bytes if fetch.max_bytes is None else fetch.max_bytes,
            connect_timeout=fetch.connect_timeout,
            read_timeout=fetch.read_timeout,
            total_timeout=self.total_timeout if fetch.total_timeout is None else fetch.total_timeout,
            max_redirects=fetch.max_redirects,
            ports=self.ports if fetch.ports is None else fetch.ports,
            allow_networks=fetch.allow_networks,
            ca_file=fetch.ca_file,
        )

    @property
    def networks(self) -> tuple[Network, ...]:
        """`allow_networks`, parsed."""
        return _networks(self.allow_networks)


def _networks(texts: Sequence[str]) -> tuple[Network, ...]:
    try:
        return tuple(ipaddress.ip_network(text) for text in texts)
    except ValueError as error:
        raise InputError(
            "allow_networks of a FetchPolicy holds something that is no network",
            hint='write networks as "10.0.0.0/8" or "fd00::/8"',
        ) from error
