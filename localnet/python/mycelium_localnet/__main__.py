"""`python -m mycelium_localnet`: serves a chain over HTTP until it is interrupted or terminated."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from mycelium_localnet.errors import InvalidRequestError, LocalnetError
from mycelium_localnet.profiles import PROFILES
from mycelium_localnet.server.options import DEFAULT_HOST, DEFAULT_PORT, ServerOptions, parse_seed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mycelium_localnet.server.options import Endpoint

_FAILED = 1
_USAGE = 2
_INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run with these arguments (default: the process's) and return the exit code.

    0 when it was asked to end, 1 when it could not serve, 2 for arguments that cannot be used.
    """
    given = _parser().parse_args(arguments)
    try:
        options = ServerOptions(
            host=given.host,
            port=given.port,
            state=given.state,
            interval=given.interval,
            profile=given.profile,
            clock=given.clock,
            seed=None if given.seed is None else parse_seed(given.seed),
        )
        from mycelium_localnet.server.run import serve

        serve(options, _say_ready)
    except LocalnetError as error:
        sys.stderr.write(f"error: {error.message}\n")
        if error.hint is not None:
            sys.stderr.write(f"hint: {error.hint}\n")
        return _USAGE if isinstance(error, InvalidRequestError) else _FAILED
    except KeyboardInterrupt:  # before the server took over
        return _INTERRUPTED
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m mycelium_localnet",
        description="Serve a Soroban chain over HTTP: Stellar RPC at /rpc, and a friendbot.",
        epilog="Ctrl-C or SIGTERM ends it. Options about the chain count for a new one; with an existing "
        "--state file they must be what it was made with.",
    )
    parser.add_argument("--host", default=DEFAULT_HOST, help="listen on this host (default: %(default)s)")
    parser.add_argument(
        "--port", type=int, default=DEFAULT_PORT, help="and this port; 0: a free one (default: %(default)s)"
    )
    parser.add_argument(
        "--state", type=Path, metavar="FILE", help="the chain file (default: a chain that is gone at the end)"
    )
    parser.add_argument(
        "--interval",
        type=float,
        metavar="SECONDS",
        help="close a ledger so often (default: for each transaction)",
    )
    parser.add_argument("--profile", choices=PROFILES, help="how long entries live (default: testnet)")
    parser.add_argument("--clock", choices=("wall", "frozen"), help="the chain's clock (default: wall)")
    parser.add_argument("--seed", metavar="HEX", help="what the chain's id follows from (default: random)")
    return parser


def _say_ready(endpoint: Endpoint) -> None:
    try:
        sys.stdout.write(f"ready: {endpoint.rpc_url}\n")
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read it has gone, and the clients have not.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    sys.exit(main())
