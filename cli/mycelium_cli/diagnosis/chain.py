"""What `mycelium doctor` checks of the chain: that it answers, account, contract, fees, times to live."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING

from mycelium_cli.diagnosis.findings import Found, State
from mycelium_cli.diagnosis.store import require_file, require_writable, state_file, what_is_known
from mycelium_cli.obstacles import is_there
from mycelium_cli.output import amount, moment
from mycelium_cli.session import require_embedded_chain
from mycelium_sdk.errors import ChainError, ContractFailed

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from stellar_sdk import xdr

    from mycelium_cli.session import Session
    from mycelium_sdk.chain.base import EntryState
    from mycelium_sdk.context import AgentContext

__all__ = [
    "account",
    "anchor",
    "chain",
    "chain_file",
    "contract",
    "fees",
    "has_contract",
    "is_in_home",
    "put_back",
]

_LATE_SECONDS = 300
_FEW_ANCHORS = 10
ATTEMPTS = 5
_BASE_RESERVE = 5_000_000  # stroops; an account keeps two, and one for each entry below it
_NOT_YET = "not there yet; it is made by the first `mycelium memory anchor`"
_SAMPLE_URI = b"u" * 100


def chain_file(session: Session) -> Path:
    """Where the embedded chain is, or would be. Makes no folder."""
    configuration = session.configuration
    return configuration.onchain.chain_file or configuration.home.chain_place


def is_in_home(session: Session) -> bool:
    """Whether the chain is a file in the home folder."""
    configuration = session.configuration
    return configuration.onchain.network == "local" and configuration.home.root in chain_file(session).parents


def put_back(session: Session) -> str:
    """The fix where the embedded chain is not the one that the memory was anchored on."""
    return (
        f"put the chain's file back at {chain_file(session)}, or name its place in `[onchain] chain_file`;"
        " if it was wiped with your knowledge: `mycelium memory anchor --trust-chain-anew`"
    )


def chain(session: Session, context: AgentContext | None) -> str:
    """Whether the chain answers, and is up to date; which one it is."""
    from mycelium_sdk.chain.translate import server_name
    from mycelium_sdk.context import AgentContext

    file = chain_file(session)
    with contextlib.ExitStack() as stack:
        looking = context
        if looking is None:
            looking = stack.enter_context(AgentContext.read_only(configuration=session.configuration))
        network = looking.network
        if network.rpc_url is None:
            if file.exists():
                require_file(file)
                require_writable(file, ChainError)
            if not looking.has_chain:
                require_embedded_chain()
                if context is not None:
                    _require_never_seen(session, context)
                return f"none yet at {file}; it is made by the first `mycelium memory anchor`"
        identity = looking.chain.identity()
    place = f"in {file}" if network.rpc_url is None else f"served by {server_name(network.rpc_url)}"
    message = f"{network.name} at ledger {identity.latest_ledger}, protocol {identity.protocol}, {place}"
    late = time.time() - identity.close_time
    if network.public and late > _LATE_SECONDS:
        raise Found(
            State.WARNING,
            f"{message}, which closed {late:.0f} s ago ({moment(identity.close_time)})",
            "this machine's clock is wrong, or the server lags: check the clock, or use another --rpc-url",
        )
    return message


def _require_never_seen(session: Session, context: AgentContext) -> None:
    """Raise `Found` if something was anchored, or about to be, on the chain that is not there."""
    if not is_there(state_file(session)):
        return
    known = what_is_known(session, context)
    if known.seen or known.last is not None or known.intents:
        raise Found(
            State.FAULT,
            f"the chain that this memory was anchored on is not at {chain_file(session)} any more",
            put_back(session),
        )


def account(context: AgentContext) -> str:
    """Whether the wallet's account is on the network, and what it has."""
    found = _account_entry(context)
    if found is None:
        if context.network.name == "local":
            return _NOT_YET
        friendbot = context.chain.friendbot_url()
        where = "send it some XLM" if friendbot is None else f"open {friendbot}?addr={context.address}"
        raise Found(State.FAULT, f"{context.address} is not on {context.network.name}", where)
    return amount(found.balance.int64)


