"""Candidates from the service's own search: one request, ranked by the one scorer with its similarities."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from mycelium_sdk.backends.scoring import Candidate, Candidates, Words
from mycelium_sdk.backends.supermemory.documents import RECORD, memory_of
from mycelium_sdk.backends.supermemory.service import OWN_ID, Document
from mycelium_sdk.backends.text import terms
from mycelium_sdk.errors import Tampered

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from mycelium_sdk.backends.arguments import Query
    from mycelium_sdk.backends.supermemory.documents import Memory
    from mycelium_sdk.backends.supermemory.service import Found
    from mycelium_sdk.stored import StoredRecord


class Sought(NamedTuple):
    """What a search gave: candidates, the memories as far as the answer held them, and the handles of the
    others, whose texts are too long for that."""

    candidates: Candidates
    stored: Mapping[str, StoredRecord]
    partly: Mapping[str, str | None]


class _Hit(NamedTuple):
    id: str
    sequence: int
    words: Words
    similarity: float


def sought(
    query: Query,
    owner: str,
    hits: Iterable[Found],
    fresh: Iterable[StoredRecord],
    fetch: Callable[[str, str | None], Memory | None],
) -> Sought:
    """Rank the service's hits and `fresh`: what this process wrote and the service may not find yet.

    `fetch` gets a memory by id and handle, where only its whole document says whether it passes the filters.
    Raises `Tampered` for a hit whose text is not what was remembered.
    """
    stored: dict[str, StoredRecord] = {}
    partly: dict[str, str | None] = {}
    found: dict[str, _Hit] = {}
    for hit in hits:
        memory = _memory(hit, owner)
        if memory is not None and memory.stored is None and (query.tags or query.session is not None):
            memory = fetch(memory.id, hit.handle)
        if memory is None:
            continue
        if memory.damage is not None:
            raise Tampered(f"memory {memory.id} is not as it was remembered: {memory.damage}")
        one = _hit(memory, hit, query)
        if memory.stored is None:
            partly[memory.id] = hit.handle
        else:
            stored[memory.id] = memory.stored
        if one is not None and one.similarity > found.get(one.id, _NONE).similarity:
            found[one.id] = one
    least = min((one.similarity for one in found.values()), default=0.0)
    for record in fresh:
        words = _words(record)
        if record.id not in found and _passes(record, query) and set(query.terms) & words.frequencies.keys():
            stored[record.id] = record
            found[record.id] = _Hit(record.id, record.sequence, words, least)
    ordered = sorted(found.values(), key=lambda one: (-one.similarity, -one.sequence, one.id))
    lengths = [one.words.length for one in ordered]
    return Sought(
        Candidates(
            [Candidate(one.id, one.sequence, one.words, similarity=one.similarity) for one in ordered],
            len(ordered),
            len(ordered),
            sum(lengths) / len(lengths) if lengths else 0.0,
            {term: sum(term in one.words.frequencies for one in ordered) for term in query.terms},
        ),
        stored,
        partly,
    )


_NONE = _Hit("", 0, Words({}, 0), -1.0)


def _memory(hit: Found, owner: str) -> Memory | None:
    """The memory of a hit, without its text where the hit does not hold that; None for a foreign document."""
    meta = hit.metadata
    name = meta.get(OWN_ID)
    if meta.get("myc_kind") != RECORD or meta.get("myc_owner") != owner or not isinstance(name, str):
        return None
    memory = memory_of(Document(name, hit.handle or name, "", None, meta, ""))
    if memory.damage is None and memory.stored is None and hit.text is not None:
        # A passage may be the whole text; if it is not, that is no damage.
        whole = memory_of(Document(name, hit.handle or name, "", hit.text, meta, ""))
        return whole if whole.stored is not None else memory
    return memory


def _hit(memory: Memory, hit: Found, query: Query) -> _Hit | None:
    if memory.stored is None:
        found = terms(hit.text or "")
        return _Hit(memory.id, memory.sequence, Words(Counter(found), len(found)), hit.similarity)
    if not _passes(memory.stored, query):
        return None
    return _Hit(memory.id, memory.sequence, _words(memory.stored), hit.similarity)


def _words(stored: StoredRecord) -> Words:
    record = stored.record
    found = [term for text in (record.content, *record.tags) for term in terms(text)]
    return Words(Counter(found), len(found))


def _passes(stored: StoredRecord, query: Query) -> bool:
    return query.session in {None, stored.session} and set(query.tags).issubset(stored.record.tags)
