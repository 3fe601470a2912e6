"""What happens around every request: it is timed and logged, failures become problems, browsers of other
origins may read the answer, and clients that ask too often are sent away."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.responses import Response

from mycelium_indexer.api.clients import client_of
from mycelium_indexer.api.problems import ProblemResponse, Refusal
from mycelium_sdk.errors import BackendError

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from mycelium_indexer.api.clients import RateLimit
    from mycelium_indexer.api.metrics import Metrics
    from mycelium_indexer.api.selection import Selector
    from mycelium_indexer.api.settings import IpNetwork

__all__ = ["HEALTH_PATHS", "Limiting", "Observing", "OpenToReaders", "problem_of"]

HEALTH_PATHS = frozenset({"/healthz", "/readyz"})
"""Whoever looks whether this process lives is never sent away."""

_EXPOSED = "ETag, Retry-After, As-Of-Ledger, Lag"
_PREFLIGHT = {
    "Access-Control-Allow-Methods": "GET, HEAD",
    "Access-Control-Allow-Headers": "If-None-Match",
    "Access-Control-Max-Age": "86400",
}

_log = logging.getLogger("mycelium_indexer.api")


class Observing:
    """Outermost: every answer is counted and logged by its route, and a bug is answered like any failure."""

    def __init__(self, app: ASGIApp, *, metrics: Metrics, selector: Selector, access_log: bool) -> None:
        self._app = app
        self._metrics = metrics
        self._selector = selector
        self._access_log = access_log

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.perf_counter()
        status = 0

        async def watching(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, watching)
        except Exception as error:
            _log.error("a request failed", exc_info=error)
            if status:
                raise  # half an answer must not look like a whole one
            await problem_of(error, self._selector)(scope, receive, watching)
        finally:
            self._note(scope, status, time.perf_counter() - began)

    def _note(self, scope: Scope, status: int, seconds: float) -> None:
        route = getattr(scope.get("route"), "path", None) or "unmatched"
        self._metrics.answered(scope["method"], route, status, seconds)
        if self._access_log:
            _log.info(
                "answered",
                extra={"fields": {"route": route, "status": status, "ms": round(seconds * 1000, 2)}},
            )


class OpenToReaders:
    """Lets pages of any origin read (CORS): everything here is public, and nothing depends on who asks."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def opening(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers["Access-Control-Allow-Origin"] = "*"
                headers["Access-Control-Expose-Headers"] = _EXPOSED
            await send(message)

        if scope["method"] == "OPTIONS":
            asked = Headers(scope=scope)
            if "origin" in asked and "access-control-request-method" in asked:
                await Response(status_code=204, headers=_PREFLIGHT)(scope, receive, opening)
                return
        await self._app(scope, receive, opening)


class Limiting:
    """Sends clients away that ask too often."""

    def __init__(
        self, app: ASGIApp, *, limit: RateLimit, trusted: tuple[IpNetwork, ...], selector: Selector
    ) -> None:
        self._app = app
        self._limit = limit
        self._trusted = trusted
        self._selector = selector

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] not in HEALTH_PATHS:
            peer = scope["client"][0] if scope.get("client") else None
            client = client_of(peer, Headers(scope=scope).getlist("x-forwarded-for"), self._trusted)
            wait = self._limit.take(client)
            if wait is not None:
                refusal = Refusal(
                    "too-many-requests",
                    f"ask again in {wait} s",
                    headers={"Retry-After": str(wait)},
                )
                await problem_of(refusal, self._selector)(scope, receive, send)
                return
        await self._app(scope, receive, send)


def problem_of(error: Exception, selector: Selector) -> ProblemResponse:
    """The answer to a request that ended with an exception. Asks nothing of the database."""
    if isinstance(error, Refusal):
        members = {**selector.remembered(), **(error.members or {})}
        return ProblemResponse(error.kind, error.detail, members, error.headers)
    if isinstance(error, BackendError):
        return ProblemResponse(
            "database-unavailable",
            "the database does not answer",
            selector.remembered(),
            {"Retry-After": "5"},
        )
    if isinstance(error, HTTPException) and error.status_code == 405:
        return ProblemResponse(
            "method-not-allowed", "this can only be read", selector.remembered(), error.headers
        )
    if isinstance(error, HTTPException) and error.status_code == 404:
        return ProblemResponse("not-found", "see /openapi.json for what there is", selector.remembered())
    return ProblemResponse("internal", "this is a bug; the log says where", selector.remembered())
