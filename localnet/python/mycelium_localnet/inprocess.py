"""Stellar RPC without a socket: HTTP clients for `stellar_sdk` that answer from a chain in this process.

`stellar_sdk.SorobanServer(IN_PROCESS_URL, InProcessClient(chain))` is all there is to it.
"""

from __future__ import annotations

import asyncio
import json
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, NoReturn
from urllib.parse import parse_qsl, urlsplit

from stellar_sdk.client.base_async_client import BaseAsyncClient
from stellar_sdk.client.base_sync_client import BaseSyncClient
from stellar_sdk.client.response import Response
from stellar_sdk.exceptions import ConnectionError as StellarConnectionError
from stellar_sdk.exceptions import ContentSizeLimitExceededError

from .rpc.dispatcher import Dispatcher
from .rpc.friendbot import friendbot
from .rpc.limits import fits

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Generator, Iterator, Mapping

    from .faults.door import Reply
    from .ledger import Chain

IN_PROCESS_URL: Final = "http://localnet.invalid/rpc"
"""The URL to give to `stellar_sdk`; nothing is ever resolved or sent (the domain is reserved by RFC 2606)."""

_RPC_PATHS: Final = ("", "/", "/rpc")


class InProcessClient(BaseSyncClient):
    """`stellar_sdk`'s synchronous HTTP client over a chain: `/rpc` (and `/`) by POST,
    `/friendbot?addr=G...` by GET or POST; any other path is 404. Thread-safe. The chain stays the caller's
    to close. `sleep`: how the fault `slow` waits.

    What no other attempt mends is not answered but raised, as it is: ChainClosedError, and ChainFileError
    (the file was deleted, replaced or damaged, its disk is full). A chain that is busy is -32603.
    """

    def __init__(self, chain: Chain, *, sleep: Callable[[float], None] = time.sleep) -> None:
        self._chain = chain
        self._sleep = sleep
        self._dispatcher = Dispatcher(chain, raising=True)

    def get(
        self,
        url: str,
        params: dict[str, str] | None = None,
        max_content_size: int | None = None,
    ) -> Response:
        """Ask the friendbot.

        Raises ChainClosedError, ChainFileError, and `stellar_sdk`'s `ContentSizeLimitExceededError` for an
        answer of more than `max_content_size` bytes.
        """
        path, fields = _split(url, params)
        if path == "/friendbot":
            response = self._friendbot(url, fields)
        else:
            response = _plain(url, 405 if path in _RPC_PATHS else 404)
        if max_content_size is not None and len(response.text) > max_content_size:
            raise ContentSizeLimitExceededError(max_content_size)
        return response

    def post(
        self, url: str, data: dict[str, str] | None = None, json_data: dict[str, Any] | None = None
    ) -> Response:
        """Call a method, or the friendbot. Raises ChainClosedError, ChainFileError."""
        path, fields = _split(url, data)
        if path == "/friendbot":
            return self._friendbot(url, fields)
        if path not in _RPC_PATHS:
            return _plain(url, 404)
        body = json.dumps(json_data).encode("ascii")
        if not fits(body):
            return _plain(url, 413)

        def answer() -> Response:
            found = self._dispatcher.handle(body)
            return _plain(url, 204) if found is None else _json(url, 200, found)

        return self._carry_out(url, body, answer)

    def stream(self, url: str, params: dict[str, str] | None = None) -> Generator[dict[str, Any], None, None]:
        """Refused: streams are Horizon's, and this is Stellar RPC."""
        _refuse_stream(url, params)

    def close(self) -> None:
        """Nothing to release: the chain belongs to the caller."""

    def _friendbot(self, url: str, fields: Mapping[str, str]) -> Response:
        def answer() -> Response:
            status, body = friendbot(self._chain, fields.get("addr"))
            return _json(url, status, json.dumps(body).encode("ascii"))

        return self._carry_out(url, None, answer)

    def _carry_out(self, url: str, body: bytes | None, answer: Callable[[], Response]) -> Response:
        """The answer, or what a fault makes of it."""
        with _connected():
            trouble = self._chain.trouble(body)
            if trouble is None:
                return answer()
            if trouble.seconds:
                self._sleep(trouble.seconds)
            response = answer() if trouble.carried_out else None
            if trouble.reply is not None:
                return _reply(url, trouble.reply)
            if trouble.dropped or response is None:
                raise ConnectionResetError("the connection was closed without an answer")
            return response


class AsyncInProcessClient(BaseAsyncClient):
    """`InProcessClient` for `stellar_sdk.SorobanServerAsync`: each call runs on a thread, so the loop goes
    on."""

    def __init__(self, chain: Chain, *, sleep: Callable[[float], None] = time.sleep) -> None:
        self._client = InProcessClient(chain, sleep=sleep)

    async def get(
        self, url: str, params: dict[str, str] | None = None, max_content_size: int | None = None
    ) -> Response:
        """Ask the friendbot."""
        return await asyncio.to_thread(self._client.get, url, params, max_content_size)

    async def post(
        self, url: str, data: dict[str, str] | None = None, json_data: dict[str, Any] | None = None
    ) -> Response:
        """Call a method, or the friendbot."""
        return await asyncio.to_thread(self._client.post, url, data, json_data)

    def stream(self, url: str, params: dict[str, str] | None = None) -> AsyncGenerator[dict[str, Any], None]:
        """Refused: streams are Horizon's, and this is Stellar RPC."""
        _refuse_stream(url, params)

    async def close(self) -> None:
        """Nothing to release: the chain belongs to the caller."""


def _split(url: str, fields: Mapping[str, str] | None) -> tuple[str, dict[str, str]]:
    parts = urlsplit(url)
    return parts.path, {**dict(parse_qsl(parts.query)), **(fields or {})}


def _json(url: str, status: int, body: bytes) -> Response:
    return Response(status, body.decode("ascii"), {"Content-Type": "application/json"}, url)


def _reply(url: str, reply: Reply) -> Response:
    return Response(reply.status, reply.body.decode(), {"Content-Type": reply.content_type}, url)


def _plain(url: str, status: int) -> Response:
    return Response(status, "", {"Content-Type": "text/plain"}, url)


@contextmanager
def _connected() -> Iterator[None]:
    """A connection that a fault drops, in the words of `stellar_sdk`."""
    try:
        yield
    except ConnectionResetError as error:
        raise StellarConnectionError(str(error)) from error


def _refuse_stream(*_request: object) -> NoReturn:
    raise NotImplementedError("Horizon's streams are not part of Stellar RPC; poll getEvents instead")
