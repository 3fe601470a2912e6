"""What this process knows of the namespace, brought up to date by one request where little has changed.

The service lists the document changed last first and says how many there are. So a page of the newest shows
what was added or changed since, and a number that then differs from what is known shows that something was
deleted. A full listing is made page by page while others may write; it is accepted when nothing was missed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mycelium_sdk.backends.supermemory.refusals import unavailable
from mycelium_sdk.backends.supermemory.view import Reading, View, view_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from mycelium_sdk.backends.supermemory.line import Line
    from mycelium_sdk.backends.supermemory.service import Document, Page
    from mycelium_sdk.backends.values import Progress

_GLANCE = 4  # what is changed between two looks is mostly less
_PASSES = 6


class Mirror:
    """The documents of the namespace. Not for several threads at once."""

    def __init__(self, line: Line, owner: str) -> None:
        self._line = line
        self._owner = owner
        self._known: dict[str, Reading] | None = None
        self._view: View | None = None
        self.unchecked = False
        """Whether everything was listed and nobody has asked since for that to be done anew."""

    @property
    def is_known(self) -> bool:
        """Whether the namespace was listed."""
        return self._known is not None

    @property
    def view(self) -> View:
        """The namespace as it was at the last look."""
        if self._view is None:
            self._view = view_of((self._known or {}).values())
        return self._view

    def look(self, progress: Progress | None = None) -> View:
        """The namespace as it is now: one request, or two, unless something was deleted elsewhere."""
        known = self._known
        if known is None:
            return self.relist(progress)
        changed, total, steady = self._changed(_documents(known))
        if changed:
            known.update((one.handle, Reading(one, self._owner)) for one in changed)
            self._view = None
        return self.view if steady and len(known) == total else self.relist(progress)

    def watch(self, ids: Collection[str]) -> View:
        """The namespace as it is now, with the present state of these documents, which were written lately: a
        service need not take progress in processing for a change."""
        view = self.look()
        left = {view.by_id[name].document.handle for name in ids if name in view.by_id}
        known = self._known
        number = 0
        while left and known is not None:
            number += 1
            page = self._line.page(number, self._line.service.page_size)
            for one in _fresh(page, _documents(known)):
                known[one.handle] = Reading(one, self._owner)
                self._view = None
            left -= {one.handle for one in page.documents}
            if not page.documents or number * self._line.service.page_size >= page.total:
                break
        return self.view

    def relist(self, progress: Progress | None = None) -> View:
        """The namespace as it is now, from every document."""
        found: dict[str, Document] = {}
        for _ in range(_PASSES):
            seen, total, forgotten = self._pass(progress)
            # A service that orders equal times anew for every page shows each document in one of the passes.
            found = seen if forgotten else found | seen
            if len(found) == total and not forgotten:
                break
            if len(seen) == total and not forgotten:
                found = seen
                break
        else:
            raise unavailable("was written to by others all the time while it was listed")
        before = self._known or {}
        self._known = {handle: self._reading(one, before.get(handle)) for handle, one in found.items()}
        self._view = None
        self.unchecked = True
        return self.view

    def drop(self, handles: Iterable[str]) -> None:
        """These documents were deleted."""
        for handle in handles:
            if self._known is not None and self._known.pop(handle, None) is not None:
                self._view = None

    def complete(self, document: Document) -> None:
        """A document came with the content that the listing leaves out."""
        if self._known is not None and document.handle in self._known:
            self._known[document.handle] = Reading(document, self._owner)
            self._view = None

    def _reading(self, document: Document, known: Reading | None) -> Reading:
        """What is known of an unchanged document may hold content that the listing leaves out."""
        return (
            known if known is not None and _same(known.document, document) else Reading(document, self._owner)
        )

    def _pass(self, progress: Progress | None) -> tuple[dict[str, Document], int, bool]:
        """Every page once; how many documents there are; and whether any was deleted meanwhile, so that one
        on a later page may have been missed."""
        limit = self._line.service.page_size
        found: dict[str, Document] = {}
        number = first = 0
        while True:
            number += 1
            page = self._line.page(number, limit)
            first = page.total if number == 1 else first
            known = len(found)
            found.update((one.handle, one) for one in page.documents)
            if len(found) == known or number * limit >= page.total:  # a page with nothing new leads nowhere
                break
            if progress is not None:
                progress("listing", len(found), page.total)
        if number == 1:
            return found, page.total, False
        # What was added or changed meanwhile stands at the beginning now; what was deleted shows in numbers.
        changed, total, _ = self._changed(found.get)
        added = sum(one.handle not in found for one in changed)
        found.update((one.handle, one) for one in changed)
        return found, total, total - first != added

    def _changed(self, known: Callable[[str], Document | None]) -> tuple[list[Document], int, bool]:
        """The documents that are new or changed, how many there are in all, and whether that stayed so."""
        page = self._line.page(1, _GLANCE)
        first = page.total
        newest = _fresh(page, known)
        if len(newest) < len(page.documents) or len(page.documents) >= page.total:
            return newest, first, True
        limit = self._line.service.page_size
        changed: dict[str, Document] = {}
        number = 0
        while True:
            number += 1
            page = self._line.page(number, limit)
            fresh = _fresh(page, known)
            before = len(changed)
            changed.update((one.handle, one) for one in fresh)
            if len(fresh) < len(page.documents) or len(changed) == before or number * limit >= page.total:
                return list(changed.values()), page.total, page.total == first


def _documents(known: Mapping[str, Reading]) -> Callable[[str], Document | None]:
    def document(handle: str) -> Document | None:
        reading = known.get(handle)
        return None if reading is None else reading.document

    return document


def _fresh(page: Page, known: Callable[[str], Document | None]) -> list[Document]:
    return [one for one in page.documents if not _same(known(one.handle), one)]


def _same(known: Document | None, listed: Document) -> bool:
    return (
        known is not None
        and (known.updated, known.status) == (listed.updated, listed.status)
        and known.metadata == listed.metadata
    )
