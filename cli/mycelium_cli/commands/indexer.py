"""`mycelium indexer ...`: follow a contract's events into a database, and fill what is missing there."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mycelium_cli.groups import LazyGroup, command
from mycelium_cli.indexing import (
    LOG_FORMATS,
    log_to_stderr,
    open_index,
    opened_ingester,
    until_stopped,
)
from mycelium_cli.options import WholeNumber
from mycelium_cli.output import progress, to_stderr
from mycelium_cli.session import current_session

if TYPE_CHECKING:
    from mycelium_sdk.chain.anchors import Anchor

__all__ = ["DATABASE", "LOG_FORMAT", "indexer", "repair", "run"]

DATABASE = click.Option(
    ["--database"],
    metavar="URL",
    help="postgresql://... or the path of a file [default: index.db in the home folder].",
)
LOG_FORMAT = click.Option(
    ["--log-format"],
    metavar="NAME",
    type=click.Choice(LOG_FORMATS),
    default=LOG_FORMATS[0],
    help="How the log on stderr is written: text (the default) or json.",
)


@command(
    "run",
    example="mycelium indexer run --network testnet --anchor-address C...\nmycelium indexer run --once",
    shared=("--network", "--rpc-url", "--anchor-address", "--home"),
    params=[
        DATABASE,
        click.Option(
            ["--start-ledger"],
            metavar="N",
            type=WholeNumber(min=1),
            help="Begin here [default: the oldest ledger that the server still has].",
        ),
        click.Option(
            ["--interval"],
            metavar="SECONDS",
            type=click.FloatRange(min=0.01),
            default=5.0,
            help="Look so often for something new [default: 5].",
        ),
        click.Option(["--once"], is_flag=True, help="Read what there is, and end."),
        LOG_FORMAT,
    ],
)
def run(
    *, database: str | None, start_ledger: int | None, interval: float, once: bool, log_format: str
) -> None:
    """Follow the contract's events into the database, until Ctrl-C or SIGTERM.

    Goes on where it was left; several may follow one contract into one database. What a server has dropped
    before it was read becomes a gap, which `mycelium indexer repair` fills. Ending it is no failure: the exit
    code is 0.
    """
    current = current_session()
    if database is not None:
        current.given.overrides["indexer.database_url"] = database
    configuration = current.configuration
    log_to_stderr(log_format)
    with contextlib.closing(open_index(configuration)) as store:
        following = opened_ingester(configuration, store, start_ledger=start_ledger, interval=interval)
        with following as ingester, until_stopped() as stop:
            contract = ingester.contract_id
            if not once:
                current.result({"contract": contract}, f"following {contract}")
                ingester.run(stop)
                return
            while ingester.poll_once(stop) and not stop.is_set():
                pass
            source = ingester.source
        totals, reached = store.totals(source), store.progress(source)
    ledger = None if reached is None else reached.ledger
    current.result(
        {
            "contract": source.contract, "ledger": ledger, "owners": totals.owners,
            "anchors": totals.anchors, "gaps": totals.gaps, "set_aside": totals.set_aside,
        },
        f"read up to ledger {ledger}: {_counted(totals.anchors, 'anchor')} of"
        f" {_counted(totals.owners, 'owner')}, {_counted(totals.gaps, 'gap')},"
        f" {_counted(totals.set_aside, 'event')} set aside",
    )  # fmt: skip


@command(
    "repair",
    example="mycelium indexer repair history.json\n"
    "mycelium indexer repair https://indexer.example.org/memory/G.../history",
    shared=("--network", "--rpc-url", "--anchor-address", "--home"),
    params=[click.Argument(["source"], metavar="FILE|URL"), DATABASE],
)
def repair(*, source: str, database: str | None) -> None:
    """Fill gaps by anchors that somebody kept: an indexer's history, or a file with an anchor a line.

    The list needs no trust: each anchor must be the one that the next version commits to, up to one that is
    in the database. A list that was altered is refused as a whole. Of an owner that the database does not
    know, the newest anchor is asked of the chain.
    """
    from mycelium_sdk.context import AgentContext
    from mycelium_sdk.errors import InputError

    current = current_session()
    if database is not None:
        current.given.overrides["indexer.database_url"] = database
    configuration = current.configuration
    with progress("reading"):
        anchors = _kept(source)
    with AgentContext.read_only(configuration=configuration) as context:
        network, contract = context.network.passphrase, context.anchor_address()
    with contextlib.closing(open_index(configuration)) as store:
        followed = store.find_source(network, contract)
        if followed is None:
            raise InputError(
                f"the database does not follow the contract {contract} on this network",
                hint="run `mycelium indexer run` first, or choose --network and --anchor-address",
            )
        unknown = {anchor.owner for anchor in anchors if store.latest(followed, anchor.owner) is None}
        if unknown:
            with opened_ingester(configuration, store) as ingester, progress("asking the chain"):
                ingester.learn(unknown)
                followed = ingester.source
        with progress("checking"):
            repaired = store.repair(followed, anchors)
        left = store.totals(followed).gaps
    current.result(
        {
            "contract": contract, "given": len(anchors), "filled": repaired.filled,
            "unproved": repaired.unproved, "gaps": left,
        },
        f"filled  {repaired.filled:,} of {_counted(len(anchors), 'anchor')}: missing before, and proved",
        f"gaps    {left:,} left",
    )  # fmt: skip
    if repaired.unproved:
        to_stderr(
            f"note: left out {_counted(repaired.unproved, 'anchor')}: nothing in the database commits to what"
            " is left out; a longer list may"
        )


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


def _kept(source: str) -> list[Anchor]:
    from mycelium_indexer.ingest.kept import fetch_kept, read_kept
    from mycelium_sdk.retry import RetryPolicy

    if source.lower().startswith(("http://", "https://")):
        return fetch_kept(source, RetryPolicy())
    return read_kept(Path(source).expanduser())


indexer = LazyGroup(
    "indexer",
    help="An indexer: every owner's latest anchor and history, from the contract's events.",
    sources={
        "run": "mycelium_cli.commands.indexer:run",
        "serve": "mycelium_cli.commands.indexer_serve:serve",
        "repair": "mycelium_cli.commands.indexer:repair",
    },
    example="mycelium indexer run",
)
