"""The HTTP client that `stellar_sdk` is given: one door for requests, where failures are named and reads
retried."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import stellar_sdk.exceptions
from stellar_sdk.client.base_sync_client import BaseSyncClient
from stellar_sdk.client.response import Response

from mycelium_sdk.chain import translate
from mycelium_sdk.timed_http import without_address

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from mycelium_sdk.retry import RetryPolicy

__all__ = ["Transport"]

# Repeating this one is the submit loop's decision: the first attempt may have been accepted.
_SEND = "sendTransaction"


class Transport(BaseSyncClient):
    """Wraps the client that really sends. Its answers are JSON-RPC results, or errors of this package's
    tree."""

    def __init__(self, inner: BaseSyncClient, policy: RetryPolicy) -> None:
        self._inner = inner
        self._policy = policy

    def post(
        self,
        url: str,
        data: dict[str, str] | None = None,
        json_data: dict[str, Any] | None = None,
    ) -> Response:
        """Send one JSON-RPC request and check the answer's frame. Everything but sending is retried."""
        method = str((json_data or {}).get("method", ""))
        sending = method == _SEND

        def once() -> Response:
            response = _answer(
                url, lambda: self._inner.post(url, data=data, json_data=json_data), sending=sending
            )
            return _checked(url, method, response, sending=sending)

        return once() if sending else self._policy.call(once)

    def get(
        self, url: str, params: dict[str, str] | None = None, max_content_size: int | None = None
    ) -> Response:
        """One GET, not retried, whatever its status."""
        return _answer(
            url, lambda: self._inner.get(url, params=params, max_content_size=max_content_size), sending=False
        )

    def call(self, url: str, method: str) -> dict[str, Any]:
        """The result of a method without parameters, for fields that `stellar_sdk` does not know."""
        answer = self.post(
            url, json_data={"jsonrpc": "2.0", "id": 1, "method": method, "params": None}
        ).json()
        result = answer.get("result")
        if not isinstance(result, dict):
            raise translate.not_json_rpc(url)
        return result

    def stream(self, url: str, params: dict[str, str] | None = None) -> Generator[dict[str, Any], None, None]:
        """RPC servers have no streams; whatever the wrapped client makes of it."""
        return self._inner.stream(url, params)

    def close(self) -> None:
        """Close the wrapped client."""
        self._inner.close()  # type: ignore[no-untyped-call]


class _Parsed(Response):
    """A response whose JSON was parsed already."""

    def __init__(self, response: Response, parsed: dict[str, Any]) -> None:
        super().__init__(response.status_code, response.text, response.headers, response.url)
        self._parsed = parsed

    def json(self) -> dict[str, Any]:
        return self._parsed


def _answer(url: str, ask: Callable[[], Response], *, sending: bool) -> Response:
    """What a client gives; what it raises instead is mapped, and chained without the address."""
    cause = None
    try:
        return ask()
    except stellar_sdk.exceptions.ConnectionError as error:
        failure = translate.connection_failed(url, error, sending=sending)
        cause = without_address(error if error.__cause__ is None else error.__cause__)
    except stellar_sdk.exceptions.ContentSizeLimitExceededError as error:
        failure = translate.too_large(url, error.limit, sending=sending)
    # Not within the block, or the original would be its context.
    raise failure from cause


def _checked(url: str, method: str, response: Response, *, sending: bool) -> Response:
    refused = translate.http_status(url, response.status_code, sending=sending)
    if refused is not None:
        raise refused
    try:
        answer = json.loads(response.text)
    except (ValueError, RecursionError) as error:
        raise translate.not_json_rpc(url) from error
    if not isinstance(answer, dict) or ("result" not in answer and "error" not in answer):
        raise translate.not_json_rpc(url)
    problem = answer.get("error")
    if problem is not None:
        if not isinstance(problem, dict):
            raise translate.not_json_rpc(url)
        code, message = problem.get("code"), problem.get("message")
        raise translate.rpc_refused(url, method, code, message, sending=sending)
    return _Parsed(response, answer)
