"""The documents of one account: how they are added, processed, listed, searched and lost."""

from __future__ import annotations

import datetime
import itertools
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

_EPOCH = datetime.datetime(2026, 11, 1, tzinfo=datetime.UTC)
FAILED_SECONDS = 120
PASSAGE = 400
MAX_BYTES = 3 * 2**19

_words = re.compile(r"\w+")


class Refused(Exception):  # noqa: N818 - a status, not an error of ours
    """The service's answer to a request that it does not serve."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(slots=True)
class Doc:
    """One document. `sent` becomes `content` when it is processed."""

    handle: str
    custom_id: str | None
    namespace: str
    sent: str
    metadata: dict[str, Any]
    created: str
    updated: str
    status: str = "queued"
    content: str | None = None
    failed_at: float | None = None
    looks: int = 0


@dataclass(slots=True)
class Conduct:
    """How the service behaves, for all accounts."""

    looks: int = 0
    """How often a document is shown unprocessed before it is done."""
    held: bool = False
    """Whether nothing is processed."""
    failing: int = 0
    """So many documents fail to be processed next."""
    undeletable: set[str] = field(default_factory=set)
    """Ids whose deletion is answered with an error."""
    refused: set[str] = field(default_factory=set)
    """Ids that cannot be added now."""
    credits: int | None = None
    """How many documents may still be added; None for any number."""
    after_page: Callable[[], None] | None = None
    """Called after each page of a list: what others do meanwhile."""
    seconds: float = 0.0
    """How much time has passed."""


class Shelf:
    """The documents of an account, in all its namespaces."""

    def __init__(self, conduct: Conduct) -> None:
        self.docs: dict[str, Doc] = {}
        self._by_custom_id: dict[tuple[str, str], Doc] = {}
        self._conduct = conduct
        self._numbers = itertools.count(1)
        self._ticks = itertools.count(1)

    def _now(self) -> str:
        # Never the same twice, so that the order of changes is certain.
        moment = _EPOCH + datetime.timedelta(seconds=self._conduct.seconds, milliseconds=next(self._ticks))
        return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")

    def find(self, namespace: str, name: str, *, by_custom_id: bool) -> Doc | None:
        """A document by its own id, or by the caller's."""
        self._advance()
        doc = self.docs.get(name)
        if doc is not None and doc.namespace == namespace:
            return doc
        if not by_custom_id:
            return None
        return self._by_custom_id.get((namespace, name))

    def add(self, namespace: str, custom_id: str | None, content: object, metadata: object) -> Doc:
        """Add a document, or append to the one with this id."""
        text = _checked(content)
        meta = _flat(metadata)
        if custom_id in self._conduct.refused:
            raise Refused(409, "not now")
        if self._conduct.credits is not None:
            if self._conduct.credits <= 0:
                raise Refused(402, "out of credits")
            self._conduct.credits -= 1
        doc = None if custom_id is None else self.find(namespace, custom_id, by_custom_id=True)
        if doc is None:
            now = self._now()
            handle = f"doc{next(self._numbers):08d}"
            doc = Doc(handle, custom_id, namespace, text, meta, now, now)
            self.docs[doc.handle] = doc
            if custom_id is not None:
                self._by_custom_id[namespace, custom_id] = doc
        else:
            doc.sent = f"{doc.sent}\n{text}"
            doc.metadata |= meta
            self._queue(doc)
        self._settle(doc)
        return doc

    def update(self, doc: Doc, content: object, metadata: object) -> None:
        """Replace the content, or the metadata, or both."""
        if metadata is not None:
            doc.metadata |= _flat(metadata)
        doc.updated = self._now()
        if content is not None:
            doc.sent = _checked(content)
            doc.content = None
            self._queue(doc)
            self._settle(doc)

    def _queue(self, doc: Doc) -> None:
        doc.status, doc.failed_at, doc.looks, doc.updated = "queued", None, 0, self._now()

    def delete(self, doc: Doc) -> None:
        """Remove a document."""
        del self.docs[doc.handle]
        if doc.custom_id is not None:
            del self._by_custom_id[doc.namespace, doc.custom_id]

    def page(
        self, namespace: str, number: int, limit: int, sort: str, *, newest_first: bool
    ) -> tuple[list[Doc], int]:
        """A page, and how many documents there are."""
        self._advance()
        docs = [doc for doc in self.docs.values() if doc.namespace == namespace]
        key: Callable[[Doc], str] = (
            (lambda doc: doc.updated) if sort == "updatedAt" else (lambda doc: doc.created)
        )
        docs.sort(key=key, reverse=newest_first)
        shown = docs[(number - 1) * limit : number * limit]
        for doc in shown:
            self._show(doc)
        return shown, len(docs)

    def _show(self, doc: Doc) -> None:
        if doc.status in {"queued", "extracting"} and not self._conduct.held:
            doc.looks += 1
            self._settle(doc)

    def shown(self, doc: Doc) -> Doc:
        """The document as it is answered."""
        self._show(doc)
        return doc

    def _settle(self, doc: Doc) -> None:
        """Process it as far as it is time."""
        if self._conduct.held:
            return
        if doc.looks < self._conduct.looks:
            doc.status = "queued" if doc.looks == 0 else "extracting"
            return
        if self._conduct.failing > 0:
            self._conduct.failing -= 1
            doc.status, doc.failed_at = "failed", self._conduct.seconds
            doc.updated = self._now()
            return
        doc.content, doc.status = _processed(doc.sent), "done"
        if doc.looks:
            doc.updated = self._now()

    def release(self) -> None:
        """Process everything."""
        for doc in self.docs.values():
            if doc.status in {"queued", "extracting"}:
                doc.looks = self._conduct.looks
                self._settle(doc)

    def _advance(self) -> None:
        """Failed documents vanish after two minutes."""
        gone = [
            doc
            for doc in self.docs.values()
            if doc.failed_at is not None and self._conduct.seconds >= doc.failed_at + FAILED_SECONDS
        ]
        for doc in gone:
            self.delete(doc)

    def search(self, namespace: str, query: str, limit: int) -> list[tuple[Doc, str, float]]:
        """Documents with a passage and a similarity in [0, 1], best first: those that share words."""
        wanted = set(_words.findall(query.lower()))
        hits = []
        for doc in self.docs.values():
            if doc.namespace != namespace or doc.content is None or not wanted:
                continue
            found = wanted.intersection(_words.findall(doc.content.lower()))
            if found:
                at = doc.content.lower().find(min(found, key=len)) if len(doc.content) > PASSAGE else 0
                hits.append((doc, doc.content[max(0, at) :][:PASSAGE], len(found) / (len(wanted) + 0.5)))
        hits.sort(key=lambda hit: (-hit[2], hit[0].handle))
        return hits[:limit]


def _checked(content: object) -> str:
    if not isinstance(content, str) or not content:
        raise Refused(400, "content is required")
    if len(content.encode("utf-8")) > MAX_BYTES:
        raise Refused(413, "content too large")
    return content


def _flat(metadata: object) -> dict[str, Any]:
    if not isinstance(metadata, dict):
        raise Refused(400, "metadata is not an object")
    for name, value in metadata.items():
        if not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name) or not isinstance(value, (str, int, float, bool)):
            raise Refused(400, "metadata takes strings, numbers and booleans")
    return dict(metadata)


def _processed(text: str) -> str:
    """What the service makes of a text."""
    clean = text.replace("\0", "").strip()
    if re.fullmatch(r"[A-Za-z][\w+.-]*://\S+", clean):
        return f"The page that was fetched from {clean}."
    return clean
