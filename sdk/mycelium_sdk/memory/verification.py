"""What `verify()` answers: one verdict, true only for IN_SYNC, with what it was reached from."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from mycelium_sdk.backends.integrity import Integrity
from mycelium_sdk.errors import Tampered
from mycelium_sdk.memory.standing import OLDER_THAN_ITS_ANCHOR, Standing
from mycelium_sdk.verdicts import Verdict, describe, next_step

if TYPE_CHECKING:
    from mycelium_sdk.backends.integrity import IntegrityReport
    from mycelium_sdk.chain.anchors import Anchor
    from mycelium_sdk.state import LastAnchor

__all__ = [
    "Advice",
    "TamperedWarning",
    "Verification",
    "advice_on",
    "judge",
    "not_vouched",
    "unproved",
    "vouched",
    "warn_of_overwriting",
]

ANCHORED_ELSEWHERE = (
    "Take along what is here, as it is: `mycelium memory export rescued.jsonl`. Look through it, load what is"
    " anchored: `mycelium memory rehydrate --on-conflict replace`, and import that file."
)
NEVER_ANCHORED = (
    "Look through what is here: `mycelium memory export -`. If it is what was written, anchor it as it is:"
    " `mycelium memory anchor --overwrite`."
)


RESCUE = (
    "Keep what is genuine: `mycelium memory export rescued.jsonl --genuine`. Then close what uses the"
    " memory's file, move it away (`mycelium memory status --local` names it), and import that file."
)


class TamperedWarning(UserWarning):
    """What was changed behind the memory's back is anchored, since the caller said overwrite."""


class Advice(NamedTuple):
    """What is said of a verdict in this case: in a sentence, and what to do; None for what is said always."""

    message: str | None
    next_step: str | None


