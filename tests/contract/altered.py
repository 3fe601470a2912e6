"""A server that gives altered answers: the chain in this process, behind a client that changes results."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, TypeAlias

from stellar_sdk.client.response import Response

from mycelium_localnet import InProcessClient

Alter: TypeAlias = Callable[[dict[str, Any]], dict[str, Any]]


class AlteredClient(InProcessClient):
    """`alter[method]` is given each result of the method and returns the one that is served."""

    alter: dict[str, Alter]

    def post(
        self, url: str, data: dict[str, str] | None = None, json_data: dict[str, Any] | None = None
    ) -> Response:
        response = super().post(url, data=data, json_data=json_data)
        change = self.alter.get(str((json_data or {}).get("method")))
        if change is None:
            return response
        answer = json.loads(response.text)
        answer["result"] = change(answer["result"])
        return Response(response.status_code, json.dumps(answer), response.headers, response.url)
