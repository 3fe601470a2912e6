"""The one door to the RPC: takes the body of a request, calls the methods, gives the body of the answer."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from mycelium_localnet.errors import ChainClosedError, ChainFileError, LocalnetError

from . import jsonrpc
from .cheats import CHEATS
from .context import IN_PROCESS_FRIENDBOT, Context, Method, Result
from .events import get_events
from .faults import INTERNAL_ERROR, METHOD_NOT_FOUND, RpcFault, invalid_request
from .fee_stats import get_fee_stats
from .insight import localnet_report, localnet_trace
from .ledger_entries import get_ledger_entries
from .ledgers import get_latest_ledger, get_ledgers
from .network import get_health, get_network, get_version_info
from .params import Params
from .simulate import simulate_transaction
from .submit import send_transaction
from .transactions import get_transaction, get_transactions

if TYPE_CHECKING:
    from mycelium_localnet.ledger import Chain

METHODS: Final[dict[str, Method]] = {
    "getEvents": get_events,
    "getFeeStats": get_fee_stats,
    "getHealth": get_health,
    "getLatestLedger": get_latest_ledger,
    "getLedgerEntries": get_ledger_entries,
    "getLedgers": get_ledgers,
    "getNetwork": get_network,
    "getTransaction": get_transaction,
    "getTransactions": get_transactions,
    "getVersionInfo": get_version_info,
    "localnet_report": localnet_report,
    "localnet_trace": localnet_trace,
    "sendTransaction": send_transaction,
    "simulateTransaction": simulate_transaction,
}


MAXIMUM_BATCH: Final = 100
"""Calls in one batch: a small body could otherwise ask for an answer of any size."""


class Dispatcher:
    """JSON-RPC 2.0 over one chain. Thread-safe, keeps nothing between calls.

    `friendbot_url`: the absolute address that getNetwork names, as clients of this door reach it.
    `raising`: have `handle` raise ChainFileError when the chain's file cannot be used, which no other attempt
    mends, for callers in the same process who can tell one exception from another; otherwise it is -32603.
    """

    def __init__(
        self, chain: Chain, *, friendbot_url: str = IN_PROCESS_FRIENDBOT, raising: bool = False
    ) -> None:
        self._context = Context(chain, friendbot_url)
        self._raising = raising

    def handle(self, body: bytes, *, friendbot_url: str | None = None) -> bytes | None:
        """The answer to a body, None when there is nothing to answer (notifications, an empty batch).

        `friendbot_url`: where this very client reaches the friendbot, if that is known.

        Raises ChainClosedError: there is nobody to answer any more. ChainFileError only if `raising`.

        Whatever is wrong with the body or the call is a JSON-RPC error in the answer; only defects of this
        package raise.
        """
        context = self._context
        if friendbot_url is not None:
            context = replace(context, friendbot_url=friendbot_url)
        try:
            message = jsonrpc.decode(body)
        except RpcFault as fault:
            return jsonrpc.encode(jsonrpc.failure(None, fault))
        if isinstance(message, list):
            if len(message) > MAXIMUM_BATCH:
                limit = f"a batch has at most {MAXIMUM_BATCH} calls, not {len(message)}: send several"
                return jsonrpc.encode(jsonrpc.failure(None, invalid_request(limit)))
            answers = [answer for item in message if (answer := self._answer(item, context)) is not None]
            return jsonrpc.encode(answers) if answers else None
        answer = self._answer(message, context)
        return None if answer is None else jsonrpc.encode(answer)

    def _answer(self, message: object, context: Context) -> dict[str, object] | None:
        try:
            request = jsonrpc.parse_request(message)
        except RpcFault as fault:
            # Answered even without an id: a message that is not a request cannot be a notification (section
            # 5).
            return jsonrpc.failure(jsonrpc.request_id(message), fault)
        try:
            result = self._call(request, context)
        except RpcFault as fault:
            return None if request.id is None else jsonrpc.failure(request.id, fault)
        return None if request.id is None else jsonrpc.success(request.id, result)

    def _call(self, request: jsonrpc.Request, context: Context) -> Result:
        method = METHODS.get(request.method) or CHEATS.get(request.method)
        if method is None:
            raise RpcFault(METHOD_NOT_FOUND, "method not found", request.method)
        try:
            if request.method in METHODS:
                # As a fault shows it, if one is set. Cheats are never hit: they are what ends a fault.
                context = replace(context, chain=context.chain.serving(request.method))
            return method(context, Params.of(request.params))
        except ChainClosedError:
            raise
        except LocalnetError as error:
            if self._raising and isinstance(error, ChainFileError):
                raise
            raise RpcFault(INTERNAL_ERROR, error.message, error.hint) from error
