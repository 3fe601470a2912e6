"""The fetcher against servers that lie, stall, redirect, flood and rebind; over real sockets and TLS."""

from __future__ import annotations

import dataclasses
import gzip
import os
import socket
import threading
import time
import tracemalloc
from typing import TYPE_CHECKING, Any

import pytest

from mycelium_sdk.errors import BlobUnavailable, InputError, LimitExceeded, MyceliumError, UntrustedSource
from mycelium_sdk.fetching import FetchPolicy, fetch_https
from mycelium_sdk.fetching.fetcher import open_https
from mycelium_sdk.verdicts import Verdict
from tests.chain.sockets import Listening, Visit, http_answer, make_certificate

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from mycelium_sdk.fetching.policy import Resolver

BLOB = b'{"owner":"G","records":[]}' * 1000


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[ssl.SSLContext, Path]:
    return make_certificate(tmp_path_factory.mktemp("tls"))


@pytest.fixture
def policy(certificate: tuple[ssl.SSLContext, Path]) -> FetchPolicy:
    """Strict, but for the one host that tests can have."""
    return FetchPolicy(
        ports=None,
        allow_networks=("127.0.0.0/8",),
        ca_file=certificate[1],
        resolver=lambda _host, _port: ["127.0.0.1"],
    )


@pytest.fixture
def serve(
    certificate: tuple[ssl.SSLContext, Path],
) -> Iterator[Callable[[Callable[[Visit, bytes], None]], Listening]]:
    """Starts a server that does this with each connection after it has read the request."""
    servers: list[Listening] = []

    def start(answer: Callable[[Visit, bytes], None]) -> Listening:
        def handler(visit: Visit) -> None:
            request = visit.request()
            if request is not None:
                servers[place].requests.append(request)
                answer(visit, request)

        place = len(servers)
        servers.append(Listening(handler, certificate[0]))
        return servers[place]

    yield start
    for server in servers:
        server.close()


def _sends(answer: bytes) -> Callable[[Visit, bytes], None]:
    return lambda visit, _: visit.send(answer)


def test_a_body_comes_as_it_is(serve: Any, policy: FetchPolicy) -> None:
    server = serve(_sends(http_answer(BLOB)))
    assert fetch_https(server.url, policy) == BLOB
    chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n1\r\n!\r\n0\r\n\r\n"
    assert fetch_https(serve(_sends(chunked)).url, policy) == b"hello!"
    until_the_end = b"HTTP/1.0 200 OK\r\n\r\nall of it"
    assert fetch_https(serve(_sends(until_the_end)).url, policy) == b"all of it"
    with open_https(server.url, policy) as chunks:
        assert b"".join(chunks) == BLOB


