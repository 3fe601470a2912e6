"""Errors as RFC 9457 problem details, and the JSON answers that they are made like."""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from starlette.responses import Response

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["PROBLEMS", "JsonResponse", "ProblemResponse", "Refusal"]

PROBLEMS: dict[str, tuple[HTTPStatus, str]] = {
    "malformed-request": (HTTPStatus.BAD_REQUEST, "Malformed request"),
    "unknown-owner": (HTTPStatus.NOT_FOUND, "Unknown owner"),
    "unknown-source": (HTTPStatus.NOT_FOUND, "Unknown network or contract"),
    "not-found": (HTTPStatus.NOT_FOUND, "No such resource"),
    "method-not-allowed": (HTTPStatus.METHOD_NOT_ALLOWED, "Method not allowed"),
    "malformed-address": (HTTPStatus.UNPROCESSABLE_ENTITY, "Malformed address"),
    "malformed-parameter": (HTTPStatus.UNPROCESSABLE_ENTITY, "Malformed parameter"),
    "malformed-cursor": (HTTPStatus.UNPROCESSABLE_ENTITY, "Malformed cursor"),
    "ambiguous-source": (HTTPStatus.UNPROCESSABLE_ENTITY, "Ambiguous network or contract"),
    "too-many-requests": (HTTPStatus.TOO_MANY_REQUESTS, "Too many requests"),
    "internal": (HTTPStatus.INTERNAL_SERVER_ERROR, "Internal error"),
    "nothing-ingested": (HTTPStatus.SERVICE_UNAVAILABLE, "Nothing ingested yet"),
    "database-unavailable": (HTTPStatus.SERVICE_UNAVAILABLE, "Database unavailable"),
    "overloaded": (HTTPStatus.SERVICE_UNAVAILABLE, "Too busy"),
}
"""Each kind of problem, as the end of its `type`, with its status and title. Part of the API."""

_TYPE = "urn:mycelium:problem:"

_HEADERS = {
    "Cache-Control": "no-cache",  # may be kept, and must be asked about each time
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
}


class JsonResponse(Response):
    """A JSON answer: pure ASCII, since owners write what they like into their anchors, and never taken for
    anything else by a browser."""

    media_type = "application/json"

    def __init__(
        self, content: object, status_code: int = 200, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(content, status_code, {**_HEADERS, **(headers or {})})

    def render(self, content: object) -> bytes:
        """See `Response`."""
        return json.dumps(content, allow_nan=False, separators=(",", ":")).encode("ascii")


class ProblemResponse(JsonResponse):
    """Problem details: `kind` is one of `PROBLEMS`, `members` what else the answer carries."""

    media_type = "application/problem+json"

    def __init__(
        self,
        kind: str,
        detail: str,
        members: Mapping[str, Any],
        headers: Mapping[str, str] | None = None,
    ) -> None:
        status, title = PROBLEMS[kind]
        content = {"type": _TYPE + kind, "title": title, "status": int(status), "detail": detail, **members}
        super().__init__(content, status, headers)


class Refusal(Exception):  # noqa: N818 - the names say what happened
    """Ends a request with a problem. `detail` never repeats what the client sent: it may be a seed.

    `members` are shown beside it; `headers` go with it.
    """

    def __init__(
        self,
        kind: str,
        detail: str,
        *,
        members: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(kind)
        self.kind = kind
        self.detail = detail
        self.members = members
        self.headers = headers
