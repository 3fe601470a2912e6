"""The v5 API through the service's official client, over our own HTTP session."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import httpx
import requests
from supermemory.core.api_error import ApiError
from supermemory.core.parse_error import ParsingError

from mycelium_sdk.backends.supermemory.refusals import refuse, unavailable, unshaped
from mycelium_sdk.backends.supermemory.service import OWN_ID, Document, Draft, Found, Page, Value
from mycelium_sdk.backends.supermemory.settings import DEFAULT_URL
from mycelium_sdk.errors import BackendError
from mycelium_sdk.timed_http import MAX_ANSWER_BYTES, AnswerTooLarge, new_session, read_answer, time_limit
from supermemory import APIConnectionError, Supermemory

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_OURS_TO_SET = {"host", "connection", "content-length", "accept-encoding", "transfer-encoding"}


class V5:
    """`Service` over the v5 API. Its client never tries again by itself."""

    api = "v5"
    page_size = 100
    batch_size = 600
    lists_content = True
    knows_own_ids = True

    def __init__(self, namespace: str, key: str, url: str | None, *, seconds: float) -> None:
        self._namespace = namespace
        self._http = httpx.Client(transport=_Transport(seconds), follow_redirects=False, trust_env=False)
        self._client = Supermemory(
            base_url=url or DEFAULT_URL, api_key=key, max_retries=0, httpx_client=self._http
        )
        self._batches = True

    def add(self, drafts: Sequence[Draft]) -> dict[str, str]:
        """See `Service.add`."""
        if len(drafts) > 1 and self._batches:
            documents: Any = [
                {"id": draft.id, "content": draft.content, "metadata": dict(draft.metadata)}
                for draft in drafts
            ]
            try:
                with _mapped(missing_is_error=False):
                    answer = self._client.documents.batch_add(self._namespace, documents=documents)
                    return {
                        str(one.id): str(one.error) for one in answer.results if str(one.status) == "error"
                    }
            except _Missing:
                self._batches = False  # a server that adds one by one only
        for draft in drafts:
            with _mapped():
                self._client.add(
                    self._namespace, id=draft.id, content=draft.content, metadata=dict(draft.metadata)
                )
        return {}

    def get(self, id: str, handle: str | None) -> Document | None:  # noqa: A002, ARG002 - the interface
        """See `Service.get`."""
        try:
            with _mapped(missing_is_error=False):
                return _document(self._client.documents.get(self._namespace, id))
        except _Missing:
            return None

    def update(self, id: str, handle: str, metadata: Mapping[str, Value], content: str | None = None) -> bool:  # noqa: A002, ARG002
        """See `Service.update`."""
        change: dict[str, Any] = {"metadata": dict(metadata)}
        if content is not None:
            change["content"] = content
        try:
            with _mapped(missing_is_error=False):
                self._client.documents.update(self._namespace, id, **change)
        except _Missing:
            return False
        return True

    def delete(self, documents: Sequence[tuple[str, str]]) -> list[str]:
        """See `Service.delete`."""
        with _mapped():
            answer = self._client.documents.delete(self._namespace, ids=[own for own, _ in documents])
            return [str(error.id) for error in answer.errors]

    def page(self, number: int, limit: int) -> Page:
        """See `Service.page`."""
        with _mapped():
            answer = self._client.list(
                self._namespace,
                "documents",
                page=number,
                limit=limit,
                sort="updatedAt",
                order="desc",
                include={"content": True},
            )
            return Page([_document(item) for item in answer.documents], int(answer.pagination.total_items))

    def search(self, query: str, limit: int) -> list[Found]:
        """See `Service.search`."""
        with _mapped():
            answer = self._client.search(
                self._namespace, query=query, limit=limit, search_mode="hybrid", include={"documents": True}
            )
            return [_found(result) for result in answer.results]

    def close(self) -> None:
        """See `Service.close`."""
        self._http.close()


class _Missing(Exception):  # noqa: N818 - no error of ours
    """404 for something that may well be missing."""


def _document(item: Any) -> Document:
    metadata = dict(item.metadata or {})
    content = item.content
    if content is not None and not isinstance(content, str):
        raise unshaped()
    return Document(
        id=str(metadata.get(OWN_ID, item.id)),
        handle=str(item.id),
        status=str(item.system.status),
        content=content,
        metadata=metadata,
        updated=str(item.system.updated_at),
    )


def _found(result: Any) -> Found:
    source = result.included.document if result.included is not None else None
    metadata = dict(result.metadata or {})
    if OWN_ID not in metadata and source is not None:
        metadata = dict(source.metadata or {})
    text = result.chunk if result.chunk is not None else result.memory
    handle = None if source is None else str(source.id)
    return Found(handle, metadata, text, min(1.0, max(0.0, float(result.similarity))))


@contextlib.contextmanager
def _mapped(*, missing_is_error: bool = True) -> Iterator[None]:
    """The client's exceptions as ours. Not chained where the cause shows the body of an answer."""
    try:
        yield
    except (ApiError, ParsingError) as error:
        if error.status_code in {404, 405} and not missing_is_error:
            raise _Missing from None
        status, headers = error.status_code, error.headers
    except APIConnectionError as error:
        raise unavailable(f"cannot be reached: {_reason(error)}") from None
    except (AttributeError, TypeError, ValueError, KeyError, OverflowError, RecursionError):
        # The client hands on whatever shape an answer has.
        raise unshaped() from None
    else:
        return
    refuse(status or 0, headers)


def _reason(error: BaseException) -> str:
    """The name of what lies at the bottom: the client and its transport wrap it."""
    while error.__cause__ is not None and not isinstance(error, requests.exceptions.RequestException):
        error = error.__cause__
    return type(error).__name__


class _Transport(httpx.BaseTransport):
    """Carries the client's requests over a session with limits of time and size."""

    def __init__(self, seconds: float) -> None:
        self._session = new_session()
        self._seconds = seconds

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """One attempt, whatever the status of the answer."""
        headers = {name: value for name, value in request.headers.items() if name not in _OURS_TO_SET}
        try:
            with self._session.request(
                request.method,
                str(request.url),
                data=request.read(),
                headers=headers,
                timeout=time_limit(self._seconds),
                stream=True,
                allow_redirects=False,
            ) as answer:
                body = read_answer(answer, MAX_ANSWER_BYTES)
        except AnswerTooLarge:
            raise BackendError(
                "an answer of the memory service is larger than this client reads", hint="check base_url"
            ) from None
        except requests.exceptions.RequestException as error:
            raise httpx.TransportError(type(error).__name__) from error
        kept = [(name, value) for name, value in answer.headers.items() if name.lower() not in _OURS_TO_SET]
        return httpx.Response(answer.status_code, headers=kept, content=body)

    def close(self) -> None:
        """Close the connections."""
        self._session.close()
