"""Runs a server: listens, opens the chain, says when it is ready, and ends when it is asked to."""

from __future__ import annotations

import asyncio
import signal
import threading
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Final

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from mycelium_localnet.server.app import make_app
from mycelium_localnet.server.listening import listen
from mycelium_localnet.server.options import Endpoint, origin_of

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Iterator

    from mycelium_localnet.server.options import ServerOptions

_KEEP_ALIVE_SECONDS: Final = 75
"""Longer than clients keep idle connections: closing first makes their next request fail."""

_GRACE_SECONDS: Final = 5


def serve(options: ServerOptions, on_ready: Callable[[Endpoint], None]) -> None:
    """Serve a chain until SIGTERM or SIGINT comes; then finish what is under way, close the chain and return.

    `on_ready` is called once, as soon as requests are answered.

    Raises PortInUseError, ListenError, and whatever `ServerOptions.open_chain` raises; nothing is left
    behind then.
    """
    with ExitStack() as stack:
        # The port first: nothing is made on disk when it is in use.
        sockets = [stack.enter_context(one) for one in listen(options.host, options.port)]
        chain = stack.enter_context(options.open_chain())
        endpoint = Endpoint(
            origin_of(options.host, sockets[0].getsockname()[1]),
            chain.passphrase,
            chain.chain_id,
            None if options.state is None else chain.path,
        )
        config = uvicorn.Config(
            make_app(chain, endpoint.friendbot_url, lambda: server.should_exit),
            http=_Connection,
            ws="none",
            lifespan="on",
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_keep_alive=_KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=_GRACE_SECONDS,
        )
        server = _Server(config, lambda: on_ready(endpoint))
        asyncio.run(server.serve(sockets))


class _Server(uvicorn.Server):
    """Says when it is ready, and returns after a signal instead of raising it again."""

    def __init__(self, config: uvicorn.Config, on_ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_ready = on_ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """See `uvicorn.Server`."""
        await super().startup(sockets)
        self._on_ready()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """See `uvicorn.Server`. Only the main thread gets signals."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self.handle_exit, number, None)
        yield


class _Connection(H11Protocol):
    """Lets the application close the connection that a request came by (`request.state.hang_up`)."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """See `asyncio.Protocol`."""
        super().connection_made(transport)
        self.app_state = {**self.app_state, "hang_up": transport.abort}
