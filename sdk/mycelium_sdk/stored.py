"""A record as a backend keeps it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mycelium_sdk import canonical

if TYPE_CHECKING:
    from mycelium_sdk.records import Record

__all__ = ["StoredRecord"]


@dataclass(frozen=True, slots=True)
class StoredRecord:
    """A record as a backend keeps it.

    `id` is an opaque string. `fragment` is the record's canonical JSON text (ASCII) and the truth; `record`
    is read from it. `copies` says how often equal records occur, at least 1. `sequence` is the order of
    arrival. `time` is in Unix seconds UTC, None where it is not known.
    """

    id: str
    fragment: str
    copies: int
    sequence: int
    session: str | None
    time: float | None

    @property
    def record(self) -> Record:
        """The record that the fragment writes. Raises `NonCanonical` if the fragment was edited."""
        return canonical.record_from_fragment(self.fragment)
