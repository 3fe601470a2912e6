"""Writes docs/cli.md from the commands: `python -m mycelium_cli.reference docs/cli.md [--check]`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mycelium_cli.output import to_stderr
from mycelium_cli.root import cli
from mycelium_sdk import errors

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["RESULTS", "main", "reference", "walk"]

_WIDTH = 100

_INTRODUCTION = """\
# Command line

This page is generated from the commands (`python -m mycelium_cli.reference docs/cli.md`).

Results go to stdout; notes, warnings and errors go to stderr, and so does, where that is a terminal, the
progress of what takes longer than a second. The shared options may stand before or after the command's name
and override the environment and `mycelium.toml`. `--` ends the options, and `-` as a text reads it from
stdin. All text is UTF-8, whatever the locale.

The passphrase of the wallet is asked for without echo at a terminal, or taken from `MYCELIUM_DECRYPT_KEY`. It
is never an argument, and a command that crashes leaves no core file, where it would be read in the clear. On
the network `local` nothing has to be set up: the first `remember` makes a wallet, for which a passphrase is
chosen, and the first `anchor` makes the chain, the account and the contract; each says so on stderr.

A text and its tags have at most 1 MiB (1,048,576 bytes of UTF-8) together; longer ones are refused, to be
split.

## Exit codes

| code | meaning |
|---|---|
{codes}

## JSON

With `--json` stdout is exactly one JSON document (`--help` and `--version` write their text all the same):
the result, or, if the command failed, the error:

```json
{{"error": {{"type": "WrongPassphrase", "message": "...", "hint": "...", "verdict": null, "exit_code": 4}}}}
```

`type` is the class of the Python API's error, `verdict` one of its verdicts or null, `hint` what to do or
null. The lines `error:` and `hint:` are on stderr all the same. A command that was interrupted writes no
document.

The results, by their keys. Hashes and roots are lower-case hex, times Unix seconds, fees stroops; a key
without a value is null. `recall` is a list of such objects.

| command | keys |
|---|---|
{results}
"""

RESULTS = {
    "memory remember": "id new",
    "memory recall": "id content tags score session time sequence",
    "memory import": "format imported present repeated skipped dropped dry_run",
    "memory export": "path format records",
    "memory forget": "forgotten secure published",
    "memory status": "owner network contract backend lag verdict in_sync message next_step local_root records"
    " version anchored_root warnings uri timestamp indexer",
    "memory status --local": "owner network backend lag records dirty last_anchor",
    "memory anchor": "version root uri transaction ledger timestamp fee_stroops seconds",
    "memory verify": "verdict in_sync message next_step local_root records version anchored_root warnings",
    "memory rehydrate": "version records",
    "memory sync": "version records merged anchored",
    "memory history": "verified complete notes versions",
    "memory diff": "added removed",
    "memory purge": "purged notes",
    "memory keep-alive": "parts",
    "memory inspect": "owner network contract version root uri timestamp as_of_ledger records warnings"
    " indexer memories",
    "memory repair": "equal added removed adopted refused",
    "wallet new": "address path",
    "wallet show": "address path",
    "contract build": "source output bytes sha256 changed",
    "contract deploy": "contract network sha256 uploaded transaction ledger fee_stroops seconds",
    "localnet": "url friendbot passphrase chain_id state",
    "indexer run": "contract",
    "indexer run --once": "contract ledger owners anchors gaps set_aside",
    "indexer serve": "url network contract",
    "indexer repair": "contract given filled unproved gaps",
    "demo": "ok seconds folder steps",
    "doctor": "ok checks",
}
"""The keys of each command's JSON document, in their order."""


def walk(command: click.Command = cli, parent: click.Context | None = None) -> Iterator[click.Context]:
    """A context of every command, groups before what is below them."""
    settings = {**command.context_settings, "terminal_width": _WIDTH, "max_content_width": _WIDTH}
    context = click.Context(command, parent=parent, info_name=command.name, **settings)
    yield context
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            if below is not None:
                yield from walk(below, context)


def reference() -> str:
    """The whole page, Markdown."""
    codes = {
        0: "success; for `verify`: in sync",
        1: "a bug, a demo step that failed, or a result that could not be written; where stdout is closed,"
        " only `export` to it fails",
        errors.UsageError.exit_code: "usage: an argument, an option or a text that cannot be accepted",
        errors.ConfigError.exit_code: "configuration",
        errors.WalletError.exit_code: "wallet",
        errors.BackendError.exit_code: "backend: where memories are kept",
        errors.ChainError.exit_code: "chain",
        errors.VerificationError.exit_code: "verification; `verify`: not in sync",
        errors.BlobError.exit_code: "blob store: where published blobs are kept",
        130: "interrupted",
        143: "ended by SIGTERM",
    }
    results = {
        f"`{command}`": ", ".join(f"`{key}`" for key in keys.split()) for command, keys in RESULTS.items()
    }
    parts = [_INTRODUCTION.format(codes=_rows(codes), results=_rows(results))]
    for context in walk():
        depth = "##" if context.parent is None or isinstance(context.command, click.Group) else "###"
        parts.append(f"{depth} {context.command_path}\n\n```text\n{context.get_help()}\n```\n")
    return "\n".join(parts)


def _rows(table: Mapping[int, str] | Mapping[str, str]) -> str:
    return "\n".join(f"| {key} | {value} |" for key, value in table.items())


def main(arguments: list[str]) -> int:
    """Write the page to the file named, or with --check say whether the file is what would be written."""
    check = "--check" in arguments
    names = [argument for argument in arguments if argument != "--check"]
    if len(names) != 1:
        to_stderr("usage: python -m mycelium_cli.reference FILE [--check]")
        return errors.UsageError.exit_code
    path, text = Path(names[0]), reference()
    if not check:
        path.write_text(text, encoding="utf-8")
        return 0
    if path.is_file() and path.read_text(encoding="utf-8") == text:
        return 0
    to_stderr(f"{path} is not what the commands say; run `python -m mycelium_cli.reference {path}`")
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
