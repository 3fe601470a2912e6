"""What servers and networks do wrong, each as its own error; what is repeated; what messages must not say."""

from __future__ import annotations

import errno
import ssl
import traceback
from typing import TYPE_CHECKING

import pytest
import requests.exceptions
import urllib3.exceptions
from stellar_sdk import StrKey, xdr

from mycelium_localnet import IN_PROCESS_URL
from mycelium_sdk.chain import operations, translate
from mycelium_sdk.errors import (
    ChainError,
    ChainUnavailable,
    ConfigError,
    ContractFailed,
    ContractNotFound,
    MyceliumError,
    WrongDomain,
)
from mycelium_sdk.verdicts import Verdict

if TYPE_CHECKING:
    from mycelium_sdk.chain.rpc import RpcChain
    from tests.chain.conftest import FakeServer, Replies, Reply

URL = "https://user:sesame@rpc.example.org/v1/key-open-sesame"
CONTRACT = StrKey.encode_contract(bytes(range(32)))
HTML = "<!doctype html><title>502 Bad Gateway</title>"


def every_answer(server: FakeServer, method: str, answer: Reply) -> None:
    server.script[method] = [answer] * 50


@pytest.mark.parametrize(
    ("cause", "kind", "words"),
    [
        (requests.exceptions.ConnectTimeout(), ChainUnavailable, "did not answer in time"),
        (requests.exceptions.ReadTimeout(), ChainUnavailable, "did not answer in time"),
        (requests.exceptions.ConnectionError(), ChainUnavailable, "cannot be reached"),
        (requests.exceptions.ChunkedEncodingError(), ChainUnavailable, "cannot be reached"),
        (requests.exceptions.SSLError(), ChainError, "no secure connection"),
        (requests.exceptions.InvalidSchema(), ConfigError, "cannot be used"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)
def test_each_way_of_not_reaching_the_server_is_its_own_error(
    chain: RpcChain,
    server: FakeServer,
    reply: type[Replies],
    *,
    cause: requests.exceptions.RequestException,
    kind: type[MyceliumError],
    words: str,
) -> None:
    every_answer(server, "getNetwork", reply.no_answer(cause))
    with pytest.raises(kind, match=words) as caught:
        chain.identity()
    assert type(caught.value) is kind
    assert caught.value.__cause__ is not None
    if kind is not ConfigError:
        assert caught.value.verdict is Verdict.UNAVAILABLE
    assert len(server.calls) == (5 if kind is ChainUnavailable else 1)


@pytest.mark.parametrize(
    ("status", "kind", "attempts"),
    [
        (400, ChainError, 1),
        (401, ChainError, 1),
        (404, ChainError, 1),
        (413, ChainError, 1),
        (302, ChainError, 1),
        (429, ChainUnavailable, 5),
        (500, ChainUnavailable, 5),
        (502, ChainUnavailable, 5),
        (503, ChainUnavailable, 5),
        (504, ChainUnavailable, 5),
    ],
)
def test_http_statuses(
    chain: RpcChain,
    server: FakeServer,
    reply: type[Replies],
    *,
    status: int,
    kind: type[ChainError],
    attempts: int,
) -> None:
    every_answer(server, "getNetwork", reply.http(status, HTML))
    with pytest.raises(ChainError) as caught:
        chain.identity()
    assert type(caught.value) is kind
    assert caught.value.verdict is Verdict.UNAVAILABLE
    assert len(server.calls) == attempts


@pytest.mark.parametrize(
    "text",
    [
        HTML,
        "",
        "null",
        "[]",
        '"text"',
        "{}",
        '{"jsonrpc": "2.0", "id": 1}',
        '{"jsonrpc": "2.0", "id": 1, "error": "text"}',
        '{"jsonrpc": "2.0", "id": 1, "result": null}',
        "[" * 100_000,
    ],
)
def test_what_is_not_json_rpc_is_a_transport_error(
    chain: RpcChain, server: FakeServer, reply: type[Replies], text: str
) -> None:
    every_answer(server, "getNetwork", reply.http(200, text))
    with pytest.raises(ChainUnavailable, match="something else than JSON-RPC"):
        chain.identity()


@pytest.mark.parametrize(
    "value",
    [
        {
            "id": "00",
            "protocolVersion": 28,
            "sequence": "many",
            "closeTime": "1",
            "headerXdr": "",
            "metadataXdr": "",
        },
        {},
        [],
        7,
    ],
)
def test_a_result_of_another_shape_is_a_transport_error(
    chain: RpcChain, server: FakeServer, reply: type[Replies], value: object
) -> None:
    every_answer(server, "getLatestLedger", reply.json_text({"jsonrpc": "2.0", "id": 1, "result": value}))
    with pytest.raises(ChainUnavailable, match="cannot be understood"):
        chain.identity()


@pytest.mark.parametrize("broken", ["", "AAAA", "!!!!", "AAAAAQ=="])
def test_broken_xdr_is_a_transport_error(
    chain: RpcChain, server: FakeServer, reply: type[Replies], broken: str
) -> None:
    key = operations.instance_key(CONTRACT)
    entry = {"key": key.to_xdr(), "xdr": broken, "lastModifiedLedgerSeq": 1, "liveUntilLedgerSeq": 2}
    every_answer(server, "getLedgerEntries", reply.json_text(
        {"jsonrpc": "2.0", "id": 1, "result": {"entries": [entry], "latestLedger": 1}}
    ))  # fmt: skip
    with pytest.raises(ChainUnavailable, match="cannot be understood"):
        chain.entries([key])


def test_reads_are_repeated_and_succeed(chain: RpcChain, server: FakeServer, reply: type[Replies]) -> None:
    server.script["getLatestLedger"] = [reply.http(503), reply.http(200, HTML), reply.http(429)]
    assert chain.identity().latest_ledger == 100
    assert server.calls.count("getLatestLedger") == 4


@pytest.mark.parametrize(("code", "attempts"), [(-32603, 5), (-32001, 5), (-32602, 1), (-32601, 1)])
def test_json_rpc_errors(
    chain: RpcChain, server: FakeServer, reply: type[Replies], *, code: int, attempts: int
) -> None:
    problem = {"code": code, "message": "no\nsuch\x1b[31m thing" + "x" * 1000}
    every_answer(server, "getLatestLedger", reply.json_text({"jsonrpc": "2.0", "id": 1, "error": problem}))
    with pytest.raises(ChainError, match=r"refused getLatestLedger: nosuch\[31m thing") as caught:
        chain.identity()
    assert isinstance(caught.value, ChainUnavailable) == (attempts > 1)
    assert len(str(caught.value)) < 400
    assert server.calls.count("getLatestLedger") == attempts


def test_messages_name_the_server_and_never_its_key(
    chain: RpcChain, server: FakeServer, reply: type[Replies]
) -> None:
    for answer in (reply.http(401), reply.http(200, HTML), reply.no_answer(requests.exceptions.Timeout())):
        every_answer(server, "getNetwork", answer)
        with pytest.raises(ChainError) as caught:
            chain.identity()
        text = "".join(traceback.format_exception(caught.value))
        assert "rpc.example.org" in str(caught.value)
        assert "sesame" not in text
        assert "sesame" not in f"{caught.value.hint} {chain!r}"


def test_no_traceback_shows_the_key_of_an_address(
    chain: RpcChain, server: FakeServer, reply: type[Replies]
) -> None:
    """The texts of libraries quote addresses, and so do the errors beneath them; the useful part stays."""
    refused = ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused")
    beneath = urllib3.exceptions.NewConnectionError(None, f"no way to {URL}")  # type: ignore[arg-type]
    beneath.__cause__ = refused
    quoting = requests.exceptions.ConnectionError(
        urllib3.exceptions.MaxRetryError(None, URL, reason=beneath)  # type: ignore[arg-type]
    )
    untrusted = ssl.SSLCertVerificationError(1, "certificate verify failed: self-signed certificate")
    for cause, kind, said in (
        (quoting, ChainUnavailable, "NewConnectionError, ConnectionRefusedError: Connection refused"),
        (requests.exceptions.SSLError(URL, untrusted), ChainError, "self-signed certificate"),
        (requests.exceptions.ReadTimeout(URL), ChainUnavailable, "ReadTimeout"),
        (requests.exceptions.InvalidURL(URL), ConfigError, "InvalidURL"),
    ):
        every_answer(server, "getNetwork", reply.no_answer(cause))
        with pytest.raises(MyceliumError) as caught:
            chain.identity()
        assert type(caught.value) is kind
        assert isinstance(caught.value.__cause__, type(cause))
        shown = "".join(traceback.format_exception(caught.value))
        assert said in shown
        found: BaseException | None = caught.value
        while found is not None:
            assert "sesame" not in f"{found!r} {found} {found.args}"
            assert found.__context__ is None, "nor does anything that looks further show it"
            found = found.__cause__
        assert "sesame" not in shown


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("https://user:secret@rpc.example.org:8443/key?token=t", "rpc.example.org:8443"),
        ("http://[::1]:8000/rpc", "::1:8000"),
        ("http://rpc.example.org:port/", "the configured address"),
        ("nonsense", "the configured address"),
        (IN_PROCESS_URL, "the embedded chain"),
    ],
)
def test_server_names(url: str, name: str) -> None:
    assert translate.server_name(url) == name


