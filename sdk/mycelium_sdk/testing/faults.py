"""What servers and networks do wrong, in front of any network: a transport for `RpcChain` and `stellar_sdk`.

    faulty = FaultyClient(RequestsClient(num_retries=0))
    chain = RpcChain(url, passphrase, client=faulty)
    faulty.fault("http_503", count=5)

The faults have the names of the embedded chain's, and do at the level of HTTP and JSON what those do inside
of it. Nothing happens to the network behind, except what requests do to it that are carried out.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, get_args

import requests.exceptions
import stellar_sdk.exceptions
from stellar_sdk.client.base_sync_client import BaseSyncClient
from stellar_sdk.client.response import Response

from mycelium_sdk.errors import InputError
from mycelium_sdk.strkey import is_account
from mycelium_sdk.testing.faulty_answers import HISTORY, READS, SEND, FaultyAnswers

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable

__all__ = ["KINDS", "Fault", "FaultKind", "FaultyClient"]

FaultKind: TypeAlias = Literal[
    "try_again_later", "not_found", "http_503", "http_504", "html", "slow", "drop", "retention", "archive",
    "stale", "fork", "never_closes",
]  # fmt: skip

KINDS: Final[tuple[FaultKind, ...]] = get_args(FaultKind)

_FRIENDBOT = "friendbot"
_ALL = (*READS, SEND, "getNetwork", "getVersionInfo", _FRIENDBOT)
_DOOR: Final[tuple[FaultKind, ...]] = ("http_503", "http_504", "html", "slow", "drop")
_CONCERNS: Final[dict[FaultKind, tuple[str, ...]]] = {
    **dict.fromkeys(_DOOR, _ALL),
    "try_again_later": (SEND,),
    "never_closes": (SEND,),
    "not_found": ("getTransaction",),
    "retention": HISTORY,
    "archive": ("getLedgerEntries",),
    "stale": READS,
    "fork": READS,
}
_REPLIES: Final[dict[FaultKind, tuple[int, str, str]]] = {
    "http_503": (503, "text/plain", "service unavailable\n"),
    "http_504": (504, "text/plain", "gateway timeout\n"),
    "html": (502, "text/html", "<!doctype html>\n<title>502 Bad Gateway</title>\n"),
}


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault that was set: `count` requests it will still hit, `hits` it has hit. See
    `FaultyClient.fault`."""

    kind: FaultKind
    count: int
    methods: tuple[str, ...]
    seed: int
    seconds: float
    ledgers: int
    key: str | None
    owner: str | None
    carried_out: bool | None
    hits: int = 0

    def is_carried_out(self) -> bool:
        """Whether the request that is hit takes effect, though its answer is lost."""
        if self.kind == "http_503":
            return False
        if self.carried_out is not None:
            return self.carried_out
        return bool(sha256(b"%d %d" % (self.seed, self.hits)).digest()[0] & 1)


