"""What befalls HTTP requests as a whole, in terms that every door understands.

A door asks `Chain.trouble` before it carries a request out, and does what the answer says, if there is one.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final, NamedTuple

from mycelium_localnet.faults.kinds import ALL, FRIENDBOT

if TYPE_CHECKING:
    from mycelium_localnet.faults.kinds import Fault, FaultKind


class Reply(NamedTuple):
    """An HTTP answer."""

    status: int
    content_type: str
    body: bytes


class Trouble(NamedTuple):
    """What befalls one request: after `seconds` it is carried out, if it is `carried_out` at all; then its
    connection is closed without an answer if it is `dropped`, and else it gets `reply`, or the true answer
    where that is None."""

    seconds: float = 0.0
    carried_out: bool = True
    dropped: bool = False
    reply: Reply | None = None


_REPLIES: Final[dict[FaultKind, Reply]] = {
    "http_503": Reply(503, "text/plain; charset=utf-8", b"service unavailable\n"),
    "http_504": Reply(504, "text/plain; charset=utf-8", b"gateway timeout\n"),
    "html": Reply(
        502,
        "text/html; charset=utf-8",
        b"<!doctype html>\n<html><head><title>502 Bad Gateway</title></head>"
        b"<body><h1>502 Bad Gateway</h1></body></html>\n",
    ),
}


def trouble_of(fault: Fault) -> Trouble:
    """What a fault of one of the kinds `DOOR_KINDS` does to the request that it hits."""
    if fault.kind == "slow":
        return Trouble(seconds=fault.seconds)
    if fault.kind == "http_503":
        return Trouble(carried_out=False, reply=_REPLIES["http_503"])
    if fault.kind == "drop":
        return Trouble(carried_out=fault.is_carried_out(), dropped=True)
    return Trouble(carried_out=fault.is_carried_out(), reply=_REPLIES[fault.kind])


def methods_in(body: bytes | None) -> frozenset[str] | None:
    """The methods that the body of a request calls; None, for the friendbot, has no body that matters.

    None comes back when the request must not be hit: it calls something else, such as `localnet_clearFaults`.
    A body that is no JSON-RPC calls nothing.
    """
    if body is None:
        return frozenset({FRIENDBOT})
    try:
        message = json.loads(body)
    except (ValueError, RecursionError):
        return frozenset()
    items = message if isinstance(message, list) else [message]
    names = frozenset(
        name for item in items if isinstance(item, dict) and isinstance(name := item.get("method"), str)
    )
    return names if names <= frozenset(ALL) - {FRIENDBOT} else None
