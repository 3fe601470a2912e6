"""`mycelium memory status` and `verify`: how the memory stands to its anchor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from mycelium_cli.groups import command
from mycelium_cli.indexed import Indexed, indexed
from mycelium_cli.known_here import known_here
from mycelium_cli.output import moment, note_finished, progress, shown, to_stderr
from mycelium_cli.session import Session, current_session

if TYPE_CHECKING:
    from collections.abc import Iterable

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

    Asks the chain, and the indexer if one is configured, except with --local. Needs no passphrase. The exit
    code is 0 whatever the answer is; `verify` is for scripts.
    """
    current = current_session()
    with current.memory() as memory:
        if only_local:
            _show_local(current, memory)
            return
        with progress("asking the chain"):
            found = memory.verify()
            served = indexed(memory.context, memory.contract_id, memory.owner, found.anchor)
        _show_standing(current, memory, found, served)


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
    _warn(found.warnings)
    note_finished(found.settled)
    current.result(found.as_dict(), *_verdict_lines(found))
    if not found:
        click.get_current_context().exit(_NOT_IN_SYNC)


def _show_local(current: Session, memory: AgentMemory) -> None:
    known = known_here(memory)
    last = known.last
    document: dict[str, Any] = {
        "owner": memory.owner,
        "network": memory.context.network.name,
        **_place(memory),
        "records": memory.count(),
        "dirty": known.dirty,
        "last_anchor": None,
    }
    anchored = known.anchored
    if last is not None:
        document["last_anchor"] = {
            "version": last.version,
            "root": last.root.hex(),
            "uri": last.uri,
            "timestamp": last.anchored_at,
        }
        anchored = f"version {last.version}, {moment(last.anchored_at)}"
    _warn([*_in_flight(memory), *_lag(memory)])
    dirty = {
        True: "yes, there are writes that are not anchored",
        False: "no",
        None: f"not known here: {known.why}",
    }[known.dirty]
    lines = [
        f"owner     {memory.owner}",
        f"network   {document['network']}",
        f"backend   {shown(document['backend'])}",
        f"records   {document['records']}",
        f"anchored  {anchored}",
        f"dirty     {dirty}",
    ]
    if known.advice is not None:
        lines.append(f"next: {known.advice}")
    current.result(document, *lines)


def _show_standing(current: Session, memory: AgentMemory, found: Verification, served: Indexed) -> None:
    anchor = found.anchor
    warnings = [*found.warnings, *_in_flight(memory), *_lag(memory), *served.warnings]
    document = {
        "owner": memory.owner,
        "network": memory.context.network.name,
        "contract": memory.contract_id,
        **_place(memory),
        **found.as_dict(),
        "warnings": warnings,
        "uri": None if anchor is None else anchor.uri_text,
        "timestamp": None if anchor is None else anchor.timestamp,
        "indexer": served.document,
    }
    lines = [
        *_verdict_lines(found),
        f"owner     {memory.owner}",
        f"network   {document['network']}",
        f"contract  {memory.contract_id}",
        f"backend   {shown(memory.backend.place)}",
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
    lines += served.lines
    _warn(warnings)
    note_finished(found.settled)
    current.result(document, *lines)


def _verdict_lines(found: Verification) -> list[str]:
    lines = [f"{found.verdict}: {found.message}"]
    return lines if found else [*lines, f"next: {found.next_step}"]


def _uri(raw: bytes, text: str | None) -> str:
    if not raw:
        return "(none)"
    return f"(not text: {raw.hex()})" if text is None else shown(text)


def _in_flight(memory: AgentMemory) -> list[str]:
    """What was sent, or was about to be, and has no known outcome yet; nothing without a contract."""
    from mycelium_sdk.errors import ConfigError
    from mycelium_sdk.state import StateStore

    try:
        contract = memory.contract_id
    except ConfigError:
        return []
    with StateStore(memory.context.home.state_file) as state:
        intents = state.in_flight(memory.context.network.passphrase, contract, memory.owner)
    return [
        f"the outcome of anchoring version {intent.expected_version + 1} is not known yet"
        + ("" if intent.transaction_hash is None else f" (transaction {intent.transaction_hash})")
        + "; `mycelium memory anchor` settles it first"
        for intent in intents.values()
    ]


def _place(memory: AgentMemory) -> dict[str, Any]:
    """Where the memories are, and what a second store that follows lacks of them."""
    lag = memory.backend.lag()
    return {
        "backend": memory.backend.place,
        "lag": None
        if lag is None
        else {
            "waiting": lag.waiting,
            "everything": lag.everything,
            "refused": len(lag.refused),
            "compared": lag.compared,
            "error": lag.error,
            "retry_at": lag.retry_at,
        },
    }


def _lag(memory: AgentMemory) -> list[str]:
    """The same for a person; nothing if nothing is lacking."""
    lag = memory.backend.lag()
    if lag is None:
        return []
    said = []
    if lag.everything:
        said.append("the secondary has not followed the last import or clear yet")
    elif lag.waiting:
        changes = "1 change, which is" if lag.waiting == 1 else f"{lag.waiting} changes, which are"
        said.append(f"the secondary lacks {changes} queued")
    if lag.error is not None:
        said.append(f"the secondary could not be reached lately: {lag.error}")
    if lag.refused:
        said.append(f"the secondary cannot hold {len(lag.refused)} of the memories faithfully")
    if not lag.compared:
        said.append("the two stores were never compared; `mycelium memory repair` does it")
    return said


def _warn(warnings: Iterable[str]) -> None:
    for warning in warnings:
        to_stderr(f"warning: {shown(warning)}")
