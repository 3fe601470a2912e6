"""Runs the application: serves until a signal comes, with whatever else is to run beside it."""

from __future__ import annotations

import asyncio
import logging
import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from mycelium_indexer.api.problems import ProblemResponse
from mycelium_indexer.api.selection import UNKNOWN

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Iterator

    from starlette.types import ASGIApp

__all__ = ["Server"]

_KEEP_ALIVE_SECONDS: Final = 75
"""Longer than clients and proxies keep idle connections: closing first makes their next request fail."""

_GRACE_SECONDS: Final = 10
"""How long requests that are under way may take when the server ends."""


class Server(uvicorn.Server):
    """Serves an application on sockets that listen already.

    `on_ready` is called once, as soon as requests are answered. SIGTERM and SIGINT end `run` in order: what
    is under way is answered first.
    """

    def __init__(self, app: ASGIApp, sockets: list[socket.socket], on_ready: Callable[[], None]) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                http=_Connection,
                ws="none",
                lifespan="on",
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,  # whose headers count is the configuration's to say
                timeout_keep_alive=_KEEP_ALIVE_SECONDS,
                timeout_graceful_shutdown=_GRACE_SECONDS,
            )
        )
        # It would show what is in paths, where somebody may look for a seed by mistake.
        logging.getLogger("uvicorn.access").disabled = True
        self._listening = sockets
        self._on_ready = on_ready

    def serve_until_ended(self) -> None:
        """Serve until `end` is called or a signal comes (in the main thread, which alone gets signals)."""
        asyncio.run(self.serve(self._listening))

    def end(self) -> None:
        """Have `serve_until_ended` return soon. May be called from any thread."""
        self.should_exit = True

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """See `uvicorn.Server`."""
        await super().startup(sockets)
        self._on_ready()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """See `uvicorn.Server`, which raises the signal again at the end: ending when told is no failure."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self.handle_exit, number, None)
        yield


class _Connection(H11Protocol):
    """Refuses what is no HTTP in the form of every other refusal."""

    def send_400_response(self, msg: str) -> None:
        """See `H11Protocol`."""
        problem = ProblemResponse("malformed-request", msg, UNKNOWN)
        answer = h11.Response(
            status_code=problem.status_code,
            headers=[*problem.raw_headers, (b"connection", b"close")],
            reason=b"Bad Request",
        )
        for event in (answer, h11.Data(data=bytes(problem.body)), h11.EndOfMessage()):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()
