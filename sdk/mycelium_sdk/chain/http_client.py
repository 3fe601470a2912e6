"""The HTTP client for RPC servers: `stellar_sdk`'s, over a session that limits time and size."""

from __future__ import annotations

from typing import Any

import requests.exceptions
import stellar_sdk.exceptions
import urllib3.exceptions
from stellar_sdk.client.requests_client import RequestsClient
from stellar_sdk.client.response import Response

from mycelium_sdk.timed_http import (
    MAX_ANSWER_BYTES,
    REQUEST_SECONDS,
    AnswerTooLarge,
    new_session,
    read_answer,
    time_limit,
    without_address,
)

__all__ = ["MAX_ANSWER_BYTES", "REQUEST_SECONDS", "HttpClient"]


class HttpClient(RequestsClient):
    """`stellar_sdk`'s client without retries of its own, and with limits. May be used from several threads.

    A request ends within `seconds` of the start of a connection attempt (the resolution of names and a host
    with several dead addresses come on top). Raises what `stellar_sdk` expects of a client:
    `ConnectionError`, with a cause that names no address, since that may carry a key, and
    `ContentSizeLimitExceededError` beyond `max_bytes`. Real answers stay far below its default: ten thousand
    events are a few MiB.
    """

    def __init__(self, *, seconds: float = REQUEST_SECONDS, max_bytes: int = MAX_ANSWER_BYTES) -> None:
        session = new_session()
        super().__init__(num_retries=0, post_timeout=seconds, session=session)
        session.headers.update(self.headers | {"Accept-Encoding": "identity"})
        self._max_bytes = max_bytes

    def get(
        self, url: str, params: dict[str, str] | None = None, max_content_size: int | None = None
    ) -> Response:
        """One GET, whatever its status."""
        limit = self._max_bytes if max_content_size is None else min(max_content_size, self._max_bytes)
        return self._exchange("GET", url, limit, params=params)

    def post(
        self, url: str, data: dict[str, str] | None = None, json_data: dict[str, Any] | None = None
    ) -> Response:
        """One POST, whatever its status."""
        return self._exchange("POST", url, self._max_bytes, data=data, json=json_data)

    def _exchange(self, method: str, url: str, limit: int, **content: Any) -> Response:
        try:
            with self._session.request(
                method,
                url,
                timeout=time_limit(self.post_timeout),
                stream=True,
                allow_redirects=False,
                **content,
            ) as answer:
                text = read_answer(answer, limit).decode("utf-8", "replace")
                return Response(answer.status_code, text, dict(answer.headers), answer.url)
        except AnswerTooLarge as error:
            raise stellar_sdk.exceptions.ContentSizeLimitExceededError(error.limit, error.size) from None
        except (requests.exceptions.RequestException, urllib3.exceptions.HTTPError, UnicodeError) as error:
            cause = without_address(error)
        # Not within the block, or the original would be its context.
        raise stellar_sdk.exceptions.ConnectionError(cause) from cause
