"""AsyncAgentMemory: the methods of AgentMemory for asyncio, each run in a worker thread."""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from mycelium_sdk.memory.agent_memory import AgentMemory

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from types import TracebackType

    from mycelium_sdk.backends.base import BaseBackend, Hit
    from mycelium_sdk.chain.history import AnchorHistory
    from mycelium_sdk.chain.keeping import Kept, Offer
    from mycelium_sdk.context import AgentContext
    from mycelium_sdk.memory.anchoring import Anchoring
    from mycelium_sdk.memory.context_store import Rehydration
    from mycelium_sdk.memory.past import Difference, Purged
    from mycelium_sdk.memory.policy import AnchoringPolicy
    from mycelium_sdk.memory.portability import Synced
    from mycelium_sdk.memory.published import PublishedVersion
    from mycelium_sdk.memory.publishing import Publish
    from mycelium_sdk.memory.sources import Fetch
    from mycelium_sdk.memory.verification import Verification
    from mycelium_sdk.state import LastAnchor

__all__ = ["AsyncAgentMemory", "AsyncFetch", "AsyncPublish"]

AsyncPublish = Callable[[bytes], Awaitable[str]]
"""A coroutine function that stores a blob and returns its URI."""

AsyncFetch = Callable[[str], Awaitable[bytes]]
"""A coroutine function that gets a blob by its URI."""


