"""Documents are processed after they are added: waiting for that, and mending what the service failed at."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mycelium_sdk.backends.supermemory.documents import memory_of
from mycelium_sdk.backends.supermemory.refusals import unavailable
from mycelium_sdk.backends.supermemory.service import DONE, FAILED
from mycelium_sdk.errors import BackendError

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from mycelium_sdk.backends.supermemory.documents import Memory
    from mycelium_sdk.backends.supermemory.line import Line
    from mycelium_sdk.backends.supermemory.mirror import Mirror
    from mycelium_sdk.backends.supermemory.view import View
    from mycelium_sdk.backends.supermemory.writer import Writer
    from mycelium_sdk.backends.values import Progress

_ATTEMPTS = 3
"""A document that the service fails to process is written so many times in all."""


class Settling:
    """Follows the documents that this process wrote until the service has finished with them."""

    def __init__(self, line: Line, mirror: Mirror, writer: Writer) -> None:
        self._line = line
        self._mirror = mirror
        self._writer = writer
        self.lost: set[str] = set()
        """Documents that were written, and went without anybody forgetting them for certain."""

    def tend(self, view: View) -> list[str]:
        """Rewrite what the service failed to process; the ids that were given up."""
        given_up = []
        for name, written in list(self._writer.written.items()):
            reading = view.by_id.get(name)
            if reading is not None and reading.document.status == DONE:
                del self._writer.written[name]
            elif reading is not None and reading.document.status != FAILED:
                if written.forgettings < 0:
                    self._writer.written[name] = written._replace(forgettings=view.forgettings)
            elif reading is None and written.forgettings != view.forgettings:
                # Somebody forgot something meanwhile: this, or another.
                del self._writer.written[name]
                self.lost.add(name)
            elif written.attempts >= _ATTEMPTS:
                given_up.append(name)
            else:
                self._writer.rewrite(name, reading)
        return given_up

    def wait(self, seconds: float, progress: Progress | None, lock: AbstractContextManager[object]) -> None:
        """Return when the service has finished with what this process wrote until now.

        `lock` is held for each look, not between them.

        Raises `StoreUnavailable` after `seconds`, `BackendError` for a document that it failed to process
        again and again; what was written stays in both cases.
        """
        with lock:
            wanted = set(self._writer.written)

        def done() -> bool:
            with lock:
                return settled()

        def settled() -> bool:
            given_up = self.tend(self._mirror.watch(self._writer.written.keys()))
            if failed := wanted.intersection(given_up):
                raise BackendError(
                    f"the memory service failed to process {len(failed)} of the memories",
                    hint="remember them again; the service deletes what it failed to process",
                )
            left = wanted & self._writer.written.keys()
            if progress is not None:
                progress("processing", len(wanted) - len(left), len(wanted))
            return not left

        self._until(done, seconds, "has not processed all of the memories yet; they are stored")

    def fetched(self, memory: Memory) -> Memory:
        """The memory with its text, where the listing left that out, or had none to show yet."""
        if memory.stored is None and memory.damage is None:
            document = self._line.get(memory.id, memory.handle)
            if document is not None and document.content is not None:
                self._mirror.complete(document)
                return memory_of(document)
        return memory

    def complete(self, view: View, seconds: float, progress: Progress | None) -> View:
        """The view with every memory's text. What the service has not published yet is waited for."""

        def done() -> bool:
            nonlocal view
            missing = [one for one in view.memories.values() if one.stored is None and one.damage is None]
            for number, memory in enumerate(missing):
                self.fetched(memory)
                if progress is not None and number % 20 == 19:
                    progress("fetching", number + 1, len(missing))
            view = self._mirror.view if missing else view
            missing = [one for one in view.memories.values() if one.stored is None and one.damage is None]
            own = self._writer.written
            if all(one.id in own for one in missing):
                return True
            view = self._mirror.look()
            return False

        self._until(done, seconds, "has not processed all of the documents yet")
        return view

    def _until(self, done: Callable[[], bool], seconds: float, otherwise: str) -> None:
        pace = self._line.policy.pace
        deadline = pace.monotonic() + seconds
        for delay in self._line.policy.delays():
            if done():
                return
            if pace.monotonic() + delay > deadline:
                raise unavailable(otherwise)
            pace.sleep(delay)
