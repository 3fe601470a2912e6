"""What `mycelium doctor` checks of what is kept here: the memory file, and what is known about chains."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from mycelium_cli.diagnosis.findings import Found, State
from mycelium_cli.output import memories, moment

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mycelium_cli.session import Session
    from mycelium_sdk.context import AgentContext
    from mycelium_sdk.home import Home
    from mycelium_sdk.state import StateStore

__all__ = ["LEFTOVER", "copied_home", "memory", "memory_file", "state"]

LEFTOVER = ".doctor-"
"""What the names of this command's temporary folders begin with."""

_REMAKE = "move it away and load the anchored memory: `mycelium memory rehydrate`"
_PATIENCE_SECONDS = 10.0


def memory_file(session: Session, context: AgentContext) -> Path:
    """Where the memory is, or would be. Makes no folder."""
    return session.configuration.home.root / "memory" / f"{context.address}.db"


def state_file(session: Session) -> Path:
    """Where the facts about chains are, or would be. Makes no folder."""
    return session.configuration.home.root / "state" / "state.db"


@contextlib.contextmanager
def copied_home(session: Session, context: AgentContext) -> Iterator[Home]:
    """A copy of the memory and of what is known about chains, for procedures that keep notes.

    It is made inside the home folder, so that no memory comes to another disk, and gone afterwards.
    """
    from mycelium_sdk.home import Home

    with _throwaway(session) as folder:
        copy = Home(folder)
        _copy_sqlite(state_file(session), copy.state_file)
        keys = state_file(session).with_name("integrity")
        if keys.is_dir():
            shutil.copytree(keys, copy.integrity, dirs_exist_ok=True)
        _copy_sqlite(memory_file(session, context), copy.memory_file(context.address))
        yield copy


@contextlib.contextmanager
def copied_state(session: Session) -> Iterator[StateStore]:
    """A copy of what is known about chains; gone afterwards."""
    from mycelium_sdk.state import StateStore

    with _throwaway(session) as folder:
        copy = folder / "state.db"
        _copy_sqlite(state_file(session), copy)
        with StateStore(copy) as store:
            yield store


@contextlib.contextmanager
def _throwaway(session: Session) -> Iterator[Path]:
    from mycelium_sdk.files import file_errors

    root = session.configuration.home.root
    with file_errors(root, "make a copy in"), tempfile.TemporaryDirectory(prefix=LEFTOVER, dir=root) as name:
        yield Path(name)


def _copy_sqlite(source: Path, target: Path) -> None:
    from mycelium_sdk.files import open_private_sqlite
    from mycelium_sdk.sqlite_errors import explained

    if source.exists():
        with (
            explained(source),
            contextlib.closing(open_private_sqlite(source)) as original,
            contextlib.closing(open_private_sqlite(target)) as copy,
        ):
            original.backup(copy)


def memory(session: Session, context: AgentContext | None) -> str:
    """Whether the configured backend can be used, and how much it holds; each of the two of `tiered`."""
    if context is None:
        raise Found(
            State.WARNING,
            "not checked, nor what is anchored, since there is no usable wallet",
            "see the wallet's fix",
        )
    from mycelium_sdk.backend_choice import tiered_parts

    chosen = session.configuration.memory.backend
    names = tiered_parts(context) if chosen == "tiered" else (chosen,)
    return "; ".join(
        _local(session, context) if name in {"auto", "local"} else _served(context, name) for name in names
    )


def _local(session: Session, context: AgentContext) -> str:
    path = memory_file(session, context)
    if not path.exists():
        return "none yet; it is made when something is remembered"
    from mycelium_sdk.files import open_private_sqlite
    from mycelium_sdk.memory.agent_memory import AgentMemory
    from mycelium_sdk.sqlite_errors import explained

    with (
        explained(path, remake=_REMAKE),
        contextlib.closing(open_private_sqlite(path)) as connection,
    ):
        problem = str(connection.execute("PRAGMA quick_check(1)").fetchone()[0])
    if problem != "ok":
        raise Found(State.FAULT, f"{path} is damaged: {problem}", _REMAKE)
    with AgentMemory(context, backend="local") as opened:
        records = opened.count()
    return f"{path}, {memories(records)}"


def _served(context: AgentContext, name: str) -> str:
    """Whether a service that keeps memories answers, asked once and not for long."""
    from mycelium_sdk.backend_choice import open_backend
    from mycelium_sdk.retry import RetryPolicy

    arguments: dict[str, dict[str, object]] = {
        "supermemory": {"timeout": _PATIENCE_SECONDS, "retry": RetryPolicy(attempts=1)},
        "postgres": {
            "connect_timeout": _PATIENCE_SECONDS,
            "statement_timeout": _PATIENCE_SECONDS,
            "busy_timeout": _PATIENCE_SECONDS,
        },
    }
    backend, _ = open_backend(name, context, arguments[name])
    with contextlib.closing(backend):
        return f"{backend.place}, {memories(backend.count())}"


def state(session: Session, context: AgentContext) -> str:
    """Whether an anchoring is in flight, and whether the chain ever contradicted what was known."""
    if not state_file(session).exists():
        return "nothing is known about chains yet"
    passphrase, contract, owner = context.network.passphrase, context.anchor_address(), context.address
    with copied_state(session) as store:
        intents = store.in_flight(passphrase, contract, owner)
        conflicts = store.conflicts(passphrase, contract, owner)
        key = store.newest_chain(passphrase, contract, owner)
        last = None if key is None else store.last_anchor(key)
    if intents:
        intent = next(iter(intents.values()))
        sent = "" if intent.transaction_hash is None else f" (transaction {intent.transaction_hash})"
        raise Found(
            State.WARNING,
            f"the outcome of anchoring version {intent.expected_version + 1} is not known yet{sent}",
            "settle it: `mycelium memory anchor`",
        )
    based = "based on no anchor" if last is None else f"based on version {last.version}"
    if not conflicts:
        return based
    newest = conflicts[0]
    times = "once" if len(conflicts) == 1 else f"{len(conflicts)} times"
    said = (
        f"the chain contradicted what was seen before {times}, at last on {moment(newest.noticed_at)}"
        f" ({newest.verdict})"
    )
    if last is not None and last.anchored_at > newest.noticed_at:
        return f"{based}; {said}"
    raise Found(
        State.WARNING,
        said,
        "see whether it still does: `mycelium memory verify`; ask a second server as well:"
        " `[onchain] cross_check` in mycelium.toml",
    )
