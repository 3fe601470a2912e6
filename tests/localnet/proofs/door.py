"""The JSON-RPC door, spoken to as a client would."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from mycelium_localnet import Dispatcher

if TYPE_CHECKING:
    from mycelium_localnet import Chain


def rpc(chain: Chain, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
    """The whole answer to a call."""
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    raw = Dispatcher(chain).handle(json.dumps(body).encode())
    assert raw is not None
    answer: dict[str, Any] = json.loads(raw)
    return answer


def result(chain: Chain, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
    """The result of a call that must have one."""
    answer = rpc(chain, method, params)
    assert "error" not in answer, answer
    found: dict[str, Any] = answer["result"]
    return found
