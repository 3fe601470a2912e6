"""`mycelium memory status` and `verify`: how the memory stands to its anchor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from mycelium_cli.groups import command
from mycelium_cli.output import moment, progress, shown, to_stderr
from mycelium_cli.session import Session, current_session

if TYPE_CHECKING:
    from mycelium_sdk.memory.agent_memory import AgentMemory
    from mycelium_sdk.memory.verification import Verification

_CHAIN = ("--network", "--wallet", "--backend", "--home", "--rpc-url", "--anchor-address")
_NOT_IN_SYNC = 7


@command(
    "status",
    example="mycelium memory status\nmycelium memory status --local --json",
    shared=_CHAIN,
    params=[
        click.Option(
            ["--local", "only_local"], is_flag=True, help="Say only what is here; do not ask the chain."
        )
    ],
)
def status(*, only_local: bool) -> None:
    """Say how the memory stands to its anchor, and what to do about it.

    Asks the chain, except with --local. Needs no passphrase. The exit code is 0 whatever the answer is;
    `verify` is for scripts.
    """
    current = current_session()
    with current.memory() as memory:
        if only_local:
            _show_local(current, memory)
            return
        with progress("asking the chain"):
            found = memory.verify()
        _show_standing(current, memory, found)


@command(
    "verify",
    example="mycelium memory verify && echo in sync",
    shared=_CHAIN,
)
def verify() -> None:
    """Check the memory against the chain.

    Recomputes the root from what is stored and compares it with the anchor. The exit code is 0 only if they
    agree, and 7 if not; a chain that cannot be asked is an error with exit code 6. Needs no passphrase.
    """
    current = current_session()
    with current.memory() as memory, progress("verifying"):
        found = memory.verify()
    _warn(found)
    current.result(found.as_dict(), *_verdict_lines(found))
    if not found:
        click.get_current_context().exit(_NOT_IN_SYNC)


def _show_local(current: Session, memory: AgentMemory) -> None:
    last = memory.last_anchor
    document: dict[str, Any] = {
        "owner": memory.owner,
        "network": memory.context.network.name,
        "records": memory.count(),
        "dirty": memory.is_dirty,
        "last_anchor": None,
    }
    anchored = "never from here"
    if last is not None:
        document["last_anchor"] = {
            "version": last.version,
            "root": last.root.hex(),
            "uri": last.uri,
            "timestamp": last.anchored_at,
        }
        anchored = f"version {last.version}, {moment(last.anchored_at)}"
    current.result(
        document,
        f"owner     {memory.owner}",
        f"network   {document['network']}",
        f"records   {document['records']}",
        f"anchored  {anchored}",
        f"dirty     {'yes, there are writes that are not anchored' if document['dirty'] else 'no'}",
    )


def _show_standing(current: Session, memory: AgentMemory, found: Verification) -> None:
    anchor = found.anchor
    document = {
        "owner": memory.owner,
        "network": memory.context.network.name,
        "contract": memory.contract_id,
        **found.as_dict(),
        "uri": None if anchor is None else anchor.uri_text,
        "timestamp": None if anchor is None else anchor.timestamp,
    }
    lines = [
        *_verdict_lines(found),
        f"owner     {memory.owner}",
        f"network   {document['network']}",
        f"contract  {memory.contract_id}",
        f"records   {found.records}",
        f"root      {found.local_root.hex()}",
    ]
    if anchor is not None:
        when = "" if anchor.timestamp is None else f", {moment(anchor.timestamp)}"
        lines += [
            f"anchored  version {anchor.version}{when}",
            f"          root {anchor.root.hex()}",
            f"          uri {_uri(anchor.uri, anchor.uri_text)}",
        ]
    _warn(found)
    current.result(document, *lines)


def _verdict_lines(found: Verification) -> list[str]:
    lines = [f"{found.verdict}: {found.message}"]
    return lines if found else [*lines, f"next: {found.next_step}"]


def _uri(raw: bytes, text: str | None) -> str:
    if not raw:
        return "(none)"
    return f"(not text: {raw.hex()})" if text is None else shown(text)


def _warn(found: Verification) -> None:
    for warning in found.warnings:
        to_stderr(f"warning: {shown(warning)}")
