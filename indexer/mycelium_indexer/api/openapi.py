"""The OpenAPI document: what the API promises, in the form that tools read. Tests hold the API to it."""

from __future__ import annotations

from typing import Any

import mycelium_sdk
from mycelium_indexer.api.cursors import MAX_CURSOR
from mycelium_indexer.api.parameters import DEFAULT_LIMIT, MAX_LIMIT, MAX_NETWORK
from mycelium_indexer.api.problems import PROBLEMS

__all__ = ["ADDRESS_FORMAT", "document"]

ADDRESS_FORMAT = "stellar-address"
"""The format of addresses in the document. A pattern cannot say it: they end with a checksum."""

_Json = dict[str, Any]


def document() -> _Json:
    """OpenAPI 3.1, as JSON values."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Mycelium indexer",
            "version": mycelium_sdk.__version__,
            "summary": "Latest anchors and whole histories of agents' memories.",
            "description": "Nothing here has to be believed: the hash chain of an owner's anchors ends in the"
            " contract's entry on the chain, and whoever reads that can check every answer. `as_of_ledger`:"
            " everything up to this ledger is in the answer. `lag`: seconds by which it may be behind.",
            "license": {"name": "MIT", "identifier": "MIT"},
        },
        "paths": {
            "/memory": _path(
                "owners",
                "Owners by their newest anchor, newest first",
                "OwnerPage",
                parameters=_PAGE,
                missing=False,
            ),
            "/memory/{owner}": _path(
                "latest", "The owner's newest anchor", "LatestAnchor", parameters=(_OWNER, *_SOURCE)
            ),
            "/memory/{owner}/history": _path(
                "history",
                "The owner's anchors, newest first, each committing to the one before by `previous`",
                "History",
                parameters=(_OWNER, *_PAGE),
            ),
            "/healthz": _plain(
                "healthz", "Whether the process lives. Never limited, asks no database", "Health"
            ),
            "/readyz": _plain("readyz", "Whether owners can be asked about. Never limited", "Readiness"),
            "/metrics": _plain("metrics", "Metrics for Prometheus", None),
            "/openapi.json": _plain("openapi", "This document", "Document", conditional=True),
        },
        "components": {
            "schemas": _schemas(),
            "parameters": _parameters(),
            "headers": _headers(),
            "responses": _responses(),
        },
    }


# -- paths

_SOURCE = ("network", "contract")
_PAGE = (*_SOURCE, "cursor", "limit")
_OWNER = "owner"
_STATE_HEADERS = ("ETag", "As-Of-Ledger", "Lag")


def _path(
    name: str, summary: str, schema: str, *, parameters: tuple[str, ...], missing: bool = True
) -> _Json:
    """What is read from the database: a page or an anchor, conditional, of a network and contract."""
    return _both(
        name,
        summary,
        (*parameters, "if_none_match"),
        {
            "200": _answer("What was asked for.", _reference("schemas", schema), _STATE_HEADERS),
            "304": {
                "description": "The client has this state already.",
                "headers": _header_references(_STATE_HEADERS),
            },
            "404": _reference("responses", "UnknownOwner" if missing else "UnknownSource"),
            "422": _reference("responses", "Malformed"),
            "429": _reference("responses", "TooManyRequests"),
            "503": _reference("responses", "Unavailable"),
        },
    )


def _plain(name: str, summary: str, schema: str | None, *, conditional: bool = False) -> _Json:
    """What operators and tools ask: without parameters."""
    if schema is None:
        found: _Json = {
            "description": "Text format 0.0.4.",
            "content": {"text/plain": {"schema": {"type": "string"}}},
        }
    else:
        found = _answer("As described.", _reference("schemas", schema), ("ETag",) if conditional else ())
    responses = {"200": found, "422": _reference("responses", "Malformed")}
    if conditional:
        responses["304"] = {"description": "Unchanged.", "headers": _header_references(("ETag",))}
    if name not in {"healthz", "readyz"}:
        responses["429"] = _reference("responses", "TooManyRequests")
    if name in {"readyz", "metrics"}:
        responses["503"] = _reference("responses", "Unavailable")
    return _both(name, summary, ("if_none_match",) if conditional else (), responses)


def _both(name: str, summary: str, parameters: tuple[str, ...], responses: _Json) -> _Json:
    """GET, and HEAD, which is the same without content."""
    shown = {
        **responses,
        "400": _reference("responses", "BadRequest"),
        "500": _reference("responses", "Internal"),
    }
    responses = dict(sorted(shown.items()))
    shared = {"parameters": [_reference("parameters", parameter) for parameter in parameters]}
    heads = {
        status: {"description": "As for GET, without content."}
        | ({"headers": response["headers"]} if "headers" in response else {})
        for status, response in responses.items()
    }
    return {
        **shared,
        "get": {"operationId": name, "summary": summary, "responses": responses},
        "head": {"operationId": f"{name}_head", "summary": f"{summary}: headers only", "responses": heads},
    }


def _reference(kind: str, name: str) -> _Json:
    return {"$ref": f"#/components/{kind}/{name}"}


def _header_references(names: tuple[str, ...]) -> _Json:
    return {name: _reference("headers", name) for name in names}


def _answer(description: str, schema: _Json, headers: tuple[str, ...] = ()) -> _Json:
    answer: _Json = {"description": description, "content": {"application/json": {"schema": schema}}}
    if headers:
        answer["headers"] = _header_references(headers)
    return answer


# -- schemas


def _object(properties: _Json, *, optional: tuple[str, ...] = (), **others: Any) -> _Json:
    return {
        "type": "object",
        "properties": properties,
        "required": [name for name in properties if name not in optional],
        "additionalProperties": False,
        **others,
    }


def _list(item: _Json) -> _Json:
    return {"type": "array", "items": item}


def _or_null(schema: _Json) -> _Json:
    return {**schema, "type": [schema["type"], "null"]}


_WHOLE: _Json = {"type": "integer", "minimum": 0}
_VERSION: _Json = {"type": "integer", "minimum": 1}
_TEXT: _Json = {"type": "string"}
_HASH: _Json = {"type": "string", "pattern": "^[0-9a-f]{64}$"}
_BYTES: _Json = {"type": "string", "pattern": "^([0-9a-f]{2})*$"}
_ADDRESS: _Json = {
    "type": "string",
    "format": ADDRESS_FORMAT,
    "pattern": "^[GC][A-Z2-7]{55}$",
    "minLength": 56,
    "maxLength": 56,
}
_CONTRACT: _Json = {**_ADDRESS, "pattern": "^C[A-Z2-7]{55}$"}
_CURSOR: _Json = {"type": "string", "pattern": "^[A-Za-z0-9_-]+$", "maxLength": MAX_CURSOR}

_ANCHOR: _Json = {
    "owner": _ADDRESS,
    "version": _VERSION,
    "root": {**_HASH, "description": "Commits to all memories of the owner."},
    "uri": {**_or_null(_TEXT), "description": "Where the blob is published; null unless it is UTF-8."},
    "uri_hex": _BYTES,
    "acl_hex": _BYTES,
    "previous": {
        **_or_null(_HASH),
        "description": "SHA-256 of the entry of the version before; null for an older contract.",
    },
    "timestamp": {**_or_null(_WHOLE), "description": "Unix seconds; null for an older contract."},
    "ledger": {**_or_null(_WHOLE), "description": "Null where it is not known."},
    "tx": {**_or_null(_HASH), "description": "The transaction; null where it is not known."},
}
_STANDING: _Json = {
    "contract": _CONTRACT,
    "network": {**_TEXT, "description": "The network's passphrase."},
    "as_of_ledger": _WHOLE,
    "lag": {"type": "number", "minimum": 0},
}
_STANDING_OR_NULL: _Json = {name: _or_null(schema) for name, schema in _STANDING.items()}
_NEXT: _Json = {**_or_null(_CURSOR), "description": "The cursor of the next page; null at the end."}


def _schemas() -> _Json:
    anchor = _reference("schemas", "Anchor")
    return {
        "Anchor": _object(_ANCHOR),
        "LatestAnchor": _object({**_ANCHOR, **_STANDING}),
        "OwnerPage": _object({"items": _list(anchor), "next": _NEXT, **_STANDING}),
        "Gap": _object(
            {"first": _VERSION, "last": _VERSION, "noticed_ledger": _WHOLE},
            description="Versions that are missing, both ends included; known since `noticed_ledger`.",
        ),
        "History": _object(
            {
                "items": _list(anchor),
                "next": _NEXT,
                "complete": {
                    "type": "boolean",
                    "description": "Whether no version of the owner is missing, on this page or any other.",
                },
                "gaps": _list(_reference("schemas", "Gap")),
                **_STANDING,
            }
        ),
        "Ledgers": _object({"first": _WHOLE, "last": _WHOLE}, description="Both ends included."),
        "Health": _object({"status": {"const": "ok"}, **_STANDING_OR_NULL}),
        "Readiness": _object({"status": {"const": "ready"}, **_STANDING}),
        "Document": {"type": "object"},
        "Problem": _object(
            {
                "type": {"enum": [f"urn:mycelium:problem:{kind}" for kind in PROBLEMS]},
                "title": _TEXT,
                "status": {"type": "integer"},
                "detail": _TEXT,
                **_STANDING_OR_NULL,
                "first_ledger": {
                    **_WHOLE,
                    "description": "Of an unknown owner: where following the contract began.",
                },
                "missed_ledgers": {
                    **_list(_reference("schemas", "Ledgers")),
                    "description": "Of an unknown owner: ledgers that could not be looked into.",
                },
            },
            optional=("first_ledger", "missed_ledgers"),
            description="Problem details (RFC 9457).",
        ),
    }


# -- parameters, headers, problems


def _parameter(name: str, place: str, schema: _Json, description: str) -> _Json:
    parameter: _Json = {"name": name, "in": place, "description": description, "schema": schema}
    return {**parameter, "required": True} if place == "path" else parameter


def _parameters() -> _Json:
    return {
        "owner": _parameter("owner", "path", _ADDRESS, "An account (G...) or a contract (C...)."),
        "network": _parameter(
            "network",
            "query",
            {"type": "string", "minLength": 1, "maxLength": MAX_NETWORK},
            "testnet, mainnet, standalone, local, or a network's passphrase [default: as configured].",
        ),
        "contract": _parameter("contract", "query", _CONTRACT, "The contract [default: as configured]."),
        "cursor": _parameter("cursor", "query", _CURSOR, "`next` of the page before; of the same list only."),
        "limit": _parameter(
            "limit",
            "query",
            {"type": "integer", "minimum": 1, "maximum": MAX_LIMIT, "default": DEFAULT_LIMIT},
            "Items on a page.",
        ),
        "if_none_match": _parameter("If-None-Match", "header", _TEXT, "ETags of states that the client has."),
    }


def _headers() -> _Json:
    return {
        "ETag": {"description": "Weak, over what was anchored alone.", "schema": _TEXT},
        "As-Of-Ledger": {"description": "As in the body.", "schema": _WHOLE},
        "Lag": {"description": "As in the body.", "schema": {"type": "number", "minimum": 0}},
        "Retry-After": {"description": "Seconds.", "schema": {"type": "integer", "minimum": 1}},
    }


def _responses() -> _Json:
    def problem(description: str, *headers: str) -> _Json:
        content = {"application/problem+json": {"schema": _reference("schemas", "Problem")}}
        answer: _Json = {"description": description, "content": content}
        return {**answer, "headers": _header_references(headers)} if headers else answer

    return {
        "BadRequest": problem("What came was no HTTP/1.1."),
        "UnknownOwner": problem("No anchor of the owner was seen, or the contract is not followed."),
        "UnknownSource": problem("The contract is not followed on that network."),
        "Malformed": problem("An address, a parameter or a cursor is none; or a source must be named."),
        "TooManyRequests": problem("The client asks too often.", "Retry-After"),
        "Internal": problem("A bug."),
        "Unavailable": problem("The database does not answer, or nothing was ingested yet.", "Retry-After"),
    }
