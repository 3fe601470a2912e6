"""`mycelium localnet`: the embedded chain as a server, for every tool that speaks Stellar RPC."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mycelium_cli.groups import command
from mycelium_cli.output import progress, to_stderr
from mycelium_cli.session import current_session, require_embedded_chain

if TYPE_CHECKING:
    from mycelium_localnet.errors import LocalnetError
    from mycelium_localnet.server import Endpoint
    from mycelium_sdk.errors import MyceliumError

# The names of mycelium_localnet, written out so that `--help` need not load it. A test compares them.
_PROFILES = ("testnet", "mainnet", "short-ttl")
_CLOCKS = ("wall", "frozen")


@command(
    "localnet",
    example="mycelium localnet --state chain.db\nmycelium localnet --port 0 --interval 5 --profile short-ttl",
    shared=(),
    params=[
        click.Option(
            ["--host"], metavar="HOST", default="127.0.0.1", help="Listen here [default: 127.0.0.1]."
        ),
        click.Option(
            ["--port"],
            metavar="PORT",
            type=int,
            default=8000,
            help="On this port; 0 for a free one [default: 8000].",
        ),
        click.Option(
            ["--state"], metavar="FILE", help="The chain file [default: a chain that is gone at the end]."
        ),
        click.Option(
            ["--interval"],
            metavar="SECONDS",
            type=float,
            help="Close a ledger so often [default: one for each transaction].",
        ),
        click.Option(
            ["--profile"],
            metavar="NAME",
            type=click.Choice(_PROFILES),
            help="How long entries live: testnet (the default), mainnet, or short-ttl, where they are"
            " archived within a few ledgers.",
        ),
        click.Option(
            ["--clock"],
            metavar="NAME",
            type=click.Choice(_CLOCKS),
            help="wall (the default), or frozen: the same calls give the same ledgers, with --seed.",
        ),
        click.Option(
            ["--seed"], metavar="HEX", help="What the chain's id follows from; no secret [default: random]."
        ),
    ],
)
def localnet(*, state: str | None, seed: str | None, **others: Any) -> None:
    """Serve a Soroban chain over HTTP, until Ctrl-C or SIGTERM.

    Stellar RPC at /rpc and a friendbot at /friendbot, for the network `standalone` and any other client. Says
    its URL on stdout as soon as it answers. Options about the chain count for a new one; an existing file
    must have been made with the same. Ending it is no failure: the exit code is 0.
    """
    require_embedded_chain()
    current = current_session()
    with contextlib.ExitStack() as starting:
        starting.enter_context(progress("starting"))

        def ready(endpoint: Endpoint) -> None:
            starting.close()
            current.result(_described(endpoint), f"ready: {endpoint.rpc_url}")
            if not current.given.json:
                _note(endpoint)

        from mycelium_localnet.errors import LocalnetError
        from mycelium_localnet.server import ServerOptions, parse_seed, serve

        try:
            options = ServerOptions(
                state=None if state is None else Path(state).expanduser(),
                seed=None if seed is None else parse_seed(seed),
                **others,
            )
            serve(options, ready)
        except LocalnetError as error:
            raise _translated(error) from error


def _described(endpoint: Endpoint) -> dict[str, str | None]:
    return {
        "url": endpoint.rpc_url,
        "friendbot": endpoint.friendbot_url,
        "passphrase": endpoint.passphrase,
        "chain_id": endpoint.chain_id,
        "state": endpoint.state,
    }


def _note(endpoint: Endpoint) -> None:
    to_stderr(f'note: the network passphrase is "{endpoint.passphrase}"')
    to_stderr(f"note: accounts are funded by {endpoint.friendbot_url}?addr=G...")
    if endpoint.state is None:
        to_stderr("note: the chain is gone when this ends; --state FILE keeps one")


def _translated(error: LocalnetError) -> MyceliumError:
    from mycelium_localnet import errors as of_chain
    from mycelium_sdk import errors

    if isinstance(error, (of_chain.InvalidRequestError, of_chain.OptionConflictError)):
        kind: type[MyceliumError] = errors.UsageError
    elif isinstance(error, of_chain.UnusableFileError):
        kind = errors.ChainError  # the right file was named
    elif isinstance(error, (of_chain.ChainFileError, of_chain.ListenError)):
        kind = errors.ConfigError
    elif isinstance(error, of_chain.ChainBusyError):
        kind = errors.ChainUnavailable
    else:
        kind = errors.ChainError
    return kind(error.message, hint=error.hint)
