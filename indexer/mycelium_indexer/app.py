"""The ASGI application: the REST API and the explorer page over one store."""

from __future__ import annotations

import logging
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware

from mycelium_indexer import web
from mycelium_indexer.api.clients import RateLimit
from mycelium_indexer.api.metrics import Metrics
from mycelium_indexer.api.middleware import Limiting, Observing, OpenToReaders, problem_of
from mycelium_indexer.api.problems import Refusal
from mycelium_indexer.api.reading import Readers
from mycelium_indexer.api.routes import Resources
from mycelium_indexer.api.selection import Selector
from mycelium_sdk.errors import BackendError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from starlette.requests import Request
    from starlette.responses import Response

    from mycelium_indexer.api.settings import ApiSettings
    from mycelium_indexer.store.base import IndexStore

__all__ = ["make_app"]

_log = logging.getLogger("mycelium_indexer.api")


def make_app(store: IndexStore, settings: ApiSettings) -> Starlette:
    """The application over a store, which stays the caller's to close. Serves one event loop."""
    selector = Selector(store, settings)
    readers = Readers(settings.readers, settings.most_waiting)
    metrics = Metrics(store, settings)

    @asynccontextmanager
    async def ending(_app: Starlette) -> AsyncIterator[None]:
        yield
        readers.close()

    async def refused(_request: Request, error: Exception) -> Response:
        if isinstance(error, BackendError):
            _log.warning("the database cannot be used", extra={"fields": {"problem": error.message}})
        return problem_of(error, selector)

    middleware = [
        Middleware(OpenToReaders),
        Middleware(Observing, metrics=metrics, selector=selector, access_log=settings.access_log),
    ]
    if settings.rate_limit:
        limit = RateLimit(settings.rate_limit)
        middleware.append(
            Middleware(Limiting, limit=limit, trusted=settings.trusted_proxies, selector=selector)
        )
    app = Starlette(
        routes=[
            *Resources(store, settings, selector, readers, metrics).routes(),
            *web.routes(store, settings, selector, readers),
        ],
        middleware=middleware,
        exception_handlers={Refusal: refused, BackendError: refused, HTTPException: refused},
        lifespan=ending,
    )
    app.router.redirect_slashes = False
    return app