class AsyncAgentMemory:
    """One owner's memory, without blocking the event loop.

    Takes the arguments of `AgentMemory`; every method that may touch a disk or a network is a coroutine with
    the same arguments, result and errors. What are properties there, and may touch a disk, are coroutine
    methods here.
    """

    def __init__(
        self,
        ctx: AgentContext | None = None,
        backend: str | BaseBackend = "auto",
        anchor_address: str | None = None,
        backend_kwargs: Mapping[str, Any] | None = None,
        policy: AnchoringPolicy | None = None,
    ) -> None:
        self._memory = AgentMemory(ctx, backend, anchor_address, backend_kwargs, policy)

    async def remember(
        self, content: str, tags: Iterable[str] | None = None, session: str | None = None
    ) -> str:
        """See `AgentMemory.remember`."""
        return await asyncio.to_thread(self._memory.remember, content, tags, session)

    async def recall(
        self,
        query: str,
        k: int = 5,
        tags: Iterable[str] | None = None,
        session: str | None = None,
        offset: int = 0,
    ) -> list[Hit]:
        """See `AgentMemory.recall`."""
        return await asyncio.to_thread(self._memory.recall, query, k, tags, session, offset)

    async def forget(
        self,
        id: str | None = None,  # noqa: A002 - the name users know
        *,
        tag: str | None = None,
        secure: bool = False,
    ) -> int:
        """See `AgentMemory.forget`."""
        return await asyncio.to_thread(self._memory.forget, id, tag=tag, secure=secure)

    async def versions_holding(
        self,
        id: str | None = None,  # noqa: A002 - the name users know
        *,
        tag: str | None = None,
    ) -> list[PublishedVersion]:
        """See `AgentMemory.versions_holding`."""
        return await asyncio.to_thread(self._memory.versions_holding, id, tag=tag)

    async def memory_root(self) -> bytes:
        """See `AgentMemory.memory_root`."""
        return await asyncio.to_thread(self._memory.memory_root)

    async def is_dirty(self) -> bool:
        """See `AgentMemory.is_dirty`."""
        return await asyncio.to_thread(lambda: self._memory.is_dirty)

    async def last_anchor(self) -> LastAnchor | None:
        """See `AgentMemory.last_anchor`."""
        return await asyncio.to_thread(lambda: self._memory.last_anchor)

    async def anchor(
        self,
        uri: str | None = None,
        publish: Publish | AsyncPublish | None = None,
        acl: bytes = b"",
        *,
        overwrite: bool = False,
    ) -> int:
        """See `AgentMemory.anchor`. A `publish` function may be a coroutine function."""
        return await asyncio.to_thread(self._memory.anchor, uri, _plain(publish), acl, overwrite=overwrite)

    async def anchor_with_receipt(
        self,
        uri: str | None = None,
        publish: Publish | AsyncPublish | None = None,
        acl: bytes = b"",
        *,
        overwrite: bool = False,
    ) -> Anchoring:
        """See `AgentMemory.anchor_with_receipt`."""
        return await asyncio.to_thread(
            self._memory.anchor_with_receipt, uri, _plain(publish), acl, overwrite=overwrite
        )

    async def get_anchor(self) -> dict[str, Any] | None:
        """See `AgentMemory.get_anchor`."""
        return await asyncio.to_thread(self._memory.get_anchor)

    async def verify(self) -> Verification:
        """See `AgentMemory.verify`."""
        return await asyncio.to_thread(self._memory.verify)

    async def rehydrate(
        self,
        fetch: Fetch | AsyncFetch | None = None,
        on_conflict: str = "refuse",
        version: int | None = None,
    ) -> dict[str, int]:
        """See `AgentMemory.rehydrate`. A `fetch` function may be a coroutine function."""
        return await asyncio.to_thread(self._memory.rehydrate, _plain(fetch), on_conflict, version)

    async def rehydrate_with_report(
        self,
        fetch: Fetch | AsyncFetch | None = None,
        on_conflict: str = "refuse",
        version: int | None = None,
    ) -> Rehydration:
        """See `AgentMemory.rehydrate_with_report`. A `fetch` function may be a coroutine function."""
        return await asyncio.to_thread(
            self._memory.rehydrate_with_report, _plain(fetch), on_conflict, version
        )

    async def sync(
        self, fetch: Fetch | AsyncFetch | None = None, publish: Publish | AsyncPublish | None = None
    ) -> Synced:
        """See `AgentMemory.sync`. Both functions may be coroutine functions."""
        return await asyncio.to_thread(self._memory.sync, _plain(fetch), _plain(publish))

    async def history(self) -> AnchorHistory:
        """See `AgentMemory.history`."""
        return await asyncio.to_thread(self._memory.history)

    async def diff(
        self, first: int, second: int | None = None, fetch: Fetch | AsyncFetch | None = None
    ) -> Difference:
        """See `AgentMemory.diff`. A `fetch` function may be a coroutine function."""
        return await asyncio.to_thread(self._memory.diff, first, second, _plain(fetch))

    async def purge(self, versions: Iterable[int] | None = None) -> list[Purged]:
        """See `AgentMemory.purge`."""
        return await asyncio.to_thread(self._memory.purge, versions)

    async def keep_alive(
        self, *, include_contract: bool = False, accept: Callable[[Offer], bool] = lambda _: True
    ) -> list[Kept]:
        """See `AgentMemory.keep_alive`. `accept` is a plain function."""
        return await asyncio.to_thread(
            self._memory.keep_alive, include_contract=include_contract, accept=accept
        )

    async def trust_chain_anew(self, *, to_load: bool = False) -> bool:
        """See `AgentMemory.trust_chain_anew`."""
        return await asyncio.to_thread(self._memory.trust_chain_anew, to_load=to_load)

    async def on_job_complete(
        self, uri: str | None = None, publish: Publish | AsyncPublish | None = None
    ) -> int | None:
        """See `AgentMemory.on_job_complete`."""
        return await asyncio.to_thread(self._memory.on_job_complete, uri, _plain(publish))

    async def heartbeat(
        self, uri: str | None = None, publish: Publish | AsyncPublish | None = None
    ) -> int | None:
        """See `AgentMemory.heartbeat`."""
        return await asyncio.to_thread(self._memory.heartbeat, uri, _plain(publish))

    @property
    def owner(self) -> str:
        """See `AgentMemory.owner`."""
        return self._memory.owner

    @property
    def backend(self) -> BaseBackend:
        """See `AgentMemory.backend`. Its methods block."""
        return self._memory.backend

    @property
    def context(self) -> AgentContext:
        """See `AgentMemory.context`."""
        return self._memory.context

    @property
    def contract_id(self) -> str:
        """See `AgentMemory.contract_id`."""
        return self._memory.contract_id

    async def count(self) -> int:
        """See `AgentMemory.count`."""
        return await asyncio.to_thread(self._memory.count)

    async def close(self) -> None:
        """See `AgentMemory.close`."""
        await asyncio.to_thread(self._memory.close)

    async def __aenter__(self) -> AsyncAgentMemory:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"Async{self._memory!r}"


def _describe(member: Any) -> None:
    """Put the docstring of AgentMemory's member into the place of "See `AgentMemory.name`.", in front of what
    is different here."""
    reference, separator, difference = (member.__doc__ or "").partition("`.")
    if separator and reference.startswith(_SEE):
        whole = inspect.getdoc(getattr(AgentMemory, reference.removeprefix(_SEE))) or ""
        member.__doc__ = f"{whole}\n\n{difference.strip()}".strip()


_SEE = "See `AgentMemory."
for _member in vars(AsyncAgentMemory).values():
    if inspect.isfunction(_member) or isinstance(_member, property):
        _describe(_member)


def _plain(given: Any) -> Any:
    """What a worker thread can call: a coroutine function becomes one that waits for the event loop to run
    it."""
    if not inspect.iscoroutinefunction(given):
        return given
    loop = asyncio.get_running_loop()

    @functools.wraps(given)
    def wait(argument: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(given(argument), loop).result()

    return wait
