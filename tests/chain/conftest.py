"""A scripted RPC server and clock: every answer can be chosen, and every transaction is counted."""

from __future__ import annotations

import dataclasses
import json
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import pytest
import stellar_sdk.exceptions
from stellar_sdk import Keypair, TransactionEnvelope, scval, xdr
from stellar_sdk.client.base_sync_client import BaseSyncClient
from stellar_sdk.client.response import Response

from mycelium_sdk.chain.rpc import RpcChain
from mycelium_sdk.retry import Pace, RetryPolicy

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from typing import TypeAlias

    import requests.exceptions

    Reply: TypeAlias = Callable[["FakeServer", dict[str, Any]], Response]

URL = "https://user:sesame@rpc.example.org/v1/key-open-sesame"
PASSPHRASE = "Scripted Network ; November 2026"
SIGNER = Keypair.from_raw_ed25519_seed(bytes(range(32)))


@dataclasses.dataclass
class FakeClock:
    """Time that only sleeping moves."""

    seconds: float = 1_800_000_000.0
    slept: list[float] = dataclasses.field(default_factory=list)

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.seconds += seconds

    def pace(self) -> Pace:
        return Pace(
            now=lambda: self.seconds, monotonic=lambda: self.seconds, sleep=self.sleep, chance=lambda: 0.0
        )


