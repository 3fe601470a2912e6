"""What `mycelium doctor` checks of what is kept here: the memory file, and what is known about chains."""

from __future__ import annotations

import contextlib
import dataclasses
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from mycelium_cli.diagnosis.findings import Finding, Found, State
from mycelium_cli.obstacles import access_error, is_there
from mycelium_cli.output import memories, moment
from mycelium_sdk.errors import BackendError, ConfigError, IntegrityKeyMissing, MyceliumError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mycelium_cli.session import Session
    from mycelium_sdk.context import AgentContext
    from mycelium_sdk.facts import Conflict, Intent, LastAnchor
    from mycelium_sdk.home import Home
    from mycelium_sdk.state import StateStore

__all__ = [
    "LEFTOVER",
    "copied_home",
    "is_unreadable",
    "memory",
    "memory_file",
    "no_wallet",
    "require_file",
    "require_writable",
    "signature",
    "state",
    "state_file",
    "what_is_known",
]

LEFTOVER = ".doctor-"
"""What the names of this command's temporary folders begin with."""

_REMAKE = "move it away and load the anchored memory: `mycelium memory rehydrate`"
_PATIENCE_SECONDS = 10.0
_UNVOUCHED = "nothing on this machine vouches for"


def memory_file(session: Session, context: AgentContext) -> Path:
    """Where the memory is, or would be. Makes no folder."""
    return session.configuration.home.root / "memory" / f"{context.address}.db"


def state_file(session: Session) -> Path:
    """Where the facts about chains are, or would be. Makes no folder."""
    return session.configuration.home.root / "state" / "state.db"


def signature(session: Session, context: AgentContext) -> tuple[tuple[int, int] | None, ...]:
    """What is another one after somebody wrote, anchored or loaded here."""
    found: list[tuple[int, int] | None] = []
    for file in (state_file(session), memory_file(session, context)):
        for path in (file, file.with_name(f"{file.name}-wal")):
            try:
                status = path.stat()
            except FileNotFoundError:
                found.append(None)
            else:
                found.append((status.st_mtime_ns, status.st_size))
    return tuple(found)


@contextlib.contextmanager
def copied_home(session: Session, context: AgentContext) -> Iterator[Home]:
    """A copy of the memory and of what is known about chains, for procedures that keep notes.

    It is made inside the home folder, so that no memory comes to another disk, and gone afterwards.
    """
    from mycelium_sdk.home import Home

    with _throwaway(session) as folder, _real_places(folder, session):
        copy = Home(folder)
        _copy_sqlite(state_file(session), copy.state_file)
        keys = state_file(session).with_name("integrity")
        if is_there(keys):
            for key in keys.iterdir():
                if not key.is_file():  # a pipe cannot be copied; whoever reads it says what it is
                    (copy.integrity / key.name).symlink_to(key)
                    continue
                with contextlib.suppress(FileNotFoundError):  # it may be a file of a moment
                    shutil.copy(key, copy.integrity)
        _copy_sqlite(memory_file(session, context), copy.memory_file(context.address))
        yield copy


@contextlib.contextmanager
def copied_state(session: Session) -> Iterator[StateStore]:
    """A copy of what is known about chains; gone afterwards."""
    from mycelium_sdk.state import StateStore

    with _throwaway(session) as folder, _real_places(folder, session):
        copy = folder / "state.db"
        _copy_sqlite(state_file(session), copy)
        with StateStore(copy) as store:
            yield store


@contextlib.contextmanager
def _throwaway(session: Session) -> Iterator[Path]:
    from mycelium_sdk.files import file_errors

    root = session.configuration.home.root
    with file_errors(root, "make a copy in"):
        made = tempfile.TemporaryDirectory(prefix=LEFTOVER, dir=root)
    with made as name:
        yield Path(name)


def _copy_sqlite(source: Path, target: Path) -> None:
    from mycelium_sdk.files import open_private_sqlite
    from mycelium_sdk.sqlite_errors import explained

    if is_there(source):
        with (
            explained(source),
            contextlib.closing(open_private_sqlite(source)) as original,
            contextlib.closing(open_private_sqlite(target)) as copy,
        ):
            original.backup(copy)


@contextlib.contextmanager
def _real_places(copy: Path, session: Session) -> Iterator[None]:
    """Errors about a file of the copy name the file that it is a copy of."""
    try:
        yield
    except MyceliumError as error:
        real = str(session.configuration.home.root)
        hint = None if error.hint is None else error.hint.replace(str(copy), real)
        error.message, error.hint = error.message.replace(str(copy), real), hint
        raise


def no_wallet() -> Finding:
    """What is said of the memory where nobody knows whose it is."""
    return Finding(
        "memory",
        State.WARNING,
        "not checked, nor what is anchored, since there is no usable wallet",
        "see the wallet's fix",
    )


def is_unreadable(memory: Finding) -> bool:
    """Whether that finding of `memory` leaves nothing that could be compared with the chain."""
    return memory.state is State.FAULT and _UNVOUCHED not in memory.message


