"""What an indexer answers over HTTP, read within limits: JSON about one contract, or an error of the tree."""

from __future__ import annotations

import contextlib
import json
import re
import time
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from mycelium_sdk.chain.anchor_json import past_from_json
from mycelium_sdk.chain.plausible import is_ledger
from mycelium_sdk.errors import ChainError, ChainUnavailable, ConfigError, WrongDomain
from mycelium_sdk.retry import RetryPolicy, wait_asked_for
from mycelium_sdk.threads import ThreadLock

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import requests

    from mycelium_sdk.chain.history import PastAnchor

__all__ = ["WITHOUT", "IndexerApi", "is_unknown_owner"]

WITHOUT = "leave out `[indexer] url` (MYCELIUM_INDEXER_URL), and the chain is asked"
"""What can be done about any indexer, for hints."""

_MAX_ANSWER_BYTES = 4 << 20  # a page is at most 200 anchors of 7 KiB
_OK, _NOT_FOUND = 200, 404
_MAY_PASS = frozenset({408, 425, 429})
_CURSOR = re.compile(r"[!-~]{1,1000}", re.ASCII)
_PROBLEM = "urn:mycelium:problem:"


class IndexerApi:
    """GET requests to one indexer about one network (its passphrase) and contract (C-address).

    May be used from several threads, and goes on in a forked child. A request has `seconds` for all of it.
    """

    def __init__(
        self, url: str, network: str, contract: str, *, retries: RetryPolicy | None, seconds: float
    ) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
            raise ConfigError(
                "the indexer's address cannot be used",
                hint="set `[indexer] url` to an http or https URL, without a query",
            )
        self._url = url.rstrip("/")
        self._selection = {"network": network, "contract": contract}
        self._retries = RetryPolicy(attempts=3, total_seconds=2 * seconds) if retries is None else retries
        self._seconds = seconds
        self._lock = ThreadLock()
        self._session: requests.Session | None = None

    @property
    def name(self) -> str:
        """What messages call it: its host and port."""
        from mycelium_sdk.chain.translate import server_name

        return f"the indexer at {server_name(self._url)}"

    def get(
        self, path: str, query: Mapping[str, str] | None = None, *, deadline: float | None = None
    ) -> dict[str, Any]:
        """An answer of the API about this contract, or the problem that an owner is unknown.

        `deadline`: on the monotonic clock, for this request and its repetitions.

        Raises:
            ChainUnavailable: there is no answer in time, or it is that there is none now (`retry_after`).
            WrongDomain: it is about another contract, or this one is not followed.
            ChainError: it is not the API's.
        """
        return self._retries.call(lambda: self._ask(path, query or {}, deadline))

    def close(self) -> None:
        """Let go of connections. A call after it opens new ones."""
        with self._lock:
            session, self._session = self._session, None
        if session is not None:
            session.close()

    def past(self, item: object) -> PastAnchor:
        """An anchor of an answer; whose it is, and whether it is true, is not checked. Raises ChainError."""
        try:
            return past_from_json(item)
        except ValueError as error:
            raise self.misfit(str(error)) from error

    def number(self, item: Mapping[str, Any], name: str) -> int:
        """A number of an answer, from 0. Raises ChainError."""
        value = item.get(name)
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 1 << 63:
            raise self.misfit(f"`{name}` is not a number")
        return value

    def seconds(self, item: Mapping[str, Any], name: str) -> float:
        """A number of seconds of an answer. Raises ChainError."""
        value = item.get(name)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 1 << 53:
            raise self.misfit(f"`{name}` is not a number of seconds")
        return float(value)

    def items(self, document: Mapping[str, Any], name: str) -> list[Any]:
        """A list of an answer. Raises ChainError."""
        value = document.get(name)
        if not isinstance(value, list):
            raise self.misfit(f"`{name}` is no list")
        return value

    def ledger(self, item: Mapping[str, Any], name: str) -> int:
        """A ledger of an answer. Raises ChainError."""
        value = self.number(item, name)
        if not is_ledger(value):
            raise self.misfit(f"`{name}` is not a ledger")
        return value

    def cursor(self, page: Mapping[str, Any]) -> str | None:
        """Where an answer goes on, None if it ends. Raises ChainError."""
        value = page.get("next")
        if value is not None and (not isinstance(value, str) or _CURSOR.fullmatch(value) is None):
            raise self.misfit("its history does not go on")
        return value

    def ranges(self, document: Mapping[str, Any], name: str) -> Iterator[tuple[int, int]]:
        """A list of ranges of an answer, each by its first and last. Raises ChainError."""
        for item in self.items(document, name):
            if not isinstance(item, dict):
                raise self.misfit(f"`{name}` holds something else than ranges")
            yield self.number(item, "first"), self.number(item, "last")

    def misfit(self, why: str) -> ChainError:
        """The error for an answer that is not the API's."""
        return ChainError(
            f"{self.name} is no indexer of this version: {why}", hint=f"check `[indexer] url`; {WITHOUT}"
        )

    def _exchange(
        self, path: str, query: Mapping[str, str], deadline: float | None
    ) -> tuple[int, Mapping[str, str], bytes]:
        """One request: the status, headers and body of the answer."""
        import requests.exceptions
        import urllib3.exceptions

        from mycelium_sdk.timed_http import AnswerTooLarge, read_answer, time_limit, without_address

        seconds = self._seconds if deadline is None else min(self._seconds, deadline - time.monotonic())
        if seconds <= 0:
            raise _late(f"{self.name} did not answer in time")
        try:
            with self._opened().get(
                self._url + path,
                params={**self._selection, **query},
                timeout=time_limit(seconds),
                stream=True,
                allow_redirects=False,
            ) as answer:
                return answer.status_code, answer.headers, read_answer(answer, _MAX_ANSWER_BYTES)
        except AnswerTooLarge as error:
            raise self.misfit("its answer is too large") from error
        except (requests.exceptions.RequestException, urllib3.exceptions.HTTPError) as error:
            cause = without_address(error)
        # Not within the block, or the original would be its context.
        if isinstance(cause, requests.exceptions.Timeout):
            raise _late(f"{self.name} did not answer in time") from cause
        raise ChainUnavailable(
            f"{self.name} cannot be reached", hint=f"check `[indexer] url`; {WITHOUT}"
        ) from cause

    def _ask(self, path: str, query: Mapping[str, str], deadline: float | None) -> dict[str, Any]:
        """One request: an answer of its API about this contract, or the problem that the owner is unknown."""
        status, headers, body = self._exchange(path, query, deadline)
        if status >= 500 or status in _MAY_PASS:
            raise self._busy(status, body, headers)
        document = self._parsed(body)
        kind = _problem(document)
        if status == _NOT_FOUND and kind == "unknown-source":
            raise WrongDomain(
                f"{self.name} does not follow this contract on this network",
                hint=f"check `[indexer] url`, network and contract; {WITHOUT}",
            )
        if status != _OK and not (status == _NOT_FOUND and kind == "unknown-owner"):
            raise self.misfit(f"it answered with status {status}")
        if any(document.get(name) != value for name, value in self._selection.items()):
            raise WrongDomain(
                f"{self.name} answered about another network or contract",
                hint=f"check `[indexer] url`; {WITHOUT}",
            )
        return document

    def _opened(self) -> requests.Session:
        from mycelium_sdk.timed_http import new_session

        with self._lock:
            if self._session is None:
                self._session = new_session()
            return self._session

    def _busy(self, status: int, body: bytes, headers: Mapping[str, str]) -> ChainUnavailable:
        said = f"answered with status {status}"
        with contextlib.suppress(ChainError):
            if _problem(self._parsed(body)) == "nothing-ingested":
                said = "has not taken in anything of this contract yet"
        error = ChainUnavailable(f"{self.name} {said}", hint=f"try again later; {WITHOUT}")
        error.retry_after = wait_asked_for(headers)
        return error

    def _parsed(self, body: bytes) -> dict[str, Any]:
        try:
            document = json.loads(body)
        except (ValueError, RecursionError) as error:
            raise self.misfit("its answer is not JSON") from error
        if not isinstance(document, dict):
            raise self.misfit("its answer is no object")
        return document


def is_unknown_owner(document: Mapping[str, Any]) -> bool:
    """Whether an answer is that no anchor of the owner was seen."""
    return _problem(document) == "unknown-owner"


def _late(message: str) -> ChainUnavailable:
    return ChainUnavailable(message, hint=f"try again later; {WITHOUT}")


def _problem(document: Mapping[str, Any]) -> str | None:
    """The kind of problem that an answer is, None if it is none."""
    kind = document.get("type")
    return kind.removeprefix(_PROBLEM) if isinstance(kind, str) and kind.startswith(_PROBLEM) else None
