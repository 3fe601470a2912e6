"""Every way in which a server can do harm, against loading one's own memory and reading a stranger's: each is
refused with its own error, within its limits of time and memory, and nothing is loaded."""

from __future__ import annotations

import dataclasses
import gzip
import tracemalloc
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import pytest

from mycelium_sdk import canonical
from mycelium_sdk.errors import (
    BlobUnavailable,
    LimitExceeded,
    MyceliumError,
    NonCanonical,
    Rollback,
    Tampered,
    UntrustedSource,
    WrongOwner,
)
from mycelium_sdk.fetching import FetchPolicy
from mycelium_sdk.memory import AgentMemory, read_memory
from mycelium_sdk.records import Record
from mycelium_sdk.verdicts import Verdict
from tests.chain.sockets import Listening, Visit, http_answer

if TYPE_CHECKING:
    import ssl
    from collections.abc import Iterator
    from pathlib import Path

    from tests.memory.conftest import World

STRANGER = "GA7QYNF7SOWQ3GLR2BGMZEHXAVIRZA4KVWLTJJFC7MGXUA74P7UJVSGZ"
MEMORY_LIMIT = 16 << 20


class Scene(NamedTuple):
    """What a server may use: the genuine blob, an older one, and its own address."""

    blob: bytes
    older: bytes
    url: str


Serve = Callable[[Visit, Scene], None]


def _body(make: Callable[[Scene], bytes], *headers: str, status: str = "200 OK") -> Serve:
    return lambda visit, scene: visit.send(http_answer(make(scene), status, *headers))


def _endless(visit: Visit, _: Scene) -> None:
    visit.send(b"HTTP/1.1 200 OK\r\n\r\n")
    while not visit.stopped.is_set():
        visit.send(bytes(1 << 16))


