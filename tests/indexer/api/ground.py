"""A store with anchors in it, the API over it on a real server, and a client that shows every byte."""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import json
import threading
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from mycelium_indexer.api.listening import listen
from mycelium_indexer.api.server import Server
from mycelium_indexer.api.settings import ApiSettings
from mycelium_indexer.app import make_app
from mycelium_indexer.values import Batch, IndexedAnchor, Progress, Source
from mycelium_sdk.chain.anchors import Anchor, previous_of, previous_of_first
from mycelium_sdk.networks import STANDALONE_PASSPHRASE
from mycelium_sdk.strkey import encode_account

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mycelium_indexer.store.base import IndexStore

NETWORK = STANDALONE_PASSPHRASE
CONTRACT = "CAC27VKJEPDJJNI36NP7D7VH6WCHT6N5EITKSKPZIQNWA2VPEPBIXJSB"
OTHER_CONTRACT = "CDFXP42NITRLDGYUMJ5OT63EVWBROJTCXQR64GUSDWHY2LH3AQM2TXYP"
NOW = 1_800_000_000.0
"""What the clock says."""


def owner_number(number: int) -> str:
    """One of many owners."""
    return encode_account(hashlib.sha256(f"owner {number}".encode()).digest())


def anchors_of(
    owner: str, uris: Sequence[bytes], *, acl: bytes = b"", start: int = 1000
) -> list[IndexedAnchor]:
    """An owner's first anchors as a chain holds them: version n is in ledger `start` + n."""
    made: list[IndexedAnchor] = []
    previous = previous_of_first(owner)
    for version, uri in enumerate(uris, 1):
        root = hashlib.sha256(b"%d of %s" % (version, owner.encode())).digest()
        anchor = Anchor(owner, version, root, uri, acl, previous, 1_700_000_000 + version)
        transaction = hashlib.sha256(root).hexdigest()
        made.append(IndexedAnchor(anchor, start + version, transaction, f"{transaction}-{version}"))
        previous = previous_of(anchor)
    return made


def older_anchor(owner: str, version: int) -> IndexedAnchor:
    """An anchor of an older deployment, read from its state."""
    return IndexedAnchor(Anchor(owner, version, b"\x07" * 32, b"", b"", None, None), None, None, None)


def progress(ledger: int = 5000, *, first_ledger: int = 900) -> Progress:
    """Followed up to a ledger that closed 7.5 s ago."""
    return Progress(
        cursor=f"at {ledger}",
        ledger=ledger,
        close_time=int(NOW) - 7,
        landmark=None,
        latest_ledger=ledger + 1,
        asked_at=NOW - 2,
        first_ledger=first_ledger,
    )


def fill(
    store: IndexStore, anchors: Sequence[IndexedAnchor], *, contract: str = CONTRACT, network: str = NETWORK
) -> Source:
    """Take anchors in, as one page of events."""
    source = store.source(network, contract, "")
    before = store.progress(source)
    following = progress(before.ledger + 1 if before else 5000)
    assert store.apply(source, Batch(tuple(anchors), (), following), after=before.cursor if before else None)
    return source


def settings(**changes: Any) -> ApiSettings:
    """Nothing is remembered between requests, and the clock stands still."""
    still = ApiSettings(NETWORK, CONTRACT, standing_seconds=0.0, clock=lambda: NOW + 0.5, access_log=True)
    return replace(still, **changes)


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back."""

    status: int
    headers: http.client.HTTPMessage
    body: bytes

    @property
    def json(self) -> Any:
        """The document, which must be JSON and nothing but ASCII."""
        return json.loads(self.body.decode("ascii"))

    @property
    def problem(self) -> str:
        """The end of the problem's type."""
        assert self.headers["Content-Type"] == "application/problem+json"
        kind = self.json["type"]
        assert isinstance(kind, str)
        assert self.json["status"] == self.status
        return kind.rpartition(":")[2]


@dataclass(frozen=True, slots=True)
class Api:
    """A server that runs."""

    port: int

    def get(self, target: str, *, method: str = "GET", **headers: str) -> Answer:
        """One request over a connection of its own; `_` in a header's name stands for `-`."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        with contextlib.closing(connection):
            connection.putrequest(method, target, skip_accept_encoding=True)
            for name, value in headers.items():
                connection.putheader(name.replace("_", "-"), value)
            connection.endheaders()
            answer = connection.getresponse()
            return Answer(answer.status, answer.headers, answer.read())


@contextlib.contextmanager
def serving(store: IndexStore, with_settings: ApiSettings) -> Iterator[Api]:
    """The API on a free port, in a thread of this process."""
    ready = threading.Event()
    sockets = listen("127.0.0.1", 0)
    server = Server(make_app(store, with_settings), sockets, ready.set)
    thread = threading.Thread(target=server.serve_until_ended)
    thread.start()
    try:
        assert ready.wait(60)
        yield Api(sockets[0].getsockname()[1])
    finally:
        server.end()
        thread.join(60)
        assert not thread.is_alive()
