"""Events told apart: whole anchors, the notes of older deployments, and what is neither."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stellar_sdk import scval

from mycelium_indexer.values import IndexedAnchor, SetAside
from mycelium_sdk.chain.anchors import EVENT_NAME, anchor_from_event_xdr
from mycelium_sdk.chain.translate import UNREADABLE
from mycelium_sdk.errors import WrongDomain
from mycelium_sdk.strkey import is_account, is_contract

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mycelium_sdk.chain.base import ChainEvent

__all__ = ["HIGHEST", "Note", "Sorted", "sort_events"]

HIGHEST = 2**63 - 1
"""The largest version and time that a database holds. The contract counts by ones and seconds."""

_HASH = re.compile(r"[0-9a-f]{64}", re.ASCII)
_NOTE_TOPIC = scval.to_symbol(EVENT_NAME).to_xdr_bytes()


@dataclass(frozen=True, slots=True)
class Note:
    """What an older deployment's event says: whose version was made, and not what is in it."""

    event: ChainEvent
    owner: str
    version: int


@dataclass(slots=True)
class Sorted:
    """A page's events, each kind in the chain's order."""

    anchors: list[IndexedAnchor] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    set_aside: list[SetAside] = field(default_factory=list)

    def put_aside(self, event: ChainEvent, reason: str) -> None:
        """Keep that an event was no anchor, and why."""
        transaction = event.transaction if _HASH.fullmatch(event.transaction) else ""
        self.set_aside.append(SetAside(event.id, event.ledger, transaction, reason))


def sort_events(events: Iterable[ChainEvent], contract_id: str) -> Sorted:
    """Tell a page's events apart. The reasons hold nothing that an event says."""
    found = Sorted()
    for event in events:
        try:
            if event.contract_id != contract_id:
                found.put_aside(event, "it is another contract's event")
            elif not _HASH.fullmatch(event.transaction):
                found.put_aside(event, "its transaction hash is none")
            elif event.topic_xdr == (_NOTE_TOPIC,):
                found.notes.append(_note(event))
            else:
                found.anchors.append(_anchor(event))
        except WrongDomain as error:
            found.put_aside(event, error.message)
    return found


def _anchor(event: ChainEvent) -> IndexedAnchor:
    anchor = anchor_from_event_xdr(event.topic_xdr, event.value_xdr)
    _check(anchor.owner, anchor.version, anchor.timestamp or 0)
    return IndexedAnchor(anchor, event.ledger, event.transaction, event.id)


def _note(event: ChainEvent) -> Note:
    try:
        value = event.value
        entries = [] if value.map is None else value.map.sc_map
        fields = {scval.from_symbol(item.key): item.val for item in entries}
        owner, version = scval.from_address(fields["owner"]).address, scval.from_uint64(fields["version"])
    except (KeyError, *UNREADABLE) as error:
        raise WrongDomain("the event's data is not owner and version") from error
    if len(entries) != 2:
        raise WrongDomain("the event's data is more than owner and version")
    if version < 1:
        raise WrongDomain("the event's version is 0")
    _check(owner, version)
    return Note(event, owner, version)


def _check(owner: str, *numbers: int) -> None:
    if not (is_account(owner) or is_contract(owner)):
        raise WrongDomain("the owner is neither an account nor a contract")
    if max(numbers) > HIGHEST:
        raise WrongDomain("a number is beyond what counting and clocks give")
