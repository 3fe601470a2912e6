"""What `mycelium doctor` looks at: one function per check, none of which makes or changes anything.

A check that fails raises nothing: it is a finding like any other, with the fix of the error that it met.
What cannot be checked, since something else is at fault, says so instead of repeating that fault. Where a
procedure of the SDK keeps notes of what it saw, it is given a copy of what is known, which is thrown away.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from mycelium_cli.diagnosis import anchored, chain, indexed, machine, publishing, store
from mycelium_cli.diagnosis.findings import Finding, State, run_check, unchecked
from mycelium_sdk.errors import (
    BackendError,
    BlobError,
    ChainError,
    ConfigError,
    VerificationError,
    WalletError,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mycelium_cli.session import Session
    from mycelium_sdk.context import AgentContext

__all__ = ["Finding", "State", "diagnose"]


def diagnose(session: Session) -> Iterator[Finding]:
    """Run every check in order, each finding as it comes."""
    yield run_check("versions", ConfigError, machine.versions)
    configuration = run_check("configuration", ConfigError, lambda: machine.configuration(session))
    yield configuration
    if configuration.state is State.FAULT:
        return
    yield run_check("home", BackendError, lambda: machine.home(session))
    homeless = machine.home_fault(session) is not None
    yield run_check("wallet", WalletError, lambda: machine.wallet(session))
    indexer = None
    if session.configuration.indexer.url is not None:
        indexer = run_check("indexer", ChainError, lambda: machine.indexer(session))
        yield indexer
    with contextlib.ExitStack() as stack:
        context = machine.open_context(session, stack)
        if context is None:
            yield store.no_wallet()
            if not (homeless and chain.is_in_home(session)):
                yield run_check("chain", ChainError, lambda: chain.chain(session, None))
            return
        yield from _of(session, context, indexer, homeless=homeless)


def _of(
    session: Session, context: AgentContext, indexer: Finding | None, *, homeless: bool
) -> Iterator[Finding]:
    """What is this wallet's: here, and on the chain."""
    chosen = run_check("contract", ConfigError, context.anchor_address)
    memory, state, publish = _kept_here(session, context, chosen, homeless=homeless)
    there = list(_on_chain(session, context, indexer, chosen, memory=memory, state=state, homeless=homeless))
    agrees = anchored.agrees(there[-1])
    if state.state is State.WARNING and agrees is not None:  # about the past, which is over, or at hand
        state = run_check("state", BackendError, lambda: store.state(session, context, agrees=agrees))
    yield from (memory, state, publish, *there)


def _on_chain(
    session: Session,
    context: AgentContext,
    indexer: Finding | None,
    chosen: Finding,
    *,
    memory: Finding,
    state: Finding,
    homeless: bool,
) -> Iterator[Finding]:
    """What is on the chain, and last the verdict, where there is a chain."""
    if homeless and chain.is_in_home(session):
        yield unchecked("chain", "home")
        return
    reached = run_check("chain", ChainError, lambda: chain.chain(session, None if homeless else context))
    yield reached
    served = ["indexed"] if indexer is not None and indexer.state is not State.FAULT else []
    if reached.state is State.FAULT:
        yield unchecked("account", "chain")
        yield unchecked("contract", "chain") if chosen.state is State.OK else chosen
        yield from (unchecked(name, "chain") for name in ("fees", "anchor", *served, "blob", "verdict"))
        return
    if not context.has_chain:
        return
    yield run_check("account", ChainError, lambda: chain.account(context))
    contract = run_check("contract", ChainError, lambda: chain.contract(context))
    yield contract
    if contract.state is State.FAULT:
        yield from (unchecked(name, "contract") for name in ("fees", "anchor", *served, "blob", "verdict"))
        return
    yield run_check("fees", ChainError, lambda: chain.fees(context))
    yield run_check("anchor", ChainError, lambda: chain.anchor(context))
    if served:
        yield run_check("indexed", ChainError, lambda: indexed.indexed(context))
    yield run_check("blob", BlobError, lambda: anchored.blob(session, context))
    yield _verdict(session, context, memory, state, homeless=homeless)


def _kept_here(
    session: Session, context: AgentContext, chosen: Finding, *, homeless: bool
) -> tuple[Finding, Finding, Finding]:
    """Memory, state, and where blobs go. `chosen`: whether there is a contract that the state is about."""
    if homeless:
        memory, state = unchecked("memory", "home"), unchecked("state", "home")
    else:
        memory = run_check("memory", BackendError, lambda: store.memory(session, context))
        state = unchecked("state", "contract")
        if chosen.state is State.OK:
            state = run_check("state", BackendError, lambda: store.state(session, context))
    if homeless and session.configuration.memory.publish is None:
        return memory, state, unchecked("publish", "home")
    return memory, state, run_check("publish", BlobError, lambda: publishing.publish(session, context))


def _verdict(
    session: Session, context: AgentContext, memory: Finding, state: Finding, *, homeless: bool
) -> Finding:
    if homeless:
        return unchecked("verdict", "home")
    if store.is_unreadable(memory):
        return unchecked("verdict", "memory")
    if state.state is State.FAULT:
        return unchecked("verdict", "state")
    return run_check("verdict", VerificationError, lambda: anchored.verdict(session, context))