class FakeServer(BaseSyncClient):
    """Answers like an RPC server whose ledger closes when a transaction is taken.

    `script[method]` holds answers to give instead, first one first; a `None` among them is the honest one.
    """

    def __init__(self, clock: FakeClock) -> None:
        self.clock = clock
        self.passphrase = PASSPHRASE
        self.script: dict[str, list[Reply | None]] = defaultdict(list)
        self.calls: list[str] = []
        self.sent: list[str] = []
        self.taken: dict[str, str] = {}
        self.sequence = 7
        self.ledger = 100
        self.oldest_ledger = 1
        self.ledger_lag = 0.0
        self.outcome = "SUCCESS"
        self.result = txn_result(xdr.TransactionResultCode.txSUCCESS)
        self.closed = False

    @property
    def close_time(self) -> int:
        return int(self.clock.seconds - self.ledger_lag)

    def post(
        self,
        url: str,  # noqa: ARG002
        data: dict[str, str] | None = None,  # noqa: ARG002
        json_data: dict[str, Any] | None = None,
    ) -> Response:
        assert json_data is not None
        method, params = json_data["method"], json_data["params"] or {}
        self.calls.append(method)
        if method == "sendTransaction":
            self.sent.append(envelope_of(params).hash_hex())
        scripted = self.script[method].pop(0) if self.script[method] else None
        return scripted(self, params) if scripted is not None else self.honest(method, params)

    def get(self, *_args: object, **_kwargs: object) -> Response:
        raise AssertionError("nothing is fetched by GET here")

    def stream(self, *_args: object, **_kwargs: object) -> Generator[dict[str, Any], None, None]:
        raise AssertionError("there are no streams")

    def close(self) -> None:
        self.closed = True

    def honest(self, method: str, params: dict[str, Any]) -> Response:
        return result(getattr(self, f"_{method}")(params))

    def take(self, params: dict[str, Any]) -> str:
        """Accept the transaction: it is in the next ledger, and its sequence number is used up."""
        envelope = envelope_of(params)
        self.taken[envelope.hash_hex()] = params["transaction"]
        self.sequence = envelope.transaction.sequence
        self.ledger += 1
        return envelope.hash_hex()

    def _getNetwork(self, _params: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        return {
            "passphrase": self.passphrase,
            "protocolVersion": 28,
            "friendbotUrl": None,
            "chainId": "ab" * 32,
        }

    def _getLatestLedger(self, _params: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        return {
            "id": "00" * 32, "protocolVersion": 28, "sequence": self.ledger,
            "closeTime": str(self.close_time), "headerXdr": "", "metadataXdr": "",
        }  # fmt: skip

    def _getLedgerEntries(self, params: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        entries = []
        for text in params["keys"]:
            key = xdr.LedgerKey.from_xdr(text)
            if key.account is not None:
                data = xdr.LedgerEntryData(xdr.LedgerEntryType.ACCOUNT, account=account_entry(self.sequence))
                entries.append({"key": text, "xdr": data.to_xdr(), "lastModifiedLedgerSeq": 5})
        return {"entries": entries, "latestLedger": self.ledger}

    def _simulateTransaction(self, _params: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        return {
            "latestLedger": self.ledger,
            "minResourceFee": "1000",
            "transactionData": soroban_data().to_xdr(),
            "results": [{"auth": [], "xdr": scval.to_uint64(1).to_xdr()}],
            "events": [],
        }

    def _sendTransaction(self, params: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        if envelope_of(params).hash_hex() in self.taken:
            return sent_answer(self, params, "DUPLICATE")
        if envelope_of(params).transaction.sequence != self.sequence + 1:
            return sent_answer(self, params, "ERROR", xdr.TransactionResultCode.txBAD_SEQ)
        self.take(params)
        return sent_answer(self, params, "PENDING")

    def _getTransaction(self, params: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        answer: dict[str, Any] = {
            "txHash": params["hash"], "status": "NOT_FOUND",
            "oldestLedger": self.oldest_ledger, "oldestLedgerCloseTime": "0",
            "latestLedger": self.ledger, "latestLedgerCloseTime": str(self.close_time),
        }  # fmt: skip
        if params["hash"] in self.taken:
            answer |= {
                "status": self.outcome, "ledger": self.ledger, "createdAt": str(self.close_time),
                "applicationOrder": 1, "feeBump": False, "envelopeXdr": self.taken[params["hash"]],
                "resultXdr": self.result.to_xdr(), "resultMetaXdr": txn_meta(scval.to_uint64(1)).to_xdr(),
            }  # fmt: skip
        return answer


def result(value: object) -> Response:
    return Response(200, json.dumps({"jsonrpc": "2.0", "id": 1, "result": value}), {}, URL)


def envelope_of(params: dict[str, Any]) -> TransactionEnvelope:
    return TransactionEnvelope.from_xdr(params["transaction"], PASSPHRASE)


def sent_answer(
    server: FakeServer, params: dict[str, Any], status: str, code: xdr.TransactionResultCode | None = None
) -> dict[str, Any]:
    answer = {
        "status": status, "hash": envelope_of(params).hash_hex(),
        "latestLedger": server.ledger, "latestLedgerCloseTime": str(server.close_time),
    }  # fmt: skip
    return answer if code is None else answer | {"errorResultXdr": txn_result(code).to_xdr()}


def account_entry(sequence: int) -> xdr.AccountEntry:
    return xdr.AccountEntry(
        account_id=SIGNER.xdr_account_id(),
        balance=xdr.Int64(10**11),
        seq_num=xdr.SequenceNumber(xdr.Int64(sequence)),
        num_sub_entries=xdr.Uint32(0),
        inflation_dest=None,
        flags=xdr.Uint32(0),
        home_domain=xdr.String32(b""),
        thresholds=xdr.Thresholds(b"\x01\x00\x00\x00"),
        signers=[],
        ext=xdr.AccountEntryExt(0),
    )


def soroban_data() -> xdr.SorobanTransactionData:
    return xdr.SorobanTransactionData(
        ext=xdr.SorobanTransactionDataExt(0),
        resources=xdr.SorobanResources(
            footprint=xdr.LedgerFootprint(read_only=[], read_write=[]),
            instructions=xdr.Uint32(5),
            disk_read_bytes=xdr.Uint32(6),
            write_bytes=xdr.Uint32(7),
        ),
        resource_fee=xdr.Int64(1000),
    )


def txn_result(
    code: xdr.TransactionResultCode, operation: xdr.InvokeHostFunctionResultCode | None = None
) -> xdr.TransactionResult:
    results = None
    if code is xdr.TransactionResultCode.txSUCCESS:
        results = []
    if operation is not None:
        results = [
            xdr.OperationResult(
                xdr.OperationResultCode.opINNER,
                xdr.OperationResultTr(
                    xdr.OperationType.INVOKE_HOST_FUNCTION,
                    invoke_host_function_result=xdr.InvokeHostFunctionResult(operation),
                ),
            )
        ]
    return xdr.TransactionResult(
        fee_charged=xdr.Int64(1100),
        result=xdr.TransactionResultResult(code, results=results),
        ext=xdr.TransactionResultExt(0),
    )


def txn_meta(value: xdr.SCVal) -> xdr.TransactionMeta:
    return xdr.TransactionMeta(
        4,
        v4=xdr.TransactionMetaV4(
            ext=xdr.ExtensionPoint(0),
            tx_changes_before=xdr.LedgerEntryChanges([]),
            operations=[],
            tx_changes_after=xdr.LedgerEntryChanges([]),
            soroban_meta=xdr.SorobanTransactionMetaV2(
                ext=xdr.SorobanTransactionMetaExt(0), return_value=value
            ),
            events=[],
            diagnostic_events=[],
        ),
    )


def error_event(error: xdr.SCError) -> str:
    """What the host logs when a call fails, as base64."""
    return xdr.DiagnosticEvent(
        in_successful_contract_call=False,
        event=xdr.ContractEvent(
            ext=xdr.ExtensionPoint(0),
            contract_id=None,
            type=xdr.ContractEventType.DIAGNOSTIC,
            body=xdr.ContractEventBody(
                0,
                v0=xdr.ContractEventV0(
                    topics=[scval.to_symbol("error"), xdr.SCVal(xdr.SCValType.SCV_ERROR, error=error)],
                    data=scval.to_string("escalating error to VM trap"),
                ),
            ),
        ),
    ).to_xdr()


def contract_error(number: int) -> xdr.SCError:
    return xdr.SCError(xdr.SCErrorType.SCE_CONTRACT, contract_code=xdr.Uint32(number))


def no_answer(
    cause: requests.exceptions.RequestException,
) -> Reply:
    """The request fails below HTTP, as `stellar_sdk`'s client reports it."""

    def answer(_server: FakeServer, _params: dict[str, Any]) -> Response:
        raise stellar_sdk.exceptions.ConnectionError(cause) from cause

    return answer


def too_large(limit: int) -> Reply:
    """The answer goes on beyond what the client takes, as an HTTP client reports it."""

    def answer(_server: FakeServer, _params: dict[str, Any]) -> Response:
        raise stellar_sdk.exceptions.ContentSizeLimitExceededError(limit)

    return answer


def http(status: int, text: str = "") -> Reply:
    return lambda _server, _params: Response(status, text, {}, URL)


def json_text(value: object) -> Reply:
    return http(200, json.dumps(value))


def taken_but(
    lost: Reply,
) -> Reply:
    """The transaction is taken, and the answer is lost on the way."""

    def answer(server: FakeServer, params: dict[str, Any]) -> Response:
        server.take(params)
        return lost(server, params)

    return answer


def sends(status: str, code: xdr.TransactionResultCode | None = None) -> Reply:
    """A chosen answer of sendTransaction; the transaction is not taken."""
    return lambda server, params: result(sent_answer(server, params, status, code))


def not_found(server: FakeServer, params: dict[str, Any]) -> Response:
    """NOT_FOUND, whatever is true."""
    honest = json.loads(server.honest("getTransaction", params | {"hash": "00" * 32}).text)["result"]
    return result(honest | {"txHash": params["hash"]})


class Replies:
    """The answers that a script is made of, and what they are made of."""

    no_answer = staticmethod(no_answer)
    too_large = staticmethod(too_large)
    http = staticmethod(http)
    json_text = staticmethod(json_text)
    taken_but = staticmethod(taken_but)
    sends = staticmethod(sends)
    not_found = staticmethod(not_found)
    result = staticmethod(result)
    txn_result = staticmethod(txn_result)
    error_event = staticmethod(error_event)
    contract_error = staticmethod(contract_error)


@pytest.fixture
def reply() -> type[Replies]:
    return Replies


@pytest.fixture
def signer() -> Keypair:
    return SIGNER


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def server(clock: FakeClock) -> FakeServer:
    return FakeServer(clock)


@pytest.fixture
def chain(server: FakeServer, clock: FakeClock) -> RpcChain:
    return RpcChain(URL, PASSPHRASE, client=server, policy=RetryPolicy(pace=clock.pace()))
