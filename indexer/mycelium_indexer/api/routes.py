"""The resources: latest anchor, history, owners, and what operators ask."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from starlette.responses import Response
from starlette.routing import Route

from mycelium_indexer.api.answers import history_state, latest_state, owners_state
from mycelium_indexer.api.etags import etag_of, is_current
from mycelium_indexer.api.metrics import METRICS_TYPE
from mycelium_indexer.api.openapi import document
from mycelium_indexer.api.parameters import limit_of, owner_of, query_of, source_of
from mycelium_indexer.api.problems import JsonResponse, Refusal
from mycelium_sdk.errors import BackendError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from starlette.requests import Request

    from mycelium_indexer.api.metrics import Metrics
    from mycelium_indexer.api.reading import Readers
    from mycelium_indexer.api.selection import Selector, Standing
    from mycelium_indexer.api.settings import ApiSettings
    from mycelium_indexer.store.base import IndexStore


__all__ = ["Resources"]

_SOURCE = ("network", "contract")
_PAGE = (*_SOURCE, "cursor", "limit")


class Resources:
    """Answers of one application. `readers` are asked for whatever needs the database."""

    def __init__(
        self, store: IndexStore, settings: ApiSettings, selector: Selector, readers: Readers, metrics: Metrics
    ) -> None:
        self._store = store
        self._settings = settings
        self._selector = selector
        self._readers = readers
        self._metrics = metrics
        self._document = document()
        self._document_etag = etag_of(self._document)

    def routes(self) -> list[Route]:
        """Where each is found. HEAD goes wherever GET does."""
        return [
            Route("/memory", self._reading(self._owners)),
            Route("/memory/{owner}", self._reading(self._latest)),
            Route("/memory/{owner}/history", self._reading(self._history)),
            Route("/healthz", self._healthz),
            Route("/readyz", self._reading(self._readyz)),
            Route("/metrics", self._reading(self._metrics_text)),
            Route("/openapi.json", self._openapi),
        ]

    def _reading(
        self, answer: Callable[[Request], Response]
    ) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        async def endpoint(request: Request) -> Response:
            return await self._readers.run(answer, request)

        return endpoint

    def _latest(self, request: Request) -> Response:
        query = query_of(request, *_SOURCE)

        def read(source: _Source) -> dict[str, Any]:
            owner = owner_of(request)
            return latest_state(self._store, source.standing(), owner)

        return self._answer(request, query, read)

    def _history(self, request: Request) -> Response:
        query = query_of(request, *_PAGE)

        def read(source: _Source) -> dict[str, Any]:
            owner, limit = owner_of(request), limit_of(query)
            return history_state(
                self._store, source.standing(), owner, cursor=query.get("cursor"), limit=limit
            )

        return self._answer(request, query, read)

    def _owners(self, request: Request) -> Response:
        query = query_of(request, *_PAGE)

        def read(source: _Source) -> dict[str, Any]:
            limit = limit_of(query)
            return owners_state(self._store, source.standing(), cursor=query.get("cursor"), limit=limit)

        return self._answer(request, query, read)

    def _answer(
        self, request: Request, query: dict[str, str], read: Callable[[_Source], dict[str, Any]]
    ) -> Response:
        """What `read` finds, as JSON or as 304; what it refuses says which network and contract it is
        about."""
        source = _Source(self._selector, *source_of(query))
        now = self._settings.clock
        try:
            state = read(source)
        except Refusal as refusal:
            standing = source.standing_if_known()
            if standing is not None:
                refusal.members = {**standing.members(now()), **(refusal.members or {})}
            raise
        members = source.standing().members(now())
        etag = etag_of(state)
        # In headers too: without a body, "unchanged" must not hide that the index has stopped following.
        headers = {"ETag": etag, "As-Of-Ledger": str(members["as_of_ledger"]), "Lag": str(members["lag"])}
        if is_current(request.headers.get("if-none-match"), etag):
            return Response(status_code=304, headers={**headers, "Cache-Control": "no-cache"})
        return JsonResponse({**state, **members}, headers=headers)

    async def _healthz(self, request: Request) -> Response:
        query_of(request)
        return JsonResponse({"status": "ok", **self._selector.remembered()})

    def _readyz(self, request: Request) -> Response:
        query_of(request)
        standing = self._selector.select()
        return JsonResponse({"status": "ready", **standing.members(self._settings.clock())})

    def _metrics_text(self, request: Request) -> Response:
        query_of(request)
        return Response(self._metrics.text(), headers={"Content-Type": METRICS_TYPE})

    async def _openapi(self, request: Request) -> Response:
        query_of(request)
        headers = {"ETag": self._document_etag}
        if is_current(request.headers.get("if-none-match"), self._document_etag):
            return Response(status_code=304, headers=headers)
        return JsonResponse(self._document, headers=headers)


class _Source:
    """The source that a request names, looked up once, and not before the request is known to be sound."""

    def __init__(self, selector: Selector, network: str | None, contract: str | None) -> None:
        self._selector = selector
        self._named = (network, contract)
        self._found: Standing | None = None

    def standing(self) -> Standing:
        """Raises Refusal, BackendError: see `Selector.select`."""
        if self._found is None:
            self._found = self._selector.select(*self._named)
        return self._found

    def standing_if_known(self) -> Standing | None:
        """None where there is none to tell of."""
        try:
            return self.standing()
        except (Refusal, BackendError):
            return None
