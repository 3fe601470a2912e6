"""Records as documents of the service, and back, so that nothing the service does to a text changes a memory.

A document's content is what the service searches; the record is rebuilt from the metadata, and where a text
is too long for those, from the content. What is rebuilt has the digest that was written with it, or it is not
used. Three forms:

* kept: the metadata hold the text as JSON. Short texts, whatever the service makes of their content.
* text: the content is the text itself. Long ones that a service does not alter.
* fragment: the content is, after a word, the record's canonical fragment, which is ASCII without control
  characters. Long ones that a service might alter, and those with very many tags.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import re
from typing import TYPE_CHECKING

from mycelium_sdk import canonical
from mycelium_sdk.backends.supermemory.service import FAILED, OWN_ID, Document, Draft, Value
from mycelium_sdk.errors import LimitExceeded, MyceliumError, Tampered
from mycelium_sdk.records import Record
from mycelium_sdk.stored import StoredRecord

if TYPE_CHECKING:
    from collections.abc import Mapping

SCHEMA = 1
RECORD = "record"

KEPT_CHARACTERS = 8000
"""So long the text and the tags in the metadata may be, as JSON; longer ones are in the content."""
SESSION_CHARACTERS = 1000

_BEFORE = "Memory: "
"""Stands before a fragment, which could else be taken for an address."""
_ADDRESS = re.compile(r"\S+://\S*|www\.\S+|data:\S+", re.IGNORECASE)
_controls = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")


@dataclasses.dataclass(frozen=True, slots=True)
class Memory:
    """A memory as one document holds it.

    `stored`: None while the service has not published the content that is needed, or if `damage` says why
    there is none. `changes`: how often it was written. `load`: the import that brought it, if one did.
    """

    id: str
    handle: str
    status: str
    updated: str
    sequence: int
    copies: int
    changes: int
    load: str | None
    stored: StoredRecord | None
    damage: str | None = None


def identity(record: Record) -> str:
    """The fragment of what `remember` would make of the record: distinct tags, sorted."""
    return canonical.fragment(Record(record.content, tuple(sorted(set(record.tags)))))


def document_id(text: str, place: int = 0) -> str:
    """The id of a memory's document, from its identity. `place`: which of those with the same identity, where
    an imported blob holds several."""
    digest = hashlib.sha256(text.encode("ascii")).hexdigest()[:24]
    return f"myc-{digest}" if place == 0 else f"myc-{digest}-{place + 1}"


def base_of(id: str) -> str:  # noqa: A002 - the documents' word
    """The id of the first document with the same identity."""
    return "-".join(id.split("-", 2)[:2])


def draft_of(stored: StoredRecord, owner: str, *, changes: int = 1, load: str | None = None) -> Draft:
    """The document that holds a memory. Raises `LimitExceeded` for what none can hold faithfully."""
    record = stored.record
    metadata: dict[str, Value] = {
        "myc_kind": RECORD,
        "myc_schema": SCHEMA,
        "myc_owner": owner,
        OWN_ID: stored.id,
        "myc_digest": hashlib.sha256(stored.fragment.encode("ascii")).hexdigest(),
        "myc_sequence": str(stored.sequence),
        "myc_copies": stored.copies,
        "myc_changes": changes,
    }
    if stored.time is not None:
        metadata["myc_time"] = repr(stored.time)
    if stored.session is not None:
        session = json.dumps(stored.session)
        if len(session) > SESSION_CHARACTERS:
            raise LimitExceeded(
                "the session's name is longer than the memory service holds", hint="give it a shorter name"
            )
        metadata["myc_session"] = session
    if load is not None:
        metadata["myc_load"] = load
    text, tags = json.dumps(record.content), json.dumps(record.tags)
    altered = _altered(record.content)
    if len(text) + len(tags) <= KEPT_CHARACTERS:
        form, content = "kept", _searchable(record.content) or _BEFORE + stored.fragment
        metadata["myc_content"] = text
    elif altered or len(tags) > KEPT_CHARACTERS:
        form, content = "fragment", _BEFORE + stored.fragment
    else:
        form, content = "text", record.content
    if form != "fragment":
        metadata["myc_tags"] = tags
    metadata["myc_form"] = form
    return Draft(stored.id, content, metadata)


def _altered(content: str) -> bool:
    """Whether a service might store another text: a bare address is fetched, and control characters and white
    space at the ends get lost."""
    return bool(
        not content
        or content != content.strip()
        or _controls.search(content)
        or _ADDRESS.fullmatch(content.strip())
    )


def _searchable(content: str) -> str:
    """What stands for a text in the service's search: nothing that it would fetch."""
    clean = _controls.sub(" ", content).strip()
    return f"Address: {clean}" if _ADDRESS.fullmatch(clean) else clean


