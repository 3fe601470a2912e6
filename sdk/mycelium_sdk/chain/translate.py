"""The one place where other libraries' errors about a chain become this package's.

Messages name the server by host alone: an RPC address may carry a key. What a server or the host says in
its own words is quoted only from JSON-RPC errors, shortened.

A request that sends a transaction is judged more strictly than one that asks (`sending`): only what proves
that the server did not take it is an error of its own, and everything else is `ChainUnavailable`, which says
nothing about what became of it.
"""

from __future__ import annotations

import binascii
import contextlib
import urllib.parse
from typing import TYPE_CHECKING

import pydantic
import requests.exceptions
import stellar_sdk.exceptions
from xdrlib3 import ConversionError
from xdrlib3 import Error as XdrError

from mycelium_sdk.errors import (
    ChainError,
    ChainUnavailable,
    ConfigError,
    ContractFailed,
    ContractNotFound,
    MyceliumError,
    TransactionFailed,
)
from mycelium_sdk.timed_http import is_certificates_fault
from mycelium_sdk.verdicts import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mycelium_sdk.chain.diagnostics import HostFailure

__all__ = [
    "UNREADABLE",
    "connection_failed",
    "contract_failed",
    "decoding",
    "http_status",
    "may_pass",
    "not_json_rpc",
    "rpc_refused",
    "server_name",
    "simulation_refused",
    "too_large",
    "transaction_failed",
    "unfunded",
]

_QUOTED_CHARACTERS = 200
_EMBEDDED = "localnet.invalid"  # where the embedded chain is reached within this process; a test compares

# JSON-RPC: an internal error, and the server's own limits on how long a request may take and how many it
# works on (chain.md section 2).
_RETRYABLE_RPC_CODES = frozenset({-32603, -32001, -32003})

# What a server says about a request before it does anything with it.
_REFUSING_RPC_CODES = frozenset({-32600, -32601, -32602})
_REFUSING_STATUSES = frozenset({400, 401, 403, 404, 405, 413, 415})

_RETRYABLE_STATUSES = frozenset({408, 425, 429})

UNREADABLE = (
    pydantic.ValidationError,
    XdrError,
    ConversionError,
    binascii.Error,
    EOFError,
    ValueError,
    OverflowError,
    AssertionError,
    RecursionError,
)
"""What the decoders of JSON-RPC results and of XDR raise about something else."""

_HINTS = {
    "txINSUFFICIENT_BALANCE": "the account cannot pay the fee: send it some XLM",
    "txINSUFFICIENT_FEE": "the network is busy and the bid too low: try again later",
    "txNO_ACCOUNT": "fund the account first: an account exists once it was sent some XLM",
    "txBAD_AUTH": "the wallet's key may not sign for this account, or the network's passphrase is another",
    "txTOO_LATE": "the transaction was not applied in time and never will be: run the command again",
    "txBAD_SEQ": "another program uses this account at the same time: run the command again",
    "INVOKE_HOST_FUNCTION_ENTRY_ARCHIVED": "an entry's time to live ended just then: run the command again",
}

_FAILED_HINT = "it took no effect: run the command again, and if it fails again, look at it by its hash"
_MISCALLED_HINT = "nothing was sent: check the function's name and the number of its arguments"
# No such function; another number of arguments.
_MISCALLED = frozenset({("WASM_VM", "MISSING_VALUE"), ("WASM_VM", "UNEXPECTED_SIZE")})
_REFUSED_HINT = (
    "nothing was sent: check the arguments and their types; if they are right, the server may lag: try again,"
    " or another RPC server"
)


def server_name(url: str) -> str:
    """Host and port of a server's address, without anything that could be a secret."""
    try:
        parts = urllib.parse.urlsplit(url)
        port = parts.port
    except ValueError:
        return "the configured address"
    if parts.hostname == _EMBEDDED:
        return "the embedded chain"
    host = parts.hostname or "the configured address"
    return host if port is None else f"{host}:{port}"


def connection_failed(
    url: str, error: stellar_sdk.exceptions.ConnectionError, *, sending: bool = False
) -> MyceliumError:
    """A request that got no HTTP answer: by what went wrong underneath."""
    server, cause = server_name(url), error.__cause__
    # A certificate is judged before anything is sent. Any other failure of TLS may come after that.
    if isinstance(cause, requests.exceptions.SSLError) and (not sending or is_certificates_fault(cause)):
        return ChainError(
            f"no secure connection to {server}",
            hint="check the server's certificate, this machine's clock and the address",
            verdict=Verdict.UNAVAILABLE,
        )
    if isinstance(cause, requests.exceptions.Timeout):
        return ChainUnavailable(f"{server} did not answer in time")
    if isinstance(cause, requests.exceptions.RequestException) and isinstance(cause, ValueError):
        return ConfigError(
            "the address of the RPC server cannot be used",
            hint="set `[onchain] rpc_url` to an http or https URL",
        )
    return ChainUnavailable(f"{server} cannot be reached")


