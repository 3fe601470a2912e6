"""A server in a process of its own, and plain HTTP to it."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import IO

JSON = {"Content-Type": "application/json"}
SECONDS = 60


@dataclass(frozen=True)
class Answer:
    """An HTTP response, read to its end."""

    status: int
    headers: http.client.HTTPMessage
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class ServerProcess:
    """A server that said it was ready."""

    process: subprocess.Popen[str]
    url: str
    stderr: IO[bytes]

    @property
    def port(self) -> int:
        port = urlsplit(self.url).port
        assert port is not None
        return port

    @property
    def origin(self) -> str:
        return self.url.removesuffix("/rpc")

    def connect(self) -> http.client.HTTPConnection:
        """A connection of the caller's own, which the caller closes."""
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=SECONDS)

    def ask(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: dict[str, str] | None = None,
    ) -> Answer:
        """One request on a connection of its own."""
        connection = self.connect()
        try:
            connection.request(method, path, body, headers or {})
            response = connection.getresponse()
            return Answer(response.status, response.headers, response.read())
        finally:
            connection.close()

    def post(self, message: object, path: str = "/rpc") -> Answer:
        """A message of JSON-RPC, or whatever else is JSON."""
        return self.ask("POST", path, json.dumps(message).encode(), JSON)

    def call(self, method: str, params: object = None) -> dict[str, Any]:
        """The result of a method."""
        answer = self.post({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
        assert answer.status == 200
        assert "error" not in answer.json, answer.json
        result: dict[str, Any] = answer.json["result"]
        return result

    def fund(self, address: str) -> Answer:
        """Ask the friendbot."""
        return self.ask("GET", f"/friendbot?addr={address}")

    def end(self, number: int = signal.SIGTERM) -> int:
        """Send a signal and wait: the exit code."""
        self.process.send_signal(number)
        return self.wait()

    def wait(self) -> int:
        return self.process.wait(SECONDS)

    def complaints(self) -> str:
        """What was written to stderr so far."""
        self.stderr.seek(0)
        return self.stderr.read().decode()


def until(holds: Callable[[], bool]) -> None:
    """Look again and again at what another process does, until it has done it."""
    deadline = time.monotonic() + SECONDS
    while not holds():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.005)


def command(*options: object) -> list[str]:
    """The command line of a server on a free port."""
    return [sys.executable, "-m", "mycelium_localnet", "--port", "0", *map(str, options)]


@contextmanager
def serving(*options: object, arguments: list[str] | None = None) -> Iterator[ServerProcess]:
    """A server with these options, or with this whole command line; ended with the block unless it has
    ended."""
    with (
        tempfile.TemporaryFile() as stderr,
        subprocess.Popen(
            arguments or command(*options),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            env={**os.environ, "PYTHONWARNINGS": "error"},
        ) as process,
    ):
        try:
            assert process.stdout is not None
            server = ServerProcess(process, process.stdout.readline().removeprefix("ready: ").strip(), stderr)
            assert server.url, server.complaints()
            yield server
        finally:
            process.kill()
