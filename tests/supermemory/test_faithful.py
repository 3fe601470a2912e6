"""Whatever the service does to texts, the memory has the root that it has anywhere else, or an error."""

from __future__ import annotations

import dataclasses
import hashlib
from typing import TYPE_CHECKING

import pytest

from mycelium_sdk import canonical
from mycelium_sdk.backends.integrity import Integrity
from mycelium_sdk.backends.local import LocalVectorBackend
from mycelium_sdk.backends.supermemory.documents import draft_of, memory_of
from mycelium_sdk.backends.supermemory.service import DONE, Document
from mycelium_sdk.errors import LimitExceeded, StoreUnavailable, Tampered
from mycelium_sdk.records import Record
from mycelium_sdk.stored import StoredRecord
from mycelium_sdk.testing.blob_conformance import ODD
from tests.supermemory.conftest import KEY, OWNER

if TYPE_CHECKING:
    from mycelium_sdk.backends.supermemory import SupermemoryBackend
    from mycelium_sdk.testing.supermemory_server import SupermemoryServer
    from tests.supermemory.conftest import Open

NASTY: list[tuple[str, list[str]]] = [
    ("plain", []),
    ("tags", ["a,b", 'say "x"', "[1]", "ü", "\U0001f602", "nul\0", "\\", " spaced ", "\n"]),
    ("https://example.org/a?b=c", ["link"]),
    ("HTTP://EXAMPLE.ORG", []),
    ("www.example.org", []),
    ("data:text/plain,hello", []),
    (" https://example.org ", []),
    ("see https://example.org", []),
    ("\0", []),
    ("nul\0inside", []),
    ("\n leading and trailing \t", []),
    ("line\r\nends", []),
    ("\u2028", []),
    ("\ufeffmark", []),
    ("\uff5e", []),
    ("\U0001f602", ["\U0001f602"]),
    ("e\u0301", []),
    ("é", []),
    ("{}", []),
    ('{"content":"x","tags":[]}', []),
    ("word " * 209_000 + "needle", ["a megabyte"]),
    ("nul\0" + "x" * 20_000, ["long and altered"]),
    ("\U0001f602" * 20_000, []),
    ("https://example.org/" + "x" * 20_000, []),
    ("many tags", [f"tag {number}" for number in range(2000)]),
]


@pytest.fixture
def local() -> LocalVectorBackend:
    return LocalVectorBackend(OWNER, ":memory:")


@pytest.mark.parametrize("steps", [0, 2])
def test_any_text_has_the_root_that_it_has_in_the_local_store(
    store: SupermemoryBackend, opened: Open, local: LocalVectorBackend, server: SupermemoryServer, steps: int
) -> None:
    server.conduct.looks = steps
    with local:
        for content, tags in NASTY:
            local.remember(content, tags, session="s\0'")
        store.remember_many(reversed(NASTY), session="s\0'")
        assert store.root() == local.root()
        other = opened()
        assert other.root() == local.root()
        assert {one.session for one in other.all_records()} == {"s\0'"}
        assert other.check()
        assert store.remember(*NASTY[2]) in {one.id for one in other.all_records()}
        assert other.count() == len(NASTY)
    # The service fetched nothing.
    server.release()
    assert all("fetched" not in (doc.content or "") for doc in server.shelf(KEY).docs.values())


def test_a_document_is_named_by_its_record_and_lies_in_the_owners_namespace(
    store: SupermemoryBackend, server: SupermemoryServer
) -> None:
    name = store.remember("tea, no sugar", ["b", "a"])
    digest = hashlib.sha256(b'{"content":"tea, no sugar","tags":["a","b"]}').hexdigest()
    assert name == f"myc-{digest[:24]}"
    store.import_blob(canonical.encode(OWNER, [Record("tea, no sugar", ("a", "b"))] * 3))
    [doc] = [doc for doc in server.shelf(KEY).docs.values() if "myc_digest" in doc.metadata]
    assert (doc.custom_id, doc.namespace, doc.content) == (name, OWNER, "tea, no sugar")
    assert doc.metadata["myc_digest"] == digest
    assert (doc.metadata["myc_tags"], doc.metadata["myc_copies"]) == ('["a", "b"]', 3)
    assert all(type(value) in {str, int, float, bool} for value in doc.metadata.values())


def test_what_an_imported_blob_repeats_comes_back(store: SupermemoryBackend, opened: Open) -> None:
    blob = canonical.encode(OWNER, [*ODD, *[Record("https://example.org", ())] * 3])
    store.import_blob(blob)
    assert opened().export_blob() == blob


def test_what_the_service_cannot_hold_is_a_limit_and_nothing_is_written(
    store: SupermemoryBackend, opened: Open
) -> None:
    store.max_record_bytes = 2**22
    store.remember("before")
    for content, session in (("x" * (2**21), None), ("short", "s" * 2000)):
        with pytest.raises(LimitExceeded) as caught:
            store.remember_many(["one more", content], session=session)
        assert caught.value.hint
        with pytest.raises(LimitExceeded):
            store.import_blob(canonical.encode(OWNER, [Record("y"), Record("x" * (2**21))]))
    assert [one.record.content for one in opened().all_records()] == ["before"]


