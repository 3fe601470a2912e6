"""The cheats and faults as JSON-RPC: the methods `localnet_...`, which only local chains have.

Each does what the method of `Chain` with the same name in snake_case does, and says more of it there.
"""

from __future__ import annotations

from binascii import a2b_base64
from functools import wraps
from typing import TYPE_CHECKING, Final, cast

from mycelium_localnet.errors import FundingError, InvalidRequestError

from .faults import INVALID_PARAMS, RpcFault, invalid_params
from .wire import text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mycelium_localnet.faults.kinds import FaultKind
    from mycelium_localnet.schedule import ClosingMode

    from .context import Context, Method, Result
    from .params import Params

_MAXIMUM_TIME: Final = 2**63 - 1


def snapshot(context: Context, _params: Params) -> Result:
    """No parameters. `snapshot`: the number to revert to."""
    return {"snapshot": context.chain.snapshot()}


def revert(context: Context, params: Params) -> Result:
    """`snapshot`: its number."""
    return _latest(context.chain.revert(_required(params, "snapshot", 2**53)))


def skip_ledgers(context: Context, params: Params) -> Result:
    """`count`: how many ledgers."""
    return _latest(context.chain.skip_ledgers(_required(params, "count")))


def set_time(context: Context, params: Params) -> Result:
    """`time`: Unix seconds."""
    return {"time": context.chain.set_time(_required(params, "time", _MAXIMUM_TIME))}


def freeze_time(context: Context, params: Params) -> Result:
    """`frozen`: false lets the clock go on; true when left out."""
    frozen = params.flag("frozen") if params.has("frozen") else True
    return {"time": context.chain.freeze_time(frozen=frozen)}


def fund(context: Context, params: Params) -> Result:
    """`address`: G...; `amount`: stroops, 10,000 XLM when left out."""
    amount, address = params.stroops("amount"), params.required_text("address")
    if amount is None:
        return {"hash": context.chain.fund(address)}
    return {"hash": context.chain.fund(address, amount)}


def set_balance(context: Context, params: Params) -> Result:
    """`address`: G...; `balance`: stroops."""
    balance = params.stroops("balance")
    if balance is None:
        raise invalid_params("balance is missing")
    return _latest(context.chain.set_balance(params.required_text("address"), balance))


def close_ledger(context: Context, _params: Params) -> Result:
    """No parameters."""
    return _latest(context.chain.close_ledger())


def set_interval(context: Context, params: Params) -> Result:
    """`interval`: seconds; or `closing`: "instant" or "manual". Without both, instant."""
    closing = cast("ClosingMode | None", params.text("closing"))
    return _latest(context.chain.set_interval(params.number("interval"), closing=closing))


def dump(context: Context, _params: Params) -> Result:
    """No parameters. `dump`: the file, in base64."""
    return {"dump": text(context.chain.dump())}


def load(context: Context, params: Params) -> Result:
    """`dump`: the file, in base64."""
    try:
        data = a2b_base64(params.required_text("dump"), strict_mode=True)
    except ValueError as error:
        raise invalid_params("dump must be base64") from error
    return _latest(context.chain.load(data)) | {"chainId": context.chain.chain_id}


def reset(context: Context, params: Params) -> Result:
    """`seed`: 1 to 64 bytes in hex."""
    seed = params.text("seed")
    try:
        chain_id = context.chain.reset(None if seed is None else bytes.fromhex(seed))
    except InvalidRequestError:
        raise
    except ValueError as error:
        raise invalid_params("seed must be hexadecimal") from error
    return {"chainId": chain_id}


def accounts(context: Context, params: Params) -> Result:
    """`fund`: false leaves those alone that are not there; true when left out."""
    wanted = params.flag("fund") if params.has("fund") else True
    return {
        "accounts": [
            {"name": one.name, "address": one.address, "secret": one.secret, "funded": one.funded}
            for one in context.chain.accounts(fund=wanted)
        ]
    }


def fault(context: Context, params: Params) -> Result:
    """`kind`, `count`, `methods`, `seed`, `seconds`, `ledgers`, `key` (base64), `owner`, `carriedOut`."""
    number = context.chain.fault(
        cast("FaultKind", params.required_text("kind")),
        count=params.integer("count") if params.has("count") else 1,
        methods=params.texts("methods") if params.has("methods") else None,
        seed=params.integer("seed", 2**63 - 1),
        seconds=params.number("seconds"),
        ledgers=params.integer("ledgers") if params.has("ledgers") else None,
        key=params.text("key"),
        owner=params.text("owner"),
        carried_out=params.flag("carriedOut") if params.has("carriedOut") else None,
    )
    return {"fault": number}


def clear_faults(context: Context, _params: Params) -> Result:
    """No parameters. `cleared`: how many faults there were."""
    return {"cleared": context.chain.clear_faults()}


def _latest(sequence: int) -> dict[str, object]:
    return {"latestLedger": sequence}


def _required(params: Params, name: str, maximum: int = 2**32 - 1) -> int:
    if not params.has(name):
        raise invalid_params(f"{name} is missing")
    return params.integer(name, maximum)


def _checked(method: Method) -> Method:
    """What the caller asked for cannot be: -32602, in the words of the chain."""

    @wraps(method)
    def call(context: Context, params: Params) -> Result:
        try:
            return method(context, params)
        except (InvalidRequestError, FundingError) as error:
            raise RpcFault(INVALID_PARAMS, error.message, error.hint) from error

    return call


CHEATS: Final[Mapping[str, Method]] = {
    f"localnet_{name}": _checked(method)
    for name, method in {
        "snapshot": snapshot,
        "revert": revert,
        "skipLedgers": skip_ledgers,
        "setTime": set_time,
        "freezeTime": freeze_time,
        "fund": fund,
        "setBalance": set_balance,
        "closeLedger": close_ledger,
        "setInterval": set_interval,
        "dump": dump,
        "load": load,
        "reset": reset,
        "accounts": accounts,
        "fault": fault,
        "clearFaults": clear_faults,
    }.items()
}
