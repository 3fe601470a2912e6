"""Templates and the files beside them: loaded once, every value escaped."""

from __future__ import annotations

import functools
import hashlib
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.exceptions import HTTPException
from starlette.responses import Response

from mycelium_indexer.api.etags import is_current
from mycelium_indexer.web.wording import (
    ages,
    duration,
    is_safe_link,
    moment,
    printable,
    short,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.requests import Request

__all__ = ["HtmlResponse", "StaticFiles", "Templates", "query_text"]

_POLICY = "; ".join(
    [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'self'",
        "frame-ancestors 'none'",
    ]
)
_SAFETY = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}
_TYPES = {
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}


class HtmlResponse(Response):
    """A page. Not stored by browsers: it says how fresh it is, and a stored one would say so for ever."""

    media_type = "text/html"

    def __init__(
        self, content: str, status_code: int = 200, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(content, status_code, {"Cache-Control": "no-store", **_SAFETY, **(headers or {})})


class Templates:
    """The pages' templates. May be used from many threads."""

    def __init__(self) -> None:
        environment = Environment(
            loader=PackageLoader("mycelium_indexer.web"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
        )
        environment.filters.update(
            printable=printable,
            short=short,
            moment=moment,
            duration=duration,
            digits=_digits,
        )
        environment.tests["safe_link"] = is_safe_link
        environment.globals.update(ages=ages, query=query_text, as_text=_as_text)
        self._environment = environment

    def render(self, name: str, **values: Any) -> str:
        """The page. Raises `jinja2.UndefinedError` for a value that is not given: a bug."""
        return self._environment.get_template(name).render(**values)


@dataclass(frozen=True, slots=True)
class _File:
    content: bytes
    media_type: str
    etag: str


class StaticFiles:
    """Style sheet, scripts and icon, from the package."""

    def __init__(self) -> None:
        self._files = _static_files()

    async def serve(self, request: Request) -> Response:
        """The file of a request, 304 where the browser has it. Raises HTTPException 404."""
        found = self._files.get(request.path_params["name"])
        if found is None:
            raise HTTPException(404)
        headers = {"ETag": found.etag, "Cache-Control": "no-cache", **_SAFETY}
        if is_current(request.headers.get("if-none-match"), found.etag):
            return Response(status_code=304, headers=headers)
        return Response(found.content, headers={**headers, "Content-Type": found.media_type})


@functools.cache
def _static_files() -> dict[str, _File]:
    found: dict[str, _File] = {}
    for entry in files("mycelium_indexer.web").joinpath("static").iterdir():
        media_type = _TYPES.get(entry.name.rpartition(".")[2])
        if media_type is not None:
            content = entry.read_bytes()
            found[entry.name] = _File(content, media_type, f'"{hashlib.sha256(content).hexdigest()[:32]}"')
    return found


def _digits(number: int) -> str:
    """A number with its thousands apart, by a space that does not break."""
    return f"{number:,}".replace(",", "\u202f")


def query_text(*sources: Mapping[str, str], **more: str | None) -> str:
    """A query with its question mark, or nothing."""
    pairs = {name: value for source in sources for name, value in source.items()}
    pairs.update({name: value for name, value in more.items() if value is not None})
    return f"?{urlencode(pairs)}" if pairs else ""


def _as_text(data_hex: str) -> str | None:
    """The bytes as text, None unless they are UTF-8."""
    try:
        return bytes.fromhex(data_hex).decode("utf-8")
    except UnicodeDecodeError:
        return None
