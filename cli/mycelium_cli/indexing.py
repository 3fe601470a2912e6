"""What the commands about an indexer work with: its database, its contract, its log, and its end."""

from __future__ import annotations

import contextlib
import logging
import signal
import threading
import time
from typing import TYPE_CHECKING, Any

import click

from mycelium_cli.output import to_stderr

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

    from mycelium_indexer.ingest import Ingester
    from mycelium_indexer.store.base import IndexStore
    from mycelium_sdk.chain.anchor_client import MemoryAnchorClient
    from mycelium_sdk.config import Configuration

__all__ = ["LOG_FORMATS", "anchor_client", "log_to_stderr", "open_index", "opened_ingester", "until_stopped"]

LOG_FORMATS = ("text", "json")


def _database_url(configuration: Configuration) -> str:
    """Where the indexer's database is: as configured, a relative path being relative to the configuration's
    folder; else a file in the home folder."""
    configured = configuration.indexer.database_url
    if configured is None:
        return str(configuration.home.index_file)
    path = configured.removeprefix("sqlite:///")
    return configured if "://" in path or not path else str(configuration.resolve(path))


def open_index(configuration: Configuration, *, read_only: bool = False) -> IndexStore:
    """The indexer's store. Raises BackendError, InputError, ConfigError as `open_store` does."""
    _require_indexer()
    from mycelium_indexer.store import open_store

    return open_store(_database_url(configuration), read_only=read_only)


@contextlib.contextmanager
def anchor_client(configuration: Configuration) -> Iterator[MemoryAnchorClient]:
    """The configured contract on the configured network, for one who goes on asking: each question is asked
    once, so that nothing waits for long where it cannot be stopped. Makes no chain.

    Raises:
        ChainError: the network `local` has no chain here.
    """
    from mycelium_sdk.chain.anchor_client import MemoryAnchorClient
    from mycelium_sdk.chain.rpc import RpcChain
    from mycelium_sdk.context import AgentContext
    from mycelium_sdk.errors import ChainError
    from mycelium_sdk.retry import RetryPolicy

    with AgentContext.read_only(configuration=configuration) as context:
        address = context.anchor_address()
        url = context.network.rpc_url
        if url is None:
            if not context.has_chain:
                raise ChainError(
                    f"there is no chain at {context.chain_file}",
                    hint="the first `mycelium memory anchor` makes it; if it is elsewhere, set `[onchain]"
                    " chain_file` or MYCELIUM_CHAIN_FILE",
                )
            yield MemoryAnchorClient(context.chain, address)
            return
        chain = RpcChain(url, context.network.passphrase, policy=RetryPolicy(attempts=1))
        try:
            yield MemoryAnchorClient(chain, address)
        finally:
            chain.close()


@contextlib.contextmanager
def opened_ingester(configuration: Configuration, store: IndexStore, **options: Any) -> Iterator[Ingester]:
    """What follows the configured contract into the store; `options` are those of `Ingester`."""
    from mycelium_indexer.ingest import Ingester

    with anchor_client(configuration) as client:
        yield Ingester(client, store, **options)


@contextlib.contextmanager
def until_stopped() -> Iterator[threading.Event]:
    """An event that Ctrl-C and SIGTERM set, so that what is under way is finished. The second one ends at
    once."""
    stop = threading.Event()
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    def end(_number: int, _frame: FrameType | None) -> None:
        stop.set()
        restore()

    for number, handler in before.items():
        if handler is not signal.SIG_IGN:
            signal.signal(number, end)
    try:
        yield stop
    finally:
        restore()


def log_to_stderr(form: str) -> None:
    """Write the indexer's log to stderr while the command runs, as lines for people or of JSON."""
    _require_indexer()
    from mycelium_indexer.api.logs import JsonFormatter

    handler = _StderrHandler()
    handler.setFormatter(JsonFormatter() if form == "json" else _TextFormatter())
    logger = logging.getLogger("mycelium_indexer")
    before, level = logger.handlers[:], logger.level

    def restore() -> None:
        logger.handlers[:] = before
        logger.setLevel(level)

    click.get_current_context().call_on_close(restore)
    logger.handlers[:] = [handler]
    logger.setLevel(logging.INFO)


class _StderrHandler(logging.Handler):
    """To whatever stderr is at the moment."""

    def emit(self, record: logging.LogRecord) -> None:
        to_stderr(self.format(record))


class _TextFormatter(logging.Formatter):
    """`2026-11-30T10:00:00Z warning: an event was set aside (event=..., reason=...)`."""

    def format(self, record: logging.LogRecord) -> str:
        moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(record.created))
        fields = ", ".join(f"{name}={value}" for name, value in getattr(record, "fields", {}).items())
        text = f"{moment} {record.levelname.lower()}: {record.getMessage()}"
        return f"{text} ({fields})" if fields else text


def _require_indexer() -> None:
    """Raise ConfigError unless what the indexer needs is installed."""
    import importlib.util

    from mycelium_sdk.errors import ConfigError
    from mycelium_sdk.installing import install_command

    if any(importlib.util.find_spec(name) is None for name in ("sqlalchemy", "starlette")):
        raise ConfigError(
            "what the indexer needs is not installed",
            hint=f"install it: {install_command('indexer')}",
        )
