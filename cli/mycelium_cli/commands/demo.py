"""`mycelium demo`: the whole loop on the embedded chain, for people who want to see it."""

from __future__ import annotations

import contextlib
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mycelium_cli.groups import command
from mycelium_cli.output import duration, progress, to_stderr, to_stdout, write_json
from mycelium_cli.session import current_session, require_embedded_chain

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mycelium_cli.demo.story import Step

_FAILED = 1


@command(
    "demo",
    example="mycelium demo\nmycelium demo --keep /tmp/mycelium-demo --json",
    shared=(),
    params=[
        click.Option(
            ["--keep"], metavar="DIR", help="Run in this empty or new folder and leave everything there."
        )
    ],
)
def demo(keep: str | None) -> None:
    """Show an agent's memory survive its machine, on a real Soroban host.

    Two machines with one wallet remember, anchor, rehydrate, verify and recall. Then the published memory is
    forged in two ways and an anchor is made from an old state: each must be refused. Touches nothing of
    yours, needs no network, and fails with exit code 1 if any step does not behave as it must.
    """
    from mycelium_cli.demo.story import tell

    require_embedded_chain()
    as_json = current_session().given.json
    started = time.perf_counter()
    steps: list[Step] = []
    with _folder(keep) as folder, progress("running") if as_json else contextlib.nullcontext():
        for step in tell(folder):
            steps.append(step)
            if not as_json:
                _show(step)
    seconds = time.perf_counter() - started
    failed = steps[-1].problem is not None
    if as_json:
        write_json(
            {
                "ok": not failed,
                "seconds": round(seconds, 3),
                "folder": None if keep is None else str(folder),
                "steps": [step.as_dict() for step in steps],
            }
        )
    if failed:
        to_stderr(f"error: step {steps[-1].number} did not behave as it must: {steps[-1].problem}")
        click.get_current_context().exit(_FAILED)
    if not as_json:
        to_stdout(
            f"Success: all {len(steps)} steps behaved as they must, in {duration(seconds)}.\n"
            "The memory outlived its machine, and every forgery was refused."
        )


def _show(step: Step) -> None:
    to_stdout(f"{step.number}. {step.title}")
    for fact in step.facts:
        to_stdout(f"   {fact}")
    to_stdout(
        "   FAILED: " + step.problem if step.problem is not None else f"   ok, {duration(step.seconds)}"
    )


@contextlib.contextmanager
def _folder(keep: str | None) -> Iterator[Path]:
    """An empty private folder: the one to keep, or a temporary one."""
    if keep is None:
        with tempfile.TemporaryDirectory(prefix="mycelium-demo-") as name:
            yield Path(name)
        return
    from mycelium_sdk.errors import UsageError
    from mycelium_sdk.files import ensure_private_folder, file_errors

    folder = Path(keep).expanduser().absolute()
    with file_errors(folder, "read", UsageError):
        if folder.is_dir() and any(folder.iterdir()):
            raise UsageError(f"{folder} is not empty", hint="give an empty or a new folder")
    ensure_private_folder(folder, kind=UsageError)
    yield folder
    to_stderr(f"note: everything is in {folder}; the wallets' passphrase was thrown away")
