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
        findings.append(f"{len(damaged) - _NAMED} more memories are damaged")
    waiting = sum(
        view.by_id[memory.id].document.status != DONE
        for memory in view.memories.values()
        if memory.damage is None
    )
    for number, what in (
        (view.foreign, "documents in the namespace are not Mycelium's and are ignored"),
        (waiting, "memories are stored, but not processed yet: the service's search may not find them"),
        (given_up, "memories were not processed by the service, again and again"),
        (len(lost), "memories that this process wrote are gone: forgotten elsewhere, or not processed"),
        (len(view.hidden), "documents belong to an import that is not finished; they are ignored"),
        (len(view.leftovers), "documents are forgotten, and wait to be deleted by the next write"),
    ):
        if number:
            findings.append(f"{number} {what}")
    state = Integrity.BROKEN if damaged else Integrity.UNPROTECTED
    return IntegrityReport(state, len(view.memories), tuple(findings))
