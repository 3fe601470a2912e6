"""What `mycelium doctor` looks at: one function per check, none of which makes or changes anything.

A check that fails raises nothing: it is a finding like any other, with the fix of the error that it met.
Where a procedure of the SDK keeps notes of what it saw, it is given a copy of what is known, which is thrown
away.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from mycelium_cli.diagnosis import anchored, chain, indexed, machine, store
from mycelium_cli.diagnosis.findings import Finding, State, run_check
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

__all__ = ["Finding", "State", "diagnose"]


def diagnose(session: Session) -> Iterator[Finding]:
    """Run every check in order, each finding as it comes."""
    yield run_check("versions", ConfigError, machine.versions)
    configuration = run_check("configuration", ConfigError, lambda: machine.configuration(session))
    yield configuration
    if configuration.state is State.FAULT:
        return
    yield run_check("home", BackendError, lambda: machine.home(session))
    wallet = run_check("wallet", WalletError, lambda: machine.wallet(session))
    yield wallet
    indexer = None
    if session.configuration.indexer.url is not None:
        indexer = run_check("indexer", ChainError, lambda: machine.indexer(session))
        yield indexer
    with contextlib.ExitStack() as stack:
        context = machine.open_context(session, stack, usable=wallet.state is not State.FAULT)
        memory = run_check("memory", BackendError, lambda: store.memory(session, context))
        yield memory
        if context is not None:
            yield run_check("state", BackendError, lambda: store.state(session, context))
        reached = run_check("chain", ChainError, lambda: chain.chain(session, context))
        yield reached
        if context is None or reached.state is State.FAULT or not chain.exists(session):
            return
        for name, check in (
            ("account", chain.account),
            ("contract", chain.contract),
            ("fees", chain.fees),
            ("anchor", chain.anchor),
        ):
            yield run_check(name, ChainError, lambda check=check: check(context))  # type: ignore[misc]
        if indexer is not None and indexer.state is not State.FAULT:
            yield run_check("indexed", ChainError, lambda: indexed.indexed(context))
        yield run_check("blob", BlobError, lambda: anchored.blob(session, context))
        if memory.state is not State.FAULT:
            yield run_check("verdict", VerificationError, lambda: anchored.verdict(session, context))
