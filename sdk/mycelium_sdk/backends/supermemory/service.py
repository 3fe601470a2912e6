"""The seam to the service: the few requests that the backend makes, as values, whatever API serves them.

Every method is one request, and one attempt (`Line` repeats). All raise the errors of `refusals`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Value = str | int | float | bool

OWN_ID = "myc_id"
"""The metadata that repeats a document's own id: not every answer of the service gives it."""

DONE = "done"
FAILED = "failed"


class Draft(NamedTuple):
    """A document to add. `id` is the caller's own; `metadata` is flat."""

    id: str
    content: str
    metadata: Mapping[str, Value]


@dataclass(frozen=True, slots=True)
class Document:
    """A document as the service lists it.

    `handle`: the service's name for it. `id`: ours, from its metadata; the handle, where it has none.
    `status` is the service's word. `content`: None until it is processed, and where the answer leaves it out.
    `updated`: the service's time of the last change, text that is compared for equality only.
    """

    id: str
    handle: str
    status: str
    content: str | None
    metadata: Mapping[str, object]
    updated: str


class Page(NamedTuple):
    """A page of the listing, and how many documents the namespace has in all."""

    documents: list[Document]
    total: int


class Found(NamedTuple):
    """A hit of the service's search. `handle`: the document's. `text`: the passage that was found, which may
    be a part of the document or something derived from it; `similarity` is in [0, 1]."""

    handle: str | None
    metadata: Mapping[str, object]
    text: str | None
    similarity: float


class Service(Protocol):
    """A namespace of the service. May be used from several threads."""

    api: str
    """What users call it: v5 or v3."""
    page_size: int
    """The most documents of a page."""
    batch_size: int
    """The most documents added at once."""
    lists_content: bool
    """Whether pages hold the documents' content."""
    knows_own_ids: bool
    """Whether `get` finds a document by the caller's own id."""

    def add(self, drafts: Sequence[Draft]) -> dict[str, str]:
        """Add documents; the ids of those that were refused, with the reason.

        An id that is there already is appended to, so no document may be added twice.
        """
        ...

    def get(self, id: str, handle: str | None) -> Document | None:  # noqa: A002
        """One document with its content, None if it is not there."""
        ...

    def update(self, id: str, handle: str, metadata: Mapping[str, Value], content: str | None = None) -> bool:  # noqa: A002
        """Replace the metadata, and the content unless None; whether the document is there."""
        ...

    def delete(self, documents: Sequence[tuple[str, str]]) -> list[str]:
        """Delete documents, given as (id, handle), at most `DELETED_AT_ONCE`; the ids of those that the
        service would not delete."""
        ...

    def page(self, number: int, limit: int) -> Page:
        """A page of the listing, counted from 1, the document changed last first."""
        ...

    def search(self, query: str, limit: int) -> list[Found]:
        """What the service finds, best first."""
        ...

    def close(self) -> None:
        """Close connections; harmless when repeated."""
        ...


DELETED_AT_ONCE = 100
SEARCH_LIMIT = 100
"""The most hits of one search."""
QUERY_CHARACTERS = 4000
"""So much of a query is sent; the scorer ranks by all of it."""
