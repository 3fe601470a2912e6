"""Sockets to listen on, taken before anything else is done: a port in use is found out first."""

from __future__ import annotations

import errno
import socket
from contextlib import ExitStack
from typing import Final

from mycelium_localnet.errors import InvalidRequestError, ListenError, PortInUseError

_BACKLOG: Final = 2048
_ABSENT: Final = (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)


def listen(host: str, port: int) -> list[socket.socket]:
    """Listening sockets for each address of `host` (`localhost` has two), all on one port.

    Raises PortInUseError, ListenError, InvalidRequestError for a port that is none.
    """
    if not 0 <= port <= 65_535:
        raise InvalidRequestError(f"{port} is not a port", hint="ports are 0 (any free one) to 65535")
    try:
        found = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError) as error:
        raise ListenError(
            f"{host!r} is not a host of this machine", hint="use 127.0.0.1, or 0.0.0.0 for all interfaces"
        ) from error
    missing: OSError | None = None
    sockets: list[socket.socket] = []
    with ExitStack() as opened:
        for family, _kind, protocol, _name, address in dict.fromkeys(found):
            try:
                sockets.append(
                    opened.enter_context(_listen(family, protocol, (address[0], port, *address[2:])))
                )
            except OSError as error:
                if error.errno not in _ABSENT:
                    raise _refusal(error, host, port) from error
                missing = error
                continue
            port = sockets[-1].getsockname()[1]
        if missing is not None and not sockets:
            raise _refusal(missing, host, port) from missing
        opened.pop_all()
    return sockets


def _listen(family: int, protocol: int, address: tuple[str | int, ...]) -> socket.socket:
    # With the protocol: asyncio sends at once (TCP_NODELAY) only on sockets that name it, and without that
    # every answer waits 40 ms for the client's acknowledgement of its head.
    made = socket.socket(family, socket.SOCK_STREAM, protocol)
    try:
        # A server that was just ended keeps its port for a minute otherwise.
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        made.bind(address)
        # At once: two sockets may be bound to one port, but only one of them may listen.
        made.listen(_BACKLOG)
    except OSError:
        made.close()
        raise
    return made


def _refusal(error: OSError, host: str, port: int) -> ListenError:
    if error.errno == errno.EADDRINUSE:
        return PortInUseError(
            f"port {port} on {host} is in use by another program",
            hint="end that program, or choose another --port (0 takes a free one)",
        )
    if error.errno == errno.EACCES:
        hint = "ports below 1024 are the administrator's: choose another --port"
    else:
        hint = "use 127.0.0.1, or 0.0.0.0 for all interfaces"
    return ListenError(f"cannot listen on {host}, port {port}: {error.strerror}", hint=hint)