def _slowly(visit: Visit, _: Scene) -> None:
    visit.send(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
    visit.drip(b"x")


def _truncated(visit: Visit, scene: Scene) -> None:
    visit.send(http_answer(scene.blob)[:-10])


BOMB = gzip.compress(bytes(64 << 20))

TRANSPORT: dict[str, tuple[Serve, type[MyceliumError], Verdict]] = {
    "gone": (_body(lambda _: b"", status="404 Not Found"), BlobUnavailable, Verdict.UNAVAILABLE),
    "failing": (_body(lambda _: b"", status="503 Busy"), BlobUnavailable, Verdict.UNAVAILABLE),
    "truncated": (_truncated, BlobUnavailable, Verdict.UNAVAILABLE),
    "a declared gigabyte": (
        lambda visit, _: visit.send(b"HTTP/1.1 200 OK\r\nContent-Length: 1073741824\r\n\r\n"),
        LimitExceeded,
        Verdict.LIMIT,
    ),
    "endless": (_endless, LimitExceeded, Verdict.LIMIT),
    "slow": (_slowly, BlobUnavailable, Verdict.UNAVAILABLE),
    "silent": (lambda visit, _: visit.silence(), BlobUnavailable, Verdict.UNAVAILABLE),
    "compressed bomb": (
        _body(lambda _: BOMB, "Content-Encoding: gzip"),
        UntrustedSource,
        Verdict.UNTRUSTED_SOURCE,
    ),
    "redirecting in circles": (
        lambda visit, scene: visit.send(http_answer(b"", "302 Found", f"Location: {scene.url}")),
        UntrustedSource,
        Verdict.UNTRUSTED_SOURCE,
    ),
    "redirecting to http": (
        _body(lambda _: b"", "Location: http://localhost/x", status="302 Found"),
        UntrustedSource,
        Verdict.UNTRUSTED_SOURCE,
    ),
    "redirecting to a file": (
        _body(lambda _: b"", "Location: file:///etc/passwd", status="302 Found"),
        UntrustedSource,
        Verdict.UNTRUSTED_SOURCE,
    ),
    "redirecting inside": (
        _body(lambda _: b"", "Location: https://169.254.169.254/latest/meta-data", status="302 Found"),
        UntrustedSource,
        Verdict.UNTRUSTED_SOURCE,
    ),
    "stale": (_body(lambda scene: scene.older), Rollback, Verdict.ROLLBACK),
    "altered": (
        _body(lambda scene: scene.blob.replace(b"two", b"owt")),
        Tampered,
        Verdict.TAMPERED,
    ),
    "forked": (
        _body(lambda scene: scene.older.replace(b"one", b"eno")),
        Tampered,
        Verdict.TAMPERED,
    ),
    "an error page": (_body(lambda _: b"<html>not found</html>"), Tampered, Verdict.TAMPERED),
    "nothing": (_body(lambda _: b""), Tampered, Verdict.TAMPERED),
}


@pytest.fixture
def hurried(certificate: tuple[ssl.SSLContext, Path]) -> FetchPolicy:
    return FetchPolicy(
        max_bytes=1 << 20,
        read_timeout=0.4,
        total_timeout=0.8,
        ports=None,
        allow_networks=("127.0.0.0/8",),
        ca_file=certificate[1],
    )


@pytest.fixture
def serve(certificate: tuple[ssl.SSLContext, Path]) -> Iterator[Callable[[], tuple[Listening, list[object]]]]:
    """A server, and a list of one element: what it does (a `Serve` and a `Scene`)."""
    servers: list[Listening] = []

    def start() -> tuple[Listening, list[object]]:
        part: list[object] = []

        def handler(visit: Visit) -> None:
            if visit.request() is not None:
                act, scene = part
                act(visit, scene)  # type: ignore[operator]

        servers.append(Listening(handler, certificate[0]))
        return servers[-1], part

    yield start
    for server in servers:
        server.close()


def _published(world: World, url: str) -> tuple[AgentMemory, bytes, bytes]:
    """An author with two versions at one address, and their blobs."""
    author = world.machine("author")
    author.remember("one")
    author.anchor(uri=url)
    older = author.backend.export_blob()
    author.remember("two")
    author.anchor(uri=url)
    return author, author.backend.export_blob(), older


@pytest.mark.parametrize("name", TRANSPORT)
def test_it_is_refused_and_nothing_is_loaded(
    world: World,
    serve: Callable[[], tuple[Listening, list[object]]],
    hurried: FetchPolicy,
    name: str,
) -> None:
    act, error, verdict = TRANSPORT[name]
    server, part = serve()
    author, blob, older = _published(world, server.url)
    part[:] = [act, Scene(blob, older, server.url)]
    context = world.context("reader")
    fetch = dataclasses.replace(
        context.configuration.fetch,
        max_bytes=hurried.max_bytes,
        read_timeout=hurried.read_timeout,
        total_timeout=hurried.total_timeout,
        allow_networks=hurried.allow_networks,
        ca_file=hurried.ca_file,
    )
    context.configuration = dataclasses.replace(context.configuration, fetch=fetch)
    with AgentMemory(context) as reader:
        reader.history()  # so that an older root is known for what it is
        tracemalloc.start()
        try:
            with pytest.raises(error) as loading:
                reader.rehydrate()
            with pytest.raises(error) as reading:
                read_memory(author.owner, context=context, policy=hurried)
            assert tracemalloc.get_traced_memory()[1] < MEMORY_LIMIT
        finally:
            tracemalloc.stop()
        assert loading.value.verdict is reading.value.verdict is verdict
        assert reader.count() == reader.backend.change_counter() == 0
        part[:] = [_body(lambda scene: scene.blob), Scene(blob, older, server.url)]
        assert reader.rehydrate() == {"version": 2, "records": 2}


@pytest.mark.parametrize(
    ("blob", "error"),
    [
        (lambda _: canonical.encode(STRANGER, [Record("x")]), WrongOwner),
        (lambda owner: canonical.encode(owner, [Record("x")]) + b"\n", NonCanonical),
        (lambda owner: canonical.encode(owner, [Record("x")]).replace(b'"x"', b'"\\u0078"'), NonCanonical),
        (lambda owner: b"\xef\xbb\xbf" + canonical.encode(owner, []), NonCanonical),
        (lambda _: b"[" * 100_000, NonCanonical),
        (lambda owner: canonical.encode(owner, [Record("x")]).decode().encode("utf-16"), NonCanonical),
    ],
)
def test_an_owner_who_anchors_what_is_no_memory(
    world: World,
    serve: Callable[[], tuple[Listening, list[object]]],
    hurried: FetchPolicy,
    blob: Callable[[str], bytes],
    error: type[MyceliumError],
) -> None:
    server, part = serve()
    author = world.machine("author")
    data = blob(author.owner)
    client, key = author.context.anchor_client(), author.context.keypair()
    client.set_anchor_if(key, 0, canonical.root(data), server.url.encode(), b"")
    part[:] = [_body(lambda scene: scene.blob), Scene(data, b"", server.url)]
    with pytest.raises(error):
        read_memory(author.owner, context=author.context, policy=hurried)
    other = world.machine("b")
    with pytest.raises(error):
        other.rehydrate(fetch=lambda _: data)
    assert other.count() == 0


def test_a_name_that_rebinds_between_look_and_connection(
    world: World, serve: Callable[[], tuple[Listening, list[object]]], hurried: FetchPolicy
) -> None:
    server, part = serve()
    author, blob, older = _published(world, server.url)
    part[:] = [_body(lambda scene: scene.blob), Scene(blob, older, server.url)]
    answers = iter([["93.184.216.34", "127.0.0.1"], ["10.0.0.1"]])
    strict = dataclasses.replace(hurried, allow_networks=(), resolver=lambda *_: next(answers))
    for _ in range(2):
        with pytest.raises(UntrustedSource):
            read_memory(author.owner, context=world.context("reader"), policy=strict)
    assert server.visits == 0
