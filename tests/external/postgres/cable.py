"""A cable between client and server that can be cut: before a COMMIT arrives, or before its answer does."""

from __future__ import annotations

import contextlib
import socket
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

COMMIT = b"COMMIT\x00"
"""What a client says to commit, until it has said so five times: then it is a prepared statement."""


class Cable:
    """Listens on the server's port in another folder and passes on what comes. Each call of a `cut_` method
    cuts the cable once, at the next COMMIT."""

    def __init__(self, folder: Path, server: Path, port: int) -> None:
        self.folder = folder
        self._server = str(server / f".s.PGSQL.{port}")
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(str(folder / f".s.PGSQL.{port}"))
        self._listening.listen()
        self._lock = threading.Lock()
        self._cuts: list[str] = []
        self._open: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def cut_before_commit(self) -> None:
        """The server never hears the next COMMIT."""
        self._cuts.append("before")

    def cut_after_commit(self) -> None:
        """The server commits, and the client never hears of it."""
        self._cuts.append("after")

    def silence_after_commit(self) -> None:
        """The server commits, and the client never hears of it, nor of anything else from then on."""
        self._cuts.append("silence")

    @property
    def waits(self) -> bool:
        """Whether a cut is still to come."""
        return bool(self._cuts)

    def close(self) -> None:
        """Take it away."""
        for end in (self._listening, *self._open):
            _close(end)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                server = socket.socket(socket.AF_UNIX)
                server.connect(self._server)
                self._open += [client, server]
                mute, silent = threading.Event(), threading.Event()
                for carry in (self._up, self._down):
                    threading.Thread(target=carry, args=(client, server, mute, silent), daemon=True).start()

    def _up(
        self, client: socket.socket, server: socket.socket, mute: threading.Event, silent: threading.Event
    ) -> None:
        with contextlib.suppress(OSError):
            while data := client.recv(1 << 16):
                if COMMIT in data:
                    with self._lock:
                        cut = self._cuts.pop(0) if self._cuts else None
                    if cut == "before":
                        break
                    if cut == "after":
                        mute.set()
                    if cut == "silence":
                        silent.set()
                server.sendall(data)
        _close(client)
        _close(server)

    def _down(
        self, client: socket.socket, server: socket.socket, mute: threading.Event, silent: threading.Event
    ) -> None:
        with contextlib.suppress(OSError):
            while data := server.recv(1 << 16):
                if mute.is_set():  # the answer to COMMIT: it is done
                    break
                if not silent.is_set():
                    client.sendall(data)
        _close(client)
        _close(server)


def _close(end: socket.socket) -> None:
    with contextlib.suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
    end.close()
