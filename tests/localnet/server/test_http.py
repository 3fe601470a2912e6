"""What the server makes of HTTP: paths, methods, status codes, limits, connections, and who may ask."""

from __future__ import annotations

import json
import socket
from typing import TYPE_CHECKING

import pytest
from stellar_sdk import Keypair

from mycelium_localnet.rpc.limits import MAXIMUM_BODY, MAXIMUM_LOAD
from tests.localnet.server.process import JSON

if TYPE_CHECKING:
    from tests.localnet.server.process import ServerProcess

REQUEST = {"jsonrpc": "2.0", "id": 1, "method": "getNetwork"}
BODY = json.dumps(REQUEST).encode()
NULL_ACCOUNT = "GAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAWHF"


def padded(size: int) -> bytes:
    """A request of exactly so many bytes."""
    return BODY + b" " * (size - len(BODY))


def raw(server: ServerProcess, *parts: bytes) -> bytes:
    """Bytes as they stand to the server, and everything that comes back until it closes the connection."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as connection:
        for part in parts:
            connection.sendall(part)
        found = b""
        while received := connection.recv(65536):
            found += received
        return found


@pytest.mark.parametrize("path", ["/rpc", "/"])
def test_both_paths_take_calls(shared: ServerProcess, path: str) -> None:
    answer = shared.post(REQUEST, path)
    assert answer.status == 200
    assert answer.headers["Content-Type"] == "application/json"
    assert answer.json["result"]["passphrase"] == "Standalone Network ; February 2017"


@pytest.mark.parametrize("path", ["/rpc", "/"])
@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"])
def test_other_methods_are_405(shared: ServerProcess, method: str, path: str) -> None:
    answer = shared.ask(method, path, None if method == "TRACE" else BODY, JSON)
    assert (answer.status, answer.headers["Allow"]) == (405, "POST")


@pytest.mark.parametrize("method", ["HEAD", "PUT", "DELETE", "OPTIONS"])
def test_the_friendbot_gives_nothing_to_other_methods(shared: ServerProcess, method: str) -> None:
    address = Keypair.random().public_key
    answer = shared.ask(method, f"/friendbot?addr={address}")
    assert (answer.status, answer.headers["Allow"]) == (405, "GET, POST")
    assert shared.fund(address).status == 200


@pytest.mark.parametrize("path", ["/rpc/", "//", "/RPC", "/friendbot/", "/accounts/G", "/favicon.ico"])
def test_other_paths_are_404(shared: ServerProcess, path: str) -> None:
    assert shared.post(REQUEST, path).status == 404


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/json-rpc", "application/x-www-form-urlencoded", ""]
)
def test_other_content_types_are_415(shared: ServerProcess, kind: str) -> None:
    assert shared.ask("POST", "/rpc", BODY, {"Content-Type": kind}).status == 415


def test_no_content_type_is_415(shared: ServerProcess) -> None:
    assert shared.ask("POST", "/rpc", BODY).status == 415


@pytest.mark.parametrize("kind", ["application/json", "application/json; charset=utf-8", "Application/JSON"])
def test_json_is_json_however_it_is_written(shared: ServerProcess, kind: str) -> None:
    assert shared.ask("POST", "/rpc", BODY, {"Content-Type": kind}).status == 200


def test_the_largest_body(shared: ServerProcess) -> None:
    assert MAXIMUM_BODY == 524_288
    assert shared.ask("POST", "/rpc", padded(MAXIMUM_BODY), JSON).status == 200
    assert shared.ask("POST", "/rpc", padded(MAXIMUM_BODY + 1), JSON).status == 413
    assert shared.ask("POST", "/friendbot", padded(MAXIMUM_BODY + 1)).status == 413


def test_the_largest_body_in_chunks(shared: ServerProcess) -> None:
    for size, status in ((MAXIMUM_BODY, 200), (MAXIMUM_BODY + 1, 413), (20 * MAXIMUM_BODY, 413)):
        connection = shared.connect()
        body = padded(size)
        chunks = (body[start : start + 40_000] for start in range(0, size, 40_000))
        connection.request("POST", "/rpc", chunks, JSON, encode_chunked=True)
        assert connection.getresponse().status == status
        connection.close()


def test_a_body_far_too_large_is_refused_and_the_connection_goes_on(shared: ServerProcess) -> None:
    connection = shared.connect()
    connection.request("POST", "/rpc", padded(20 * MAXIMUM_BODY), JSON)
    response = connection.getresponse()
    assert (response.status, response.read()) == (413, b"a body has at most 524288 bytes\n")
    connection.request("POST", "/rpc", BODY, JSON)
    assert connection.getresponse().status == 200
    connection.close()


@pytest.mark.parametrize("body", [b"", b"{", b"\xff", b"nonsense", b"[1,", b'{"id": NaN}'])
def test_what_is_no_json_is_an_error_of_json_rpc(shared: ServerProcess, body: bytes) -> None:
    answer = shared.ask("POST", "/rpc", body, JSON)
    assert answer.status == 200
    assert answer.json["error"]["code"] == -32700
    assert answer.json["id"] is None


@pytest.mark.parametrize(
    "message", [[], {"jsonrpc": "2.0", "method": "getNetwork"}, [{"jsonrpc": "2.0", "method": "getNetwork"}]]
)
def test_nothing_to_answer_is_204(shared: ServerProcess, message: object) -> None:
    answer = shared.post(message)
    assert (answer.status, answer.body) == (204, b"")


def test_a_batch_is_a_list(shared: ServerProcess) -> None:
    answer = shared.post([REQUEST, {"jsonrpc": "2.0", "method": "getHealth"}, {**REQUEST, "id": "two"}, 5])
    assert answer.status == 200
    assert [item["id"] for item in answer.json] == [1, "two", None]
    assert answer.json[2]["error"]["code"] == -32600


def test_errors_of_methods_come_with_200(shared: ServerProcess) -> None:
    for method, code in (("getNothing", -32601), ("getTransaction", -32602), ("getLedgers", -32600)):
        answer = shared.post({**REQUEST, "method": method})
        assert (answer.status, answer.json["error"]["code"]) == (200, code)


def test_connections_are_kept(shared: ServerProcess) -> None:
    connection = shared.connect()
    connection.connect()
    held = connection.sock
    for _ in range(3):
        connection.request("POST", "/rpc", BODY, JSON)
        response = connection.getresponse()
        response.read()
        assert (response.status, connection.sock) == (200, held)
    connection.close()


def head(method: str, length: int, *more: str) -> bytes:
    lines = (
        f"{method} HTTP/1.1",
        "Host: a.example:1",
        "Content-Type: application/json",
        f"Content-Length: {length}",
        *more,
    )
    return "\r\n".join(lines).encode() + b"\r\n\r\n"


def test_a_client_that_waits_for_a_go_ahead_gets_it(shared: ServerProcess) -> None:
    with socket.create_connection(("127.0.0.1", shared.port), timeout=60) as connection:
        connection.sendall(head("POST /rpc", len(BODY), "Expect: 100-continue", "Connection: close"))
        assert connection.recv(65536) == b"HTTP/1.1 100 Continue\r\n\r\n"
        connection.sendall(BODY)
        found = b""
        while received := connection.recv(65536):
            found += received
    assert found.startswith(b"HTTP/1.1 200 OK\r\n")
    assert b"http://a.example:1/friendbot" in found


@pytest.mark.parametrize(
    ("line", "length", "more", "status"),
    [
        ("POST /rpc", MAXIMUM_LOAD + 1, (), b"413"),
        ("POST /nothing", 5, (), b"404"),
        ("PUT /rpc", 5, (), b"405"),
    ],
)
def test_a_client_that_waits_is_refused_before_it_sends(
    shared: ServerProcess, line: str, length: int, more: tuple[str, ...], status: bytes
) -> None:
    """Without the body, and with the connection closed behind the answer: nothing else is sent, so `raw`
    would wait in vain if it were not."""
    answer = raw(shared, head(line, length, "Expect: 100-continue", *more))
    assert answer.startswith(b"HTTP/1.1 " + status)
    assert b"100 Continue" not in answer


def test_what_is_no_http_is_400(shared: ServerProcess) -> None:
    assert raw(shared, b"hello\r\n\r\n").startswith(b"HTTP/1.1 400")


def test_browsers_may_ask_from_anywhere(shared: ServerProcess) -> None:
    asked = {"Origin": "https://wallet.example"}
    for answer in (
        shared.ask("POST", "/rpc", BODY, {**JSON, **asked}),
        shared.ask("POST", "/rpc", BODY, {"Content-Type": "text/plain", **asked}),
        shared.ask("GET", f"/friendbot?addr={NULL_ACCOUNT}", None, asked),
    ):
        assert answer.headers["Access-Control-Allow-Origin"] == "*"
        assert answer.headers["Access-Control-Allow-Credentials"] is None


@pytest.mark.parametrize("path", ["/rpc", "/", "/friendbot"])
def test_browsers_may_ask_whether_they_may(shared: ServerProcess, path: str) -> None:
    answer = shared.ask(
        "OPTIONS",
        path,
        None,
        {
            "Origin": "https://wallet.example",
            "Access-Control-Request-Method": "POST",
            "Access-Control-Request-Headers": "content-type,x-client-name",
        },
    )
    assert answer.status == 200
    assert answer.headers["Access-Control-Allow-Origin"] == "*"
    assert "POST" in answer.headers["Access-Control-Allow-Methods"]
    assert answer.headers["Access-Control-Allow-Headers"] == "content-type,x-client-name"


@pytest.mark.parametrize("host", ["localnet:8000", "localhost", "[::1]:8000", "a-b.example:1"])
def test_the_friendbot_is_where_the_client_found_the_server(shared: ServerProcess, host: str) -> None:
    answer = shared.ask("POST", "/rpc", BODY, {**JSON, "Host": host})
    assert answer.json["result"]["friendbotUrl"] == f"http://{host}/friendbot"


@pytest.mark.parametrize("host", ["", "a b", 'x"y', "a/b", "a:port", "user@host"])
def test_what_is_no_host_is_not_repeated(shared: ServerProcess, host: str) -> None:
    answer = shared.ask("POST", "/rpc", BODY, {**JSON, "Host": host})
    assert answer.json["result"]["friendbotUrl"] == f"{shared.origin}/friendbot"


def test_the_friendbot_by_get_and_by_post(shared: ServerProcess) -> None:
    first, second = Keypair.random().public_key, Keypair.random().public_key
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    for answer in (
        shared.fund(first),
        shared.ask("POST", "/friendbot", f"addr={second}".encode(), form),
        shared.ask("POST", f"/friendbot?addr={Keypair.random().public_key}"),
    ):
        assert (answer.status, answer.headers["Content-Type"]) == (200, "application/json")
        found = shared.call("getTransaction", {"hash": answer.json["hash"]})
        assert (found["status"], found["ledger"]) == ("SUCCESS", answer.json["ledger"])


def test_the_friendbot_says_what_is_wrong(shared: ServerProcess) -> None:
    existing = shared.fund(NULL_ACCOUNT)
    assert (existing.status, existing.json["status"]) == (400, 400)
    assert "createAccountAlreadyExist" in existing.json["detail"]
    secret = Keypair.random().secret
    for query in ("", "?addr=", "?addr=nonsense", f"?addr={secret}", "?address=" + NULL_ACCOUNT):
        answer = shared.ask("GET", "/friendbot" + query)
        assert answer.status == 400
        assert "addr" in answer.json["detail"]
        assert secret.encode() not in answer.body