def contract(context: AgentContext) -> str:
    """Whether the contract is one of anchors, and how long its instance and code live."""
    from mycelium_sdk.chain import operations
    from mycelium_sdk.chain.anchor_client import MemoryAnchorClient
    from mycelium_sdk.chain.base import EntryStatus
    from mycelium_sdk.chain.contracts import code_hash

    address = context.anchor_address()
    if not has_contract(context):
        return _NOT_YET
    if MemoryAnchorClient(context.chain, address).is_legacy:
        raise Found(
            State.WARNING,
            f"{address} is the older contract: no compare-and-set, no history",
            "deploy your own: `mycelium contract deploy`",
        )
    keys = [operations.instance_key(address), operations.code_key(code_hash(context.chain, address))]
    named = dict(zip(("instance", "code"), context.chain.entries(keys), strict=True))
    archived = [name for name, entry in named.items() if entry.status is EntryStatus.ARCHIVED]
    if archived:
        raise Found(
            State.WARNING,
            f"{address}: archived: {' and '.join(archived)}",
            "restore it: `mycelium memory keep-alive --include-contract` does, and shows the price first",
        )
    expiring = [f"{name} {_life(context, entry)}" for name, entry in named.items() if _ends_soon(entry)]
    if expiring:
        raise Found(
            State.WARNING,
            f"{address}: archived soon: {' and '.join(expiring)}",
            "extend it: `mycelium memory keep-alive --include-contract` does, and shows the price first",
        )
    return f"{address}; " + ", ".join(f"{name} {_life(context, entry)}" for name, entry in named.items())


def fees(context: AgentContext) -> str:
    """What an anchor costs now, and how many of them the account can pay."""
    found = _account_entry(context)
    if found is None or not has_contract(context):
        return "not known before the first anchor"
    try:
        cost = _again(lambda: _cost_of_an_anchor(context))
    except ContractFailed as error:
        raise Found(
            State.WARNING,
            "the price of an anchor is not known: the contract refused each one that was tried",
            "try again when nobody is anchoring this memory",
        ) from error
    limit = context.chain.max_fee
    if cost > limit:
        raise Found(
            State.FAULT,
            f"an anchor costs about {amount(cost)} now, above the limit of {amount(limit)}",
            "ask another server (--rpc-url); if the price is right, raise `[onchain] max_fee` in"
            " mycelium.toml",
        )
    free = found.balance.int64 - (2 + found.num_sub_entries.uint32) * _BASE_RESERVE
    number = max(0, free // cost)
    message = f"an anchor costs about {amount(cost)} now; the account can pay {number:,}"
    if number < _FEW_ANCHORS:
        state = State.WARNING if number else State.FAULT
        raise Found(state, message, f"send some XLM to {context.address}")
    return message


def anchor(context: AgentContext) -> str:
    """How long the anchor's entry lives."""
    from mycelium_sdk.chain.anchor_client import MemoryAnchorClient
    from mycelium_sdk.chain.base import EntryStatus

    if not has_contract(context):
        return "never anchored"
    entry = MemoryAnchorClient(context.chain, context.anchor_address()).entry_state(context.address)
    if entry.status is EntryStatus.ABSENT:
        return "never anchored"
    if entry.status is EntryStatus.ARCHIVED:
        raise Found(State.FAULT, "the anchor is archived", "restore it: `mycelium memory keep-alive`")
    message = f"lives for {_life(context, entry)}"
    if _ends_soon(entry):
        raise Found(State.WARNING, message, "extend it: `mycelium memory keep-alive`")
    return message


def has_contract(context: AgentContext) -> bool:
    """Whether the contract is there; the local chain's own is made when it is first needed."""
    return context.found_anchor_client() is not None


def _again(ask: Callable[[], int]) -> int:
    """Ask the contract, anew if somebody anchored between the version that was read and its use.

    Raises `ContractFailed` if it never comes to rest.
    """
    for _ in range(ATTEMPTS - 1):
        with contextlib.suppress(ContractFailed):
            return ask()
    return ask()


def _account_entry(context: AgentContext) -> xdr.AccountEntry | None:
    from mycelium_sdk.chain import operations

    (entry,) = context.chain.entries([operations.account_key(context.address)])
    return None if entry.data is None else entry.data.account


def _cost_of_an_anchor(context: AgentContext) -> int:
    """What the network asks for the owner's next anchor, in stroops. Only simulated."""
    from stellar_sdk import scval

    from mycelium_sdk.chain import operations
    from mycelium_sdk.chain.anchor_client import MemoryAnchorClient

    client = MemoryAnchorClient(context.chain, context.anchor_address())
    arguments = [scval.to_address(context.address)]
    if not client.is_legacy:
        arguments.append(scval.to_uint64(client.get_version(context.address)))
    arguments += map(scval.to_bytes, (b"\1" * 32, _SAMPLE_URI, b""))
    function = "set_anchor" if client.is_legacy else "set_anchor_if"
    work = operations.invoke(client.contract_id, function, arguments)
    return context.chain.simulate(work, source=context.address).resource_fee + context.chain.inclusion_fee


def _ends_soon(entry: EntryState) -> bool:
    from mycelium_sdk.chain.base import EntryStatus

    return entry.status is EntryStatus.EXPIRING


def _life(context: AgentContext, entry: EntryState) -> str:
    from mycelium_sdk.chain.base import LEDGER_SECONDS

    remaining = entry.remaining or 0
    days = f", about {remaining * LEDGER_SECONDS / 86_400:.0f} days" if context.network.public else ""
    return f"{remaining:,} more ledgers{days}"
