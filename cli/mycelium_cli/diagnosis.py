"""What `mycelium doctor` looks at: one function per check, none of which makes or changes anything.

A check that fails raises nothing: it is a finding like any other, with the fix of the error that it met.
"""

from __future__ import annotations

import contextlib
import enum
import shlex
import shutil
import stat
import sys
import time
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mycelium_cli.output import amount, memories, moment
from mycelium_cli.session import require_embedded_chain
from mycelium_sdk.errors import (
    BackendError,
    ChainError,
    ConfigError,
    MyceliumError,
    WalletError,
    WalletNotFound,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from mycelium_cli.session import Session
    from mycelium_sdk.context import AgentContext

__all__ = ["Finding", "State", "diagnose"]

_LITTLE_DISK = 100 * 1024 * 1024
_LITTLE_XLM = 2 * 10_000_000
_LATE_SECONDS = 300


class State(enum.StrEnum):
    """How grave a finding is. Only a fault makes `doctor` fail."""

    OK = "ok"
    WARNING = "warning"
    FAULT = "fault"


@dataclass(frozen=True, slots=True)
class Finding:
    """What one check found. `fix` is there unless all is well; `exit_code` as in formats.md section 9."""

    name: str
    state: State
    message: str
    fix: str | None = None
    exit_code: int = 0


class _Found(Exception):  # noqa: N818 - how a check ends early
    def __init__(self, state: State, message: str, fix: str | None = None) -> None:
        super().__init__(message)
        self.state, self.message, self.fix = state, message, fix


def diagnose(session: Session) -> Iterator[Finding]:
    """Run every check in order, each finding as it comes."""
    yield _run("versions", ConfigError, _versions)
    configuration = _run("configuration", ConfigError, lambda: _configuration(session))
    yield configuration
    if configuration.state is State.FAULT:
        return
    yield _run("home", BackendError, lambda: _home(session))
    wallet = _run("wallet", WalletError, lambda: _wallet(session))
    yield wallet
    with contextlib.ExitStack() as stack:
        context = _context(session, stack, usable=wallet.state is not State.FAULT)
        yield _run("memory", BackendError, lambda: _memory(session, context))
        chain = _run("chain", ChainError, lambda: _chain(session, context))
        yield chain
        if chain.state is State.FAULT or not _chain_exists(session):
            return
        for name, check in (("account", _account), ("contract", _contract), ("anchor", _anchor)):
            yield _run(name, ChainError, lambda check=check: check(context))  # type: ignore[misc]


def _run(name: str, kind: type[MyceliumError], check: Callable[[], str]) -> Finding:
    """The finding of a check that returns its message, raises `_Found` for more, or an error of the tree."""
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            message = check()
    except _Found as found:
        code = kind.exit_code if found.state is State.FAULT else 0
        return Finding(name, found.state, found.message, found.fix, code)
    except MyceliumError as error:
        return Finding(name, State.FAULT, error.message, error.hint, error.exit_code)
    if caught:
        return Finding(
            name, State.WARNING, f"{message}; {caught[0].message}", "correct its name, or unset it"
        )
    return Finding(name, State.OK, message)


def _versions() -> str:
    import sqlite3
    from importlib.metadata import version

    parts = [f"mycelium {version('mycelium-memory')}", f"Python {sys.version.split()[0]}"]
    with contextlib.closing(sqlite3.connect(":memory:")) as connection:
        options = {row[0] for row in connection.execute("PRAGMA compile_options")}
    parts.append(f"SQLite {sqlite3.sqlite_version}")
    if "ENABLE_FTS5" not in options:
        raise _Found(
            State.FAULT, "this Python's SQLite has no full-text search", "use a Python with SQLite's FTS5"
        )
    parts.append(f"stellar-sdk {version('stellar-sdk')}")
    try:
        from mycelium_localnet import _native
    except ImportError:
        parts.append("no embedded chain")
    else:
        parts.append(f"host protocol {_native.PROTOCOL_VERSION}")
    return ", ".join(parts)


def _configuration(session: Session) -> str:
    from mycelium_sdk.networks import resolve_network

    configuration = session.configuration
    network = resolve_network(None, configuration)
    source = "no mycelium.toml" if configuration.file is None else str(configuration.file)
    return f"{source}, network {network.name}"


def _home(session: Session) -> str:
    root = session.configuration.home.root
    if not root.exists():
        return f"{root} is made when it is needed"
    for path in (root, *sorted(root.rglob("*"))):
        mode = path.lstat().st_mode
        if not stat.S_ISLNK(mode) and mode & 0o077:
            right = "700" if stat.S_ISDIR(mode) else "600"
            raise _Found(
                State.FAULT,
                f"{path} can be used by others than its owner (mode {stat.S_IMODE(mode):03o})",
                f"run `chmod {right} {shlex.quote(str(path))}`",
            )
    free = shutil.disk_usage(root).free
    if free < _LITTLE_DISK:
        raise _Found(State.WARNING, f"{root} has {free // 1024**2} MiB left on its disk", "free some space")
    return f"{root}, private"


def _wallet(session: Session) -> str:
    from mycelium_sdk.wallet import find_passphrase

    path = session.configuration.wallet.path
    try:
        wallet = session.wallet()
    except WalletNotFound as error:
        if session.configuration.onchain.network != "local":
            raise
        raise _Found(
            State.WARNING, f"there is none at {path}", "it is made by the first `mycelium memory remember`"
        ) from error
    passphrase = find_passphrase()
    if passphrase is None:
        return f"{wallet.address} in {path}; the passphrase is asked for when signing"
    wallet.unlock(passphrase)
    return f"{wallet.address} in {path}; MYCELIUM_DECRYPT_KEY opens it"


def _context(session: Session, stack: contextlib.ExitStack, *, usable: bool) -> AgentContext | None:
    """A context of the wallet, or of nobody where there is none that can be used."""
    from mycelium_sdk.context import AgentContext

    if usable and session.configuration.wallet.path.exists():
        return stack.enter_context(AgentContext(configuration=session.configuration))
    return None


def _memory(session: Session, context: AgentContext | None) -> str:
    if context is None:
        raise _no_wallet()
    if session.configuration.memory.backend not in ("auto", "local"):
        return f"backend {session.configuration.memory.backend}"
    path = session.configuration.home.root / "memory" / f"{context.address}.db"
    if not path.exists():
        return "none yet; it is made when something is remembered"
    from mycelium_sdk.files import open_private_sqlite
    from mycelium_sdk.memory.agent_memory import AgentMemory

    with AgentMemory(context) as memory:
        records = memory.count()
        memory.memory_root()
    with contextlib.closing(open_private_sqlite(path)) as connection:
        problem = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    if problem != "ok":
        raise _Found(
            State.FAULT,
            f"{path} is damaged: {problem}",
            "move it away and load the anchored memory: `mycelium memory rehydrate`",
        )
    return f"{path}, {memories(records)}"


def _chain_file(session: Session) -> Path:
    configuration = session.configuration
    return configuration.onchain.chain_file or configuration.home.root / "localnet" / "chain.db"


def _chain_exists(session: Session) -> bool:
    return session.configuration.onchain.network != "local" or _chain_file(session).exists()


def _chain(session: Session, context: AgentContext | None) -> str:
    from mycelium_sdk.context import AgentContext

    if not _chain_exists(session):
        require_embedded_chain()
        return f"none yet at {_chain_file(session)}; it is made by the first `mycelium memory anchor`"
    with contextlib.ExitStack() as stack:
        if context is None:
            context = stack.enter_context(AgentContext.read_only(configuration=session.configuration))
        identity = context.chain.identity()
        network = context.network
    message = f"{network.name} at ledger {identity.latest_ledger}, protocol {identity.protocol}"
    late = time.time() - identity.close_time
    if network.public and late > _LATE_SECONDS:
        raise _Found(
            State.WARNING,
            f"{message}, which closed {late:.0f} s ago ({moment(identity.close_time)})",
            "this machine's clock is wrong, or the server lags: check the clock, or use another --rpc-url",
        )
    return message


def _account(context: AgentContext | None) -> str:
    if context is None:
        raise _no_wallet()
    from mycelium_sdk.chain import operations

    (entry,) = context.chain.entries([operations.account_key(context.address)])
    account = None if entry.data is None else entry.data.account
    if account is None:
        if context.network.name == "local":
            return "not there yet; it is made by the first `mycelium memory anchor`"
        friendbot = context.chain.friendbot_url()
        where = "send it some XLM" if friendbot is None else f"open {friendbot}?addr={context.address}"
        raise _Found(State.FAULT, f"{context.address} is not on {context.network.name}", where)
    balance = account.balance.int64
    if balance < _LITTLE_XLM:
        raise _Found(
            State.WARNING, f"{amount(balance)} left, some of it reserved", "send the account some XLM"
        )
    return f"{amount(balance)}"


def _contract(context: AgentContext | None) -> str:
    if context is None:
        raise _no_wallet()
    from mycelium_sdk.chain import operations
    from mycelium_sdk.chain.addresses import local_contract_id
    from mycelium_sdk.chain.anchor_client import MemoryAnchorClient
    from mycelium_sdk.chain.base import EntryStatus
    from mycelium_sdk.chain.contracts import code_hash

    address = context.anchor_address()
    if context.network.name == "local" and address == local_contract_id(context.network.passphrase):
        (instance,) = context.chain.entries([operations.instance_key(address)])
        if instance.status is EntryStatus.ABSENT:
            return "not there yet; it is made by the first `mycelium memory anchor`"
    if MemoryAnchorClient(context.chain, address).is_legacy:
        raise _Found(
            State.WARNING,
            f"{address} is the older contract: no compare-and-set, no history",
            "deploy your own: `mycelium contract deploy`",
        )
    keys = [operations.instance_key(address), operations.code_key(code_hash(context.chain, address))]
    states = {entry.status for entry in context.chain.entries(keys)}
    if EntryStatus.ARCHIVED in states:
        raise _Found(
            State.WARNING,
            f"{address}: its instance or code is archived",
            "the next anchor restores it, and pays for that",
        )
    if EntryStatus.EXPIRING in states and context.network.public:
        raise _Found(
            State.WARNING,
            f"{address}: its instance or code will be archived within days",
            "extend it with `stellar contract extend`; else the next anchor restores it, and pays for that",
        )
    return address


def _anchor(context: AgentContext | None) -> str:
    if context is None:
        raise _no_wallet()
    from mycelium_sdk.chain import operations
    from mycelium_sdk.chain.anchor_client import MemoryAnchorClient
    from mycelium_sdk.chain.base import LEDGER_SECONDS, EntryStatus

    address = context.anchor_address()
    (instance,) = context.chain.entries([operations.instance_key(address)])
    if instance.status is EntryStatus.ABSENT:
        return "never anchored"
    entry = MemoryAnchorClient(context.chain, address).entry_state(context.address)
    if entry.status is EntryStatus.ABSENT:
        return "never anchored"
    if entry.status is EntryStatus.ARCHIVED:
        raise _Found(
            State.FAULT, "the anchor is archived", "anchor again, which restores it: `mycelium memory anchor`"
        )
    message = f"lives for {entry.remaining or 0:,} more ledgers"
    if context.network.public:
        message += f", about {(entry.remaining or 0) * LEDGER_SECONDS / 86_400:.0f} days"
    if entry.status is EntryStatus.EXPIRING:
        raise _Found(State.WARNING, message, "anchor again, which extends it: `mycelium memory anchor`")
    return message


def _no_wallet() -> _Found:
    return _Found(State.WARNING, "not checked, since there is no usable wallet", "see the wallet's fix")
