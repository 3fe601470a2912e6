"""What `mycelium doctor` checks of this machine: versions, configuration, home folder, wallet, indexer."""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import stat
import sys
from typing import TYPE_CHECKING

from mycelium_cli.diagnosis.findings import Found, State
from mycelium_cli.diagnosis.store import LEFTOVER
from mycelium_cli.obstacles import access_error, is_there, obstacle, unusable_folder
from mycelium_sdk.errors import WalletError, WalletNotFound

if TYPE_CHECKING:
    from pathlib import Path

    from mycelium_cli.session import Session
    from mycelium_sdk.context import AgentContext
    from mycelium_sdk.errors import MyceliumError

__all__ = ["configuration", "home", "home_fault", "indexer", "open_context", "versions", "wallet"]

_LITTLE_DISK = 100 * 1024 * 1024
_ANSWER_BYTES = 64 * 1024


def versions() -> str:
    """What is installed, and whether SQLite can do what the memory needs."""
    import sqlite3
    from importlib.metadata import version

    parts = [f"mycelium {version('mycelium-memory')}", f"Python {sys.version.split()[0]}"]
    with contextlib.closing(sqlite3.connect(":memory:")) as connection:
        options = {row[0] for row in connection.execute("PRAGMA compile_options")}
    parts.append(f"SQLite {sqlite3.sqlite_version}")
    if "ENABLE_FTS5" not in options:
        raise Found(
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


def configuration(session: Session) -> str:
    """Whether it can be understood, and which network it chooses."""
    from mycelium_sdk.networks import resolve_network

    found = session.configuration
    network = resolve_network(None, found)
    source = "no mycelium.toml" if found.file is None else str(found.file)
    return f"{source}, network {network.name}"


def home_fault(session: Session) -> MyceliumError | None:
    """Why nothing can be kept in the home folder at all; None if it can."""
    root = session.configuration.home.root
    try:
        return unusable_folder(root)
    except OSError as error:
        refused = obstacle(error)
        if refused is None:
            raise
        return refused


def home(session: Session) -> str:
    """Whether everything in it is this user's alone, and can be used, and whether there is room."""
    root = session.configuration.home.root
    fault = home_fault(session)
    if fault is not None:
        raise fault
    if not is_there(root):
        return f"{root} is made when it is needed"
    exposed, closed = _modes(root)
    if closed:
        raise closed[0]
    if exposed:
        path, mode = exposed[0]
        others = "" if len(exposed) == 1 else f", and {len(exposed) - 1} more"
        raise Found(
            State.FAULT,
            f"{path} can be used by others than its owner (mode {stat.S_IMODE(mode):03o}){others}",
            "run " + " && ".join(_closing(exposed)),
        )
    leftovers = sorted(str(path) for path in root.glob(f"{LEFTOVER}*"))
    if leftovers:
        raise Found(
            State.WARNING,
            f"{leftovers[0]} is left from a `mycelium doctor` that was killed",
            f"run `rm -r {' '.join(map(shlex.quote, leftovers))}`",
        )
    free = shutil.disk_usage(root).free
    if free < _LITTLE_DISK:
        raise Found(State.WARNING, f"{root} has {free // 1024**2} MiB left on its disk", "free some space")
    return f"{root}, private"


def _modes(root: Path) -> tuple[list[tuple[Path, int]], list[MyceliumError]]:
    """What others could use, with its mode, and why folders cannot be looked into."""
    exposed = [(root, mode)] if (mode := root.stat().st_mode) & 0o077 else []
    closed: list[MyceliumError] = []
    folders = [root]
    for folder in folders:
        found = access_error(folder, os.R_OK | os.X_OK)
        if found is not None:
            closed.append(found)
            continue
        for path in sorted(folder.iterdir()):
            try:
                mode = path.lstat().st_mode
            except FileNotFoundError:  # SQLite's companions of a file come and go
                continue
            if path.suffix == ".db" and stat.S_ISDIR(mode):
                continue  # not what it should be, which the check of the file says
            if not stat.S_ISLNK(mode) and mode & 0o077:
                exposed.append((path, mode))
            if stat.S_ISDIR(mode):
                folders.append(path)
    return exposed, closed


def _closing(exposed: list[tuple[Path, int]]) -> list[str]:
    """The commands that make these paths their owner's alone."""
    commands = []
    for right, folders in (("700", True), ("600", False)):
        paths = [shlex.quote(str(path)) for path, mode in exposed if stat.S_ISDIR(mode) is folders]
        if paths:
            commands.append(f"`chmod {right} {' '.join(paths)}`")
    return commands


def wallet(session: Session) -> str:
    """Whether there is one that can be used, and opened where the passphrase is known."""
    from mycelium_sdk.wallet import find_passphrase

    path = session.configuration.wallet.path
    try:
        found = session.wallet()
    except WalletNotFound as error:
        if session.configuration.onchain.network != "local":
            raise
        raise Found(
            State.WARNING,
            f"there is none at {path}",
            "make one: `mycelium wallet new`; or let the first `mycelium memory remember TEXT` do it",
        ) from error
    passphrase = find_passphrase()
    if passphrase is None:
        return f"{found.address} in {path}; the passphrase is asked for when signing"
    found.unlock(passphrase)  # a fault of this check only: no other needs the key
    return f"{found.address} in {path}; MYCELIUM_DECRYPT_KEY opens it"


def open_context(session: Session, stack: contextlib.ExitStack) -> AgentContext | None:
    """A context of the wallet, None where there is none whose address can be read."""
    from mycelium_sdk.context import AgentContext

    try:
        return stack.enter_context(AgentContext(configuration=session.configuration))
    except WalletError:
        return None


def indexer(session: Session) -> str:
    """Whether the configured indexer answers that it is well."""
    from stellar_sdk.exceptions import ConnectionError as NoConnection
    from stellar_sdk.exceptions import ContentSizeLimitExceededError

    from mycelium_sdk.chain.http_client import HttpClient
    from mycelium_sdk.chain.translate import server_name

    url = session.configuration.indexer.url or ""
    server, fix = server_name(url), "check `[indexer] url`, and whether the indexer runs"
    client = HttpClient()
    with contextlib.closing(client):
        try:
            answer = client.get(f"{url.rstrip('/')}/healthz", max_content_size=_ANSWER_BYTES)
        except (NoConnection, ContentSizeLimitExceededError) as error:
            raise Found(State.FAULT, f"{server} cannot be reached, or is no indexer", fix) from error
    if answer.status_code != 200:
        raise Found(State.FAULT, f"{server} answers with HTTP status {answer.status_code}", fix)
    return f"{server} is well"