def may_pass(status: int) -> bool:
    """Whether an HTTP status says that the server has a problem of the moment."""
    return status >= 500 or status in _RETRYABLE_STATUSES


def http_status(url: str, status: int, *, sending: bool = False) -> MyceliumError | None:
    """An answer with a status that carries no result; None for one that does."""
    server = server_name(url)
    if 200 <= status < 300:
        return None
    if status == 429:
        return ChainUnavailable(
            f"{server} is limiting requests", hint="wait a little, or use another RPC server"
        )
    if may_pass(status) or (sending and status not in _REFUSING_STATUSES):
        return ChainUnavailable(f"{server} answered with HTTP status {status}")
    return ChainError(
        f"{server} refused the request with HTTP status {status}",
        hint="check `[onchain] rpc_url`: the address of a Stellar RPC server, with its key if it needs one",
        verdict=Verdict.UNAVAILABLE,
    )


def too_large(url: str, limit: int, *, sending: bool = False) -> MyceliumError:
    """An answer that was given up, since it went on beyond `limit` bytes."""
    kind = ChainUnavailable if sending else ChainError
    return kind(
        f"{server_name(url)} sent more than {limit:,} bytes as one answer",
        hint="this is not how an RPC server behaves: use another one, by `[onchain] rpc_url`",
        verdict=Verdict.UNAVAILABLE,
    )


def not_json_rpc(url: str) -> ChainUnavailable:
    """An answer that is not what a JSON-RPC server sends, such as a proxy's HTML page."""
    return ChainUnavailable(
        f"{server_name(url)} answered with something else than JSON-RPC",
        hint="a proxy or another service may answer in its place: check `[onchain] rpc_url`, then try again",
    )


def rpc_refused(
    url: str, method: str, code: object, message: object, *, sending: bool = False
) -> MyceliumError:
    """A JSON-RPC error object."""
    words = "".join(c for c in str(message or "") if c.isprintable())[:_QUOTED_CHARACTERS]
    known = code if isinstance(code, int) and abs(code) < 1 << 63 else None
    text = f"{server_name(url)} refused {method}: {words} ({'no code' if known is None else known})"
    if known in _RETRYABLE_RPC_CODES or (sending and known not in _REFUSING_RPC_CODES):
        return ChainUnavailable(text)
    return ChainError(text, hint="the server may be too old or too busy for this: try another RPC server")


@contextlib.contextmanager
def decoding(url: str) -> Iterator[None]:
    """Map what is raised when a JSON-RPC result is not of the documented shape, or holds broken XDR.

    Around calls of `stellar_sdk` and the decoding of their results only.
    """
    try:
        yield
    except MyceliumError:
        raise
    except stellar_sdk.exceptions.AccountNotFoundException as error:
        raise unfunded(error.account_id) from error
    except UNREADABLE as error:
        raise ChainUnavailable(
            f"{server_name(url)} answered in a form that cannot be understood",
            hint="the server may be too old or broken: try another RPC server",
        ) from error


def unfunded(address: str) -> TransactionFailed:
    """The account that should pay does not exist."""
    return TransactionFailed(
        f"the account {address} does not exist on this network",
        result_code="txNO_ACCOUNT",
        hint=_HINTS["txNO_ACCOUNT"],
    )


def simulation_refused(failure: HostFailure | None, *, contract_missing: bool) -> ChainError:
    """A simulation that ended with an error; `contract_missing` was found by looking for the contract."""
    if contract_missing:
        return ContractNotFound(
            "there is no contract at this address on this network",
            hint="check the address and `[onchain] network`",
        )
    if failure is None:
        return ChainError("the host refused the call and gave no reason", hint=_REFUSED_HINT)
    if failure.contract_error is not None:
        return contract_failed(failure.contract_error)
    reason = f"{failure.kind} {failure.code}".rstrip()
    hint = _MISCALLED_HINT if (failure.kind, failure.code) in _MISCALLED else _REFUSED_HINT
    return ChainError(f"the host refused the call: {reason}", hint=hint)


def contract_failed(code: int) -> ContractFailed:
    """A call that the contract itself ended with one of its error numbers."""
    return ContractFailed(
        f"the contract failed with error {code}",
        code=code,
        hint="the call took no effect; what the number means is for the contract to say",
    )


def transaction_failed(result_code: str, transaction_hash: str) -> TransactionFailed:
    """A transaction that the network refused, or that failed in the ledger."""
    return TransactionFailed(
        f"the transaction failed with {result_code}",
        result_code=result_code,
        hash=transaction_hash,
        hint=_HINTS.get(result_code, _FAILED_HINT),
    )
