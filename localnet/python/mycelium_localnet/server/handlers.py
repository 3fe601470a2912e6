"""What stands behind the paths, JSON-RPC and the friendbot: methods, limits and status codes."""

from __future__ import annotations

import json
import re
from asyncio import sleep
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar
from urllib.parse import parse_qsl

from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response

from mycelium_localnet.errors import ChainClosedError, LocalnetError
from mycelium_localnet.faults.door import Trouble
from mycelium_localnet.rpc.dispatcher import Dispatcher
from mycelium_localnet.rpc.friendbot import Funding
from mycelium_localnet.rpc.limits import MAXIMUM_BODY, MAXIMUM_LOAD, fits, may_be_load

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.types import Receive, Scope, Send

    from mycelium_localnet.ledger import Chain

T = TypeVar("T")

_LOOK_SECONDS: Final = 0.25
"""How often to look whether the server is about to end, while a request waits."""

_AUTHORITY: Final = re.compile(r"[A-Za-z0-9.\-_]+(:[0-9]{1,5})?|\[[0-9A-Fa-f:.]+\](:[0-9]{1,5})?", re.ASCII)


class _EndingError(Exception):
    """The server is about to end, and does not wait any longer."""


class _DroppedError(Exception):
    """A fault wants the connection closed without an answer."""


class Handler:
    """One path, over a chain that stays the caller's to close."""

    methods: tuple[str, ...]

    def __init__(self, chain: Chain) -> None:
        self._chain = chain

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        try:
            if request.method in self.methods:
                response = await self.answer(request)
            else:
                allowed = {"Allow": ", ".join(self.methods)}
                response = PlainTextResponse("method not allowed\n", 405, allowed)
        except ClientDisconnect:
            return
        except _DroppedError:
            request.state.hang_up()
            # Going on before the server has noticed would make it answer.
            while (await receive())["type"] != "http.disconnect":
                pass
            return
        except (ChainClosedError, _EndingError):
            response = PlainTextResponse("the server ends\n", 503)
        await response(scope, receive, send)

    async def answer(self, request: Request) -> Response:
        """The answer to a request whose method is one of `methods`."""
        raise NotImplementedError

    async def carry_out(
        self,
        request: Request,
        body: bytes | None,
        begin: Callable[[], T],
        finish: Callable[[T], Awaitable[Response]],
    ) -> Response:
        """The answer that `finish` makes of what `begin` gives, which runs on a thread, or what a fault makes
        of it. `body`: None for the friendbot."""

        def begin_without_trouble() -> Trouble | T:
            trouble = _trouble(self._chain, body)
            return begin() if trouble is None else trouble

        trouble = await run_in_threadpool(begin_without_trouble)
        if not isinstance(trouble, Trouble):
            return await finish(trouble)
        await pause(request, trouble.seconds)
        response = await finish(await run_in_threadpool(begin)) if trouble.carried_out else None
        if trouble.reply is not None:
            status, kind, text = trouble.reply
            return Response(text, status, media_type=kind)
        if trouble.dropped or response is None:
            raise _DroppedError
        return response


class JsonRpc(Handler):
    """JSON-RPC by POST. `friendbot_url`: named to clients that do not say how they found the server."""

    methods = ("POST",)

    def __init__(self, chain: Chain, friendbot_url: str) -> None:
        super().__init__(chain)
        self._dispatcher = Dispatcher(chain, friendbot_url=friendbot_url)

    async def answer(self, request: Request) -> Response:
        """200 also for errors of JSON-RPC; 204 when there is nothing to answer; 413, 415."""
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/json":
            return PlainTextResponse("the content type must be application/json\n", 415)
        body = await _read_body(request, MAXIMUM_LOAD)
        if body is None or not (len(body) <= MAXIMUM_BODY or await run_in_threadpool(fits, body)):
            return _too_large()

        async def finish(answer: bytes | None) -> Response:
            return Response(status_code=204) if answer is None else _json(200, answer)

        begin = partial(self._dispatcher.handle, body, friendbot_url=_friendbot_url(request))
        return await self.carry_out(request, body, begin, finish)


class Friendbot(Handler):
    """`?addr=G...` by GET, or the same in a form by POST."""

    methods = ("GET", "POST")

    async def answer(self, request: Request) -> Response:
        """As `Funding` says; 413."""
        body = await _read_body(request)
        if body is None:
            return _too_large()
        form = dict(parse_qsl(body.decode("latin-1")))
        address = form.get("addr", request.query_params.get("addr"))

        async def finish(funding: Funding) -> Response:
            while (wait := await run_in_threadpool(funding.look)) is not None:
                await pause(request, wait)
            status, answer = funding.answer
            return _json(status, json.dumps(answer).encode("ascii"))

        return await self.carry_out(request, None, partial(Funding, self._chain, address), finish)


async def pause(request: Request, seconds: float) -> None:
    """Wait, unless the server is about to end: then the request is answered with 503."""
    while seconds > 0:
        if request.app.state.stopping():
            raise _EndingError
        await sleep(min(seconds, _LOOK_SECONDS))
        seconds -= _LOOK_SECONDS


def _trouble(chain: Chain, body: bytes | None) -> Trouble | None:
    try:
        return chain.trouble(body)
    except ChainClosedError:
        raise
    except LocalnetError:
        # Whatever is wrong with the chain is told by the answer.
        return None


async def _read_body(request: Request, limit: int = MAXIMUM_BODY) -> bytes | None:
    """The body; None when it is larger than `limit`, or than others may be while it does not begin like a
    `localnet_load`. No more than that is kept."""
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and int(declared) > limit:
        return None
    body = bytearray()
    async for part in request.stream():
        small = len(body) <= MAXIMUM_BODY
        body += part
        if len(body) > limit or (small and len(body) > MAXIMUM_BODY and not may_be_load(body)):
            return None
    return bytes(body)


def _friendbot_url(request: Request) -> str | None:
    """The friendbot as this client reaches it: under the host it asked for. None where it named none."""
    host = request.headers.get("host", "")
    if _AUTHORITY.fullmatch(host) is None:
        return None
    return f"{request.url.scheme}://{host}/friendbot"


def _json(status: int, body: bytes) -> Response:
    return Response(body, status, media_type="application/json")


def _too_large() -> Response:
    return PlainTextResponse(f"a body has at most {MAXIMUM_BODY} bytes\n", 413)
