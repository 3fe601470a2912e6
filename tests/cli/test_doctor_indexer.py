"""`doctor` asks the configured indexer whether it is well."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from mycelium_sdk.wallet import Wallet

    from .conftest import Cli


class _Healthy(BaseHTTPRequestHandler):
    """An indexer that is well, and nothing else."""

    def do_GET(self) -> None:
        self.send_response(200 if self.path == "/base/healthz" else 404)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/base/", "ok: 127.0.0.1:{port} is well"),
        ("/base", "ok: 127.0.0.1:{port} is well"),
        ("/other", "fault: 127.0.0.1:{port} answers with HTTP status 404"),
        (None, "fault: 127.0.0.1:1 cannot be reached, or is no indexer"),
    ],
)
def test_the_indexer_is_asked_whether_it_is_well(
    cli: Cli, wallet: Wallet, monkeypatch: pytest.MonkeyPatch, path: str | None, said: str
) -> None:
    with HTTPServer(("127.0.0.1", 0), _Healthy) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        port = server.server_address[1]
        url = "http://127.0.0.1:1" if path is None else f"http://127.0.0.1:{port}{path}"
        monkeypatch.setenv("MYCELIUM_INDEXER_URL", url)
        try:
            outcome = cli("doctor", "--json")
        finally:
            server.shutdown()
            thread.join()
    (found,) = [check for check in outcome.json["checks"] if check["name"] == "indexer"]
    assert f"{found['state']}: {found['message']}" == said.format(port=port)
    assert outcome.code == (6 if said.startswith("fault") else 0)
