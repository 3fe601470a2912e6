"""JSON-RPC 2.0 messages: from bytes to checked requests, and from answers to bytes.

What the specification leaves open follows Stellar RPC: a null id counts as no id, members that a request does
not have are refused, and parameters go by name only.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Final, NoReturn, TypeAlias

from .faults import INVALID_REQUEST, PARSE_ERROR, RpcFault

RequestId: TypeAlias = str | int | float

_MEMBERS: Final = frozenset({"jsonrpc", "id", "method", "params"})


@dataclass(frozen=True, slots=True)
class Request:
    """A well-formed request; without `id` it is a notification, which gets no answer."""

    method: str
    params: object
    id: RequestId | None


def decode(body: bytes) -> object:
    """The JSON value of a body. Raises RpcFault -32700 for anything that is not strict JSON in UTF-8."""
    try:
        return json.loads(body.decode("utf-8"), parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise RpcFault(PARSE_ERROR, "the body is not valid JSON") from error


def encode(answer: object) -> bytes:
    """An answer as compact ASCII JSON."""
    return json.dumps(answer, separators=(",", ":"), allow_nan=False).encode("ascii")


def request_id(message: object) -> RequestId | None:
    """The id of a message as far as it can be told; None when there is none or it is no string or number."""
    value = message.get("id") if isinstance(message, dict) else None
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    return None if isinstance(value, float) and not math.isfinite(value) else value


def parse_request(message: object) -> Request:
    """Check one message. Raises RpcFault -32600 for anything but a request of JSON-RPC 2.0."""
    if not isinstance(message, dict):
        raise RpcFault(INVALID_REQUEST, "a request must be a JSON object")
    if message.get("jsonrpc") != "2.0":
        raise RpcFault(INVALID_REQUEST, 'the member jsonrpc must be "2.0"')
    identity = request_id(message)
    if identity is None and message.get("id") is not None:
        raise RpcFault(INVALID_REQUEST, "the member id must be a string or a number")
    method = message.get("method")
    if not isinstance(method, str) or not method:
        raise RpcFault(INVALID_REQUEST, "the member method must be the name of a method")
    params = message.get("params")
    if params is not None and not isinstance(params, dict | list):
        raise RpcFault(INVALID_REQUEST, "the member params must be an object")
    unknown = message.keys() - _MEMBERS
    if unknown:
        raise RpcFault(INVALID_REQUEST, "a request has no such members", ", ".join(sorted(unknown)))
    return Request(method, params, identity)


def success(identity: RequestId, result: object) -> dict[str, object]:
    """The answer to a call that worked; it has no member `error` (some clients take even a null one for a
    failure)."""
    return {"jsonrpc": "2.0", "id": identity, "result": result}


def failure(identity: RequestId | None, fault: RpcFault) -> dict[str, object]:
    """The answer to a call that did not work."""
    return {"jsonrpc": "2.0", "id": identity, "error": fault.error()}


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")
