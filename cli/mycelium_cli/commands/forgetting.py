"""`mycelium memory forget`: forget here, and say where the text still is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from mycelium_cli.confirm import at_a_terminal, confirmed
from mycelium_cli.groups import command
from mycelium_cli.output import memories, progress, shown, to_stderr
from mycelium_cli.session import current_session

if TYPE_CHECKING:
    from mycelium_sdk.memory.agent_memory import AgentMemory
    from mycelium_sdk.memory.published import PublishedVersion

_STORE = ("--network", "--wallet", "--backend", "--home")


@command(
    "forget",
    example="mycelium memory forget 17\nmycelium memory forget --tag project --secure --yes",
    shared=_STORE,
    params=[
        click.Argument(["memory_id"], metavar="[ID]", required=False),
        click.Option(
            ["--tag"], metavar="TAG", help="Forget all that have this tag, instead of one by its id."
        ),
        click.Option(["--secure"], is_flag=True, help="Leave no copy of the text in the memory's files."),
        click.Option(
            ["--yes"], is_flag=True, help="Do not ask. Needed for --tag where there is no terminal."
        ),
    ],
)
def forget(memory_id: str | None, tag: str | None, *, secure: bool, yes: bool) -> None:
    """Forget the memory with this ID (`recall` shows it), or all with a tag.

    Says which published versions still hold the text: those are files, here or elsewhere, that forgetting
    does not reach, and a chain commits to them for ever. An ID or a tag that nothing has is an error (exit
    code 2). Several are forgotten only after a question at the terminal, or with --yes. Needs no chain and no
    passphrase.
    """
    from mycelium_sdk.errors import InputError, UsageError
    from mycelium_sdk.memory.published import selected

    if (memory_id is None) == (tag is None):
        raise UsageError(
            "forget takes either an ID or --tag", hint="`mycelium memory recall` shows ids and tags"
        )
    if tag is not None and not yes and not at_a_terminal():
        raise UsageError("--tag may forget many, and there is no terminal to ask at", hint="say --yes")
    current = current_session()
    with current.memory() as memory:
        with progress("looking for it"):
            found = sum(one.copies for one in selected(memory.backend, id=memory_id, tag=tag))
            if not found:
                what = "id" if tag is None else "tag"
                raise InputError(
                    f"there is no memory with this {what}; nothing was forgotten",
                    hint="`mycelium memory recall` shows ids and tags",
                )
            published = memory.versions_holding(memory_id, tag=tag)
        if (
            found > 1
            and not yes
            and at_a_terminal()
            and not confirmed(f"Forget {memories(found)}?", without_terminal="--yes")
        ):
            current.result({"forgotten": 0, "secure": secure, "published": []})
            to_stderr("note: nothing was forgotten")
            return
        with progress("forgetting"):
            forgotten = memory.forget(memory_id, tag=tag, secure=secure)
        current.result(
            {"forgotten": forgotten, "secure": secure, "published": [_document(one) for one in published]},
            f"forgot {memories(forgotten)}",
            *_published_lines(published, memory.context.network.passphrase),
        )
        _say_what_is_anchored(memory, published)


def _document(one: PublishedVersion) -> dict[str, Any]:
    return {
        "version": one.version,
        "uri": one.uri,
        "root": one.root.hex(),
        "network": one.network or None,
        "contract": one.contract or None,
        "seen": one.seen,
        "missing": one.missing,
    }


def _published_lines(published: list[PublishedVersion], network: str) -> list[str]:
    networks = {one.network for one in published if one.network} | {network}
    contracts = {(one.network, one.contract) for one in published if one.network}
    still, missing = ["still published:"], ["no longer there (unless the address is another machine's):"]
    for one in published:
        version = "not anchored" if one.version is None else f"version {one.version}"
        elsewhere = f" on {one.network}" if one.network and len(networks) > 1 else ""
        if sum(other == one.network for other, _ in contracts) > 1:
            elsewhere += f" (contract {one.contract})"
        doubt = "" if one.seen or one.missing else " (cannot be looked into from here; it may hold the text)"
        (missing if one.missing else still).append(shown(f"  {version}{elsewhere}  {one.uri}{doubt}"))
    return [line for lines in (still, missing) if len(lines) > 1 for line in lines]


def _say_what_is_anchored(memory: AgentMemory, published: list[PublishedVersion]) -> None:
    last = memory.last_anchor
    if last is not None and any((one.version, one.root) == (last.version, last.root) for one in published):
        to_stderr(
            f"note: version {last.version} on the chain still commits to it; `mycelium memory anchor` commits"
            " to the memory without it"
        )
