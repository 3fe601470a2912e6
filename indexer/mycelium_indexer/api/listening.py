"""Sockets to listen on, taken before the database is opened: a port in use is found out first."""

from __future__ import annotations

import errno
import socket
from contextlib import ExitStack
from typing import Final

from mycelium_sdk.errors import ConfigError

__all__ = ["listen", "origin_of"]

_BACKLOG: Final = 2048
_ABSENT: Final = (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)
_HOST_HINT: Final = "use 127.0.0.1, or 0.0.0.0 for all interfaces ([indexer] host, --host)"


def listen(host: str, port: int) -> list[socket.socket]:
    """Listening sockets for each address of `host` (`localhost` has two), all on one port; 0 takes any free
    one. The caller's to close.

    Raises:
        ConfigError: the port is in use or not allowed, or the host is none of this machine.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError) as error:
        raise ConfigError(f"{host!r} is not a host of this machine", hint=_HOST_HINT) from error
    sockets: list[socket.socket] = []
    absent: OSError | None = None
    with ExitStack() as opened:
        for family, _kind, protocol, _name, address in dict.fromkeys(found):
            made = opened.enter_context(socket.socket(family, socket.SOCK_STREAM, protocol))
            try:
                _bind(made, address, port)
            except OSError as error:
                if error.errno not in _ABSENT:  # `localhost` may have an IPv6 address that no interface has
                    raise _refusal(error, host, port) from error
                absent = error
                continue
            sockets.append(made)
            port = made.getsockname()[1]
        if absent is not None and not sockets:
            raise _refusal(absent, host, port) from absent
        opened.pop_all()
    return sockets


def origin_of(host: str, port: int) -> str:
    """The URL to reach a server by from this machine."""
    reachable = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 - a comparison
    return f"http://[{reachable}]:{port}" if ":" in reachable else f"http://{reachable}:{port}"


def _bind(made: socket.socket, address: tuple[str | int, ...] | tuple[int, bytes], port: int) -> None:
    # A server that was just ended keeps its port for a minute otherwise.
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if made.family == socket.AF_INET6:
        made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    made.bind((address[0], port, *address[2:]))
    # At once: two sockets may be bound to one port, but only one of them may listen.
    made.listen(_BACKLOG)


def _refusal(error: OSError, host: str, port: int) -> ConfigError:
    if error.errno == errno.EADDRINUSE:
        return ConfigError(
            f"port {port} on {host} is in use by another program",
            hint="end that program, or choose another one ([indexer] port, --port; 0 takes a free one)",
        )
    if error.errno == errno.EACCES:
        hint = "ports below 1024 are the administrator's: choose another one ([indexer] port, --port)"
    else:
        hint = _HOST_HINT
    return ConfigError(f"cannot listen on {host}, port {port}: {error.strerror}", hint=hint)
