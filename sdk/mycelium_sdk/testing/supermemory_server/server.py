"""The HTTP server: accounts by key, faults on demand, and a list of what was asked."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import parse_qsl, unquote, urlsplit

from mycelium_sdk.testing.supermemory_server.apis import V3, V5
from mycelium_sdk.testing.supermemory_server.shelf import Conduct, Refused, Shelf

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import TracebackType

    from mycelium_sdk.testing.supermemory_server.faults import Fault

_HANGS_SECONDS = 30.0


class SupermemoryServer:
    """A service on 127.0.0.1, from `with` on. Each key is an account of its own, unless `keys` names those
    that are valid.

    `apis`: which of "v5" and "v3" it serves. `batches`: whether documents can be added and deleted many at
    once. `conduct`: how it behaves. `faults`: what goes wrong next. `requests`: what was asked so far, as
    (method, path).
    """

    def __init__(
        self,
        apis: Iterable[str] = ("v5", "v3"),
        *,
        keys: Iterable[str] | None = None,
        batches: bool = True,
    ) -> None:
        self.conduct = Conduct()
        self.faults: list[Fault] = []
        self.requests: list[tuple[str, str]] = []
        self._keys = None if keys is None else set(keys)
        self._routes: list[V5 | V3] = []
        if "v5" in apis:
            self._routes.append(V5(self.conduct, batches=batches))
        if "v3" in apis:
            self._routes.append(V3(self.conduct, batches=batches))
        self._shelves: dict[str, Shelf] = {}
        self._lock = threading.RLock()
        self._over = threading.Event()
        self._http: _Http | None = None
        self._address = ("127.0.0.1", 0)

    @property
    def url(self) -> str:
        """The address to give as `base_url`."""
        return f"http://{self._address[0]}:{self._address[1]}"

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Serve; at the same address as before."""
        self._over.clear()
        self._http = _Http(self._address, self)
        self._address = ("127.0.0.1", self._http.server_address[1])
        threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True).start()

    def stop(self) -> None:
        """Serve no more; what is stored stays."""
        self._over.set()
        if self._http is not None:
            self._http.shutdown()
            self._http.server_close()
            self._http = None

    def shelf(self, key: str) -> Shelf:
        """The documents of a key's account."""
        with self._lock:
            return self._shelves.setdefault(key, Shelf(self.conduct))

    def hold(self) -> None:
        """Process nothing from now on."""
        self.conduct.held = True

    def release(self) -> None:
        """Process everything, from now on as well."""
        with self._lock:
            self.conduct.held = False
            for shelf in self._shelves.values():
                shelf.release()

    def pass_time(self, seconds: float) -> None:
        """Let time pass for the service: failed documents vanish."""
        self.conduct.seconds += seconds

    def count(self, method: str = "", path: str = "") -> int:
        """How many requests there were with this method and end of the path."""
        return sum(method in {"", verb} and asked.endswith(path) for verb, asked in self.requests)

    @property
    def is_over(self) -> bool:
        """Whether it was stopped."""
        return self._over.is_set()

    def wait_for_the_client(self) -> None:
        """What a hanging answer does."""
        self._over.wait(_HANGS_SECONDS)

    def fault_for(self, method: str, path: str) -> Fault | None:
        """Note a request, and the fault that happens to it."""
        with self._lock:
            self.requests.append((method, path))
            return next((fault for fault in self.faults if fault.takes(method, path)), None)

    def answer(self, method: str, target: str, key: str | None, body: bytes) -> tuple[int, Any]:
        """Status and JSON for a request."""
        address = urlsplit(target)
        parts = [unquote(part) for part in address.path.split("/") if part]
        if not key or (self._keys is not None and key not in self._keys):
            return 401, {"error": "unauthorized"}
        try:
            given = json.loads(body) if body else {}
            for routes in self._routes:
                if isinstance(routes, V5) == (parts[:1] == ["ns"]):
                    with self._lock:
                        answer = routes.answer(
                            self.shelf(key), method, parts, dict(parse_qsl(address.query)), given
                        )
                    if "list" in parts and self.conduct.after_page is not None:
                        self.conduct.after_page()
                    return 200, answer
        except Refused as refused:
            return refused.status, {"error": str(refused)}
        return 404, {"error": "no such route"}


class _Http(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 64
    allow_reuse_address = True

    def __init__(self, address: tuple[str, int], service: SupermemoryServer) -> None:
        self.service = service
        super().__init__(address, _Handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is no news."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Http

    def do_GET(self) -> None:
        self._serve()

    def do_POST(self) -> None:
        self._serve()

    def do_PATCH(self) -> None:
        self._serve()

    def do_DELETE(self) -> None:
        self._serve()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
        """Nothing is logged."""

    def _serve(self) -> None:
        service = self.server.service
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length)
        if service.is_over:
            self.close_connection = True
            return
        fault = service.fault_for(self.command, urlsplit(self.path).path)
        scheme, _, key = (self.headers.get("Authorization") or "").partition(" ")
        if fault is None or fault.executed:
            status, answer = service.answer(
                self.command, self.path, key if scheme == "Bearer" else None, body
            )
        else:
            status, answer = 200, {}
        if fault is None:
            self._say(status, json.dumps(answer).encode())
            return
        if fault.kind == "status":
            self._say(fault.status, b'{"error":"asked for"}', fault.headers)
            return
        if fault.kind == "html":
            self._say(200, b"<html><body>Welcome</body></html>", {"Content-Type": "text/html"})
            return
        self.close_connection = True
        if fault.kind == "hang":
            service.wait_for_the_client()
        elif fault.kind == "cut":
            text = json.dumps(answer).encode()
            self.wfile.write(
                b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(text)
                + text[: len(text) // 2]
            )

    def _say(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        named = {"Content-Type": "application/json", "Content-Length": str(len(body))} | (headers or {})
        lines = [f"HTTP/1.1 {status} {'OK' if status < 300 else 'Error'}"]
        lines += [f"{name}: {value}" for name, value in named.items()]
        self.wfile.write("\r\n".join([*lines, "", ""]).encode("latin-1") + body)
