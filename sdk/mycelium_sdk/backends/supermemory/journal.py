"""What the service has no transactions for: documents that say which others count.

An entry of the journal is a document whose metadata hold changes that take effect together, when the entry
itself is written or, for an import, when it is closed: one request, which happens or does not. Whoever lists
the namespace applies the entries to what is there (`view`), so nobody sees half of an import or of a
forgetting, and whoever writes next finishes what an interrupted process left.

* An open entry: the documents that carry its id do not count yet.
* A closed one: the changes that it plans have happened, whether the documents show it yet or not, and it
  counts as `changes` writes.
* A part: more planned changes of another entry.

A planned change names id, sequence and number of writes of what it changes, so a document that is written
anew is not meant.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from mycelium_sdk.backends.supermemory.documents import SCHEMA
from mycelium_sdk.backends.supermemory.service import OWN_ID, Document, Draft, Value

if TYPE_CHECKING:
    from collections.abc import Sequence

ENTRY = "journal"

INLINE = 100
"""So many planned changes fit into the metadata of one entry."""

_CONTENT = "Mycelium notes here which memories were forgotten or loaded. It is no memory itself."


class Change(NamedTuple):
    """A document's planned change: `copies` from now on, 0 to delete it. `writes`: those it had before."""

    id: str
    sequence: int
    writes: int
    copies: int = 0


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of the journal. `part_of`: the id of the entry whose plan it continues."""

    id: str
    handle: str
    updated: str
    sequence: int
    changes: int
    plan: tuple[Change, ...] = ()
    is_open: bool = False
    part_of: str | None = None


def new_id() -> str:
    """An id that nobody else chooses."""
    return f"myc-journal-{secrets.token_hex(12)}"


def entry_draft(
    id: str,  # noqa: A002 - the documents' word
    owner: str,
    sequence: int,
    *,
    changes: int = 0,
    plan: Sequence[Change] = (),
    is_open: bool = False,
    part_of: str | None = None,
) -> Draft:
    """The document of an entry."""
    metadata: dict[str, Value] = {
        "myc_kind": ENTRY,
        "myc_schema": SCHEMA,
        "myc_owner": owner,
        OWN_ID: id,
        "myc_sequence": str(sequence),
        "myc_changes": changes,
        "myc_open": is_open,
        "myc_plan": " ".join(":".join(map(str, change)) for change in plan),
    }
    if part_of is not None:
        metadata["myc_part_of"] = part_of
    return Draft(id, _CONTENT, metadata)


def entry_of(document: Document) -> Entry | None:
    """The entry that a document of kind `ENTRY` holds; None if it is damaged."""
    meta = document.metadata
    part_of = meta.get("myc_part_of")
    try:
        plan = [_change(line) for line in str(meta["myc_plan"]).split()]
        sequence, changes = int(str(meta["myc_sequence"])), int(str(meta["myc_changes"]).removesuffix(".0"))
    except (KeyError, ValueError, TypeError):
        return None
    return Entry(
        document.id,
        document.handle,
        document.updated,
        sequence,
        changes,
        tuple(plan),
        meta.get("myc_open") is True,
        part_of if isinstance(part_of, str) else None,
    )


def _change(line: str) -> Change:
    name, sequence, writes, copies = line.rsplit(":", 3)
    return Change(name, int(sequence), int(writes), int(copies))
