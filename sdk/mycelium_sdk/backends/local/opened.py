"""The memory file that is open, and what is kept in memory of it; another one, where that takes its place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from mycelium_sdk.watched_file import Losses, identity, missing

if TYPE_CHECKING:
    from mycelium_sdk.backends.local.connections import Connections
    from mycelium_sdk.backends.local.search import Search
    from mycelium_sdk.backends.local.vectors import Vectors


class Connect(Protocol):
    """Opens what is at the path of the memory file. `make`: makes it, where nothing is."""

    def __call__(self, *, make: bool) -> Connections:
        """The connections to it."""
        ...


class Opened:
    """One file. What is made with it never reaches another: each has connections of its own."""

    def __init__(self, connections: Connections) -> None:
        self.connections = connections
        self.search: Search | None = None
        self.vectors: Vectors | None = None
        self.root: tuple[int, bytes] | None = None
        """A change counter, and the root of the state with it."""


class MemoryFile:
    """The file at the path of a memory, for as long as the memory is open."""

    def __init__(self, connect: Connect) -> None:
        self._connect = connect
        self._losses = Losses()
        self._opened = Opened(connect(make=True))

    def now(self) -> Opened:
        """The file that is at the path.

        Raises `BackendError` where there is none, and once in each thread that used another one before; what
        opening raises, where what is there cannot be used.
        """
        opened = self._opened
        path = opened.connections.path
        if path is None:
            return opened
        if opened.connections.lost():
            opened = self._again(opened)
        self._losses.tell(path)
        return opened

    def close(self) -> None:
        """Close the file; harmless when repeated."""
        self._opened.connections.close()

    def _again(self, lost: Opened) -> Opened:
        with lost.connections.alone():
            if self._opened is not lost:  # another thread was first
                return self._opened
            if lost.connections.let_go():
                self._losses.add()
            path = lost.connections.path
            if path is not None and identity(path) is None:
                self._losses.told()
                raise missing(path)
            lost.connections.refuse_its_log()
            self._opened = Opened(self._connect(make=False))
            return self._opened
