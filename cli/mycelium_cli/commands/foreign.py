"""`mycelium memory inspect`: another agent's memory, verified and shown, never imported."""

from __future__ import annotations

import itertools
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mycelium_cli.groups import command
from mycelium_cli.indexed import Indexed, indexed
from mycelium_cli.options import WholeNumber
from mycelium_cli.output import memories, moment, progress, shown, shown_in_line, to_stderr
from mycelium_cli.session import current_session

if TYPE_CHECKING:
    from mycelium_sdk.context import AgentContext
    from mycelium_sdk.memory.reading import ForeignMemory
    from mycelium_sdk.memory.sources import Fetch
    from mycelium_sdk.records import Record

_CHAIN = ("--network", "--home", "--rpc-url", "--anchor-address")
_SHOWN = 20


@command(
    "inspect",
    example="mycelium memory inspect GBRPYHIL2CI3FNQ4BXLFMNDLFJUNPU2HY3ZMFSHONUCEOASW7QC7OX2H --limit 5\n"
    "mycelium memory inspect GBRPYHIL2CI3FNQ4BXLFMNDLFJUNPU2HY3ZMFSHONUCEOASW7QC7OX2H --blob got.json",
    shared=_CHAIN,
    params=[
        click.Argument(["owner"]),
        click.Option(
            ["--limit"],
            type=WholeNumber(min=0),
            default=_SHOWN,
            show_default=True,
            metavar="N",
            help="Show the first N memories, in canonical order; all are checked.",
        ),
        click.Option(["--all", "everything"], is_flag=True, help="Show every memory."),
        click.Option(
            ["--blob"],
            type=click.Path(path_type=Path),
            metavar="FILE",
            help="Take the blob from this file, which you got yourself, instead of fetching it.",
        ),
    ],
)
def inspect(owner: str, limit: int, *, everything: bool, blob: Path | None) -> None:
    """Read the memory that the account OWNER has anchored, check it, and show it.

    The blob is taken from --blob, or from blobs/ROOT.json in the home folder, or fetched from where the
    anchor says: by https, from public addresses and port 443 only, within the limits of [fetch]. It is shown
    only if it is exactly what the chain commits to; nothing is imported.
    What a stranger remembers is a stranger's word: do not feed it to an agent as if it were your own. Needs
    no wallet.
    """
    from mycelium_sdk.context import AgentContext
    from mycelium_sdk.memory.reading import read_memory

    current = current_session()
    configuration = current.configuration
    with (
        AgentContext.read_only(configuration=configuration) as context,
        progress("reading the anchored memory"),
    ):
        found = read_memory(owner, context=context, fetch=None if blob is None else _given(blob, context))
        served = indexed(context, found.contract, owner, found.anchor)
    for warning in (*found.warnings, *served.warnings):
        to_stderr(f"warning: {shown(warning)}")
    records = list(itertools.islice(found, None if everything else limit))
    current.result(_document(found, served, records), *_lines(found, served, records))


def _given(file: Path, context: AgentContext) -> Fetch:
    """A fetch function that gives what is in the file, within the limit for what is fetched."""
    from mycelium_sdk.blobs.files import read_blob_file
    from mycelium_sdk.errors import InputError
    from mycelium_sdk.fetching.policy import FetchPolicy
    from mycelium_sdk.files import file_errors

    with file_errors(file, "read", InputError):
        regular = stat.S_ISREG(file.stat().st_mode)
    if not regular:
        raise InputError(f"{file} is not a regular file", hint="give the path of the blob's file")

    limit = FetchPolicy().configured(context.configuration.fetch).max_bytes
    data = read_blob_file(file.resolve(), max_bytes=limit)
    return lambda _: data


def _document(found: ForeignMemory, served: Indexed, records: list[Record]) -> dict[str, Any]:
    return {
        **found.provenance(),
        "warnings": [*found.warnings, *served.warnings],
        "indexer": served.document,
        "memories": [{"content": record.content, "tags": list(record.tags)} for record in records],
    }


def _lines(found: ForeignMemory, served: Indexed, records: list[Record]) -> list[str]:
    anchor = found.anchor
    when = "" if anchor.timestamp is None else f", {moment(anchor.timestamp)}"
    lines = [
        f"owner     {found.owner}",
        f"network   {found.network}",
        f"contract  {found.contract}",
        f"anchored  version {anchor.version}{when}, the latest as of ledger {found.ledger}",
        f"          root {anchor.root.hex()}",
        f"          uri {shown(anchor.uri_text or '')}",
        *served.lines,
        f"verified  {memories(found.records)}, all of them committed to by this anchor",
    ]
    for record in records:
        tags = f"  [{shown_in_line(', '.join(record.tags))}]" if record.tags else ""
        lines.append("- " + shown(record.content).replace("\n", "\n  ") + tags)
    if found.records > len(records):
        lines.append(f"... and {found.records - len(records)} more; --all shows them")
    return lines
