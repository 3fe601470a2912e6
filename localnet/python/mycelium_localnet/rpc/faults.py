"""The errors that a JSON-RPC call can end with, and their codes."""

from __future__ import annotations

from typing import Final

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
INTERNAL_ERROR: Final = -32603


class RpcFault(Exception):  # noqa: N818 - "error" means the JSON object everywhere else here
    """A call that is answered with a JSON-RPC `error` object.

    `code` is one of this module's, `message` is for people, `data` is a detail or None (then it is left out:
    clients of Stellar RPC take a string or nothing).
    """

    def __init__(self, code: int, message: str, data: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data

    def error(self) -> dict[str, object]:
        """The `error` object."""
        body: dict[str, object] = {"code": self.code, "message": self.message}
        if self.data is not None:
            body["data"] = self.data
        return body


def invalid_params(message: str) -> RpcFault:
    """The parameters cannot be used (-32602)."""
    return RpcFault(INVALID_PARAMS, message)


def invalid_request(message: str) -> RpcFault:
    """The request is understood but not answerable here, such as a ledger out of range (-32600)."""
    return RpcFault(INVALID_REQUEST, message)