def test_the_request_says_nothing_but_what_is_wanted(
    serve: Any, policy: FetchPolicy, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Nothing of the environment is used: no proxies, no netrc, no other authorities, no key log."""
    (tmp_path / ".netrc").write_text("machine localhost login me password secret\n")
    (tmp_path / ".netrc").chmod(0o600)
    for name, value in {
        "HOME": str(tmp_path), "NETRC": str(tmp_path / ".netrc"), "HTTPS_PROXY": "http://127.0.0.1:1",
        "https_proxy": "http://127.0.0.1:1", "ALL_PROXY": "http://127.0.0.1:1", "SSL_CERT_FILE": "/dev/null",
        "REQUESTS_CA_BUNDLE": "/dev/null", "SSLKEYLOGFILE": str(tmp_path / "keys"),
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)
    server = serve(_sends(http_answer(BLOB, "200 OK", "Set-Cookie: a=b")))
    for _ in range(2):
        assert fetch_https(server.url + "?q=1", policy) == BLOB
    port = server.url.split(":")[2].split("/")[0]
    assert server.requests[1].decode() == (
        f"GET /rpc?q=1 HTTP/1.1\r\nHost: localhost:{port}\r\nAccept: */*\r\nAccept-Encoding: identity\r\n"
        "Connection: close\r\nUser-Agent: mycelium-memory\r\n\r\n"
    )
    assert not (tmp_path / "keys").exists()


def test_the_authorities_of_the_environment_are_not_trusted(
    serve: Any, policy: FetchPolicy, certificate: tuple[ssl.SSLContext, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate[1]))
    server = serve(_sends(http_answer(BLOB)))
    with pytest.raises(BlobUnavailable, match="certificate"):
        fetch_https(server.url, dataclasses.replace(policy, ca_file=None))
    assert server.requests == []


class TestAddresses:
    def test_a_private_address_is_not_connected_to(self, serve: Any, policy: FetchPolicy) -> None:
        server = serve(_sends(http_answer(BLOB)))
        strict = dataclasses.replace(policy, allow_networks=())
        for url in (server.url, server.url.replace("localhost", "127.0.0.1")):
            with pytest.raises(UntrustedSource, match="not public"):
                fetch_https(url, strict)
        assert server.visits == 0

    @pytest.mark.parametrize("found", [["1.1.1.1", "10.0.0.1"], ["127.0.0.1", "169.254.169.254"], ["x"]])
    def test_one_bad_answer_of_the_resolver_is_enough(
        self, serve: Any, policy: FetchPolicy, found: list[str]
    ) -> None:
        server = serve(_sends(http_answer(BLOB)))
        with pytest.raises(UntrustedSource):
            fetch_https(server.url, dataclasses.replace(policy, resolver=lambda *_: found))
        assert server.visits == 0

    def test_a_name_that_rebinds_is_asked_for_once(self, serve: Any, policy: FetchPolicy) -> None:
        answers = iter([["127.0.0.1"], ["169.254.169.254"]])
        server = serve(_sends(http_answer(BLOB)))
        assert fetch_https(server.url, dataclasses.replace(policy, resolver=lambda *_: next(answers))) == BLOB
        assert next(answers) == ["169.254.169.254"]

    def test_the_certificate_is_that_of_the_name_and_not_of_the_address(
        self, serve: Any, policy: FetchPolicy
    ) -> None:
        server = serve(_sends(http_answer(BLOB)))
        for host in ("127.0.0.1", "other.example"):
            with pytest.raises(BlobUnavailable, match="certificate"):
                fetch_https(server.url.replace("localhost", host), policy)

    def test_the_next_address_is_tried(self, serve: Any, policy: FetchPolicy) -> None:
        server = serve(_sends(http_answer(BLOB)))
        several = dataclasses.replace(policy, resolver=lambda *_: ["127.0.0.2", "127.0.0.1"])
        assert fetch_https(server.url, several) == BLOB

    def test_a_resolver_that_fails_or_hangs(self, policy: FetchPolicy) -> None:
        def fails(*_: object) -> list[str]:
            raise socket.gaierror("no such host")

        hanging = threading.Event()

        def hangs(*_: object) -> list[str]:
            hanging.wait()
            return []

        resolvers: list[Resolver] = [fails, lambda *_: [], hangs]
        for resolver in resolvers:
            limited = dataclasses.replace(policy, resolver=resolver, connect_timeout=0.1)
            with pytest.raises(BlobUnavailable) as caught:
                fetch_https("https://localhost:1/x", limited)
            assert caught.value.verdict is Verdict.UNAVAILABLE
        hanging.set()


class TestAnswers:
    @pytest.mark.parametrize(
        ("answer", "error"),
        [
            (http_answer(b"", "404 Not Found"), BlobUnavailable),
            (http_answer(b"", "500 Oops"), BlobUnavailable),
            (http_answer(b"", "204 No Content"), BlobUnavailable),
            (http_answer(b"x", "206 Partial Content"), BlobUnavailable),
            (http_answer(b"", "301 Moved"), BlobUnavailable),
            (http_answer(gzip.compress(bytes(10**6)), "200 OK", "Content-Encoding: gzip"), UntrustedSource),
            (http_answer(b"x", "200 OK", "Content-Encoding: br"), UntrustedSource),
            (b"HTTP/1.1 200 OK\r\nContent-Length: 1073741824\r\n\r\n", LimitExceeded),
            (b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort", BlobUnavailable),
            (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel", BlobUnavailable),
            (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nhello\r\n", BlobUnavailable),
            (b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 200 + b"\r\n", BlobUnavailable),
            (b"HTTP/1.1 200 OK\r\nX: " + b"y" * 100_000 + b"\r\n\r\n", BlobUnavailable),
            (b"SSH-2.0-OpenSSH_9.2\r\n", BlobUnavailable),
            (b"", BlobUnavailable),
        ],
    )
    def test_what_is_no_blob_is_refused(
        self, serve: Any, policy: FetchPolicy, answer: bytes, error: type[MyceliumError]
    ) -> None:
        with pytest.raises(error):
            fetch_https(serve(_sends(answer)).url, policy)

    def test_an_endless_body_is_cut_at_the_limit(self, serve: Any, policy: FetchPolicy) -> None:
        def endless(visit: Visit, _: bytes) -> None:
            visit.send(b"HTTP/1.1 200 OK\r\n\r\n")
            while not visit.stopped.is_set():
                visit.send(bytes(1 << 16))

        small = dataclasses.replace(policy, max_bytes=1 << 20)
        server = serve(endless)
        tracemalloc.start()
        try:
            with pytest.raises(LimitExceeded, match="1,048,576"):
                fetch_https(server.url, small)
            assert tracemalloc.get_traced_memory()[1] < 8 << 20
        finally:
            tracemalloc.stop()

    def test_exactly_the_limit_is_within_it(self, serve: Any, policy: FetchPolicy) -> None:
        server = serve(_sends(http_answer(BLOB)))
        assert fetch_https(server.url, dataclasses.replace(policy, max_bytes=len(BLOB))) == BLOB
        with pytest.raises(LimitExceeded):
            fetch_https(server.url, dataclasses.replace(policy, max_bytes=len(BLOB) - 1))


class TestRedirects:
    def test_some_are_followed(self, serve: Any, policy: FetchPolicy) -> None:
        def answer(visit: Visit, request: bytes) -> None:
            number = int(request.split(b"/hop", 1)[1].split(b" ")[0])
            if number == 3:
                visit.send(http_answer(BLOB))
            else:
                visit.send(http_answer(b"", "302 Found", f"Location: /hop{number + 1}"))

        server = serve(answer)
        url = server.url.replace("/rpc", "/hop0")
        assert fetch_https(url, policy) == BLOB
        with pytest.raises(UntrustedSource, match="more than 2 times"):
            fetch_https(url, dataclasses.replace(policy, max_redirects=2))

    def test_two_hundred_are_not(self, serve: Any, policy: FetchPolicy) -> None:
        server = serve(_sends(http_answer(b"", "302 Found", "Location: /again")))
        with pytest.raises(UntrustedSource, match="redirects"):
            fetch_https(server.url, policy)
        assert server.visits == 4

    @pytest.mark.parametrize(
        "location",
        [
            "http://localhost/",
            "file:///etc/passwd",
            "https://user@localhost/",
            "https://[::1]/",
            "https://10.0.0.1/",
        ],
    )
    def test_each_is_checked_in_full(self, serve: Any, policy: FetchPolicy, location: str) -> None:
        with pytest.raises(UntrustedSource):
            fetch_https(serve(_sends(http_answer(b"", "307 X", f"Location: {location}"))).url, policy)

    def test_each_name_is_resolved_and_vetted(self, serve: Any, policy: FetchPolicy) -> None:
        asked: list[str] = []

        def resolver(host: str, _port: int) -> list[str]:
            asked.append(host)
            return ["127.0.0.1"] if host == "localhost" else ["192.168.0.1"]

        server = serve(_sends(http_answer(b"", "302 Found", "Location: https://inside.example/")))
        with pytest.raises(UntrustedSource, match="not public"):
            fetch_https(server.url, dataclasses.replace(policy, resolver=resolver))
        assert asked == ["localhost", "inside.example"]


class TestTime:
    """No server holds its caller for longer than the limits say; each of these would for ever."""

    @pytest.mark.parametrize(
        "behaviour",
        [
            lambda visit, _: visit.silence(),
            lambda visit, _: visit.drip(b"H"),
            lambda visit, _: (visit.send(b"HTTP/1.1 200 OK\r\nX: "), visit.drip(b"y")),
            lambda visit, _: (visit.send(b"HTTP/1.1 200 OK\r\n\r\n"), visit.drip(b"y")),
            lambda visit, _: (visit.send(b"HTTP/1.1 200 OK\r\n\r\n"), visit.silence()),
            lambda visit, _: (
                visit.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"),
                visit.drip(b"1\r\nx\r\n"),
            ),
            lambda visit, _: visit.drip(b"HTTP/1.1 100 Continue\r\n\r\n"),
        ],
    )
    def test_a_server_that_takes_its_time(self, serve: Any, policy: FetchPolicy, behaviour: Any) -> None:
        hurried = dataclasses.replace(policy, total_timeout=0.5, read_timeout=0.3)
        with pytest.raises(BlobUnavailable, match="time limit"):
            fetch_https(serve(behaviour).url, hurried)

    def test_a_server_that_never_shakes_hands(self, policy: FetchPolicy) -> None:
        server = Listening(lambda visit: visit.silence())
        try:
            hurried = dataclasses.replace(policy, connect_timeout=0.2)
            with pytest.raises(BlobUnavailable, match="cannot be connected"):
                fetch_https(server.url.replace("http:", "https:"), hurried)
        finally:
            server.close()

    def test_redirects_share_the_time(self, serve: Any, policy: FetchPolicy) -> None:
        def answer(visit: Visit, _: bytes) -> None:
            if not visit.stopped.wait(0.3):
                visit.send(http_answer(b"", "302 Found", "Location: /again"))

        hurried = dataclasses.replace(policy, total_timeout=0.8, max_redirects=10**6)
        with pytest.raises(BlobUnavailable, match="time limit"):
            fetch_https(serve(answer).url, hurried)


def test_nothing_is_left_open(serve: Any, policy: FetchPolicy) -> None:
    server = serve(_sends(http_answer(BLOB)))
    folder = "/proc/self/fd"
    if not os.path.isdir(folder):  # noqa: PTH112
        pytest.skip("there is no such folder here")
    fetch_https(server.url, policy)
    before = len(os.listdir(folder))  # noqa: PTH208
    for _ in range(20):
        with open_https(server.url, policy) as chunks:
            next(chunks)
    deadline = time.monotonic() + 30
    while len(os.listdir(folder)) > before + 2 and time.monotonic() < deadline:  # noqa: PTH208
        time.sleep(0.01)  # the server's side of the connections
    assert len(os.listdir(folder)) <= before + 2  # noqa: PTH208


@pytest.mark.parametrize(
    "wrong",
    [{"max_bytes": 0}, {"read_timeout": 0}, {"max_redirects": -1}, {"allow_networks": ("10.0.0.1/8",)},
     {"allow_networks": ("here",)}],
)  # fmt: skip
def test_a_policy_that_makes_no_sense_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        FetchPolicy(**wrong)


def test_a_missing_file_of_authorities(policy: FetchPolicy, tmp_path: Path) -> None:
    with pytest.raises(BlobUnavailable, match="authorities"):
        fetch_https("https://localhost:1/", dataclasses.replace(policy, ca_file=tmp_path / "none.pem"))
