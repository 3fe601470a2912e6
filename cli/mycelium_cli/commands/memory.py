"""`mycelium memory ...`: remember, recall, and everything about the anchor."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from mycelium_cli.groups import LazyGroup, command
from mycelium_cli.options import WholeNumber
from mycelium_cli.output import (
    amount,
    duration,
    memories,
    moment,
    note_finished,
    progress,
    shown,
    shown_in_line,
    to_stderr,
)
from mycelium_cli.session import current_session

if TYPE_CHECKING:
    from mycelium_sdk.backends.base import Hit
    from mycelium_sdk.memory.agent_memory import AgentMemory
    from mycelium_sdk.records import Record

_STORE = ("--network", "--wallet", "--backend", "--home")
_CHAIN = (*_STORE, "--rpc-url", "--anchor-address")

_TRUST_ANEW = click.Option(
    ["--trust-chain-anew"],
    is_flag=True,
    help="Where the chain contradicts what was seen before (it was reset on purpose), believe the chain.",
)


@command(
    "remember",
    example='mycelium memory remember "prefers concise answers" --tag style --session monday\n'
    "git log -1 | mycelium memory remember -",
    shared=_STORE,
    params=[
        click.Argument(["text"]),
        click.Option(
            ["--tag", "tags"], multiple=True, metavar="TAG", help="A tag; may be given more than once."
        ),
        click.Option(["--session"], metavar="NAME", help="The conversation it belongs to."),
    ],
)
def remember(text: str, tags: tuple[str, ...], session: str | None) -> None:
    """Remember TEXT, or what comes on stdin if TEXT is `-`.

    Prints the memory's id. A text that is remembered with the same tags already keeps its id and its session.
    Needs no chain, and a passphrase only for a new wallet, which on the network `local` is made if missing.
    """
    from mycelium_cli.stdin import text_argument
    from mycelium_sdk.records import Record

    current = current_session()
    content = text_argument(text, "the text")
    record = Record.from_input(content, tags)  # refused before a wallet is made for it
    with current.memory(make_wallet=True) as memory, progress("remembering"):
        new = _is_new(memory, record)
        memory_id = memory.remember(content, tags, session)
    already = " already" if new is False else ""
    current.result({"id": memory_id, "new": new}, f"remembered{already}, id {memory_id}")


def _is_new(memory: AgentMemory, record: Record) -> bool | None:
    """Whether the memory is not here yet; None where only a listing of all of them would tell."""
    chosen = memory.context.configuration.memory
    asked = chosen.tiered.primary if chosen.backend == "tiered" else chosen.backend
    return None if asked == "supermemory" else memory.backend.ids_of([record])[0] is None


@command(
    "recall",
    example='mycelium memory recall "how should I answer" -k 3 --tag style\n'
    'mycelium memory recall "how should I answer" --json',
    shared=_STORE,
    params=[
        click.Argument(["query"]),
        click.Option(["-k"], type=int, default=5, show_default=True, metavar="N", help="At most so many."),
        click.Option(
            ["--tag", "tags"], multiple=True, metavar="TAG", help="Only memories that have this tag."
        ),
        click.Option(["--session"], metavar="NAME", help="Only memories of this conversation."),
        click.Option(["--offset"], type=int, default=0, metavar="N", help="Leave out the best N."),
    ],
)
def recall(query: str, k: int, tags: tuple[str, ...], session: str | None, offset: int) -> None:
    """Find the memories that fit QUERY best, best first; `-` reads the query from stdin.

    Needs no chain and no passphrase. With --json the answer is the list that the Python API gives.
    """
    from mycelium_cli.stdin import text_argument

    current = current_session()
    question = text_argument(query, "the query")
    with current.memory() as memory, progress("searching"):
        hits = memory.recall(question, k, tags or None, session, offset)
    current.result(hits, *(_hit_lines(place, hit) for place, hit in enumerate(hits, offset + 1)))
    if not hits:
        beyond = f" beyond the best {offset}" if offset else ""
        to_stderr("note: -k 0 asks for nothing" if k == 0 else f"note: nothing was found{beyond}")


def _hit_lines(place: int, hit: Hit) -> str:
    details = [f"score {hit['score']:.3f}", f"id {hit['id']}"]
    if hit["tags"]:
        details.append("tags " + ", ".join(hit["tags"]))
    if hit["session"] is not None:
        details.append(f"session {hit['session']}")
    if hit["time"] is not None:
        details.append(moment(hit["time"]))
    content = shown(hit["content"]).replace("\n", "\n    ")
    return f"{place:>2}. {content}\n    {shown_in_line('; '.join(details))}"


@command(
    "anchor",
    example="mycelium memory anchor\nmycelium memory anchor --publish mem.json",
    shared=_CHAIN,
    params=[
        click.Option(
            ["--publish"],
            metavar="TARGET",
            help="Where the blob goes: a folder, a file, a file:// URI [default: blobs/ in the home folder].",
        ),
        click.Option(
            ["--uri"], metavar="URI", help="Where you have put the blob yourself, instead of --publish."
        ),
        click.Option(
            ["--overwrite"], is_flag=True, help="Anchor over an anchor that this memory is not based on."
        ),
        _TRUST_ANEW,
    ],
)
def anchor(publish: str | None, uri: str | None, *, overwrite: bool, trust_chain_anew: bool) -> None:
    """Publish the memory and commit to it on the chain.

    Prints version, root, URI, transaction, fee and time taken. Anchors also what did not change since the
    last version, and pays for it; `sync` does not. On the network `local` account and contract are made by
    themselves at the first anchor.
    """
    from mycelium_sdk.memory.anchoring import check_anchor_arguments

    current = current_session()
    with current.memory(make_wallet=True, signs=True) as memory, progress("anchoring"):
        memory.context.keypair()  # a wrong passphrase shows before anything is published
        before = memory.last_anchor
        started = time.perf_counter()
        check_anchor_arguments(uri, publish, b"")
        if trust_chain_anew:
            memory.trust_chain_anew()
        done = memory.anchor_with_receipt(uri, publish, overwrite=overwrite)
        seconds = time.perf_counter() - started
    receipt = done.receipt
    note_finished(done.settled)
    if before is not None and (before.version + 1, before.root) == (done.version, done.root):
        to_stderr(
            f"note: nothing had changed since version {before.version}; the same root was anchored again"
        )
    if not receipt.compared:
        to_stderr("warning: this older contract cannot compare versions; anchor on one machine at a time")
    current.result(
        {
            "version": done.version,
            "root": done.root.hex(),
            "uri": done.uri,
            "transaction": receipt.hash,
            "ledger": receipt.ledger,
            "timestamp": receipt.close_time,
            "fee_stroops": receipt.fee_charged,
            "seconds": round(seconds, 3),
        },
        f"version      {done.version}",
        f"root         {done.root.hex()}",
        f"uri          {shown(done.uri) or '(none)'}",
        f"transaction  {receipt.hash}, ledger {receipt.ledger}",
        f"fee          {amount(receipt.fee_charged)}",
        f"time         {duration(seconds)}",
    )


@command(
    "rehydrate",
    example="mycelium memory rehydrate\nmycelium memory rehydrate --on-conflict merge",
    shared=_CHAIN,
    params=[
        click.Option(
            ["--on-conflict"],
            type=click.Choice(["refuse", "merge", "replace"]),
            default="refuse",
            show_default=True,
            help="What becomes of writes here that are not anchored: load nothing, keep them, or drop them.",
        ),
        click.Option(
            ["--version", "version"],
            type=WholeNumber(min=1),
            metavar="N",
            help="Load an older version, on purpose; anchoring then needs --overwrite.",
        ),
        _TRUST_ANEW,
    ],
)
def rehydrate(on_conflict: str, version: int | None, *, trust_chain_anew: bool) -> None:
    """Load the memory that the chain commits to.

    The blob is looked for in the home folder's blobs/ and at the anchor's file:// or https:// address, and
    loaded only if it is what the chain commits to. The order, sessions and times of the memories come from
    the context file beside it; a note says where that is missing or does not fit. Needs no passphrase.
    """
    current = current_session()
    with current.memory() as memory, progress("loading the anchored memory"):
        if trust_chain_anew:
            memory.trust_chain_anew(to_load=True)
        before = memory.backend.change_counter()
        done = memory.rehydrate_with_report(on_conflict=on_conflict, version=version)
        changed = memory.backend.change_counter() != before
    records = memories(done.records)
    said = (
        f"loaded version {done.version}: {records}"
        if changed
        else f"nothing to load: all of version {done.version} is here already ({records})"
    )
    current.result({"version": done.version, "records": done.records}, said)
    if done.note is not None:
        to_stderr(f"note: {done.note}")


memory = LazyGroup(
    "memory",
    help="Remember, recall, and keep the memory anchored on a chain.",
    sources={
        "remember": "mycelium_cli.commands.memory:remember",
        "recall": "mycelium_cli.commands.memory:recall",
        "import": "mycelium_cli.commands.transfer:import_",
        "export": "mycelium_cli.commands.transfer:export",
        "forget": "mycelium_cli.commands.forgetting:forget",
        "status": "mycelium_cli.commands.standing:status",
        "anchor": "mycelium_cli.commands.memory:anchor",
        "verify": "mycelium_cli.commands.standing:verify",
        "rehydrate": "mycelium_cli.commands.memory:rehydrate",
        "sync": "mycelium_cli.commands.machines:sync",
        "history": "mycelium_cli.commands.versions:history",
        "diff": "mycelium_cli.commands.versions:diff",
        "purge": "mycelium_cli.commands.versions:purge",
        "keep-alive": "mycelium_cli.commands.machines:keep_alive",
        "inspect": "mycelium_cli.commands.foreign:inspect",
        "repair": "mycelium_cli.commands.machines:repair",
    },
    example='mycelium memory remember "prefers concise answers"\nmycelium memory recall "which answers"',
)