def memory(session: Session, context: AgentContext) -> str:
    """Whether the configured backend can be used, and how much it holds; each of the two of `tiered`."""
    from mycelium_sdk.backend_choice import tiered_parts

    chosen = session.configuration.memory.backend
    names = tiered_parts(context) if chosen == "tiered" else (chosen,)
    return "; ".join(
        _local(session, context) if name in {"auto", "local"} else _served(context, name) for name in names
    )


def _local(session: Session, context: AgentContext) -> str:
    path = memory_file(session, context)
    if not is_there(path):
        _require_never_based(session, context, path)
        return "none yet; it is made when something is remembered"
    require_file(path)
    from mycelium_sdk.context import AgentContext
    from mycelium_sdk.files import open_private_sqlite
    from mycelium_sdk.memory.agent_memory import AgentMemory
    from mycelium_sdk.sqlite_errors import explained

    with (
        explained(path, remake=_REMAKE),
        contextlib.closing(open_private_sqlite(path)) as connection,
    ):
        problem = str(connection.execute("PRAGMA quick_check(1)").fetchone()[0])
    if problem != "ok":
        raise Found(State.FAULT, f"{path} is damaged: {_first_line(problem)}", _REMAKE)
    # Opening a memory may change its file: one of an older release is upgraded, an empty one filled.
    with (
        copied_home(session, context) as home,
        AgentContext(configuration=dataclasses.replace(session.configuration, home=home)) as apart,
        AgentMemory(apart, backend="local") as opened,
    ):
        records = opened.count()
        try:
            opened.backend.records(())  # of no memory: only the key is looked for
        except IntegrityKeyMissing as error:
            said = f"{path}, {memories(records)}, which {_UNVOUCHED}: its integrity key is not here"
            raise Found(State.FAULT, said, error.hint) from error
    require_writable(path)
    return f"{path}, {memories(records)}"


def _require_never_based(session: Session, context: AgentContext, path: Path) -> None:
    """Raise `Found` if a memory was anchored from here, or loaded, whose file is not there."""
    from mycelium_sdk.memory.standing import OLDER_THAN_ITS_ANCHOR

    if not is_there(state_file(session)):
        return
    try:
        last = what_is_known(session, context).last
    except ConfigError:  # no contract is chosen
        return
    if last is not None:
        said = (
            f"{path} is not there any more, and version {last.version} was anchored from it or loaded into it"
        )
        raise Found(State.FAULT, said, OLDER_THAN_ITS_ANCHOR)


def require_file(path: Path) -> None:
    """Raise `Found` if there is something else than a file, or a link to one."""
    if path.is_dir():
        raise Found(State.FAULT, f"{path} is a folder, and should be a file", "move it away")


def require_writable(path: Path, kind: type[MyceliumError] = BackendError) -> None:
    """Raise the error of `kind` for a database that this user cannot write."""
    for place in (path.parent, path):
        fault = access_error(place)
        if fault is not None:
            raise kind(fault.message, hint=fault.hint)


def _first_line(text: str) -> str:
    """SQLite lists what is wrong with a page, one line each, below a line that says where."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return ": ".join(line.strip("* ") for line in lines[:2])


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


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of this owner's anchors on the network and contract, on any chain of them: what is in
    flight, what the chain contradicted, what the memory is based on, and whether an anchor was ever seen."""

    intents: tuple[Intent, ...]
    conflicts: tuple[Conflict, ...]
    last: LastAnchor | None
    seen: bool


def what_is_known(session: Session, context: AgentContext) -> Known:
    """Read from a copy of the state, which must be there."""
    require_file(state_file(session))
    place = context.network.passphrase, context.anchor_address(), context.address
    with copied_state(session) as store:
        key = store.newest_chain(*place)
        return Known(
            tuple(store.in_flight(*place).values()),
            store.conflicts(*place),
            None if key is None else store.last_anchor(key),
            bool(store.known(*place)),
        )


def state(session: Session, context: AgentContext, *, agrees: bool | None = None) -> str:
    """Whether an anchoring is in flight, and whether the chain ever contradicted what was known.

    `agrees`: whether the chain holds to all of it now; None where that is not known.
    """
    if not is_there(state_file(session)):
        return "nothing is known about chains yet"
    known = what_is_known(session, context)
    require_writable(state_file(session))
    intents, conflicts, last = known.intents, known.conflicts, known.last
    if intents:
        intent = intents[0]
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
    if agrees:
        return f"{based}; {said}, and does not any more; the evidence is kept"
    if agrees is None and last is not None and last.anchored_at > newest.noticed_at:
        return f"{based}; {said}"
    fix = "see whether it still does: `mycelium memory verify`" if agrees is None else "see the verdict's fix"
    if context.network.rpc_url is not None:
        fix += "; ask a second server as well: `[onchain] cross_check` in mycelium.toml"
    raise Found(State.WARNING, said, fix)
