"""The options that many commands share: what they override, and how a command gets them.

They are accepted before the subcommand and after it; the one nearest to the end wins. Each overrides the
environment and `mycelium.toml`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["SETTINGS", "Given", "SharedOption", "WholeNumber", "shared_options"]

# The names of mycelium_sdk.config, written out so that `--help` need not load it. A test compares them.
_NETWORKS = ("local", "standalone", "testnet", "mainnet")


@dataclass(slots=True)
class Given:
    """What the shared options said: settings by their name in the configuration, the home folder, JSON or
    text.
    """

    overrides: dict[str, str] = field(default_factory=dict)
    home: str | None = None
    json: bool = False


class WholeNumber(click.IntRange):
    """A whole number within bounds, called that in messages."""

    name = "whole number"


class SharedOption(click.Option):
    """An option that is listed apart from a command's own, and kept in `Given`."""


SETTINGS = {
    "onchain.network": "--network",
    "onchain.rpc_url": "--rpc-url",
    "memory.anchor_address": "--anchor-address",
    "wallet.path": "--wallet",
    "memory.backend": "--backend",
    "indexer.database_url": "--database",
}
"""The option that overrides a setting of the configuration."""


def _setting(name: str) -> Callable[[click.Context, click.Parameter, str | None], None]:
    def keep(context: click.Context, _parameter: click.Parameter, value: str | None) -> None:
        if value is not None:
            context.ensure_object(Given).overrides[name] = value

    return keep


def _keep_home(context: click.Context, _parameter: click.Parameter, value: str | None) -> None:
    if value is not None:
        context.ensure_object(Given).home = value


def _keep_json(context: click.Context, _parameter: click.Parameter, value: bool) -> None:
    if value:
        context.ensure_object(Given).json = True


_OPTIONS: dict[str, dict[str, Any]] = {
    "--json": {"is_flag": True, "callback": _keep_json, "help": "Write the result as one JSON document."},
    "--network": {
        "type": click.Choice(_NETWORKS),
        "metavar": "NAME",
        "callback": _setting("onchain.network"),
        "help": "local (the embedded chain, the default), standalone, testnet or mainnet.",
    },
    "--rpc-url": {
        "metavar": "URL",
        "callback": _setting("onchain.rpc_url"),
        "help": "The network's RPC server.",
    },
    "--anchor-address": {
        "metavar": "C...",
        "callback": _setting("memory.anchor_address"),
        "help": "The contract that holds the anchors.",
    },
    "--wallet": {
        "metavar": "FILE",
        "callback": _setting("wallet.path"),
        "help": "The wallet file [default: .mycelium/wallet.json].",
    },
    "--backend": {
        "metavar": "NAME",
        "callback": _setting("memory.backend"),
        "help": "Where memories are kept [default: local].",
    },
    "--home": {
        "metavar": "DIR",
        "callback": _keep_home,
        "help": "The home folder [default: MYCELIUM_HOME, else ~/.mycelium].",
    },
}

ALL = tuple(_OPTIONS)


def shared_options(*names: str) -> list[click.Parameter]:
    """Fresh options of these names, `--json` always among them, in the one order that every help text has."""
    return [
        SharedOption([name], expose_value=False, **arguments)
        for name, arguments in _OPTIONS.items()
        if name in names or name == "--json"
    ]
