"""The HTTP client on real sockets: every request ends, whatever the server does, and nobody else is told
anything."""

from __future__ import annotations

import gzip
import json
import os
import socket
import traceback
from typing import TYPE_CHECKING

import pytest
import requests.exceptions
import stellar_sdk.exceptions

from mycelium_sdk.chain.http_client import MAX_ANSWER_BYTES, REQUEST_SECONDS, HttpClient
from mycelium_sdk.chain.rpc import RpcChain
from mycelium_sdk.chain.transport import Transport
from mycelium_sdk.errors import ChainError, ChainUnavailable, MyceliumError
from mycelium_sdk.retry import RetryPolicy
from tests.chain.sockets import Listening, Visit, http_answer, make_certificate

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.chain.sockets import Handler

# One that hangs must not be waited for as long as a slow one.
pytestmark = pytest.mark.timeout(60)

SHORT = 0.3  # seconds: what a test waits for a limit
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
RESULT = json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"passphrase": "any"}}).encode()
ASK = {"jsonrpc": "2.0", "id": 1, "method": "getNetwork", "params": None}
SEND = ASK | {"method": "sendTransaction"}


@pytest.fixture
def listen() -> Iterator[Callable[..., Listening]]:
    made: list[Listening] = []

    def make(handler: Handler, tls: ssl.SSLContext | None = None) -> Listening:
        made.append(Listening(handler, tls))
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.fixture
def client() -> Iterator[HttpClient]:
    made = HttpClient(max_bytes=2**20)
    yield made
    made.close()


@pytest.fixture
def hasty() -> Iterator[HttpClient]:
    made = HttpClient(seconds=SHORT)
    yield made
    made.close()


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[ssl.SSLContext, Path]:
    return make_certificate(tmp_path_factory.mktemp("certificate"))


@pytest.fixture
def trusted(certificate: tuple[ssl.SSLContext, Path], monkeypatch: pytest.MonkeyPatch) -> ssl.SSLContext:
    """The context of a server whose certificate this process trusts."""
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(certificate[1]))
    return certificate[0]


def answering(answer: bytes, seen: list[bytes] | None = None) -> Handler:
    """Answers every request on a connection with the same bytes."""

    def handle(visit: Visit) -> None:
        while (request := visit.request()) is not None:
            if seen is not None:
                seen.append(request)
            visit.send(answer)

    return handle


def dripping(start: bytes, drip: bytes) -> Handler:
    def handle(visit: Visit) -> None:
        visit.request()
        visit.send(start)
        visit.drip(drip)

    return handle


def failure(client: HttpClient, url: str, message: dict[str, object] = ASK) -> MyceliumError:
    """What a request that fails becomes in this package."""
    with pytest.raises(MyceliumError) as caught:
        Transport(client, RetryPolicy(attempts=1)).post(url, json_data=message)
    return caught.value


def test_the_limits_are_what_is_documented() -> None:
    assert (REQUEST_SECONDS, MAX_ANSWER_BYTES) == (20, 64 * 1024 * 1024)
    made = HttpClient()
    assert (made.post_timeout, made.num_retries) == (REQUEST_SECONDS, 0)
    made.close()


@pytest.mark.parametrize(
    ("start", "drip"),
    [
        (HEAD + b"Content-Length: 1000000\r\n\r\n{", b" "),
        (HEAD + b"\r\n{", b" "),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"0"),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n", b"1\r\n \r\n"),
        (HEAD + b"X-Endless: ", b"a"),
        (b"HTTP/1.1 200 ", b"O"),
        (HEAD, b"X-More: 1\r\n"),
    ],
    ids=["body", "body without length", "chunk size", "chunks", "header", "status line", "headers"],
)
@pytest.mark.parametrize("secure", [False, True], ids=["http", "https"])
def test_a_byte_now_and_then_does_not_hold_a_request(
    listen: Callable[..., Listening],
    hasty: HttpClient,
    trusted: ssl.SSLContext,
    *,
    start: bytes,
    drip: bytes,
    secure: bool,
) -> None:
    server = listen(dripping(start, drip), trusted if secure else None)
    error = failure(hasty, server.url)
    assert type(error) is ChainUnavailable
    if start != HEAD:  # too many headers may be refused before the time is over
        assert "did not answer in time" in str(error)


@pytest.mark.parametrize("secure", [False, True], ids=["http", "https"])
def test_a_server_that_says_nothing(
    listen: Callable[..., Listening], hasty: HttpClient, *, secure: bool
) -> None:
    """For https, it does not even greet."""
    server = listen(Visit.silence)
    url = server.url.replace("http:", "https:") if secure else server.url
    error = failure(hasty, url)
    assert type(error) is ChainUnavailable
    assert "did not answer in time" in str(error)


