"""How large the body of a request may be, at every door."""

from __future__ import annotations

import json
from typing import Final

MAXIMUM_BODY: Final = 524_288
"""Bytes of a request; more is refused with 413, as by the network's RPC servers."""

MAXIMUM_LOAD: Final = 67_108_864
"""Bytes of a `localnet_load`, which holds a whole chain."""

_LOAD: Final = "localnet_load"


def may_be_load(beginning: bytes | bytearray) -> bool:
    """Whether a body that begins like this may be a `localnet_load`: one that names its method there."""
    return f'"{_LOAD}"'.encode() in beginning


def fits(body: bytes) -> bool:
    """Whether a body is not too large for what it calls. A batch has no more room than one other call."""
    if len(body) <= MAXIMUM_BODY:
        return True
    if len(body) > MAXIMUM_LOAD or not may_be_load(body[:MAXIMUM_BODY]):
        return False
    try:
        message = json.loads(body)
    except (ValueError, RecursionError):
        return False
    return isinstance(message, dict) and message.get("method") == _LOAD
