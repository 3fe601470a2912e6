"""What a namespace holds besides sound memories, in sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mycelium_sdk.backends.integrity import Integrity, IntegrityReport
from mycelium_sdk.backends.supermemory.service import DONE

if TYPE_CHECKING:
    from collections.abc import Collection

    from mycelium_sdk.backends.supermemory.view import View

_NAMED = 20


def report(view: View, given_up: int, lost: Collection[str]) -> IntegrityReport:
    """The answer of `check`: BROKEN if a memory is not what was remembered.

    Otherwise UNPROTECTED: whoever has the key can write memories that look like the owner's, which only the
    anchor tells.
    """
    damaged = [memory for memory in view.memories.values() if memory.damage is not None]
    findings = [f"memory {memory.id}: {memory.damage}" for memory in damaged[:_NAMED]]
    if len(damaged) > _NAMED:
        more = len(damaged) - _NAMED
        findings.append("1 more memory is damaged" if more == 1 else f"{more} more memories are damaged")
    waiting = sum(
        view.by_id[memory.id].document.status != DONE
        for memory in view.memories.values()
        if memory.damage is None
    )
    for number, one, several, what in (
        (view.foreign, "document", "documents", "in the namespace that Mycelium did not write; ignored"),
        (
            waiting,
            "memory is",
            "memories are",
            "stored, but not processed yet: the service's search may not find them",
        ),
        (given_up, "memory was", "memories were", "not processed by the service, again and again"),
        (
            len(lost),
            "memory that this process wrote is",
            "memories that this process wrote are",
            "gone: forgotten elsewhere, or not processed",
        ),
        (
            len(view.hidden),
            "document belongs",
            "documents belong",
            "to an import that is not finished; ignored",
        ),
        (
            len(view.leftovers),
            "document is",
            "documents are",
            "forgotten, and to be deleted by the next write",
        ),
    ):
        if number:
            findings.append(f"{number} {one if number == 1 else several} {what}")
    state = Integrity.BROKEN if damaged else Integrity.UNPROTECTED
    return IntegrityReport(state, len(view.memories), tuple(findings))
