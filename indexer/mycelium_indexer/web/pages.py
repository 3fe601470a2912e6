"""The pages: who anchored last, one owner's history, and what a page says when it cannot be shown."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from mycelium_indexer.api.answers import history_state, latest_state, owners_state
from mycelium_indexer.api.cursors import history_cursor
from mycelium_indexer.api.etags import etag_of, is_current
from mycelium_indexer.api.parameters import owner_of, query_of, source_of
from mycelium_indexer.api.problems import PROBLEMS, Refusal
from mycelium_indexer.web.rendering import HtmlResponse, StaticFiles, Templates, query_text
from mycelium_indexer.web.timeline import lines_of, plot_of
from mycelium_sdk.errors import BackendError
from mycelium_sdk.strkey import is_account, is_contract

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from starlette.requests import Request

    from mycelium_indexer.api.reading import Readers
    from mycelium_indexer.api.selection import Selector, Standing
    from mycelium_indexer.api.settings import ApiSettings
    from mycelium_indexer.store.base import IndexStore

__all__ = ["routes"]

_log = logging.getLogger("mycelium_indexer.web")

_SOURCE = ("network", "contract")
_OWNERS = 50
_IN_THE_PICTURE = 500
_IN_THE_TABLE = 50
_SILENT_SECONDS = 120
"""An indexer that asks the chain does so every few seconds, and every minute when the chain fails."""
_LEDGERS_BEHIND = 5


def routes(store: IndexStore, settings: ApiSettings, selector: Selector, readers: Readers) -> list[Route]:
    """The explorer page at `/`, and what belongs to it. `readers` are asked for whatever needs the database.

    Links are relative, so that it can be served below any path.
    """
    return _Pages(store, settings, selector, readers).routes()


@dataclass(frozen=True, slots=True)
class _View:
    """A page to be: its template, what of it is anchored state (JSON), and what else it shows."""

    template: str
    standing: Standing
    state: dict[str, Any]
    values: dict[str, Any]


class _Pages:
    def __init__(
        self, store: IndexStore, settings: ApiSettings, selector: Selector, readers: Readers
    ) -> None:
        self._store = store
        self._settings = settings
        self._selector = selector
        self._readers = readers
        self._templates = Templates()

    def routes(self) -> list[Route]:
        return [
            Route("/", self._page(self._overview, root=".")),
            Route("/owners", self._page(self._search, root=".")),
            Route("/owners/{owner}", self._page(self._owner, root="..")),
            Route("/static/{name}", StaticFiles().serve),
        ]

    def _page(
        self, make: Callable[[Request], _View | Response], *, root: str
    ) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        def answer(request: Request) -> Response:
            try:
                made = make(request)
            except Refusal as refusal:
                return self._refused(refusal, root, _sound(refusal, request))
            return made if isinstance(made, Response) else self._shown(request, made, root)

        async def endpoint(request: Request) -> Response:
            try:
                return await self._readers.run(answer, request)
            except Refusal as refusal:  # of the queue
                return self._refused(refusal, root)
            except BackendError as error:
                _log.warning("the database cannot be used", extra={"fields": {"problem": error.message}})
                return self._refused(_UNAVAILABLE, root)

        return endpoint

    def _overview(self, request: Request) -> _View:
        query = query_of(request, *_SOURCE, "cursor")
        standing = self._selector.select(*source_of(query))
        state = owners_state(self._store, standing, cursor=query.get("cursor"), limit=_OWNERS)
        totals = self._store.totals(standing.source)
        state["totals"] = [totals.owners, totals.anchors, totals.gaps, totals.set_aside]
        state["missed"] = [[one.first, one.last] for one in self._store.missed(standing.source)]
        values = {
            "totals": totals,
            "newest": state["items"][0] if state["items"] else None,
            "cursor": query.get("cursor"),
            "source": _named(query),
        }
        return _View("overview.html", standing, state, values)

    def _search(self, request: Request) -> Response:
        query = query_of(request, *_SOURCE, "owner")
        owner = query.get("owner", "").strip()
        source = _named(query)
        if not owner:
            return _redirect("./", source)
        if not (is_account(owner) or is_contract(owner)):
            raise Refusal(
                "malformed-address",
                "an owner is an account (G and 55 more characters) or a contract (C and 55 more)",
            )
        return _redirect(f"owners/{owner}", source)

    def _owner(self, request: Request) -> _View:
        query = query_of(request, *_SOURCE, "cursor")
        owner = owner_of(request)
        standing = self._selector.select(*source_of(query))
        state = history_state(self._store, standing, owner, cursor=query.get("cursor"), limit=_IN_THE_PICTURE)
        items = state["items"]
        latest = items[0] if "cursor" not in query else latest_state(self._store, standing, owner)
        state["latest"] = latest
        lines = lines_of(items, state["gaps"])
        following = state["next"]
        rows = lines
        if len(items) > _IN_THE_TABLE:
            shown = items[:_IN_THE_TABLE]
            rows = lines_of(shown, state["gaps"])
            following = history_cursor(standing.source, owner, shown[-1]["version"])
        values = {
            "owner": owner,
            "latest": latest,
            "rows": rows,
            "plot": plot_of(lines),
            "following": following,
            "cursor": query.get("cursor"),
            "source": _named(query),
        }
        return _View("owner.html", standing, state, values)

    def _shown(self, request: Request, view: _View, root: str) -> Response:
        now = self._settings.clock()
        progress = view.standing.progress
        etag = etag_of(view.state)
        followed = _followed(progress.latest_ledger - progress.ledger, now - progress.asked_at)
        headers = {
            "ETag": etag,
            "As-Of-Ledger": str(progress.ledger),
            "Lag": f"{progress.lag(now):.3f}",
            "Followed": followed,
        }
        if is_current(request.headers.get("if-none-match"), etag):
            return Response(status_code=304, headers={**headers, "Cache-Control": "no-store"})
        page = self._templates.render(
            view.template, root=root, etag=etag, now=now, standing=view.standing, followed=followed,
            state=view.state, **view.values,
        )  # fmt: skip
        return HtmlResponse(page, headers=headers)

    def _refused(self, refusal: Refusal, root: str, source: dict[str, str] | None = None) -> Response:
        status, title = PROBLEMS[refusal.kind]
        choices = []
        if refusal.kind == "ambiguous-source":
            choices = [source for source in self._store.sources() if source.current]
        page = self._templates.render(
            "refusal.html", root=root, source=source or {}, title=title, kind=refusal.kind,
            detail=refusal.detail, choices=choices, members=refusal.members or {}, passing=int(status) == 503,
        )  # fmt: skip
        return HtmlResponse(page, int(status), refusal.headers)


_UNAVAILABLE = Refusal("database-unavailable", "the database does not answer", headers={"Retry-After": "5"})


def _followed(ledgers_behind: int, silent_seconds: float) -> str:
    """`silent`, `behind` or `closely`. By ledgers, not by the lag: a chain that closes ledgers on demand has
    none to follow for hours."""
    if silent_seconds > _SILENT_SECONDS:
        return "silent"
    return "behind" if ledgers_behind > _LEDGERS_BEHIND else "closely"


def _named(query: dict[str, str]) -> dict[str, str]:
    """The source that a request named, for the links of its page."""
    return {name: query[name] for name in _SOURCE if name in query}


def _sound(refusal: Refusal, request: Request) -> dict[str, str]:
    """The same for a request that was refused: only where its query was looked at and found good."""
    return _named(query_of(request, *_SOURCE, "cursor")) if refusal.kind == "unknown-owner" else {}


def _redirect(path: str, source: dict[str, str]) -> Response:
    return RedirectResponse(path + query_text(source), 303)