def memory_of(document: Document) -> Memory:
    """The memory that a document of kind `RECORD` holds."""
    meta = document.metadata
    load = meta.get("myc_load")
    bare = Memory(
        document.id,
        document.handle,
        document.status,
        document.updated,
        sequence=0,
        copies=1,
        changes=1,
        load=load if isinstance(load, str) else None,
        stored=None,
        damage="its metadata are not as they were written",
    )
    try:
        sequence = int(_text(meta, "myc_sequence"))
        copies, changes = _number(meta, "myc_copies"), _number(meta, "myc_changes")
        time = float(_text(meta, "myc_time")) if "myc_time" in meta else None
        session = json.loads(_text(meta, "myc_session")) if "myc_session" in meta else None
    except (ValueError, TypeError, OverflowError, RecursionError):
        return bare
    if copies < 1 or changes < 1 or not (session is None or isinstance(session, str)):
        return bare
    if not 0 <= sequence < 1 << 63 or not (time is None or math.isfinite(time)):
        return bare
    fragment, damage = rebuilt(meta, document.content)
    stored = None
    if fragment is not None:
        stored = StoredRecord(document.id, fragment, copies, sequence, session, time)
    elif damage is None and document.status == FAILED:
        damage = "the service failed to process it"
    return dataclasses.replace(
        bare, sequence=sequence, copies=copies, changes=changes, stored=stored, damage=damage
    )


def rebuilt(meta: Mapping[str, object], content: str | None) -> tuple[str | None, str | None]:
    """The fragment that metadata and content give, and what is wrong with it.

    (None, None): the content is needed, and not there.
    """
    form = meta.get("myc_form")
    try:
        if form == "kept":
            fragment = _fragment(json.loads(_text(meta, "myc_content")), meta)
        elif content is None:
            return None, None
        elif form == "fragment":
            fragment = canonical.fragment(canonical.record_from_fragment(content.removeprefix(_BEFORE)))
        else:
            fragment = _fragment(content, meta)
    except (ValueError, TypeError, RecursionError, MyceliumError):
        return None, "its text is not as it was written"
    if hashlib.sha256(fragment.encode("ascii")).hexdigest() != meta.get("myc_digest"):
        return None, "its text is not what was remembered"
    return fragment, None


def _fragment(content: object, meta: Mapping[str, object]) -> str:
    tags = json.loads(_text(meta, "myc_tags"))
    if not isinstance(content, str) or not isinstance(tags, list):
        raise TypeError
    if not all(isinstance(tag, str) for tag in tags):
        raise TypeError
    return canonical.fragment(Record(content, tuple(tags)))


def _text(meta: Mapping[str, object], name: str) -> str:
    value = meta.get(name)
    if not isinstance(value, str):
        raise TypeError
    return value


def _number(meta: Mapping[str, object], name: str) -> int:
    value = meta.get(name)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value != int(value):
        raise TypeError
    return int(value)


def refuse_damaged(memory: Memory) -> None:
    """Raise `Tampered` for a memory that is no longer what was remembered."""
    if memory.damage is not None:
        raise Tampered(f"memory {memory.id} is not as it was remembered: {memory.damage}")
