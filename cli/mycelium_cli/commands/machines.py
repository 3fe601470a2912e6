"""`mycelium memory sync`, `keep-alive` and `repair`: several machines, a chain that forgets, two stores."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from mycelium_cli.groups import command
from mycelium_cli.output import amount, memories, progress, to_stderr
from mycelium_cli.session import current_session

if TYPE_CHECKING:
    from mycelium_sdk.chain.keeping import Kept, Offer

_STORE = ("--network", "--wallet", "--backend", "--home")
_CHAIN = (*_STORE, "--rpc-url", "--anchor-address")
_SECONDS_PER_DAY = 86_400


@command(
    "sync",
    example="mycelium memory sync\nmycelium memory sync --publish shared/",
    shared=_CHAIN,
    params=[
        click.Option(
            ["--publish"],
            metavar="TARGET",
            help="Where the blob goes: a folder, a file, a file:// URI [default: blobs/ in the home folder].",
        )
    ],
)
def sync(publish: str | None) -> None:
    """Bring this memory and the anchored one together, and anchor what comes of it.

    For several machines with one wallet. What either side forgot since both last agreed is forgotten, what
    either side remembered is kept. If another machine anchors at the same moment, it begins again. What did
    not change is not anchored again. Never makes a wallet: another machine's memory is another wallet's.
    """
    current = current_session()
    with current.memory(signs=True) as memory, progress("syncing"):
        done = memory.sync(publish=publish)
    if done.version == 0:
        said = "nothing to sync: the memory is empty and was never anchored"
    elif done.anchored and done.merged:
        said = f"merged with what was anchored, and anchored version {done.version}: {memories(done.records)}"
    elif done.anchored:
        said = f"anchored version {done.version}: {memories(done.records)}"
    elif done.merged:
        said = f"took over version {done.version}: {memories(done.records)}"
    else:
        said = f"in sync with version {done.version} already: {memories(done.records)}"
    current.result(
        {
            "version": done.version,
            "records": done.records,
            "merged": done.merged,
            "anchored": done.anchored,
        },
        said,
    )
    if done.note is not None:
        to_stderr(f"note: {done.note}")


@command(
    "keep-alive",
    example="mycelium memory keep-alive\nmycelium memory keep-alive --include-contract",
    shared=_CHAIN,
    params=[
        click.Option(
            ["--include-contract"],
            is_flag=True,
            help="The contract and its code as well; that costs more than a hundred anchors.",
        ),
        click.Option(["--yes"], is_flag=True, help="Pay without asking."),
    ],
)
def keep_alive(*, include_contract: bool, yes: bool) -> None:
    """Extend the anchor's time to live if less than 30 days are left; restore it if it was archived.

    Anchoring does the same for the anchor, so this is for a memory that does not change. With
    --include-contract the price is shown first, and paid after a question at the terminal, or with --yes.
    """
    from mycelium_cli.confirm import confirmed

    def accept(offer: Offer) -> bool:
        what = " and ".join(offer.parts)
        to_stderr(f"note: to {offer.action} {what} costs at most {amount(offer.fee)}")
        if yes or not include_contract:
            return True
        return confirmed("Pay that?", without_terminal="--yes")

    current = current_session()
    with current.memory(signs=True) as memory:
        kept = memory.keep_alive(include_contract=include_contract, accept=accept)
    current.result({"parts": [_document(one) for one in kept]}, *map(_line, kept))


@command(
    "repair",
    example="mycelium memory repair --backend tiered",
    shared=_STORE,
    params=[
        click.Option(
            ["--extra"],
            type=click.Choice(["refuse", "adopt", "remove"]),
            default="refuse",
            show_default=True,
            help="Memories that only the secondary has: change nothing, take them over, or remove them.",
        )
    ],
)
def repair(extra: str) -> None:
    """Compare the two stores of the backend `tiered` by hash, and make them equal.

    For when the queue of what the secondary lacks was lost, or somebody else changed it. Needs no chain and
    no passphrase.
    """
    from mycelium_sdk.backends.tiered import TieredBackend
    from mycelium_sdk.errors import UsageError

    current = current_session()
    with current.memory() as memory, progress("comparing"):
        if not isinstance(memory.backend, TieredBackend):
            raise UsageError(
                "only the backend tiered has two stores to compare",
                hint="set backend in [memory] of mycelium.toml to tiered, or say --backend tiered",
            )
        done = memory.backend.repair(extra)  # type: ignore[arg-type]  # one of the choices
        lag = memory.backend.lag()
    current.result(
        {
            "equal": done.equal,
            "added": done.added,
            "removed": done.removed,
            "adopted": done.adopted,
            "refused": len(lag.refused),
        },
        "both stores hold the same" if done.equal else "the stores still differ",
        f"added     {done.added} to the secondary",
        f"removed   {done.removed} from the secondary",
        f"adopted   {done.adopted} by the primary",
    )
    for number, reason in lag.refused:
        to_stderr(f"warning: the secondary cannot hold memory {number}: {reason}")


def _document(kept: Kept) -> dict[str, Any]:
    return {"part": str(kept.part), "ledgers_before": kept.before, "ledgers": kept.remaining}


def _line(kept: Kept) -> str:
    if kept.remaining is None:
        return f"{kept.part:<9} archived"
    from mycelium_sdk.chain.base import LEDGER_SECONDS

    days = kept.remaining * LEDGER_SECONDS // _SECONDS_PER_DAY
    changed = ", restored now" if kept.before is None else ""
    if kept.before is not None and kept.remaining > kept.before:  # else only ledgers have closed meanwhile
        changed = ", extended now"
    return f"{kept.part:<9} lives for {kept.remaining:,} ledgers more (about {days} days){changed}"