@pytest.mark.parametrize("content", ["a short text", "a long text" * 2000])
@pytest.mark.parametrize("edit", ["content", "kept", "tags", "digest", "copies", "form", "sequence"])
def test_an_edit_in_the_service_is_noticed_and_never_hashed(
    store: SupermemoryBackend, opened: Open, server: SupermemoryServer, content: str, edit: str
) -> None:
    store.remember(content, ["tag"])
    store.remember("another")
    root = store.root()
    shelf = server.shelf(KEY)
    doc = next(iter(shelf.docs.values()))
    kept = doc.metadata["myc_form"] == "kept"
    if edit == "content":
        shelf.update(doc, "somebody else's text", None)
    else:
        name, value = {
            "kept": ("myc_content", '"another text"'),
            "tags": ("myc_tags", '["other"]'),
            "digest": ("myc_digest", "00" * 32),
            "copies": ("myc_copies", 0),
            "form": ("myc_form", "fragment" if not kept else "text"),
            "sequence": ("myc_sequence", "first"),
        }[edit]
        shelf.update(doc, None, {name: value})
    harmless = (edit == "content" and kept) or (edit == "kept" and not kept) or (edit == "form" and kept)
    for one in (store, opened()):
        if harmless:
            assert one.root() == root
            assert one.check()
        else:
            one._root = None
            with pytest.raises(Tampered):
                one.export_blob()
            with pytest.raises(Tampered):
                one.records([doc.custom_id or ""])
            report = one.check()
            assert report.state is Integrity.BROKEN
            assert "text" not in content or all(content not in finding for finding in report.findings)
    if not harmless and edit != "sequence":
        assert store.remember(content, ["tag"]) == doc.custom_id  # who knows the text mends it
        assert opened().root() == root


def test_a_text_that_two_machines_added_at_once_is_one_memory(
    store: SupermemoryBackend, opened: Open, server: SupermemoryServer
) -> None:
    for content in ("short", "long " * 3000 + "end"):
        store.remember(content)
        doc = next(reversed(server.shelf(KEY).docs.values()))
        # What the other machine sent at the same moment: the service appends to the same id.
        server.shelf(KEY).add(OWNER, doc.custom_id, f"{content} ", dict(doc.metadata))
    other = opened()
    assert other.count() == 2
    assert other.remember("long " * 3000 + "end")  # the doubled content is mended by whoever has the text
    assert opened().root() == canonical.root(
        canonical.encode(OWNER, [Record("short"), Record("long " * 3000 + "end")])
    )


def test_other_documents_in_the_namespace_are_ignored_and_reported(
    store: SupermemoryBackend, server: SupermemoryServer
) -> None:
    store.remember("mine")
    root, counter = store.root(), store.change_counter()
    shelf = server.shelf(KEY)
    shelf.add(OWNER, "notes", "somebody's notes, not mine", {})
    shelf.add(OWNER, None, "mine as well?", {"myc_kind": "record", "myc_owner": "somebody", "myc_schema": 1})
    assert (store.root(), store.change_counter(), store.count()) == (root, counter, 1)
    assert [hit["content"] for hit in store.recall("mine")] == ["mine"]
    report = store.check()
    assert report
    assert report.findings == ("2 documents in the namespace that Mycelium did not write; ignored",)
    store.clear()
    assert len([doc for doc in shelf.docs.values() if "myc_digest" not in doc.metadata]) == 3


def test_a_text_that_is_not_published_yet_is_waited_for(
    store: SupermemoryBackend, opened: Open, server: SupermemoryServer
) -> None:
    server.hold()
    store.remember_many(["short", "long " * 3000])
    assert len(store.all_records()) == 2  # whoever wrote it has it
    other = opened()
    assert other.count() == 2
    with pytest.raises(StoreUnavailable, match="not processed"):
        other.export_blob()
    server.release()
    assert other.export_blob() == store.export_blob()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("myc_copies", float("inf")),
        ("myc_changes", float("nan")),
        ("myc_sequence", str(2**63)),
        ("myc_sequence", "-1"),
        ("myc_time", "inf"),
        ("myc_time", "nan"),
        ("myc_session", "[" * 200_000),
        ("myc_content", "[" * 200_000),
        ("myc_tags", "[" * 200_000),
    ],
)
def test_metadata_that_nobody_writes_are_damage(name: str, value: str | float) -> None:
    stored = StoredRecord("myc-x", canonical.fragment(Record("x", ("t",))), 1, 1, "s", 1.5)
    draft = draft_of(stored, OWNER)
    document = Document(draft.id, "handle", DONE, draft.content, draft.metadata, "now")
    assert memory_of(document).stored == stored
    edited = dataclasses.replace(document, metadata={**draft.metadata, name: value})
    assert memory_of(edited).damage is not None
