"""`mycelium indexer serve`: the REST API and the explorer page over the indexer's database."""

from __future__ import annotations

import contextlib
import logging
from typing import TYPE_CHECKING, Any

import click

from mycelium_cli.commands.indexer import DATABASE, LOG_FORMAT
from mycelium_cli.groups import command
from mycelium_cli.indexing import log_to_stderr, open_index, opened_ingester
from mycelium_cli.output import progress
from mycelium_cli.session import current_session

if TYPE_CHECKING:
    from collections.abc import Callable

    from mycelium_indexer.api.settings import ApiSettings
    from mycelium_sdk.config import Configuration

_HOST = "127.0.0.1"
_PORT = 8080


@command(
    "serve",
    example="mycelium indexer serve --ingest\n"
    "mycelium indexer serve --host 0.0.0.0 --rate-limit 600 --trusted-proxies 10.0.0.0/8",
    shared=("--network", "--rpc-url", "--anchor-address", "--home"),
    params=[
        click.Option(["--host"], metavar="HOST", help=f"Listen here [default: {_HOST}]."),
        click.Option(
            ["--port"], metavar="PORT", type=int, help=f"On this port; 0 for a free one [default: {_PORT}]."
        ),
        click.Option(
            ["--ingest"],
            is_flag=True,
            help="Follow the chain in this process too, as `mycelium indexer run` does.",
        ),
        click.Option(
            ["--interval"],
            metavar="SECONDS",
            type=click.FloatRange(min=0.01),
            default=5.0,
            help="With --ingest: look so often for something new [default: 5].",
        ),
        DATABASE,
        click.Option(
            ["--rate-limit"],
            metavar="N",
            type=int,
            help="Requests per minute from one client, 0 for no limit [default: no limit where only this"
            " machine can connect, else 600].",
        ),
        click.Option(
            ["--trusted-proxies"],
            metavar="NETWORKS",
            help="Whose X-Forwarded-For counts: addresses and networks, with commas between.",
        ),
        LOG_FORMAT,
        click.Option(["--no-access-log"], is_flag=True, help="Log no line for each request."),
    ],
)
def serve(
    *,
    ingest: bool,
    interval: float,
    database: str | None,
    log_format: str,
    no_access_log: bool,
    **settings: Any,
) -> None:
    """Answer who has anchored what, over HTTP, until Ctrl-C or SIGTERM.

    Newest anchors at /memory/OWNER, histories at /memory/OWNER/history, owners at /memory, metrics at
    /metrics, a page for people at /; /openapi.json describes it. Says its URL on stdout as soon as it
    answers. The options override `[indexer]` of mycelium.toml. Needs no wallet. Ending it is no failure: the
    exit code is 0.
    """
    current = current_session()
    given = {"database_url": database, **settings}
    current.given.overrides.update(
        {f"indexer.{key}": value for key, value in given.items() if value is not None}
    )
    configuration = current.configuration
    log_to_stderr(log_format)
    _log_alike("uvicorn")
    with contextlib.ExitStack() as starting:
        starting.enter_context(progress("starting"))

        def ready(url: str, answering: ApiSettings) -> None:
            starting.close()
            document = {"url": url, "network": answering.network, "contract": answering.contract}
            current.result(document, f"ready: {url}")

        _serve(configuration, ready, interval=interval if ingest else None, access_log=not no_access_log)


def _serve(
    configuration: Configuration,
    on_ready: Callable[[str, ApiSettings], None],
    *,
    interval: float | None,
    access_log: bool,
) -> None:
    """Serve until a signal comes; follow the chain as well if there is an interval."""
    from mycelium_indexer.api.background import beside
    from mycelium_indexer.api.listening import listen, origin_of
    from mycelium_indexer.api.server import Server
    from mycelium_indexer.app import make_app

    host = configuration.indexer.host or _HOST
    port = _PORT if configuration.indexer.port is None else configuration.indexer.port
    with contextlib.ExitStack() as stack:
        # The port first: nothing is made on disk when it is in use.
        sockets = [stack.enter_context(one) for one in listen(host, port)]
        store = open_index(configuration, read_only=interval is None)
        stack.callback(store.close)
        settings = _settings(configuration, host, access_log=access_log)
        url = origin_of(host, sockets[0].getsockname()[1])
        server = Server(make_app(store, settings), sockets, lambda: on_ready(url, settings))
        if interval is not None:
            ingester = stack.enter_context(opened_ingester(configuration, store, interval=interval))
            stack.enter_context(beside(ingester.run, server.end))
        server.serve_until_ended()


def _log_alike(name: str) -> None:
    """Have what a library has to warn of in the form of the indexer's log."""
    logger = logging.getLogger(name)
    logger.handlers[:] = logging.getLogger("mycelium_indexer").handlers
    logger.setLevel(logging.WARNING)
    logger.propagate = False


def _settings(configuration: Configuration, host: str, *, access_log: bool) -> ApiSettings:
    """Which contract is answered about unless a request names another one: the configured one, on `local`
    its own, else the one that the database holds, if it is only one. Needs no chain."""
    from mycelium_indexer.api.settings import (
        NETWORK_NAMES,
        REMOTE_RATE_LIMIT,
        ApiSettings,
        is_loopback,
        parse_networks,
    )
    from mycelium_sdk.chain.addresses import local_contract_id

    chain, limit = configuration.onchain, configuration.indexer.rate_limit
    network = chain.network_passphrase or NETWORK_NAMES[chain.network]
    contract = configuration.memory.anchor_address
    if contract is None and chain.network == "local":
        contract = local_contract_id(network)
    return ApiSettings(
        network=network,
        contract=contract,
        rate_limit=(0 if is_loopback(host) else REMOTE_RATE_LIMIT) if limit is None else limit,
        trusted_proxies=parse_networks(configuration.indexer.trusted_proxies),
        access_log=access_log,
    )
