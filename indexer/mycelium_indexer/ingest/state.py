"""Anchors as the contract's state has them, many owners at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stellar_sdk import scval

from mycelium_indexer.ingest.events import HIGHEST
from mycelium_sdk.chain.anchors import anchor_from_value
from mycelium_sdk.errors import WrongDomain

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from stellar_sdk import xdr

    from mycelium_sdk.chain.anchor_client import MemoryAnchorClient
    from mycelium_sdk.chain.anchors import Anchor
    from mycelium_sdk.chain.base import EntryState

__all__ = ["OwnerState", "read_state"]

_KEYS_AT_ONCE = 200  # chain.md section 2
_LEGACY_FIELDS = ("root", "uri", "acl", "version")
"""What the entries of an older deployment hold, in the order of their keys; the last one says nothing
more."""


@dataclass(frozen=True, slots=True)
class OwnerState:
    """An owner's anchor as of a ledger, also an archived one; None where the state holds none.

    `problem`: why what it holds is no anchor. Older deployments take roots of any length.
    """

    owner: str
    anchor: Anchor | None
    ledger: int
    problem: str | None = None


def read_state(client: MemoryAnchorClient, owners: Sequence[str]) -> Iterator[list[OwnerState]]:
    """The anchors of owners, in lists of those that were asked for at once.

    Raises:
        ChainUnavailable: the chain cannot be asked.
        ContractNotFound, WrongDomain: there is no contract at the address, or another kind of contract.
    """
    keys_each = len(client.entry_keys(owners[0])) if owners else 1
    at_once = _KEYS_AT_ONCE // keys_each
    for start in range(0, len(owners), at_once):
        some = owners[start : start + at_once]
        keys = [key for owner in some for key in client.entry_keys(owner)]
        states = client.chain.entries(keys)
        groups = _groups(states, keys_each)
        yield [_state(owner, group) for owner, group in zip(some, groups, strict=True)]


def _groups(states: Sequence[EntryState], size: int) -> Iterator[Sequence[EntryState]]:
    for start in range(0, len(states), size):
        yield states[start : start + size]


def _state(owner: str, states: Sequence[EntryState]) -> OwnerState:
    ledger = states[0].latest_ledger
    try:
        return OwnerState(owner, _anchor(owner, states), ledger)
    except WrongDomain as error:
        return OwnerState(owner, None, ledger, error.message)


def _anchor(owner: str, states: Sequence[EntryState]) -> Anchor | None:
    values = [_value(state) for state in states]
    if len(values) == 1:
        whole = values[0]
    else:
        parts = dict(zip(_LEGACY_FIELDS, values, strict=False))
        present = {name: value for name, value in sorted(parts.items()) if value is not None}
        whole = None
        if len(present) == len(_LEGACY_FIELDS):
            whole = scval.to_map({scval.to_symbol(name): value for name, value in present.items()})
    if whole is None:
        return None
    anchor = anchor_from_value(owner, whole)
    if max(anchor.version, anchor.timestamp or 0) > HIGHEST:
        raise WrongDomain("the contract's state holds a number beyond what counting and clocks give")
    return anchor


def _value(state: EntryState) -> xdr.SCVal | None:
    if state.data is None or state.data.contract_data is None:
        return None
    return state.data.contract_data.val