class FaultyClient(BaseSyncClient):
    """Wraps the client that really sends. Off by default; for use on one thread at a time.

    `sleep`: how the fault `slow` waits. `sent`: the transactions (base64) that reached the network, in their
    order, repetitions included.
    """

    def __init__(self, inner: BaseSyncClient, *, sleep: Callable[[float], None] = time.sleep) -> None:
        self.sent: list[str] = []
        self._inner = inner
        self._sleep = sleep
        self._faults: list[Fault] = []
        self._answers = FaultyAnswers(self._ask)
        self._url = ""

    def fault(
        self,
        kind: FaultKind,
        *,
        count: int = 1,
        methods: Iterable[str] | None = None,
        seed: int = 0,
        seconds: float = 1.0,
        ledgers: int = 1,
        key: str | None = None,
        owner: str | None = None,
        carried_out: bool | None = None,
    ) -> None:
        """Have the next `count` requests go wrong.

        `methods`: only requests for these (`"friendbot"` is any GET); None for all that the kind can hit. Of
        several faults that fit, the one that was set first hits.

        * `http_503`, `http_504`, `html`: HTTP statuses 503, 504, and 502 with a page. `drop`: the connection
          is closed. Whether the request reached the network (never with 503): `carried_out`, or as the `seed`
          has it, hit by hit. `slow`: `seconds` pass before.
        * `try_again_later`: sendTransaction takes nothing and says so. `never_closes`: it says PENDING, and
          the network never hears of it. `not_found`: getTransaction knows nothing.
        * `stale`: an answer that was given to the same question at least `ledgers` ledgers ago; without one,
          the true answer, and nothing is used up.
        * `fork`: ledger hashes, and the 32-byte values in what the last `ledgers` ledgers wrote and in what
          simulations return, are others, made from `seed`.
        * `retention`: of history, only the last `ledgers` ledgers are known.
        * `archive`: getLedgerEntries shows an entry as archived: the one of `key` (a LedgerKey in base64), or
          those whose keys hold the address `owner`, or all contract data.

        Raises:
            InputError: a kind, method or number that cannot be.
        """
        if kind not in KINDS:
            raise InputError(f"there is no fault {kind!r}", hint=f"the faults are {', '.join(KINDS)}")
        wanted = tuple(methods or ())
        unknown = [name for name in wanted if name not in _CONCERNS[kind]]
        if unknown or (methods is not None and not wanted):
            hits = ", ".join(_CONCERNS[kind])
            raise InputError(f"the fault {kind} cannot hit {', '.join(unknown) or 'nothing'}", hint=hits)
        if count < 1 or ledgers < 1 or seed < 0 or not seconds >= 0:
            raise InputError("count and ledgers are 1 or more, seed and seconds 0 or more")
        if owner is not None and not is_account(owner):
            raise InputError("owner is the address of an account", hint="it begins with G")
        self._faults.append(
            Fault(kind, count, wanted, seed, seconds, ledgers, key, owner, carried_out)
        )  # fmt: skip

    def faults(self) -> tuple[Fault, ...]:
        """What is set and not used up."""
        return tuple(self._faults)

    def clear_faults(self) -> int:
        """Have nothing go wrong any more. Returns how many faults there were."""
        cleared = len(self._faults)
        self._faults.clear()
        return cleared

    def post(
        self, url: str, data: dict[str, str] | None = None, json_data: dict[str, Any] | None = None
    ) -> Response:
        """Send a request, or what a fault makes of it. Raises `stellar_sdk`'s `ConnectionError`."""
        self._url = url
        method = str((json_data or {}).get("method", ""))
        params = (json_data or {}).get("params") or {}

        def send() -> Response:
            answer = self._post(url, data, json_data)
            self._answers.remember(method, params, answer)
            return answer

        def misled() -> Response:
            fault = self._find(method, set(KINDS) - set(_DOOR))
            if fault is None:
                return send()
            answer = self._answers.answer(fault, method, params, send)
            if answer is None:  # there is nothing to mislead with
                return send()
            self._use(fault)
            if isinstance(answer, Response):
                return answer
            body = {"jsonrpc": "2.0", "id": (json_data or {}).get("id"), **answer}
            return Response(200, json.dumps(body), {"Content-Type": "application/json"}, url)

        return self._through(url, method, misled)

    def get(
        self, url: str, params: dict[str, str] | None = None, max_content_size: int | None = None
    ) -> Response:
        """One GET, which is the friendbot's. Raises `stellar_sdk`'s `ConnectionError`."""
        return self._through(
            url,
            _FRIENDBOT,
            lambda: self._inner.get(url, params=params, max_content_size=max_content_size),
        )

    def stream(self, url: str, params: dict[str, str] | None = None) -> Generator[dict[str, Any], None, None]:
        """What the wrapped client makes of it; no fault concerns streams."""
        return self._inner.stream(url, params)

    def close(self) -> None:
        """Close the wrapped client."""
        self._inner.close()  # type: ignore[no-untyped-call]

    def _through(self, url: str, method: str, send: Callable[[], Response]) -> Response:
        fault = self._find(method, _DOOR)
        if fault is None:
            return send()
        self._use(fault)
        if fault.kind == "slow":
            self._sleep(fault.seconds)
            return send()
        if fault.is_carried_out():
            send()
        if fault.kind == "drop":
            cause = requests.exceptions.ConnectionError("the connection was closed without an answer")
            raise stellar_sdk.exceptions.ConnectionError(cause) from cause
        status, kind, text = _REPLIES[fault.kind]
        return Response(status, text, {"Content-Type": kind}, url)

    def _post(self, url: str, data: dict[str, str] | None, json_data: dict[str, Any] | None) -> Response:
        if json_data is not None and json_data.get("method") == SEND:
            self.sent.append(str((json_data.get("params") or {}).get("transaction")))
        return self._inner.post(url, data=data, json_data=json_data)

    def _ask(self, method: str) -> dict[str, Any]:
        """The network's own answer to a method without parameters."""
        asked = {"jsonrpc": "2.0", "id": 0, "method": method, "params": None}
        result: dict[str, Any] = self._inner.post(self._url, json_data=asked).json()["result"]
        return result

    def _find(self, method: str, kinds: Iterable[FaultKind]) -> Fault | None:
        for fault in self._faults:
            if fault.kind in kinds and method in (fault.methods or _CONCERNS[fault.kind]):
                return fault
        return None

    def _use(self, fault: Fault) -> None:
        at = self._faults.index(fault)
        if fault.count == 1:
            del self._faults[at]
        else:
            self._faults[at] = replace(fault, count=fault.count - 1, hits=fault.hits + 1)
