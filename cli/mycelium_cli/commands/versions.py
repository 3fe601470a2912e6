"""`mycelium memory history`, `diff` and `purge`: the memory's anchored versions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from mycelium_cli.groups import command
from mycelium_cli.options import WholeNumber
from mycelium_cli.output import moment, progress, shown, shown_in_line, to_stderr
from mycelium_cli.session import current_session

if TYPE_CHECKING:
    from mycelium_sdk.chain.history import AnchorHistory, PastAnchor
    from mycelium_sdk.memory.past import Purged
    from mycelium_sdk.records import Record

_CHAIN = ("--network", "--wallet", "--backend", "--home", "--rpc-url", "--anchor-address")


@command("history", example="mycelium memory history\nmycelium memory history --json", shared=_CHAIN)
def history() -> None:
    """Show every version of the memory that is still known of, newest first.

    Each is proved by the anchor on the chain, which commits to the one before it, and so on; a server that
    leaves one out, or serves another, is caught (exit code 7). The indexer is asked first, if one is
    configured, and then the RPC server, which has the events of some days only. Needs no passphrase.
    """
    current = current_session()
    with current.memory() as memory, progress("reading the history"):
        found = memory.history()
    _say_what_is_known(found, indexed=current.configuration.indexer.url is not None)
    current.result(
        {
            "verified": found.verified,
            "complete": found.complete,
            "notes": list(found.notes),
            "versions": [_document(one) for one in found.anchors],
        },
        *(line for one in found.anchors for line in _lines(one)),
    )


@command(
    "diff",
    example="mycelium memory diff 3 5\nmycelium memory diff 5",
    shared=_CHAIN,
    params=[
        click.Argument(["first"], type=WholeNumber(min=1)),
        click.Argument(["second"], type=WholeNumber(min=1), required=False),
    ],
)
def diff(first: int, second: int | None) -> None:
    """Show what was added and removed from version FIRST to version SECOND, or to the memory as it is here.

    The blobs of both are read from blobs/ or from where their anchors say, and checked. Needs no passphrase.
    """
    current = current_session()
    with current.memory() as memory, progress("comparing"):
        found = memory.diff(first, second)
    current.result(
        {
            "added": [_record(one) for one in found.added],
            "removed": [_record(one) for one in found.removed],
        },
        *(_record_line("-", one) for one in found.removed),
        *(_record_line("+", one) for one in found.added),
    )
    if not found.added and not found.removed:
        to_stderr("note: both hold the same")


@command(
    "purge",
    example="mycelium memory purge --yes\nmycelium memory purge 3 4",
    shared=_CHAIN,
    params=[
        click.Argument(["versions"], type=WholeNumber(min=1), nargs=-1),
        click.Option(["--yes"], is_flag=True, help="Do not ask. Needed where there is no terminal."),
    ],
)
def purge(versions: tuple[int, ...], *, yes: bool) -> None:
    """Remove the published copies of these VERSIONS, or of all but the latest.

    Removes blobs and context files from blobs/ in the home folder and from the places that file:// addresses
    name, each only if it is what it should be; a file that follows the latest blob (--publish mem.json) and
    stayed behind gets the latest. The chain keeps the roots, and copies on servers and in other
    people's hands are out of reach. The latest version stays, since loading the memory needs it. Needs no
    passphrase.
    """
    from mycelium_cli.confirm import confirmed

    current = current_session()
    what = "all versions but the latest" if not versions else f"version {', '.join(map(str, versions))}"
    if not yes and not confirmed(f"Remove the published copies of {what}?", without_terminal="--yes"):
        current.result({"purged": [], "notes": []})
        to_stderr("note: nothing was removed")
        return
    with current.memory() as memory, progress("removing"):
        found = memory.history()
        gone = memory.purge(versions or None)
    notes = _what_stays(found, versions)
    current.result(
        {
            "purged": [
                {"version": one.version, "path": one.path, "replaced_by": one.replaced_by} for one in gone
            ],
            "notes": notes,
        },
        *(_purged_line(one) for one in gone),
    )
    for note in notes:
        to_stderr(f"note: {shown(note)}")
    if not gone:
        to_stderr("note: there was nothing to remove")


def _purged_line(one: Purged) -> str:
    if one.replaced_by is None:
        return f"removed version {one.version}: {shown(one.path)}"
    return f"replaced version {one.version} by version {one.replaced_by}: {shown(one.path)}"


def _what_stays(found: AnchorHistory, versions: tuple[int, ...]) -> list[str]:
    """Of which versions copies are left though they were to be removed, and why."""
    latest = found.anchors[0].anchor.version
    chosen = {one.anchor.version for one in found.anchors if not versions or one.anchor.version in versions}
    kept = {
        one.anchor.root: one.anchor.version
        for one in reversed(found.anchors)
        if _is_kept(one, chosen, latest)
    }
    notes = []
    for one in found.anchors:
        version, uri = one.anchor.version, one.anchor.uri_text or ""
        if version not in chosen or version == latest:
            continue
        if one.anchor.root in kept:
            notes.append(
                f"version {version} is the same memory as version {kept[one.anchor.root]}, whose copy stays"
            )
        elif uri and uri[:5].lower() != "file:":
            notes.append(f"version {version} is at {uri}, which is out of reach")
    return notes


def _is_kept(past: PastAnchor, chosen: set[int], latest: int) -> bool:
    return past.anchor.version == latest or past.anchor.version not in chosen


def _say_what_is_known(found: AnchorHistory, *, indexed: bool) -> None:
    for note in found.notes:
        to_stderr(f"warning: {shown(note)}")
    if not found.verified:
        to_stderr("warning: this older contract keeps no proof of earlier versions")
    elif not found.complete:
        oldest = found.anchors[-1].anchor.version
        servers = "the RPC server, nor to the indexer" if indexed else "the RPC server"
        to_stderr(f"note: versions before {oldest} are no longer known to {servers}")


def _document(past: PastAnchor) -> dict[str, Any]:
    anchor = past.anchor
    return {
        "version": anchor.version,
        "root": anchor.root.hex(),
        "uri": anchor.uri_text,
        "timestamp": anchor.timestamp,
        "ledger": past.ledger,
        "transaction": past.transaction,
        "previous": None if anchor.previous is None else anchor.previous.hex(),
    }


def _lines(past: PastAnchor) -> list[str]:
    anchor = past.anchor
    when = "" if anchor.timestamp is None else f"{moment(anchor.timestamp)}"
    where = "" if past.ledger is None else f", ledger {past.ledger}"
    made = "" if past.transaction is None else f", transaction {past.transaction}"
    address = anchor.uri_text
    return [
        f"version {anchor.version}  {when}{where}{made}",
        f"  root {anchor.root.hex()}",
        f"  uri  {'(not text)' if address is None else shown(address) or '(none)'}",
    ]


def _record(record: Record) -> dict[str, Any]:
    return {"content": record.content, "tags": list(record.tags)}


def _record_line(sign: str, record: Record) -> str:
    tags = f"  [{shown_in_line(', '.join(record.tags))}]" if record.tags else ""
    return f"{sign} " + shown(record.content).replace("\n", "\n  ") + tags
