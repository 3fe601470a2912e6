"""Anchors that somebody kept, read from a file or a server: an indexer's histories, or JSON lines of
anchors."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from mycelium_sdk.chain.anchor_json import past_from_json
from mycelium_sdk.errors import BlobNotFound, BlobUnavailable, InputError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from mycelium_sdk.chain.anchors import Anchor
    from mycelium_sdk.retry import RetryPolicy

__all__ = ["fetch_kept", "parse_kept", "read_kept"]

MAX_BYTES = 256 << 20
"""How much is read of a file; and of a server, in all."""

_SECONDS = 20.0
_OK = 200


def read_kept(path: Path) -> list[Anchor]:
    """The anchors in a file. Raises `InputError` if it cannot be read, or holds something else."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise InputError(
            f"cannot read {path}: {error.strerror}", hint="give the path of a file, or a URL"
        ) from error
    if len(data) > MAX_BYTES:
        raise InputError(f"{path} is larger than {MAX_BYTES >> 20} MiB", hint="split it by owner")
    return parse_kept(data, str(path))


def parse_kept(data: bytes, name: str) -> list[Anchor]:
    """The anchors in a document: a page of `GET /memory/{owner}/history`, a list of anchors, one anchor, or
    lines with one of these each. `name` is for messages.

    Raises:
        InputError: it is none of these.
    """
    return [anchor for document in _documents(data, name) for anchor in _anchors(document, name)]


def fetch_kept(url: str, policy: RetryPolicy) -> list[Anchor]:
    """The anchors that a server gives at an http or https URL, and on the pages that follow it.

    The address is the caller's word, so it is not vetted. Tried again as `policy` says.

    Raises:
        InputError: what it gives is something else, or more than is read.
        BlobNotFound, BlobUnavailable: it gives nothing.
    """
    name = urlsplit(url).hostname or "the server"
    found: list[Anchor] = []
    total, seen = 0, {url}
    while True:
        data = policy.call(lambda: _get(url, name))  # noqa: B023 - called before the next round
        total += len(data)
        if total > MAX_BYTES:
            raise _too_much(name)
        documents = list(_documents(data, name))
        found += [anchor for document in documents for anchor in _anchors(document, name)]
        page = documents[0] if len(documents) == 1 else None
        following = page.get("next") if isinstance(page, dict) else None
        if not isinstance(following, str):
            return found
        url = _page(url, following)
        if url in seen:
            raise InputError(f"{name} repeats its pages", hint="keep its history in a file, and give that")
        seen.add(url)


def _get(url: str, name: str) -> bytes:
    import requests.exceptions

    from mycelium_sdk.timed_http import AnswerTooLarge, new_session, read_answer, time_limit

    try:
        with (
            new_session() as session,
            session.get(url, timeout=time_limit(_SECONDS), stream=True, allow_redirects=False) as answer,
        ):
            status, data = answer.status_code, read_answer(answer, MAX_BYTES)
    except AnswerTooLarge as error:
        raise _too_much(name) from error
    except requests.exceptions.RequestException as error:
        raise BlobUnavailable(
            f"{name} cannot be reached", hint="check the URL, or try again later"
        ) from error
    if status == _OK:
        return data
    if status == 429 or status >= 500:
        raise BlobUnavailable(f"{name} answered with HTTP status {status}", hint="try again later")
    raise BlobNotFound(f"{name} answered with HTTP status {status}", hint="check the URL")


def _too_much(name: str) -> InputError:
    return InputError(f"{name} gave more than {MAX_BYTES >> 20} MiB", hint="ask for one owner at a time")


def _page(url: str, cursor: str) -> str:
    parts = urlsplit(url)
    query = {**dict(parse_qsl(parts.query)), "cursor": cursor}
    return urlunsplit(parts._replace(query=urlencode(query)))


def _documents(data: bytes, name: str) -> Iterator[Any]:
    """The JSON documents: one, or one a line."""
    whole = _parsed(data)
    if whole is not None:
        yield whole[0]
        return
    for number, line in enumerate(data.splitlines(), 1):
        if line.strip():
            document = _parsed(line)
            if document is None:
                raise InputError(
                    f"line {number} of {name} is no JSON",
                    hint="give an indexer's history, or a line per anchor",
                )
            yield document[0]


def _parsed(data: bytes) -> tuple[Any] | None:
    try:
        return (json.loads(data.decode("utf-8")),)
    except (ValueError, RecursionError):
        return None


def _anchors(document: Any, name: str) -> Iterator[Anchor]:
    items = document.get("items", [document]) if isinstance(document, dict) else document
    if not isinstance(items, list):
        raise InputError(f"{name} holds something else than anchors", hint="give an indexer's history")
    for number, item in enumerate(items, 1):
        try:
            yield past_from_json(item).anchor
        except ValueError as error:
            raise InputError(
                f"anchor {number} of {name} is none: {error}", hint="give an indexer's history as it was"
            ) from None
