"""The ASGI application: a Stellar RPC server with a friendbot, whose ledgers close in time."""

from __future__ import annotations

import logging
from asyncio import CancelledError, create_task, sleep
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Final

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.routing import Route

from mycelium_localnet.errors import ChainClosedError, LocalnetError
from mycelium_localnet.server.handlers import Friendbot, JsonRpc

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from mycelium_localnet.ledger import Chain

_log = logging.getLogger(__name__)

_LOOK_SECONDS: Final = 1.0
"""How often to look whether ledgers are to close at intervals by now: any process may change that."""


def make_app(chain: Chain, friendbot_url: str, stopping: Callable[[], bool]) -> Starlette:
    """The application over a chain, which stays the caller's to close.

    `/rpc` and `/` take JSON-RPC by POST, `/friendbot` GET and POST. `friendbot_url`: named to clients that do
    not say how they found the server. `stopping`: whether the server is about to end, so that whoever waits
    is sent away. The server gives each request a `state.hang_up` that closes its connection.
    """

    @asynccontextmanager
    async def closing_in_time(_app: Starlette) -> AsyncIterator[None]:
        closer = create_task(_close_ledgers(chain))
        try:
            yield
        finally:
            closer.cancel()
            with suppress(CancelledError):
                await closer

    rpc = JsonRpc(chain, friendbot_url)
    app = Starlette(
        routes=[Route("/", rpc), Route("/rpc", rpc), Route("/friendbot", Friendbot(chain))],
        middleware=[
            Middleware(_ClosingRefusals),
            Middleware(
                CORSMiddleware,
                allow_origins=("*",),
                allow_methods=("GET", "POST"),
                allow_headers=("*",),
                allow_private_network=True,
            ),
        ],
        lifespan=closing_in_time,
    )
    app.router.redirect_slashes = False
    app.state.stopping = stopping
    return app


class _ClosingRefusals:
    """Closes the connection behind a refusal of a request whose client waits for a go-ahead (`Expect:
    100-continue`): it may send the body all the same or not, and only a new connection is sure to begin with
    a request."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def closing(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] >= 400:
                MutableHeaders(scope=message)["Connection"] = "close"
            await send(message)

        waits = scope["type"] == "http" and "expect" in Headers(scope=scope)
        await self._app(scope, receive, closing if waits else send)


async def _close_ledgers(chain: Chain) -> None:
    """Close ledgers when they are due, as long as the server runs."""
    while True:
        try:
            wait = await run_in_threadpool(chain.close_due_ledger)
        except ChainClosedError:
            return
        except LocalnetError as error:
            _log.warning("no ledger could be closed: %s", error.message)
            wait = None
        await sleep(_LOOK_SECONDS if wait is None else min(wait, _LOOK_SECONDS))