def test_a_server_that_does_not_accept(hasty: HttpClient) -> None:
    """As behind a firewall that drops: packets go, and nothing comes back."""
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        waiting = [socket.socket() for _ in range(4)]
        for each in waiting:
            each.setblocking(False)
            each.connect_ex(full.getsockname())
        error = failure(hasty, f"http://127.0.0.1:{full.getsockname()[1]}/rpc")
        for each in waiting:
            each.close()
    assert type(error) is ChainUnavailable
    assert "did not answer in time" in str(error)


def test_an_unplugged_network(client: HttpClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """Names are the first thing that is missing then."""

    def unplugged(*_args: object, **_kwargs: object) -> None:
        raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")

    monkeypatch.setattr(socket, "getaddrinfo", unplugged)
    error = failure(client, "https://rpc.example.org/rpc")
    assert type(error) is ChainUnavailable
    assert "rpc.example.org cannot be reached" in str(error)


@pytest.mark.parametrize("status", ["200 OK", "502 Bad Gateway"])
def test_a_page_instead_of_an_answer(
    listen: Callable[..., Listening], client: HttpClient, status: str
) -> None:
    server = listen(answering(http_answer(b"<html>Bad gateway</html>", status, "Content-Type: text/html")))
    error = failure(client, server.url)
    assert type(error) is ChainUnavailable
    assert ("something else than JSON-RPC" if "200" in status else "HTTP status 502") in str(error)


@pytest.mark.parametrize("start", [HEAD + b"\r\n", HEAD + b"Content-Length: 9999999999\r\n\r\n"])
def test_an_answer_without_end_is_given_up(
    listen: Callable[..., Listening], client: HttpClient, start: bytes
) -> None:
    def endless(visit: Visit) -> None:
        visit.request()
        visit.send(start)
        while not visit.stopped.is_set():
            visit.send(bytes(65536))

    error = failure(client, listen(endless).url)
    assert type(error) is ChainError
    assert "more than 1,048,576 bytes" in str(error)
    assert type(failure(client, listen(endless).url, SEND)) is ChainUnavailable


def test_an_answer_of_just_the_allowed_size(listen: Callable[..., Listening]) -> None:
    server = listen(answering(http_answer(RESULT)))
    for limit, fits in ((len(RESULT), True), (len(RESULT) - 1, False)):
        client = HttpClient(max_bytes=limit)
        if fits:
            assert client.post(server.url, json_data=ASK).text == RESULT.decode()
        else:
            with pytest.raises(stellar_sdk.exceptions.ContentSizeLimitExceededError):
                client.post(server.url, json_data=ASK)
        client.close()


def test_nothing_is_unpacked(listen: Callable[..., Listening], client: HttpClient) -> None:
    """Not asked for, and not done for a server that packs all the same."""
    seen: list[bytes] = []
    packed = http_answer(gzip.compress(RESULT), "200 OK", "Content-Encoding: gzip")
    error = failure(client, listen(answering(packed, seen)).url)
    assert "something else than JSON-RPC" in str(error)
    assert b"\r\naccept-encoding: identity\r\n" in seen[0].lower()


def test_connections_are_used_again(listen: Callable[..., Listening], client: HttpClient) -> None:
    server = listen(answering(http_answer(RESULT)))
    for _ in range(3):
        assert client.post(server.url, json_data=ASK).json()["result"] == {"passphrase": "any"}
    assert client.get(server.url).status_code == 200
    assert server.visits == 1


def test_a_cut_off_answer(listen: Callable[..., Listening], client: HttpClient) -> None:
    def cut(visit: Visit) -> None:
        visit.request()
        visit.send(http_answer(RESULT)[:-5])

    assert type(failure(client, listen(cut).url)) is ChainUnavailable


@pytest.mark.parametrize("status", ["301 Moved Permanently", "302 Found", "307 Temporary Redirect"])
def test_redirects_are_not_followed(
    listen: Callable[..., Listening], client: HttpClient, status: str
) -> None:
    """The address may hold a key, and the body a transaction: neither is for whoever the server names."""
    elsewhere = listen(answering(http_answer(RESULT)))
    server = listen(answering(http_answer(b"", status, f"Location: {elsewhere.url}")))
    assert f"HTTP status {status[:3]}" in str(failure(client, server.url))
    assert client.get(server.url).status_code == int(status[:3])
    assert elsewhere.visits == 0


def test_credentials_are_those_of_the_address(
    listen: Callable[..., Listening], client: HttpClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "netrc").write_text("default login somebody password sesame\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    seen: list[bytes] = []
    server = listen(answering(http_answer(RESULT), seen))
    client.post(server.url, json_data=ASK)
    client.post(server.url.replace("://", "://user:pass@"), json_data=ASK)
    assert b"authorization" not in seen[0].lower()
    assert b"\r\nauthorization: basic dxnlcjpwyxnz\r\n" in seen[1].lower()


def test_the_environments_proxy_is_used(
    listen: Callable[..., Listening], client: HttpClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in os.environ if name.lower() == "no_proxy"]:
        monkeypatch.delenv(name)
    seen: list[bytes] = []
    monkeypatch.setenv("http_proxy", listen(answering(http_answer(RESULT), seen)).url)
    client.post("http://rpc.example.org/rpc", json_data=ASK)
    assert seen[0].startswith(b"POST http://rpc.example.org/rpc HTTP/1.1\r\n")


def test_a_proxy_that_drips(
    listen: Callable[..., Listening], hasty: HttpClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in os.environ if name.lower() == "no_proxy"]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("https_proxy", listen(dripping(b"HTTP/1.1 200 OK\r\nX: ", b"a")).url)
    assert type(failure(hasty, "https://rpc.example.org/rpc")) is ChainUnavailable


def test_an_untrusted_certificate_is_a_refusal_also_of_a_transaction(
    listen: Callable[..., Listening], client: HttpClient, certificate: tuple[ssl.SSLContext, Path]
) -> None:
    """It is judged before anything is sent."""
    seen: list[bytes] = []
    server = listen(answering(http_answer(RESULT), seen), certificate[0])
    for message in (ASK, SEND):
        error = failure(client, server.url, message)
        assert type(error) is ChainError
        assert "no secure connection" in str(error)
        assert "certificate" in str(error.hint)
    assert seen == []


def test_a_broken_secure_connection_is_no_refusal_of_a_transaction(
    listen: Callable[..., Listening], client: HttpClient, trusted: ssl.SSLContext
) -> None:
    """The server has the request by then. This one answers past the encryption."""

    def broken(visit: Visit) -> None:
        visit.request()
        with socket.socket(fileno=os.dup(visit.connection.fileno())) as beneath:
            beneath.sendall(http_answer(b"", "502 Bad Gateway"))

    server = listen(broken, trusted)
    assert type(failure(client, server.url, SEND)) is ChainUnavailable
    assert "no secure connection" in str(failure(client, server.url, ASK))


def test_an_address_that_is_none(client: HttpClient) -> None:
    for url in ("ftp://rpc.example.org/", "https://", "rpc.example.org"):
        error = failure(client, url, SEND)
        assert "address of the RPC server cannot be used" in str(error)
        assert error.exit_code == 3


def test_the_cause_is_kept(hasty: HttpClient, listen: Callable[..., Listening]) -> None:
    with pytest.raises(stellar_sdk.exceptions.ConnectionError) as caught:
        hasty.post(listen(Visit.silence).url, json_data=ASK)
    assert isinstance(caught.value.__cause__, requests.exceptions.Timeout)


def test_the_cause_names_no_address(client: HttpClient) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        host = f"127.0.0.1:{closed.getsockname()[1]}"
    for url, said in (
        (f"http://user:sesame@{host}/open/sesame?key=sesame", "Connection refused"),
        (f"http://{'a' * 70}.example/open/sesame", "LocationParseError"),
        ("ftp://rpc.example.org/open/sesame", "InvalidSchema"),
    ):
        with pytest.raises(stellar_sdk.exceptions.ConnectionError) as caught:
            client.post(url, json_data=ASK)
        shown = "".join(traceback.format_exception(caught.value))
        assert said in shown
        assert "sesame" not in shown
        assert caught.value.__context__ is None, "nor does anything that looks further show it"


def test_a_certificate_that_is_refused_is_told_from_other_failures_of_tls(
    listen: Callable[..., Listening], client: HttpClient, certificate: tuple[ssl.SSLContext, Path]
) -> None:
    """When sending, too, where only a certificate is judged before anything is sent."""
    error = failure(client, listen(answering(http_answer(RESULT)), certificate[0]).url, SEND)
    assert type(error) is ChainError
    assert "CERTIFICATE_VERIFY_FAILED" in "".join(traceback.format_exception(error))


def test_a_chain_client_has_this_client() -> None:
    chain = RpcChain("https://rpc.example.org", "any network")
    assert isinstance(chain._transport._inner, HttpClient)
    chain.close()


def test_a_forked_child_makes_connections_of_its_own(listen: Callable[..., Listening]) -> None:
    """The parent's stays usable, also after the child closed its client."""

    def serve(visit: Visit) -> None:
        while (request := visit.request()) is not None:
            method = json.loads(request.partition(b"\r\n\r\n")[2])["method"]
            visit.send(http_answer(json.dumps({"result": method, "visit": id(visit)}).encode()))

    client = HttpClient()
    url = listen(serve).url
    first = client.post(url, json_data=ASK).json()
    child = os.fork()
    if child == 0:
        other = client.post(url, json_data=ASK).json()
        client.close()
        os._exit(0 if other["visit"] != first["visit"] else 1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert client.post(url, json_data=ASK).json() == first
    client.close()
