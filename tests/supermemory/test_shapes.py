"""A service whose answers have any shape: an error of ours, and never another one."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from mycelium_sdk.backends.supermemory.service import Draft
from mycelium_sdk.backends.supermemory.v3 import V3
from mycelium_sdk.backends.supermemory.v5 import V5
from mycelium_sdk.errors import MyceliumError
from mycelium_sdk.retry import wait_asked_for
from tests.chain.sockets import Listening, Visit, http_answer

if TYPE_CHECKING:
    from collections.abc import Callable

    from mycelium_sdk.backends.supermemory.service import Service

pytestmark = pytest.mark.timeout(60)

VALUES: list[Any] = [
    None, True, 7, -1, 1.5, 10**400, float("inf"), float("nan"), "secret", [], [7], [None], {}, {"id": 7},
]  # fmt: skip
DOCUMENT: dict[str, Any] = {
    "id": "d", "customId": "d", "status": "done", "content": "x", "metadata": {}, "updatedAt": "now",
    "system": {"status": "done", "updated_at": "now"},
}  # fmt: skip
FOUND: dict[str, Any] = {
    "documentId": "d", "chunk": "x", "memory": None, "metadata": {}, "score": 0.5, "similarity": 0.5,
    "included": {"document": DOCUMENT},
}  # fmt: skip
LISTED: dict[str, Any] = {
    "memories": [DOCUMENT], "documents": [DOCUMENT], "results": [FOUND], "errors": [],
    "pagination": {"totalItems": 1, "total_items": 1},
}  # fmt: skip

ASKING: list[Callable[[Service], object]] = [
    lambda service: service.page(1, 10),
    lambda service: service.get("d", "d"),
    lambda service: service.search("x", 5),
    lambda service: service.delete([("d", "d")]),
    lambda service: service.add([Draft("d", "x", {}), Draft("e", "y", {})]),
    lambda service: service.update("d", "d", {}),
]


def _changed(whole: dict[str, Any], path: tuple[str, ...], value: Any) -> dict[str, Any]:
    if not path:
        return value  # type: ignore[no-any-return]
    part = whole.get(path[0])
    inner = part[0] if isinstance(part, list) and part and len(path) > 1 else part
    new = _changed(inner if isinstance(inner, dict) else {}, path[1:], value)
    return {**whole, path[0]: [new] if isinstance(part, list) and len(path) > 1 else new}


PLACES = [
    ("errors",), ("results",), ("documents",), ("memories",), ("pagination",), ("pagination", "totalItems"),
    ("pagination", "total_items"), ("results", "score"), ("results", "similarity"), ("results", "metadata"),
    ("results", "included"), ("results", "chunk"), ("documents", "metadata"), ("documents", "system"),
    ("documents", "id"), ("memories", "metadata"), ("metadata",), ("id",), ("content",), ("system",), (),
]  # fmt: skip


@pytest.mark.parametrize("api", [V3, V5])
def test_any_shape_is_an_answer_or_an_error_of_ours(api: type[V3 | V5]) -> None:
    bodies = [b"", b"[" * 100_000, b"{" * 100_000, b'{"a":' * 50_000, b"\xff\xfe", b"<html>secret"]
    bodies += [
        json.dumps(_changed({**DOCUMENT, **LISTED}, place, value)).encode()
        for place in PLACES
        for value in VALUES
    ]
    body = b""

    def serve(visit: Visit) -> None:
        while visit.request() is not None:
            visit.send(http_answer(body, "200 OK", "Content-Type: application/json"))

    listening = Listening(serve)
    service = api("namespace", "key", listening.url.removesuffix("/rpc"), seconds=5.0)
    try:
        for body in bodies:  # noqa: B007 - `serve` gives it
            for ask in ASKING:
                try:
                    ask(service)
                except MyceliumError as error:
                    assert "secret" not in str(error)  # noqa: PT017 - most shapes may be answers too
    finally:
        service.close()
        listening.close()


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("7", 7.0), (" 7 ", 7.0), ("9" * 5000, 3600.0), ("Thu, 01 Jan 1970 00:00:00 GMT", 0.0),
        ("Fri, 31 Dec 9999 23:59:59 GMT", 3600.0), ("", None), ("-7", None), ("soon", None), ("\u0663", None),
        ("Mon, 01 Jan 99999999999999999999 00:00:00 GMT", None),
        ("Mon, 01 Jan 2020 99999999999999999999:00:00 GMT", None),
    ],
)  # fmt: skip
def test_how_long_a_service_asks_to_wait(text: str, seconds: float | None) -> None:
    assert wait_asked_for({"retry-AFTER": text}) == seconds
    assert wait_asked_for(None) is None