@dataclass(frozen=True, slots=True)
class Verification:
    """The outcome of comparing the local memory with the chain.

    Truthy iff `verdict` is IN_SYNC. `local_root` is recomputed from the rows. `anchor` is what the chain
    holds, None if it holds nothing. `records` counts the local memories. `warnings` name what will need care
    though the verdict stands (for example an anchor whose time to live ends soon). `settled`: the version of
    an anchoring that was interrupted earlier, if it was found finished and recorded now.
    """

    verdict: Verdict
    local_root: bytes
    records: int
    anchor: Anchor | None
    warnings: tuple[str, ...] = ()
    advice: Advice | None = None
    settled: int | None = None

    def __bool__(self) -> bool:
        return self.verdict is Verdict.IN_SYNC

    def __str__(self) -> str:
        return f"{self.verdict}: {self.message}"

    @property
    def message(self) -> str:
        """The verdict in a sentence."""
        said = None if self.advice is None else self.advice.message
        return said or describe(self.verdict)

    @property
    def next_step(self) -> str:
        """What to do about it."""
        step = None if self.advice is None else self.advice.next_step
        return step or next_step(self.verdict)

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready: roots in lower-case hex."""
        anchor = self.anchor
        return {
            "verdict": str(self.verdict),
            "in_sync": bool(self),
            "message": self.message,
            "next_step": self.next_step,
            "local_root": self.local_root.hex(),
            "records": self.records,
            "version": None if anchor is None else anchor.version,
            "anchored_root": None if anchor is None else anchor.root.hex(),
            "warnings": list(self.warnings),
        }


def judge(
    *, local_root: bytes, standing: Standing, anchor: Anchor | None, last: LastAnchor | None, archived: bool
) -> Verdict:
    """The verdict on a memory, from its recomputed root and what is known about its anchor.

    `last` is the anchor the memory is based on, `standing` how it stands to that. A chain that moved on is
    DIVERGED, as is what cannot be told from TAMPERED then.
    """
    if anchor is None:
        return Verdict.NOT_ANCHORED
    if archived:
        return Verdict.ARCHIVED
    if local_root == anchor.root:
        return Verdict.IN_SYNC
    if last is None or (last.version, last.root) != (anchor.version, anchor.root):
        return Verdict.DIVERGED
    return _AGAINST_OWN_ANCHOR[standing]


_AGAINST_OWN_ANCHOR = {
    Standing.WRITTEN: Verdict.AHEAD,
    Standing.CHANGED: Verdict.TAMPERED,
    Standing.EARLIER: Verdict.ROLLBACK,
}


def vouched(verdict: Verdict, integrity: IntegrityReport) -> Verdict:
    """The verdict once the store was asked whether its rows are its own.

    Broken rows are TAMPERED also where the root is the anchored one: ids, sessions and times are not in it.
    Without the store's key, rows that are not the anchored ones cannot be told from edited ones.
    """
    if integrity.state is Integrity.BROKEN:
        return Verdict.TAMPERED
    if integrity.state is Integrity.UNKNOWN and verdict in {Verdict.AHEAD, Verdict.ROLLBACK}:
        return Verdict.DIVERGED
    return verdict


def advice_on(
    verdict: Verdict,
    version: int,
    last: LastAnchor | None,
    *,
    root: bytes,
    records: int,
    integrity: IntegrityReport,
) -> Advice | None:
    """What to say where more is known than the verdict says; `version` is the chain's."""
    if verdict is Verdict.ROLLBACK:
        return Advice(None, OLDER_THAN_ITS_ANCHOR)
    if verdict is Verdict.TAMPERED and not version:
        return Advice(None, RESCUE)
    if verdict not in (Verdict.DIVERGED, Verdict.NOT_ANCHORED):
        return None
    if integrity.state is Integrity.UNKNOWN and records:
        return Advice(
            "Nothing on this machine vouches for the memory's file any more: its key is gone.",
            ANCHORED_ELSEWHERE if verdict is Verdict.DIVERGED else NEVER_ANCHORED,
        )
    if verdict is Verdict.NOT_ANCHORED:
        return None
    if last is None and not records:
        return Advice(
            "The chain holds this owner's memory, and this machine has nothing of it yet.",
            "Load it: `mycelium memory rehydrate`.",
        )
    if last is not None and last.root == root and last.version < version:
        return Advice(
            f"This memory is exactly version {last.version}, and the chain is at version {version}.",
            "Load that: `mycelium memory rehydrate`. If the older one was loaded on purpose,"
            " `mycelium memory anchor --overwrite` anchors it on top.",
        )
    return None


def unproved(version: int, latest: int) -> str:
    """What is said of an anchor whose past nobody serves, to a memory that is based on `version`."""
    return (
        f"no server has the history from version {version}, which this memory is based on, to version"
        f" {latest}: that the one comes after the other is not proved, so `mycelium memory sync` merges"
        " without removing what is only here"
    )


def warn_of_overwriting(report: IntegrityReport) -> None:
    """Warn that rows are anchored which were changed, or which nothing vouched for."""
    if report.state is Integrity.UNKNOWN:
        said = "nothing on this machine vouched for the memory; it counts as genuine from now on, as it is"
    else:
        said = "the memory was changed behind its back, and the change is anchored, as overwrite says"
    warnings.warn(said, TamperedWarning, stacklevel=2)


def not_vouched(report: IntegrityReport, outcome: str, *, anchored: bool) -> Tampered:
    """The refusal to go on with rows that were changed, or that nothing here vouches for; `outcome` says what
    was not done, `anchored` whether the chain holds a version of this memory."""
    if report.state is Integrity.UNKNOWN:
        return Tampered(
            "nothing on this machine vouches for the memory's file any more, since its key is gone;"
            f" {outcome}",
            hint=ANCHORED_ELSEWHERE if anchored else NEVER_ANCHORED,
        )
    hint = None if anchored else RESCUE
    return Tampered(f"the memory was changed behind its back; {outcome}", hint=hint)
