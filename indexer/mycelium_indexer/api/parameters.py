"""What clients ask for, checked: owners, sources, page sizes. Nothing that a client sent is repeated."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl

from mycelium_indexer.api.problems import Refusal
from mycelium_indexer.api.settings import NETWORK_NAMES
from mycelium_sdk.strkey import is_account, is_contract

if TYPE_CHECKING:
    from starlette.requests import Request

__all__ = ["DEFAULT_LIMIT", "MAX_LIMIT", "MAX_NETWORK", "limit_of", "owner_of", "query_of", "source_of"]

DEFAULT_LIMIT = 50
MAX_LIMIT = 200
MAX_NETWORK = 200
"""Characters of a network's passphrase."""

_NUMBER = re.compile(r"[1-9][0-9]{0,2}", re.ASCII)


def query_of(request: Request, *names: str) -> dict[str, str]:
    """The parameters of a request, of which only `names` may be there, each once.

    An unknown one is refused: a misspelt `contract` would silently be answered about another one.

    Raises:
        Refusal: another parameter, one that is repeated, or bytes that are no UTF-8.
    """
    raw: bytes = request.scope["query_string"]
    if not raw:
        return {}
    try:
        pairs = parse_qsl(
            raw.decode("ascii"),
            keep_blank_values=True,
            strict_parsing=True,
            errors="strict",
            max_num_fields=16,
        )
    except ValueError:  # also of the decoder
        raise Refusal("malformed-parameter", "the query is malformed") from None
    found = dict(pairs)
    if len(found) < len(pairs):
        raise Refusal("malformed-parameter", "a parameter is repeated")
    if not found.keys() <= set(names):
        raise Refusal("malformed-parameter", f"the parameters are {', '.join(names)}")
    return found


def source_of(query: dict[str, str]) -> tuple[str | None, str | None]:
    """The network's passphrase and the contract that a request names. Raises Refusal."""
    network = query.get("network")
    contract = query.get("contract")
    if network is not None and (not 0 < len(network) <= MAX_NETWORK or "\0" in network):
        raise Refusal("malformed-parameter", "`network` is a network's name or its passphrase")
    if contract is not None and not is_contract(contract):
        raise Refusal("malformed-parameter", "`contract` is no contract address (C and 55 more characters)")
    return (None if network is None else NETWORK_NAMES.get(network, network)), contract


def limit_of(query: dict[str, str]) -> int:
    """How many items a page is to have. Raises Refusal."""
    text = query.get("limit")
    if text is None:
        return DEFAULT_LIMIT
    if _NUMBER.fullmatch(text) is None or int(text) > MAX_LIMIT:
        raise Refusal("malformed-parameter", f"`limit` is a number from 1 to {MAX_LIMIT}")
    return int(text)


def owner_of(request: Request) -> str:
    """The owner that a path names: an account or a contract. Raises Refusal."""
    owner: str = request.path_params["owner"]
    if is_account(owner) or is_contract(owner):
        return owner
    raise Refusal(
        "malformed-address", "an owner is an account (G and 55 more characters) or a contract (C and 55 more)"
    )