def test_another_network_is_noticed_before_anything_else(chain: RpcChain, server: FakeServer) -> None:
    server.passphrase = "Another Network"
    for ask in (
        chain.identity,
        lambda: chain.entries([]),
        lambda: chain.simulate(operations.invoke(CONTRACT, "get_anchor", [])),
        lambda: chain.transaction("00" * 32),
        lambda: chain.events(CONTRACT, start_ledger=1),
    ):
        with pytest.raises(WrongDomain, match="another network") as caught:
            ask()
        assert caught.value.verdict is Verdict.WRONG_DOMAIN
    assert set(server.calls) == {"getNetwork"}


def test_identity_carries_the_chain_id_where_it_is_served(chain: RpcChain) -> None:
    identity = chain.identity()
    assert identity.chain_id == "ab" * 32
    assert (identity.protocol, identity.latest_ledger) == (28, 100)


def test_identity_without_a_chain_id(chain: RpcChain, server: FakeServer, reply: type[Replies]) -> None:
    network = {"passphrase": server.passphrase, "protocolVersion": 28, "friendbotUrl": ""}
    every_answer(server, "getNetwork", reply.json_text({"jsonrpc": "2.0", "id": 1, "result": network}))
    assert chain.identity().chain_id is None
    assert chain.friendbot_url() is None


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        (xdr.SCError(xdr.SCErrorType.SCE_CONTRACT, contract_code=xdr.Uint32(77)), ContractFailed, "error 77"),
        (
            xdr.SCError(xdr.SCErrorType.SCE_STORAGE, code=xdr.SCErrorCode.SCEC_MISSING_VALUE),
            ContractNotFound,
            "no contract",
        ),
        (
            xdr.SCError(xdr.SCErrorType.SCE_BUDGET, code=xdr.SCErrorCode.SCEC_EXCEEDED_LIMIT),
            ChainError,
            "BUDGET EXCEEDED_LIMIT",
        ),
        (None, ChainError, "gave no reason"),
    ],
)
def test_failed_simulations_are_told_apart_by_the_hosts_error(
    chain: RpcChain,
    server: FakeServer,
    reply: type[Replies],
    *,
    error: xdr.SCError | None,
    kind: type[ChainError],
    words: str,
) -> None:
    events = [] if error is None else [reply.error_event(reply.contract_error(1)), reply.error_event(error)]
    answer = {"latestLedger": 100, "error": "HostError: words that are not read", "events": events}
    every_answer(
        server, "simulateTransaction", reply.json_text({"jsonrpc": "2.0", "id": 1, "result": answer})
    )
    with pytest.raises(kind, match=words) as caught:
        chain.simulate(operations.invoke(CONTRACT, "get_anchor", []))
    assert type(caught.value) is kind


def test_closing_closes_the_client(chain: RpcChain, server: FakeServer) -> None:
    chain.close()
    chain.close()
    assert server.closed


def test_the_http_client_does_not_retry_by_itself() -> None:
    from stellar_sdk.client.requests_client import RequestsClient

    from mycelium_sdk.chain.rpc import RpcChain

    made = RpcChain("https://rpc.example.org", "any network")
    inner = made._transport._inner
    assert isinstance(inner, RequestsClient)
    assert inner.num_retries == 0
    made.close()
