"""The two APIs over a shelf: what is asked for at which address, and what the answer looks like."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mycelium_sdk.testing.supermemory_server.shelf import Refused

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mycelium_sdk.testing.supermemory_server.shelf import Conduct, Doc, Shelf

_MOST_BATCHED = 600
_MOST_FOUND = 100


class V5:
    """`/ns/{namespace}/...`"""

    def __init__(self, conduct: Conduct, *, batches: bool) -> None:
        self._conduct = conduct
        self._batches = batches

    def answer(self, shelf: Shelf, method: str, parts: list[str], query: Mapping[str, str], body: Any) -> Any:
        """The JSON to answer with. Raises `Refused`."""
        match method, parts:
            case "POST", ["ns", namespace, "document"]:
                return self._added(shelf.add(namespace, body.get("id"), body.get("content"), _meta(body)))
            case "POST", ["ns", namespace, "document", "batch"] if self._batches:
                return self._batch(shelf, namespace, body)
            case "GET", ["ns", namespace, "document", name]:
                return _v5(shelf.shown(_known(shelf, namespace, name)), content=True)
            case "PATCH", ["ns", namespace, "document", name]:
                doc = _known(shelf, namespace, name)
                shelf.update(doc, body.get("content"), body.get("metadata"))
                return self._added(doc)
            case "DELETE", ["ns", namespace, "document"]:
                return self._delete(shelf, namespace, body)
            case "POST", ["ns", namespace, "list", "documents"]:
                return self._list(shelf, namespace, query, body or {})
            case "POST", ["ns", namespace, "search"]:
                return self._search(shelf, namespace, body)
        raise Refused(404, "no such route")

    def _added(self, doc: Doc) -> Any:
        return {"id": doc.handle, "status": doc.status}

    def _batch(self, shelf: Shelf, namespace: str, body: Any) -> Any:
        documents = body.get("documents")
        if not isinstance(documents, list) or not 1 <= len(documents) <= _MOST_BATCHED:
            raise Refused(400, "1 to 600 documents")
        taken, failed = [], []
        for one in documents:
            if one.get("id") in self._conduct.refused:
                failed.append({"id": one["id"], "status": "error", "error": "not now"})
            else:
                taken.append(self._added(shelf.add(namespace, one.get("id"), one.get("content"), _meta(one))))
        return {"results": taken + failed, "count": len(taken), "failed": len(failed)}

    def _delete(self, shelf: Shelf, namespace: str, body: Any) -> Any:
        errors = []
        for name in body["ids"]:
            doc = shelf.find(namespace, name, by_custom_id=True)
            if doc is None or name in self._conduct.undeletable:
                errors.append({"id": name, "error": "not found" if doc is None else "locked"})
            else:
                shelf.delete(doc)
        return {"count": len(body["ids"]) - len(errors), "errors": errors}

    def _list(self, shelf: Shelf, namespace: str, query: Mapping[str, str], body: Any) -> Any:
        number, limit = _paging(query.get("page", "1"), query.get("limit", "10"), 100)
        docs, total = shelf.page(
            namespace,
            number,
            limit,
            query.get("sort", "createdAt"),
            newest_first=query.get("order", "desc") == "desc",
        )
        content = bool((body.get("include") or {}).get("content"))
        return {
            "documents": [_v5(doc, content=content) for doc in docs],
            "chunks": [],
            "memories": [],
            "pagination": _pagination(number, limit, total),
        }

    def _search(self, shelf: Shelf, namespace: str, body: Any) -> Any:
        text, limit = body.get("query"), body.get("limit", 10)
        if not isinstance(text, str) or not text or not 1 <= limit <= _MOST_FOUND:
            raise Refused(400, "query and limit")
        results = []
        for number, (doc, passage, similarity) in enumerate(shelf.search(namespace, text, limit)):
            # Every third hit is a fact that was derived from the document.
            kind = "memory" if number % 3 == 2 else "chunk"
            results.append(
                {
                    "id": f"hit{number}",
                    kind: f"It was said: {passage}" if kind == "memory" else passage,
                    "metadata": doc.metadata if kind == "chunk" else {},
                    "similarity": similarity,
                    "isLatest": True,
                    "isInference": kind == "memory",
                    "system": {"createdAt": doc.created, "updatedAt": doc.updated},
                    "included": {"document": _v5(doc, content=False)},
                }
            )
        return {"results": results, "searchTime": 1.0}


class V3:
    """`/v3/...`, with container tags."""

    def __init__(self, conduct: Conduct, *, batches: bool) -> None:
        self._conduct = conduct
        self._batches = batches

    def answer(self, shelf: Shelf, method: str, parts: list[str], query: Mapping[str, str], body: Any) -> Any:  # noqa: ARG002 - one shape
        """The JSON to answer with. Raises `Refused`."""
        match method, parts:
            case "POST", ["v3", "documents"]:
                return self._add(shelf, body)
            case "POST", ["v3", "documents", "batch"] if self._batches:
                return self._batch(shelf, body)
            case "POST", ["v3", "documents", "list"]:
                return self._list(shelf, body)
            case "DELETE", ["v3", "documents", "bulk"] if self._batches:
                return self._delete(shelf, body)
            case "GET", ["v3", "documents", handle]:
                return _v3(shelf.shown(self._known(shelf, handle)), content=True)
            case "PATCH", ["v3", "documents", handle]:
                doc = self._known(shelf, handle)
                shelf.update(doc, body.get("content"), body.get("metadata"))
                return {"id": doc.handle, "status": doc.status}
            case "DELETE", ["v3", "documents", handle]:
                shelf.delete(self._known(shelf, handle))
                return None
            case "POST", ["v3", "search"]:
                return self._search(shelf, body)
        raise Refused(404, "no such route")

    def _known(self, shelf: Shelf, handle: str) -> Doc:
        doc = shelf.docs.get(handle)
        if doc is None:
            raise Refused(404, "no such document")
        return doc

    def _add(self, shelf: Shelf, body: Any) -> Any:
        doc = shelf.add(_tag(body), body.get("customId"), body.get("content"), _meta(body))
        return {"id": doc.handle, "status": doc.status}

    def _batch(self, shelf: Shelf, body: Any) -> Any:
        documents = body.get("documents")
        if not isinstance(documents, list) or not 1 <= len(documents) <= _MOST_BATCHED:
            raise Refused(400, "1 to 600 documents")
        results = [
            {"id": one["customId"], "status": "error", "error": "not now"}
            if one.get("customId") in self._conduct.refused
            else self._add(shelf, one)
            for one in documents
        ]
        return {"results": results, "failed": 0, "success": len(results)}

    def _delete(self, shelf: Shelf, body: Any) -> Any:
        errors = []
        for handle in body["ids"]:
            doc = shelf.docs.get(handle)
            if doc is None or doc.custom_id in self._conduct.undeletable:
                errors.append({"id": handle, "error": "not found" if doc is None else "locked"})
            else:
                shelf.delete(doc)
        return {"success": not errors, "deletedCount": len(body["ids"]) - len(errors), "errors": errors}

    def _list(self, shelf: Shelf, body: Any) -> Any:
        number, limit = _paging(body.get("page", 1), body.get("limit", 50), 200)
        docs, total = shelf.page(
            _tag(body),
            number,
            limit,
            body.get("sort", "createdAt"),
            newest_first=body.get("order", "desc") == "desc",
        )
        return {
            "memories": [_v3(doc, content=False) for doc in docs],
            "pagination": _pagination(number, limit, total),
        }

    def _search(self, shelf: Shelf, body: Any) -> Any:
        text, limit = body.get("q"), body.get("limit", 10)
        if not isinstance(text, str) or not text or not 1 <= limit <= _MOST_FOUND:
            raise Refused(400, "q and limit")
        return {
            "results": [
                {
                    "documentId": doc.handle,
                    "score": similarity,
                    "chunks": [{"content": passage, "score": similarity, "isRelevant": True}],
                    "metadata": doc.metadata,
                    "title": None,
                }
                for doc, passage, similarity in shelf.search(_tag(body), text, limit)
            ],
            "total": 1,
            "timing": 1.0,
        }


def _known(shelf: Shelf, namespace: str, name: str) -> Doc:
    doc = shelf.find(namespace, name, by_custom_id=True)
    if doc is None:
        raise Refused(404, "no such document")
    return doc


def _tag(body: Any) -> str:
    tags = body.get("containerTags") or [body.get("containerTag")]
    if len(tags) != 1 or not isinstance(tags[0], str):
        raise Refused(400, "one container tag")
    return str(tags[0])


def _meta(body: Any) -> object:
    return body.get("metadata", {})


def _paging(page: object, limit: object, most: int) -> tuple[int, int]:
    number, size = int(str(page)), int(str(limit))
    if number < 1 or not 1 <= size <= most:
        raise Refused(400, "page and limit")
    return number, size


def _pagination(number: int, limit: int, total: int) -> Any:
    return {"currentPage": number, "limit": limit, "totalItems": total, "totalPages": -(-total // limit)}


def _v5(doc: Doc, *, content: bool) -> Any:
    return {
        "id": doc.handle,
        "title": None,
        "type": "text",
        "summary": None,
        "metadata": doc.metadata,
        "system": {
            "status": doc.status,
            "dreamingStatus": "done",
            "createdAt": doc.created,
            "updatedAt": doc.updated,
        },
    } | ({"content": doc.content} if content else {})


def _v3(doc: Doc, *, content: bool) -> Any:
    return {
        "id": doc.handle,
        "customId": doc.custom_id,
        "title": None,
        "type": "text",
        "status": doc.status,
        "metadata": doc.metadata,
        "containerTags": [doc.namespace],
        "createdAt": doc.created,
        "updatedAt": doc.updated,
    } | ({"content": doc.content} if content else {})
