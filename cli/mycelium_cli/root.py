"""The `mycelium` command and what stands below it."""

from __future__ import annotations

import click

from mycelium_cli.groups import LazyGroup

__all__ = ["cli"]


def _version(context: click.Context, _parameter: click.Parameter, value: bool) -> None:
    if value:
        import mycelium_sdk
        from mycelium_cli.output import to_stdout

        to_stdout(f"mycelium {mycelium_sdk.__version__}")
        context.exit()


cli = LazyGroup(
    "mycelium",
    help="Memory for AI agents that outlives its machine: kept here, committed to on a Soroban chain.",
    sources={
        "memory": "mycelium_cli.commands.memory:memory",
        "wallet": "mycelium_cli.commands.wallet:wallet",
        "contract": "mycelium_cli.commands.contract:contract",
        "indexer": "mycelium_cli.commands.indexer:indexer",
        "localnet": "mycelium_cli.commands.localnet:localnet",
        "demo": "mycelium_cli.commands.demo:demo",
        "doctor": "mycelium_cli.commands.doctor:doctor",
    },
    params=[
        click.Option(
            ["--version"],
            is_flag=True,
            is_eager=True,
            expose_value=False,
            callback=_version,
            help="Show the version.",
        )
    ],
    example='mycelium memory remember "prefers concise answers" --tag style\nmycelium memory anchor',
)
