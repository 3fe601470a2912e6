"""The v3 API over plain HTTP: self-hosted servers, and accounts from before v5."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import requests

from mycelium_sdk.backends.supermemory.refusals import refuse, unavailable, unshaped
from mycelium_sdk.backends.supermemory.service import OWN_ID, Document, Draft, Found, Page, Value
from mycelium_sdk.backends.supermemory.settings import DEFAULT_URL
from mycelium_sdk.errors import BackendError
from mycelium_sdk.timed_http import MAX_ANSWER_BYTES, AnswerTooLarge, new_session, read_answer, time_limit

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

_MISSING = frozenset({404, 405})


class V3:
    """`Service` over the v3 API. Documents are found by the service's own ids, which its listing gives."""

    api = "v3"
    page_size = 200
    batch_size = 600
    lists_content = False
    knows_own_ids = False

    def __init__(self, namespace: str, key: str, url: str | None, *, seconds: float) -> None:
        self._tag = namespace
        self._url = (url or DEFAULT_URL).rstrip("/")
        self._seconds = seconds
        self._session = new_session()
        self._session.headers["Authorization"] = f"Bearer {key}"
        # The session's own credentials are those of the URL; they would replace the key.
        self._session.auth = _keep
        self._batches = True
        self._bulk = True

    def add(self, drafts: Sequence[Draft]) -> dict[str, str]:
        """See `Service.add`."""
        documents = [
            {
                "content": draft.content,
                "customId": draft.id,
                "containerTags": [self._tag],
                "metadata": dict(draft.metadata),
            }
            for draft in drafts
        ]
        if len(documents) > 1 and self._batches:
            answer = self._ask("POST", "documents/batch", {"documents": documents}, missing=_MISSING)
            if answer is not None:
                results = answer if isinstance(answer, list) else _field(answer, "results", list)
                return _refused(results, drafts)
            self._batches = False
        for document in documents:
            self._ask("POST", "documents", document)
        return {}

    def get(self, id: str, handle: str | None) -> Document | None:  # noqa: A002
        """See `Service.get`."""
        answer = self._ask("GET", f"documents/{quote(handle or id, safe='')}", missing=_MISSING)
        return None if answer is None else _document(answer)

    def update(self, id: str, handle: str, metadata: Mapping[str, Value], content: str | None = None) -> bool:  # noqa: A002, ARG002
        """See `Service.update`."""
        change: dict[str, Any] = {"metadata": dict(metadata)}
        if content is not None:
            change["content"] = content
        return self._ask("PATCH", f"documents/{quote(handle, safe='')}", change, missing=_MISSING) is not None

    def delete(self, documents: Sequence[tuple[str, str]]) -> list[str]:
        """See `Service.delete`."""
        if self._bulk:
            names = {handle: own for own, handle in documents}
            answer = self._ask("DELETE", "documents/bulk", {"ids": list(names)}, missing=_MISSING)
            if answer is not None:
                errors = answer.get("errors") or [] if isinstance(answer, dict) else []
                if not isinstance(errors, list):
                    raise unshaped()
                return [names.get(str(_field(one, "id", str)), "") for one in errors]
            self._bulk = False
        for _, handle in documents:
            self._ask("DELETE", f"documents/{quote(handle, safe='')}", missing=_MISSING)
        return []

    def page(self, number: int, limit: int) -> Page:
        """See `Service.page`."""
        answer = self._ask(
            "POST",
            "documents/list",
            {
                "containerTags": [self._tag],
                "page": number,
                "limit": limit,
                "sort": "updatedAt",
                "order": "desc",
            },
        )
        items = answer.get("memories", answer.get("documents")) if isinstance(answer, dict) else None
        if not isinstance(items, list):
            raise unshaped()
        total = _field(_field(answer, "pagination", dict), "totalItems", int)
        return Page([_document(item) for item in items], total)

    def search(self, query: str, limit: int) -> list[Found]:
        """See `Service.search`."""
        answer = self._ask("POST", "search", {"q": query, "containerTags": [self._tag], "limit": limit})
        return [_found(one) for one in _field(answer, "results", list)]

    def close(self) -> None:
        """See `Service.close`."""
        self._session.close()

    def _ask(self, method: str, path: str, body: object = None, missing: frozenset[int] = frozenset()) -> Any:
        """The JSON of an answer; None for a status in `missing`."""
        try:
            with self._session.request(
                method,
                f"{self._url}/v3/{path}",
                json=body,
                timeout=time_limit(self._seconds),
                stream=True,
                allow_redirects=False,
            ) as answer:
                status, headers = answer.status_code, dict(answer.headers)
                text = read_answer(answer, MAX_ANSWER_BYTES)
        except AnswerTooLarge:
            raise BackendError(
                "an answer of the memory service is larger than this client reads", hint="check base_url"
            ) from None
        except requests.exceptions.RequestException as error:
            raise unavailable(f"cannot be reached: {type(error).__name__}") from None
        if status in missing:
            return None
        if not 200 <= status < 300:
            refuse(status, headers)
        if not text and status == 204:
            return {}
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            refuse(status, headers)


def _keep(request: requests.PreparedRequest) -> requests.PreparedRequest:
    return request


def _field(answer: object, name: str, kind: type) -> Any:
    value = answer.get(name) if isinstance(answer, dict) else None
    if not isinstance(value, kind):
        raise unshaped()
    return value


def _refused(results: Iterable[object], drafts: Sequence[Draft]) -> dict[str, str]:
    """The drafts that a batch did not take. Its results name the service's ids, in the order of the request,
    the refused ones among them or after them; a refused one that names no draft spoils them all."""
    known = {draft.id for draft in drafts}
    refused: dict[str, str] = {}
    for one in results:
        if isinstance(one, dict) and (one.get("error") or one.get("status") == "error"):
            name = str(one.get("customId", one.get("id")))
            if name not in known:
                return {draft.id: "refused" for draft in drafts}
            refused[name] = "refused"
    return refused


def _document(item: Any) -> Document:
    metadata = item.get("metadata") if isinstance(item, dict) else None
    if not isinstance(item, dict) or not isinstance(metadata or {}, dict):
        raise unshaped()
    metadata = metadata or {}
    handle = _field(item, "id", str)
    content = item.get("content")
    return Document(
        id=str(item.get("customId") or metadata.get(OWN_ID) or handle),
        handle=handle,
        status=str(item.get("status", "unknown")),
        content=content if isinstance(content, str) else None,
        metadata=metadata,
        updated=str(item.get("updatedAt", "")),
    )


def _found(result: object) -> Found:
    metadata = result.get("metadata") if isinstance(result, dict) else None
    if not isinstance(result, dict) or not isinstance(metadata or {}, dict):
        raise unshaped()
    text = next((result[name] for name in ("chunk", "memory", "content") if result.get(name)), None)
    chunks = result.get("chunks")
    if text is None and isinstance(chunks, list) and len(chunks) == 1 and isinstance(chunks[0], dict):
        text = chunks[0].get("content")
    score = result.get("score", result.get("similarity", 0.0))
    if isinstance(score, bool) or not isinstance(score, (int, float)):
        raise unshaped()
    handle = result.get("documentId")
    return Found(
        handle if isinstance(handle, str) else None,
        metadata or {},
        text if isinstance(text, str) else None,
        float(min(1.0, max(0.0, score))),  # also where it is too large a number for a float
    )
