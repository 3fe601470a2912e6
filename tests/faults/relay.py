"""An RPC server on a socket in front of an embedded chain, which answers some requests in its own way."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import requests.exceptions
import stellar_sdk.exceptions

from mycelium_localnet import IN_PROCESS_URL, InProcessClient
from mycelium_sdk.chain.http_client import REQUEST_SECONDS, HttpClient
from tests.chain.sockets import Listening, Visit, http_answer

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Collection
    from typing import TypeAlias

    import pytest
    from stellar_sdk.client.response import Response

    from mycelium_localnet import Chain
    from tests.faults.ground import Clock

    Manner: TypeAlias = Callable[[Visit], object]

ALL = "every method"
_IMPATIENT_SECONDS = 0.2


def page(status: str) -> Manner:
    """What a proxy shows to people."""
    html = b"<!doctype html>\n<title>Sign in to the hotel's network</title>\n"
    return lambda visit: visit.send(http_answer(html, status, "Content-Type: text/html"))


def hang_up(_visit: Visit) -> None:
    """The connection is closed without an answer."""


def silence(visit: Visit) -> None:
    """Nothing, for as long as anybody waits."""
    visit.silence()


class Relay:
    """`manners`: how requests for a method (or `ALL`) are met; the others get the chain's answer."""

    def __init__(self, chain: Chain, manners: dict[str, Manner], tls: ssl.SSLContext | None = None) -> None:
        self._client = InProcessClient(chain)
        self._manners = manners
        self._server = Listening(self._serve, tls)
        self.url = self._server.url

    def _serve(self, visit: Visit) -> None:
        while (request := visit.request()) is not None:
            message = json.loads(request.partition(b"\r\n\r\n")[2])
            manner = self._manners.get(message["method"]) or self._manners.get(ALL)
            if manner is None:
                answer = self._client.post(IN_PROCESS_URL, json_data=message)
                visit.send(http_answer(answer.text.encode(), "200 OK", "Content-Type: application/json"))
                continue
            manner(visit)
            if manner is hang_up:
                return

    def close(self) -> None:
        self._server.close()


def impatient_about(patch: pytest.MonkeyPatch, clock: Clock, methods: Collection[str]) -> None:
    """Have every HTTP client give up soon on methods that are never answered, and take that for the whole
    time that a request may take."""

    class Impatient(HttpClient):
        def post(
            self, url: str, data: dict[str, str] | None = None, json_data: dict[str, Any] | None = None
        ) -> Response:
            hopeless = ALL in methods or (json_data or {}).get("method") in methods
            self.post_timeout = _IMPATIENT_SECONDS if hopeless else REQUEST_SECONDS
            try:
                return super().post(url, data, json_data)
            except stellar_sdk.exceptions.ConnectionError as error:
                if isinstance(error.__cause__, requests.exceptions.Timeout):
                    clock.wait(REQUEST_SECONDS)
                raise

    patch.setattr("mycelium_sdk.chain.rpc.HttpClient", Impatient)
