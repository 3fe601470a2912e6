"""The line to the service: which API it speaks, found out once, and requests repeated by the one policy."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Literal, TypeVar

from mycelium_sdk.backends.supermemory.refusals import Conflict, NoSuchAddress
from mycelium_sdk.backends.supermemory.service import DELETED_AT_ONCE, QUERY_CHARACTERS, SEARCH_LIMIT
from mycelium_sdk.errors import BackendError, ConfigError
from mycelium_sdk.installing import install_command

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from mycelium_sdk.backends.supermemory.service import Document, Draft, Found, Page, Service, Value
    from mycelium_sdk.retry import RetryPolicy

Api = Literal["v5", "v3"]

T = TypeVar("T")


class Line:
    """`Service` with repetition. May be used from several threads; makes no request before the first call."""

    def __init__(
        self,
        namespace: str,
        key: str,
        *,
        url: str | None,
        api: Api | None,
        policy: RetryPolicy,
        seconds: float,
    ) -> None:
        self._namespace = namespace
        self._key = key
        self._url = url
        self._api = api
        self._seconds = seconds
        self._service: Service | None = None
        self._closed = False
        self._lock = threading.Lock()
        self.policy = policy

    @property
    def service(self) -> Service:
        """The API that is spoken; the first call finds out which, if nobody said."""
        with self._lock:
            if self._closed:
                raise BackendError("the memory is closed", hint="open it again")
            if self._service is None:
                # The public service speaks v5, so there is nothing to find out.
                api: Api = "v5"
                if self._api is not None:
                    api = self._api
                elif self._url is not None:
                    api = self.policy.call(self._probe)
                self._service = self._speaking(api)
            return self._service

    def _speaking(self, api: Api) -> Service:
        if api == "v3":
            from mycelium_sdk.backends.supermemory.v3 import V3

            return V3(self._namespace, self._key, self._url, seconds=self._seconds)
        try:
            from mycelium_sdk.backends.supermemory.v5 import V5
        except ImportError as error:
            raise ConfigError(
                "the memory service's client is not installed",
                hint=f'{install_command("supermemory")}, or api="v3" for a server that speaks v3',
            ) from error
        return V5(self._namespace, self._key, self._url, seconds=self._seconds)

    def _probe(self) -> Api:
        """The newer API unless the server does not know it; one small request, or two."""
        apis: tuple[Api, ...] = ("v5", "v3")
        for api in apis:
            service = self._speaking(api)
            try:
                service.page(1, 1)
            except NoSuchAddress:
                if api == apis[-1]:
                    raise
            else:
                return api
            finally:
                service.close()
        raise AssertionError("unreachable: the last API raises")

    def page(self, number: int, limit: int) -> Page:
        """See `Service.page`."""
        return self._repeated(lambda service: service.page(number, limit))

    def get(self, id: str, handle: str | None = None) -> Document | None:  # noqa: A002 - the documents' word
        """See `Service.get`."""
        return self._repeated(lambda service: service.get(id, handle))

    def update(self, id: str, handle: str, metadata: Mapping[str, Value], content: str | None = None) -> bool:  # noqa: A002
        """See `Service.update`: what it writes does not depend on what is there, so it may be repeated."""
        return self._repeated(lambda service: service.update(id, handle, metadata, content))

    def search(self, query: str) -> list[Found]:
        """See `Service.search`."""
        return self._repeated(lambda service: service.search(query[:QUERY_CHARACTERS], SEARCH_LIMIT))

    def add(self, drafts: Sequence[Draft], present: Callable[[Sequence[str]], AbstractSet[str]]) -> None:
        """Add every document exactly once, in as few requests as can be.

        `present` says which of these ids are there: whether a request that failed took effect is not known,
        and adding what is there would append to it. Raises `StoreUnavailable` if some may be there and others
        not; `BackendError` or `LimitExceeded` if the service refuses them.
        """
        size = self.service.batch_size
        for start in range(0, len(drafts), size):
            self._add_batch(drafts[start : start + size], present)

    def _add_batch(
        self, drafts: Sequence[Draft], present: Callable[[Sequence[str]], AbstractSet[str]]
    ) -> None:
        left = list(drafts)
        unsure = False

        def attempt() -> None:
            nonlocal left, unsure
            if unsure:
                there = present([draft.id for draft in left])
                left = [draft for draft in left if draft.id not in there]
            if not left:
                return
            unsure = True
            refused = self.service.add(left)
            if refused:
                left = [draft for draft in left if draft.id in refused]
                raise Conflict(
                    f"the memory service did not take {len(left)} of the documents", hint="try again later"
                )

        self.policy.call(attempt)

    def delete(self, documents: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
        """Delete documents given as (id, handle); those that the service would not delete, also when asked
        again: they may have been gone already."""
        refused: list[tuple[str, str]] = []
        for start in range(0, len(documents), DELETED_AT_ONCE):
            left = list(documents[start : start + DELETED_AT_ONCE])
            for _ in range(2):
                if left:
                    names = set(self._delete(left))
                    left = [one for one in left if one[0] in names]
            refused += left
        return refused

    def _delete(self, documents: list[tuple[str, str]]) -> list[str]:
        return self._repeated(lambda service: service.delete(documents))

    def _repeated(self, request: Callable[[Service], T]) -> T:
        service = self.service
        return self.policy.call(lambda: request(service))

    def close(self) -> None:
        """Close the connections; harmless when repeated."""
        with self._lock:
            self._closed = True
            if self._service is not None:
                self._service.close()
                self._service = None
